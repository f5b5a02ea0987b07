//! The one clock of the process: microseconds for the engines, and dates for people.

use std::time::{Duration, Instant, SystemTime};

use refrain_pool::Now;

/// The engines' time at the start of the process. It is not zero, so that zero may mean "never".
const BEFORE_START: Duration = Duration::from_secs(1);

/// A clock that measures from one start, the same for every thread.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Makes a clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now(), wall: SystemTime::now() }
    }

    /// Returns the current time of the engines.
    pub fn now(&self) -> Now {
        Now::default().after(self.start.elapsed() + BEFORE_START)
    }

    /// Formats a moment as PgBouncer does: `2026-01-31 23:59:59 UTC`.
    pub fn date(&self, at: Now) -> String {
        let wall = self.wall + Duration::from_micros(at.0);
        let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format_utc(since.saturating_sub(BEFORE_START).as_secs())
    }
}

fn format_utc(unix: u64) -> String {
    let (year, month, day) = civil(unix / 86_400);
    let (hour, minute, second) = (unix / 3600 % 24, unix / 60 % 60, unix % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Computes year, month and day from a number of days since 1970. Counts in eras of 400 years that
/// begin on the first of March, so that the leap day comes last (Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(format_utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(format_utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(format_utc(1_767_225_599), "2025-12-31 23:59:59 UTC");
        assert_eq!(format_utc(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
