//! Buckets of a fine histogram: each power of two has 32 of them ([`STEPS`]).

/// Buckets of each power of two.
pub(crate) const STEPS: usize = 32;
/// Powers of two that are told apart: times above 2^32 µs count as that.
pub(crate) const POWERS: usize = 28;

/// Returns the power of two, and the bucket there, of a time in microseconds.
#[inline]
pub(crate) fn place_of(us: u64) -> (u64, usize) {
    let us = us.min(u32::MAX.into()) + STEPS as u64;
    let power = us.ilog2() - STEPS.ilog2();
    (power.into(), (us >> power) as usize % STEPS)
}

/// Returns the least time of a bucket, and how many microseconds the bucket is wide.
pub(crate) fn bounds_of(power: usize, step: usize) -> (f64, f64) {
    ((((STEPS + step) << power) - STEPS) as f64, (1_u64 << power) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_a_bucket_of_its_own_size() {
        for us in (0..4_000_000).step_by(7).chain([1 << 31, (1 << 32) - 1]) {
            let (power, step) = place_of(us);
            let (least, width) = bounds_of(power as usize, step);
            let us = us as f64;
            assert!(least <= us && us < least + width, "{us}: {power} {step}");
            assert!(width <= 2.0 || width <= us / 24.0, "{us}: {width}");
        }
        assert_eq!(place_of(u64::MAX).0, POWERS as u64 - 1);
    }
}
