//! Random choices that a seed decides.

/// A generator of random numbers (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    /// Makes the generator of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// Returns an integer of some length: as many are short as long.
    pub(crate) fn integer(&mut self) -> u64 {
        let shift = self.below(64);
        self.bits() >> shift
    }

    /// Returns some bytes, more than 250 of them now and then.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let most = [4, 20, 300][self.below(3)];
        (0..self.below(most)).map(|_| self.bits() as u8).collect()
    }

    /// Returns some bytes without a zero byte.
    pub(crate) fn word(&mut self) -> Vec<u8> {
        self.bytes().into_iter().filter(|&byte| byte != 0).collect()
    }
}
