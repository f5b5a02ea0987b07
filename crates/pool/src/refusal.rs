//! Servers that refuse a pool's login: what they said, and when the next attempt may be made.
//!
//! A wrong password stays wrong until somebody changes it, and servers lock users out that try too
//! often. So all cores make one attempt, then wait for twice as long as before, up to
//! `DELAY_MAX`. Clients that come meanwhile are told at once what the server has said.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::time::Now;

/// The longest time between two attempts to log in with what was refused.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// The longest that a refusal counts.
pub(crate) const COUNTS_MAX: Duration = DELAY_MAX.saturating_mul(2);

/// The last refusal of a pool's login, over all cores.
#[derive(Debug, Default)]
pub(crate) struct LastRefusal {
    refused: Mutex<Option<Refused>>,
    /// Whether there is one. Clients that wait for a server look at it without the lock.
    is_there: AtomicBool,
}

#[derive(Debug)]
struct Refused {
    said: Arc<Refusal>,
    /// The delay that was last waited for, and its end.
    delay: Duration,
    until: Now,
}

/// The words of a server that refused a login.
#[derive(Debug)]
pub struct Refusal {
    /// The reason, for the log.
    pub why: String,
    /// The server's error, as the protocol has it.
    pub error: Box<[u8]>,
}

impl LastRefusal {
    /// Notes a refusal. The first delay is `least`.
    pub(crate) fn note(&self, now: Now, least: Duration, said: Refusal) {
        let mut refused = self.lock();
        let delay = match &*refused {
            // Both attempts were under way at once.
            Some(before) if now < before.until => return,
            Some(before) => (before.delay * 2).min(DELAY_MAX.max(least)),
            None => least,
        };
        *refused = Some(Refused { said: Arc::new(said), delay, until: now.after(delay) });
        self.is_there.store(true, Relaxed);
    }

    /// Forgets the refusal: the login has succeeded, or is another one from now on.
    pub(crate) fn forget(&self) {
        if self.is_there.load(Relaxed) {
            *self.lock() = None;
            self.is_there.store(false, Relaxed);
        }
    }

    /// Returns what was said, until the next attempt may be made.
    pub(crate) fn at(&self, now: Now) -> Option<Arc<Refusal>> {
        if !self.is_there.load(Relaxed) {
            return None;
        }
        self.lock().as_ref().filter(|refused| now < refused.until).map(|r| r.said.clone())
    }

    /// Returns the time up to which the refusal counts: the next one after a longer delay has to
    /// find this one.
    pub(crate) fn counts_until(&self) -> Option<Now> {
        if !self.is_there.load(Relaxed) {
            return None;
        }
        self.lock().as_ref().map(|refused| refused.until.after(refused.delay))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(why: &str) -> Refusal {
        Refusal { why: why.to_owned(), error: Box::default() }
    }

    #[test]
    fn delays_double_up_to_a_minute() {
        let (last, least, mut now) = (LastRefusal::default(), Duration::from_secs(1), Now(7));
        assert!(last.at(now).is_none());
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            last.note(now, least, said("no"));
            last.note(now, least, said("at the same time"));
            let until = now.after(Duration::from_secs(seconds));
            let before = Now(until.0 - 1);
            assert_eq!(last.at(before).map(|said| said.why.clone()), Some("no".to_owned()));
            assert!(last.at(until).is_none());
            now = until;
        }
        last.forget();
        last.note(now, least, said("again"));
        assert!(last.at(now).is_some() && last.at(now.after(least)).is_none());
        assert_eq!(last.counts_until(), Some(now.after(least * 2)));
    }
}
