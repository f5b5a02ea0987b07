//! The limit of log lines: a thousand lines that say the same hide the one that says something
//! else.
//!
//! Lines are of one kind if they tell of the same thing for the same database and user. The first
//! of a kind is written at once. Those that follow are counted, and one line tells their number
//! and the details of the last of them each [`SPAN`], until none follows.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_pool::event::{Level, Note};

/// Time between two lines of one kind.
const SPAN: Duration = Duration::from_secs(10);
/// Maximum number of kinds. Clients choose the names of databases and users. Past this number,
/// lines of new kinds are of one kind for each level and cause.
const KINDS_MAX: usize = 1000;

/// The subject of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) level: Level,
    pub(super) cause: &'static str,
    /// Whether the line is about a client.
    pub(super) is_of_client: bool,
    pub(super) database: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
}

impl Kind {
    /// Returns the kind of a note's line.
    pub(super) fn of(note: &Note) -> Self {
        Self {
            level: note.level,
            cause: note.cause,
            is_of_client: note.client.is_some(),
            database: note.database.clone(),
            user: note.user.clone(),
        }
    }

    /// Returns the kind of all lines like this one, whatever the names.
    fn nameless(&self) -> Self {
        Self { database: None, user: None, ..self.clone() }
    }
}

/// Lines of one kind that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct More {
    pub(super) kind: Kind,
    pub(super) count: u64,
    /// The time in which they came.
    pub(super) span: Duration,
    /// The details of the last of them.
    pub(super) last: String,
}

/// The lines of a kind since one was written.
#[derive(Debug, Default)]
struct Counted {
    count: u64,
    /// The details of the last of them.
    last: String,
}

/// The kinds of the lines of the last [`SPAN`].
#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// The kinds, each with the lines since one was written.
    counts: HashMap<Kind, Counted>,
    /// When a line of each kind was written, the earliest first.
    written: VecDeque<(Instant, Kind)>,
}

impl Limiter {
    /// Whether a line of this kind, with these details, is to be written now. If not, the line is
    /// counted.
    pub(super) fn admits(&mut self, kind: Kind, detail: &str, now: Instant) -> bool {
        if let Some(counted) = self.counts.get_mut(&kind) {
            counted.count += 1;
            detail.clone_into(&mut counted.last);
            return false;
        }
        let is_named = kind.database.is_some() || kind.user.is_some();
        if self.counts.len() >= KINDS_MAX && is_named {
            return self.admits(kind.nameless(), detail, now);
        }
        self.written.push_back((now, kind.clone()));
        self.counts.insert(kind, Counted::default());
        true
    }

    /// Returns the time at which [`Self::due`] has something to do.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.written.front().map(|(at, _)| *at + SPAN)
    }

    /// Takes out the numbers that are to be told now, and forgets kinds of which no line has come
    /// for a [`SPAN`].
    pub(super) fn due(&mut self, now: Instant) -> Vec<More> {
        let mut due = Vec::new();
        while self.next_due().is_some_and(|at| at <= now) {
            let Some((at, kind)) = self.written.pop_front() else { break };
            match self.counts.get_mut(&kind).map(std::mem::take) {
                None | Some(Counted { count: 0, .. }) => drop(self.counts.remove(&kind)),
                Some(Counted { count, last }) => {
                    self.written.push_back((now, kind.clone()));
                    due.push(More { kind, count, span: now - at, last });
                }
            }
        }
        due
    }

    /// Takes out all numbers: the log ends.
    pub(super) fn rest(&mut self, now: Instant) -> Vec<More> {
        let Self { mut counts, written } = std::mem::take(self);
        let more = written.into_iter().map(|(at, kind)| {
            let Counted { count, last } = counts.remove(&kind).unwrap_or_default();
            More { kind, count, span: now - at, last }
        });
        more.filter(|more| more.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(user: &str) -> Kind {
        Kind {
            level: Level::Warn,
            cause: "login",
            is_of_client: true,
            database: Some("shop".into()),
            user: Some(user.into()),
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_line_is_written_and_the_others_are_counted() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        assert!(limiter.admits(kind("anna"), "why", begin));
        for second in 1..=7 {
            assert!(!limiter.admits(kind("anna"), "why", begin + seconds(second)));
        }
        assert!(
            limiter.admits(kind("ben"), "why", begin + seconds(7)),
            "another user is another kind"
        );
        assert_eq!(limiter.next_due(), Some(begin + SPAN));
        assert_eq!(limiter.due(begin + seconds(9)), []);
        let more = More { kind: kind("anna"), count: 7, span: SPAN, last: "why".to_owned() };
        assert_eq!(limiter.due(begin + SPAN), [more]);
        assert_eq!(limiter.due(begin + SPAN), [], "it is told once");
    }

    #[test]
    fn what_goes_on_is_told_once_in_each_span() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        let mut lines = 0;
        for second in 0..60 {
            let now = begin + seconds(second);
            lines += limiter.due(now).len();
            lines += (0..100).filter(|_| limiter.admits(kind("anna"), "why", now)).count();
        }
        assert_eq!(lines, 6);
    }

    #[test]
    fn a_kind_that_was_quiet_is_written_at_once() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        assert!(limiter.admits(kind("anna"), "why", begin));
        assert!(!limiter.admits(kind("anna"), "why", begin));
        assert_eq!(limiter.due(begin + seconds(10)).len(), 1);
        assert!(!limiter.admits(kind("anna"), "why", begin + seconds(11)));
        assert_eq!(limiter.due(begin + seconds(20)).len(), 1);
        assert_eq!(limiter.due(begin + seconds(30)), []);
        assert_eq!(limiter.next_due(), None);
        assert!(limiter.admits(kind("anna"), "why", begin + seconds(31)));
    }

    #[test]
    fn a_late_number_says_its_time_and_the_last_details() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        assert!(limiter.admits(kind("anna"), "why", begin));
        assert!(!limiter.admits(kind("anna"), "why", begin));
        assert!(!limiter.admits(kind("anna"), "another", begin));
        let more = &limiter.due(begin + seconds(25))[0];
        assert_eq!((more.span, &*more.last), (seconds(25), "another"));
    }

    #[test]
    fn kinds_have_a_limit() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        let written =
            (0..3 * KINDS_MAX).filter(|n| limiter.admits(kind(&n.to_string()), "why", begin));
        assert_eq!(written.count(), KINDS_MAX + 1);
        assert_eq!(limiter.counts.len(), limiter.written.len());
        let due = limiter.due(begin + SPAN);
        let count = 2 * KINDS_MAX as u64 - 1;
        assert_eq!(
            due,
            [More { kind: kind("").nameless(), count, span: SPAN, last: "why".to_owned() }]
        );
        assert!(limiter.admits(kind("anna"), "why", begin + SPAN), "there is room again");
    }

    #[test]
    fn nothing_is_lost_at_the_end() {
        let (mut limiter, begin) = (Limiter::default(), Instant::now());
        assert!(limiter.admits(kind("anna"), "why", begin));
        assert!(limiter.admits(kind("ben"), "why", begin));
        assert!(!limiter.admits(kind("ben"), "why", begin));
        let more = More { kind: kind("ben"), count: 1, span: seconds(2), last: "why".to_owned() };
        assert_eq!(limiter.rest(begin + seconds(2)), [more]);
        assert_eq!(limiter.rest(begin + seconds(2)), []);
    }
}
