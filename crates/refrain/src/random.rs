//! Random bytes for nonces, salts and cancel keys.

/// The bytes that the kernel is asked for at once.
const SUPPLY_BYTES: usize = 1024;

/// Fills `bytes` with random bytes.
pub(crate) fn fill(bytes: &mut [u8]) {
    // Without random bytes no login is safe. No system on which Refrain runs lacks them.
    getrandom::fill(bytes).expect("the system has random bytes");
}

/// A supply of random bytes: each login takes some, and a system call for each would cost more than
/// the bytes. Bytes that were given out are not kept.
pub(crate) struct Supply {
    bytes: [u8; SUPPLY_BYTES],
    used: usize,
}

impl Supply {
    /// Makes an empty supply.
    pub(crate) fn new() -> Self {
        Self { bytes: [0; SUPPLY_BYTES], used: SUPPLY_BYTES }
    }

    /// Fills `wanted` with random bytes that were never given out before.
    pub(crate) fn fill(&mut self, wanted: &mut [u8]) {
        if wanted.len() > SUPPLY_BYTES {
            return fill(wanted);
        }
        if wanted.len() > SUPPLY_BYTES - self.used {
            fill(&mut self.bytes);
            self.used = 0;
        }
        let taken = &mut self.bytes[self.used..self.used + wanted.len()];
        wanted.copy_from_slice(taken);
        taken.fill(0);
        self.used += wanted.len();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_given_out_twice() {
        let mut supply = Supply::new();
        let mut seen = HashSet::new();
        for _ in 0..1_000 {
            let mut key = [0; 24];
            supply.fill(&mut key);
            assert!(key != [0; 24] && seen.insert(key.to_vec()));
            assert!(!supply.bytes.windows(24).any(|kept| kept == key));
        }
        for length in [0, 1, SUPPLY_BYTES, SUPPLY_BYTES + 1] {
            let mut long = vec![0; length];
            supply.fill(&mut long);
            assert!(long.windows(16).all(|part| part != [0; 16]));
        }
    }
}
