//! The seed of the hash tables whose keys clients choose.
//!
//! The seed is made of the process's random bytes, as all randomness is, so that a run of a
//! simulator or of a count of instructions has the same tables each time.

/// Hashes bytes with a seed of this process.
pub type Seed = foldhash::fast::SeedableRandomState;

/// Makes a seed of random bytes. The seed is for the whole process, and its memory is never freed.
pub fn seed(entropy: &mut dyn FnMut(&mut [u8])) -> Seed {
    let mut random = [0; 16];
    entropy(&mut random);
    let [hasher, shared] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&random[at..at + 8]);
        u64::from_le_bytes(half)
    });
    let shared = Box::leak(Box::new(foldhash::SharedSeed::from_u64(shared)));
    Seed::with_seed(hasher, shared)
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn a_seed_is_what_its_bytes_are() {
        let hash = |byte| seed(&mut |bytes| bytes.fill(byte)).hash_one(b"text");
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }
}
