//! The clients that wait for seconds since a pool has as many servers as it may have, which the log
//! tells once when it has lasted, and once when it is over.
//!
//! Each core knows its own clients. A crowd begins with the first core that has one, and is over
//! with the last.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::time::Now;

/// Time that the first client in line has waited when a crowd begins.
const CROWD_MIN: Duration = Duration::from_secs(3);
/// Time that the first client in line has waited at most when a crowd is over.
const OVER_MAX: Duration = Duration::from_secs(1);

/// The part of a pool's crowd that all cores share.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Number of cores that have a crowd.
    cores: AtomicU32,
    /// Number of clients that wait at all cores, as of the last tick of each.
    waiting: AtomicU32,
    /// When the crowd began, in microseconds.
    since: AtomicU64,
}

/// One core's part of a pool's crowd.
#[derive(Debug, Default)]
pub(crate) struct CrowdPart {
    is_crowd: bool,
    /// The clients that this core has added to [`Crowd::waiting`].
    waiting: u32,
}

/// The news of a crowd for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrowdNews {
    /// The crowd has lasted; so many clients wait.
    Begins(u32),
    /// The crowd is over; it lasted for so long.
    Over(Duration),
}

impl CrowdPart {
    /// Whether the next tick has to look, even if no client waits.
    pub(crate) fn needs_tick(&self) -> bool {
        self.is_crowd || self.waiting > 0
    }

    /// Notes how many clients wait, for how long the first has waited, and whether the reason is
    /// that no further server is allowed.
    pub(crate) fn tick(
        &mut self,
        crowd: &Crowd,
        now: Now,
        (waiting, longest, is_at_limit): (usize, Duration, bool),
    ) -> Option<CrowdNews> {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        // Between the two steps no other core can read a number that is too small to subtract from:
        // each core subtracts only what it has added.
        crowd.waiting.fetch_add(waiting, Relaxed);
        crowd.waiting.fetch_sub(std::mem::replace(&mut self.waiting, waiting), Relaxed);
        if !self.is_crowd && is_at_limit && longest >= CROWD_MIN {
            self.is_crowd = true;
            if crowd.cores.fetch_add(1, Relaxed) == 0 {
                crowd.since.store(now.0.saturating_sub(micros(longest)), Relaxed);
                return Some(CrowdNews::Begins(crowd.waiting.load(Relaxed)));
            }
        } else if self.is_crowd && longest <= OVER_MAX {
            return self.leave(crowd, now);
        }
        None
    }

    /// Ends this core's part, whose pool it closes: nobody waits there.
    pub(crate) fn close(&mut self, crowd: &Crowd) {
        self.tick(crowd, Now(0), (0, Duration::ZERO, false));
    }

    /// Ends this core's crowd, if it has one.
    fn leave(&mut self, crowd: &Crowd, now: Now) -> Option<CrowdNews> {
        if !std::mem::take(&mut self.is_crowd) || crowd.cores.fetch_sub(1, Relaxed) > 1 {
            return None;
        }
        let since = Now(crowd.since.load(Relaxed));
        Some(CrowdNews::Over(Duration::from_micros(now.since(since))))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_crowd_is_told_when_it_has_lasted_and_when_it_is_over() {
        let (crowd, mut part) = (Crowd::default(), CrowdPart::default());
        let mut tick = |at: u64, clients, seconds, is_at_limit| {
            let seen = (clients, seconds * SECOND, is_at_limit);
            part.tick(&crowd, Now(at * 1_000_000), seen)
        };
        assert_eq!(tick(10, 1, 2, true), None, "not for long");
        assert_eq!(tick(11, 1, 4, false), None, "for another reason");
        assert_eq!(tick(12, 7, 5, true), Some(CrowdNews::Begins(7)));
        assert_eq!(tick(13, 9, 6, true), None, "once");
        assert_eq!(tick(14, 9, 2, true), None, "it goes on");
        assert_eq!(tick(17, 1, 1, true), Some(CrowdNews::Over(10 * SECOND)));
        assert_eq!(tick(18, 0, 0, true), None);
    }

    #[test]
    fn cores_have_one_crowd() {
        let crowd = Crowd::default();
        let (mut one, mut other) = (CrowdPart::default(), CrowdPart::default());
        assert_eq!(other.tick(&crowd, Now(0), (3, SECOND, true)), None);
        let begins = one.tick(&crowd, Now(0), (2, 3 * SECOND, true));
        assert_eq!(begins, Some(CrowdNews::Begins(5)));
        assert_eq!(other.tick(&crowd, Now(0), (3, 3 * SECOND, true)), None);
        assert_eq!(one.tick(&crowd, Now(0), (0, Duration::ZERO, true)), None);
        assert!(!one.needs_tick() && other.needs_tick());
        let over = other.tick(&crowd, Now(1_000_000), (0, Duration::ZERO, true));
        assert!(matches!(over, Some(CrowdNews::Over(_))));
        assert_eq!(crowd.waiting.load(Relaxed), 0);
    }
}
