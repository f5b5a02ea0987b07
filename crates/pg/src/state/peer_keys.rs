//! The cancel keys of clients, where several processes serve the same clients (`peer_id`).
//!
//! A load balancer may lead a cancel request to any of the processes. So the key that a client gets
//! names the process, in PgBouncer's way: the number stands in the second and third byte of the
//! process ID, and the lowest two bits of the secret key's fourth byte count how often a request
//! may still be passed on. All other bits are random, and lead by a table to the process ID that
//! the cores know.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The byte of the secret key that has the count, and the bits of the count.
const HOPS_AT: usize = 3;
const HOPS: u8 = 0b11;

/// The keys that clients have got.
#[derive(Debug, Default)]
pub(crate) struct PeerKeys(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The process ID that the cores know, by the key.
    pids: HashMap<Shown, u32>,
    /// These process IDs. They are counters, so a request that names one would have to guess the
    /// secret key alone.
    inner: HashSet<u32>,
}

/// A key as a client has got it: the process ID, and the secret key.
type Shown = (u32, Box<[u8]>);

/// A client's key, which goes with the client.
#[derive(Debug)]
pub(crate) struct PeerKey {
    keys: Arc<PeerKeys>,
    shown: Shown,
    /// The process ID that the cores know.
    inner: u32,
}

impl Drop for PeerKey {
    fn drop(&mut self) {
        let mut known = self.keys.known();
        known.inner.remove(&self.inner);
        known.pids.remove(&self.shown);
    }
}

impl PeerKey {
    /// Returns the process ID that the client is told.
    pub(crate) fn pid(&self) -> u32 {
        self.shown.0
    }
}

impl PeerKeys {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the key of a client of the process `peer`, whom the cores know by `pid`: a process ID
    /// of random bytes, and a secret key that is marked ([`mark`]).
    pub(crate) fn give(
        self: &Arc<Self>,
        peer: u32,
        pid: u32,
        random: [u8; 4],
        key: &[u8],
    ) -> PeerKey {
        let [low, high, ..] = peer.to_le_bytes();
        // A process ID is a positive number.
        let told = u32::from_be_bytes([random[0] & 0x7f, low, high, random[3]]);
        let shown = (told, Box::from(key));
        let mut known = self.known();
        known.pids.insert(shown.clone(), pid);
        known.inner.insert(pid);
        drop(known);
        PeerKey { keys: Arc::clone(self), shown, inner: pid }
    }

    /// Returns the process ID that the cores know, and the secret key, of a client with this key.
    pub(crate) fn find(&self, pid: u32, key: &[u8]) -> Option<(u32, Box<[u8]>)> {
        let mut key: Box<[u8]> = key.into();
        *key.get_mut(HOPS_AT)? |= HOPS;
        let found = self.known().pids.get(&(pid, key.clone())).copied();
        found.map(|pid| (pid, key))
    }

    /// Whether the cores know a client with a key by this process ID: no client names it.
    pub(crate) fn is_inner(&self, pid: u32) -> bool {
        self.known().inner.contains(&pid)
    }
}

/// Sets the count in a secret key, which has at least four bytes.
pub(crate) fn mark(key: &mut [u8]) {
    key[HOPS_AT] |= HOPS;
}

/// Returns the other process for which a request with this key is that has come to the process
/// `own`, and the secret key to pass on. `None` if the request is for this process, has been passed
/// on too often, or is none of a client of these processes.
pub(crate) fn other_process(own: u32, pid: u32, key: &[u8]) -> Option<(u32, Box<[u8]>)> {
    let [_, low, high, _] = pid.to_be_bytes();
    let peer = u32::from(u16::from_le_bytes([low, high]));
    let mut key: Box<[u8]> = key.into();
    let byte = key.get_mut(HOPS_AT).filter(|byte| **byte & HOPS > 0 && peer > 0 && peer != own)?;
    *byte -= 1;
    Some((peer, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_process_and_is_forgotten_with_its_client() {
        let keys = Arc::<PeerKeys>::default();
        let mut key = *b"abc\x10";
        mark(&mut key);
        let given = keys.give(0x0102, 77, [0xff, 9, 9, 5], &key);
        assert_eq!((given.pid(), &key), (0x7f02_0105, b"abc\x13"));
        assert_eq!(other_process(0x0102, given.pid(), &key), None);
        assert_eq!(keys.find(given.pid(), b"abc\x11"), Some((77, Box::from(&b"abc\x13"[..]))));
        assert_eq!(keys.find(given.pid(), b"abd\x13"), None);
        assert!(keys.is_inner(77) && !keys.is_inner(given.pid()));
        let pid = given.pid();
        drop(given);
        assert_eq!(keys.find(pid, &key), None);
        assert!(!keys.is_inner(77));
    }

    #[test]
    fn a_request_is_passed_on_three_times_at_most() {
        let mut key: Box<[u8]> = Box::from(&b"abc\x13"[..]);
        for _ in 0..3 {
            let (peer, next) = other_process(1, 0x7f02_0005, &key).expect("it is for another one");
            assert_eq!(peer, 2);
            key = next;
        }
        assert_eq!(other_process(1, 0x7f02_0005, &key), None);
        assert_eq!(other_process(1, 0x7f02_0005, b""), None);
        assert_eq!(other_process(1, 0x7f00_0005, b"abc\x13"), None, "without a number");
    }
}
