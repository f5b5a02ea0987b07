//! Durations: which commands the log tells of because of the time that they took.

use std::time::Duration;

use refrain_config::General;

/// The commands that the log tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedDurations {
    /// The least time, in microseconds, of which the log tells all commands, and that of which it
    /// tells some.
    all_us: u64,
    sampled_us: u64,
    /// How many of a hundred of the latter it tells.
    percent: u8,
}

impl Default for LoggedDurations {
    fn default() -> Self {
        Self { all_us: u64::MAX, sampled_us: u64::MAX, percent: 0 }
    }
}

impl LoggedDurations {
    /// Returns what the options say.
    pub fn of(options: &General) -> Self {
        let us = |time: Option<Duration>| {
            time.map_or(u64::MAX, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        };
        Self {
            all_us: us(options.log_min_duration_statement),
            sampled_us: us(options.log_min_duration_sample),
            percent: options.log_statement_sample_rate.0,
        }
    }

    /// Returns the least time, in microseconds, of a command that may be told.
    pub fn least_us(&self) -> u64 {
        self.all_us.min(self.sampled_us)
    }

    /// Whether a command of this time is told; `random` decides about those of which some are.
    pub fn tells(&self, us: u64, random: u32) -> bool {
        us >= self.all_us || us >= self.sampled_us && random % 100 < self.percent.into()
    }
}

#[cfg(test)]
mod tests {
    use refrain_config::Percent;

    use super::*;

    #[test]
    fn slow_commands_are_told_and_some_of_the_others() {
        let options = General {
            log_min_duration_statement: Some(Duration::from_millis(2)),
            log_min_duration_sample: Some(Duration::from_millis(1)),
            log_statement_sample_rate: Percent(10),
            ..General::default()
        };
        let durations = LoggedDurations::of(&options);
        assert_eq!(durations.least_us(), 1_000);
        assert!((0..100).all(|random| durations.tells(2_000, random)));
        assert_eq!((0..1_000).filter(|random| durations.tells(1_999, *random)).count(), 100);
        assert!(!durations.tells(999, 0));
        assert_eq!(LoggedDurations::of(&General::default()).least_us(), u64::MAX);
        assert_eq!(LoggedDurations::default().least_us(), u64::MAX);
    }
}
