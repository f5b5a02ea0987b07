//! Worlds with a result cache: one rule for all reads, and the allowance that it gives them to miss
//! acknowledged writes.

use crate::rng::Rng;
use crate::versions::Staleness;

/// The rule of a world whose replies are kept.
#[derive(Clone, Debug)]
pub struct Caching {
    /// The rule, as the configuration has it.
    pub rule: String,
    /// How old the replies may be.
    pub staleness: Staleness,
}

impl Caching {
    /// Draws a rule.
    pub fn new(rng: &mut Rng) -> Self {
        let milliseconds = *rng.pick(&[5, 100, 1_000, 600_000]);
        let stale = *rng.pick(&[0, 0, 20, 1_000]);
        let age = 1_000 * (milliseconds + stale);
        let (consistency, staleness) = *rng.pick(&[
            ("writes", Staleness::NONE),
            ("writes", Staleness::NONE),
            ("writes", Staleness::NONE),
            ("session", Staleness { age, own: false }),
            ("ttl", Staleness { age, own: true }),
        ]);
        let jitter = *rng.pick(&[0, 50]);
        let most = *rng.pick(&["64B", "256KiB"]);
        let rule = format!(
            "[cache]\nmemory = \"1MiB\"\n[[cache.rules]]\nttl = \"{milliseconds}ms\"\n\
             consistency = \"{consistency}\"\njitter = \"{jitter}%\"\n\
             max_result_size = \"{most}\"\n"
        );
        let stale = match stale {
            0 => String::new(),
            _ => format!("stale_while_revalidate = \"{stale}ms\"\n"),
        };
        Self { rule: rule + &stale, staleness }
    }
}
