//! The clients that have moved from the core that their process ID names.
//!
//! A client keeps the process ID that it was told at its login, and no other client gets it
//! meanwhile. A cancel request with an ID that this table has goes where the table says, any other
//! to the core that the ID names.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::{ClientSerial, Conn, Core};

/// A client that has moved, or moves.
#[derive(Clone, Copy, Debug)]
struct Place {
    serial: ClientSerial,
    /// Where it is; `None` on the way.
    at: Option<(Core, Conn)>,
    /// Whether it was killed on the way.
    killed: bool,
}

/// The clients that have moved, by process ID.
#[derive(Debug, Default)]
pub(crate) struct Moved(Mutex<HashMap<u32, Place>>);

impl Moved {
    /// Notes that a client leaves its core for another.
    pub(crate) fn departs(&self, pid: u32, serial: ClientSerial) {
        self.lock().insert(pid, Place { serial, at: None, killed: false });
    }

    /// Notes where a client is from now on. False if it was killed on the way.
    pub(crate) fn arrives(&self, pid: u32, serial: ClientSerial, at: (Core, Conn)) -> bool {
        let before = self.lock().insert(pid, Place { serial, at: Some(at), killed: false });
        !before.is_some_and(|place| place.killed)
    }

    /// Kills a client on the way when it arrives. Returns the place of a client that has arrived.
    pub(crate) fn kill(&self, serial: ClientSerial) -> Option<(Core, Conn)> {
        let mut moved = self.lock();
        let place = moved.values_mut().find(|place| place.serial == serial)?;
        place.killed = place.at.is_none();
        place.at
    }

    /// Forgets a client, whose session has ended.
    pub(crate) fn forget(&self, pid: u32) {
        self.lock().remove(&pid);
    }

    /// Returns whether the client with this process ID has moved, and where it is then: nowhere on
    /// the way.
    pub(crate) fn find(&self, pid: u32) -> Option<Option<(Core, Conn)>> {
        self.lock().get(&pid).map(|place| place.at)
    }

    /// Returns the process IDs of all clients that have moved.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_where_it_has_arrived_last() {
        let moved = Moved::default();
        let [one, two] = [(Core(1), Conn(3)), (Core(2), Conn(4))];
        assert_eq!(moved.find(8), None);
        assert!(moved.arrives(8, ClientSerial(1), one));
        assert!(moved.arrives(8, ClientSerial(1), two));
        assert_eq!((moved.find(8), moved.pids()), (Some(Some(two)), vec![8]));
        moved.forget(8);
        assert_eq!((moved.find(8), moved.pids()), (None, vec![]));
    }

    #[test]
    fn a_client_is_nowhere_on_the_way_and_can_be_killed_there() {
        let moved = Moved::default();
        let at = (Core(1), Conn(3));
        moved.departs(8, ClientSerial(1));
        assert_eq!(moved.find(8), Some(None));
        assert_eq!(moved.kill(ClientSerial(1)), None);
        assert_eq!(moved.kill(ClientSerial(2)), None);
        assert!(!moved.arrives(8, ClientSerial(1), at));
        assert_eq!(moved.kill(ClientSerial(1)), Some(at));
    }
}
