//! The clients that are at another core than the one that their process ID names.
//!
//! A client keeps the process ID that it was told at its login. A cancel request with that ID goes
//! to the core and the connection that the ID names, and to those that this table has for the ID:
//! another client may have got the connection's number since, and so the same ID. The key says
//! which of them the request is for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::{ClientSerial, Conn, Core};

/// A client that has moved, and where it is.
#[derive(Clone, Copy, Debug)]
struct Place {
    serial: ClientSerial,
    core: Core,
    conn: Conn,
}

/// The clients that have moved, by process ID.
#[derive(Debug, Default)]
pub(crate) struct Moved(Mutex<HashMap<u32, Vec<Place>>>);

impl Moved {
    /// Notes where a client is from now on.
    pub(crate) fn note(&self, pid: u32, serial: ClientSerial, core: Core, conn: Conn) {
        let mut moved = self.lock();
        let places = moved.entry(pid).or_default();
        places.retain(|place| place.serial != serial);
        places.push(Place { serial, core, conn });
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
        places.map(|place| (place.core, place.conn)).collect()
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
        moved.note(8, ClientSerial(1), Core(1), Conn(3));
        moved.note(8, ClientSerial(2), Core(2), Conn(4));
        moved.note(8, ClientSerial(1), Core(0), Conn(5));
        assert_eq!(moved.places(8), [(Core(2), Conn(4)), (Core(0), Conn(5))]);
        moved.forget(8, ClientSerial(2));
        assert_eq!(moved.places(8), [(Core(0), Conn(5))]);
        moved.forget(8, ClientSerial(1));
        assert!(moved.places(8).is_empty() && moved.lock().is_empty());
    }
}
