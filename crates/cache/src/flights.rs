//! Flights: the replies that are being fetched, so that one asker fetches and the others wait.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::fill::{Fill, Waiter};

/// Most that wait for one reply. Those beyond fetch it themselves.
const WAITERS_MAX: usize = 4096;

/// A reply that is being fetched.
#[derive(Debug)]
struct Flight {
    hash: u64,
    key: Arc<[u8]>,
    number: u64,
    stamp: u64,
    waiters: Vec<Waiter>,
}

/// The replies of a shard that are being fetched.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    table: HashTable<Flight>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// No asker fetches it.
    Not,
    /// Somebody does, as of these generations.
    As(u64),
}

impl Flights {
    fn find(&mut self, hash: u64, key: &[u8]) -> Option<&mut Flight> {
        self.table.find_mut(hash, |flight| flight.hash == hash && *flight.key == *key)
    }

    /// Returns whether a key is being fetched.
    pub(crate) fn state(&mut self, hash: u64, key: &[u8]) -> Fetched {
        if self.table.is_empty() {
            return Fetched::Not;
        }
        self.find(hash, key).map_or(Fetched::Not, |flight| Fetched::As(flight.stamp))
    }

    /// Begins a flight. One of the same key that is under way is forgotten, since its reply is out
    /// of date; those that wait for it wait for this one.
    pub(crate) fn begin(&mut self, fill: &Fill) {
        let Fill { hash, stamp, number, .. } = *fill;
        if let Some(flight) = self.find(hash, &fill.key) {
            (flight.stamp, flight.number) = (stamp, number);
            return;
        }
        let flight = Flight { hash, key: fill.key.clone(), number, stamp, waiters: Vec::new() };
        self.table.insert_unique(hash, flight, |flight| flight.hash);
    }

    /// Has one more wait for a key. False if too many do.
    pub(crate) fn wait(&mut self, hash: u64, key: &[u8], waiter: Waiter) -> bool {
        let Some(flight) = self.find(hash, key) else { return false };
        let room = flight.waiters.len() < WAITERS_MAX;
        if room {
            flight.waiters.push(waiter);
        }
        room
    }

    /// Ends the flight of a fill. Returns those that wait.
    pub(crate) fn end(&mut self, fill: &Fill) -> Vec<Waiter> {
        let own = |flight: &Flight| flight.number == fill.number && flight.key == fill.key;
        match self.table.find_entry(fill.hash, own) {
            Ok(found) => found.remove().0.waiters,
            Err(_) => Vec::new(),
        }
    }

    /// Returns the number of flights.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
