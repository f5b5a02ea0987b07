//! The clients that are at another core than the one that their process ID names.
//!
//! A client keeps the process ID that it was told at its login. A cancel request with that ID goes
//! to the core and the connection that the ID names, and to those that this table has for the ID:
//! another client may have got the connection's number since, and so the same ID. The key says
//! which of them the request is for.

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
pub(crate) struct Moved(Mutex<HashMap<u32, Vec<Place>>>);

impl Moved {
    /// Notes that a client leaves its core for another.
    pub(crate) fn departs(&self, pid: u32, serial: ClientSerial) {
        self.note(Place { serial, at: None, killed: false }, pid);
    }

    /// Notes where a client is from now on. False if it was killed on the way.
    pub(crate) fn arrives(&self, pid: u32, serial: ClientSerial, at: (Core, Conn)) -> bool {
        let before = self.note(Place { serial, at: Some(at), killed: false }, pid);
        !before.is_some_and(|place| place.killed)
    }

    fn note(&self, place: Place, pid: u32) -> Option<Place> {
        let mut moved = self.lock();
        let places = moved.entry(pid).or_default();
        let before = places.iter_mut().find(|other| other.serial == place.serial);
        match before {
            Some(before) => Some(std::mem::replace(before, place)),
            None => {
                places.push(place);
                None
            }
        }
    }

    /// Kills a client on the way when it arrives. Returns the place of a client that has arrived.
    pub(crate) fn kill(&self, serial: ClientSerial) -> Option<(Core, Conn)> {
        let mut moved = self.lock();
        let place = moved.values_mut().flatten().find(|place| place.serial == serial)?;
        place.killed = place.at.is_none();
        place.at
    }

    /// Forgets a client, whose session has ended.
    pub(crate) fn forget(&self, pid: u32, serial: ClientSerial) {
        let mut moved = self.lock();
        let Some(places) = moved.get_mut(&pid) else { return };
        places.retain(|place| place.serial != serial);
        if places.is_empty() {
            moved.remove(&pid);
        }
    }

    /// Returns where the clients with this process ID are that have moved.
    pub(crate) fn places(&self, pid: u32) -> Vec<(Core, Conn)> {
        let moved = self.lock();
        let places = moved.get(&pid).into_iter().flatten();
        places.filter_map(|place| place.at).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Vec<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_with_one_process_id_are_kept_apart() {
        let moved = Moved::default();
        let [one, two, three] = [(Core(1), Conn(3)), (Core(2), Conn(4)), (Core(0), Conn(5))];
        assert!(moved.arrives(8, ClientSerial(1), one));
        assert!(moved.arrives(8, ClientSerial(2), two));
        assert!(moved.arrives(8, ClientSerial(1), three));
        assert_eq!(moved.places(8), [three, two]);
        moved.forget(8, ClientSerial(2));
        assert_eq!(moved.places(8), [three]);
        moved.forget(8, ClientSerial(1));
        assert!(moved.places(8).is_empty() && moved.lock().is_empty());
    }

    #[test]
    fn a_client_is_nowhere_on_the_way_and_can_be_killed_there() {
        let moved = Moved::default();
        let at = (Core(1), Conn(3));
        moved.departs(8, ClientSerial(1));
        assert!(moved.places(8).is_empty());
        assert_eq!(moved.kill(ClientSerial(1)), None);
        assert_eq!(moved.kill(ClientSerial(2)), None);
        assert!(!moved.arrives(8, ClientSerial(1), at));
        assert_eq!(moved.kill(ClientSerial(1)), Some(at));
    }
}
