//! Numbers: short names for long parts of keys, so that a key is small and quick to compare.
//!
//! Two byte strings have one number if they are equal, and no number is given twice. If too many
//! bytes are kept, all are forgotten: what comes again then gets another number, and its replies
//! are fetched once more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::Seed;

/// Bytes that an entry takes beside its content.
const ENTRY_BYTES: usize = 64;

/// The numbers of byte strings.
#[derive(Debug)]
pub struct Numbers {
    known: Mutex<Known>,
    bytes_max: usize,
}

#[derive(Debug)]
struct Known {
    map: HashMap<Box<[u8]>, u64, Seed>,
    bytes: usize,
    next: u64,
}

impl Numbers {
    /// Makes an empty map that keeps at most this number of bytes.
    pub fn new(seed: Seed, bytes_max: usize) -> Self {
        let known = Known { map: HashMap::with_hasher(seed), bytes: 0, next: 1 };
        Self { known: Mutex::new(known), bytes_max }
    }

    /// Returns the number of a byte string; never zero.
    pub fn number(&self, bytes: &[u8]) -> u64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.map.get(bytes) {
            return *number;
        }
        let more = bytes.len() + ENTRY_BYTES;
        if known.bytes + more > self.bytes_max {
            known.map.clear();
            known.bytes = 0;
        }
        let number = known.next;
        known.next += 1;
        known.bytes += more;
        known.map.insert(bytes.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_number_and_no_number_is_given_twice() {
        let numbers = Numbers::new(Seed::default(), 4 * (ENTRY_BYTES + 1));
        let first = numbers.number(b"a");
        assert_eq!(numbers.number(b"a"), first);
        let mut given = vec![first];
        for byte in b'b'..b'z' {
            let number = numbers.number(&[byte]);
            assert!(!given.contains(&number));
            given.push(number);
        }
        // It was forgotten meanwhile.
        assert!(!given.contains(&numbers.number(b"a")));
    }
}
