//! The only source of random choices in the simulator, from a seed.
//!
//! The generator is SplitMix64: small, the same on every machine, and good enough for faults.

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed ^ 0x5ee1_5eed_5eed_0001);
        rng.bits();
        rng
    }

    /// Creates a separate stream, so that the draws of one part of the world do not change others.
    #[must_use]
    pub fn fork(&mut self, salt: u64) -> Self {
        Self::new(self.bits() ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn range(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns an index below `length`.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True in `per_mille` of a thousand calls on average.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// Returns one of the items.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// Fills a slice.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.bits().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..4).map(|_| rng.range(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(1).iter().all(|n| (3..=9).contains(n)));
        assert_eq!(Rng::new(1).below(0), 0);
    }
}
