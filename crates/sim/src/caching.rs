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
    /// Draws a rule. With `strict`, no read may miss a write.
    pub fn new(rng: &mut Rng, strict: bool) -> Self {
        let milliseconds = *rng.pick(&[2, 5, 100, 1_000, 600_000]);
        let stale = *rng.pick(&[0, 0, 20, 1_000]);
        let if_error = *rng.pick(&[0, 0, 20, 1_000]);
        let age = 1_000 * (milliseconds + stale.max(if_error));
        let rules = [
            ("writes", Staleness::NONE),
            ("writes", Staleness::NONE),
            ("writes", Staleness::NONE),
            ("session", Staleness { age, own: false }),
            ("ttl", Staleness { age, own: true }),
        ];
        let (consistency, staleness) = *rng.pick(if strict { &rules[..1] } else { &rules[..] });
        let jitter = *rng.pick(&[0, 50]);
        let most = *rng.pick(&["64B", "256KiB"]);
        let mut rule = format!(
            "[cache]\nmemory = \"1MiB\"\n[[cache.rules]]\nname = \"all\"\ntags = \"some\"\n\
             ttl = \"{milliseconds}ms\"\nconsistency = \"{consistency}\"\n\
             jitter = \"{jitter}%\"\nmax_result_size = \"{most}\"\n"
        );
        if rng.chance(300) {
            // Reads with tags, for which nobody asks again, fill this quota.
            rule.push_str("memory = \"64KiB\"\n");
        }
        let times = [("stale_while_revalidate", stale), ("stale_if_error", if_error)];
        let times = times.iter().filter(|(_, time)| *time > 0);
        let times = times.map(|(name, time)| format!("{name} = \"{time}ms\"\n"));
        Self { rule: rule + &times.collect::<String>(), staleness }
    }
}
