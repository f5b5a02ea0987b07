//! The hosts of the database: which of them is the primary, which of them can be reached, and what
//! each has replayed of the log.
//!
//! Most worlds have one host, which is a primary. Others have two or three, of which at most one is
//! a primary. A commit is in the log of all before anybody hears of it, so a promotion loses none.
//! The primary shows it at once, and a standby once it has replayed it, which may be late.
//!
//! A primary also writes records that no other host gets before it dies; nobody was told of what is
//! in them. So behind a promotion the old primary is further than the log was where the new
//! timeline begins. It stands still there until it is set up anew. Other standbys follow the new
//! timeline, and say so late: with their next restart point.

use crate::rng::Rng;

/// The number of hosts that there may be.
pub(crate) const HOSTS: usize = 3;

/// The most bytes of records that a primary has written when it dies, and that no other host has.
const STRAY_BYTES_MAX: u64 = 20_000;
/// The most bytes that a standby replays again when it has been restarted.
const REPLAYED_AGAIN_MAX: u64 = 1_000;
/// The chance that a standby has a restart point, per thousand times that it replays.
const RESTART_POINT: u64 = 200;
/// The chance that an old primary is set up anew, per thousand times that a standby would replay.
const SET_UP_ANEW: u64 = 20;

/// The state of a host at a time: what it shows, and what it says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    pub(crate) is_standby: bool,
    /// The position up to which commits show.
    pub(crate) shows: u64,
    /// The timeline and the position that it says.
    pub(crate) says: (u32, u64),
    /// Whether the next command is in the way of what the host replays.
    pub(crate) conflicts: bool,
    /// When the host was started, in microseconds.
    pub(crate) started: u64,
}

impl Default for Stand {
    fn default() -> Self {
        Self { is_standby: false, shows: u64::MAX, says: (1, 0), conflicts: false, started: 1 }
    }
}

impl Stand {
    /// Returns the answer of a primary to the question how far it is: its position, the name of the
    /// file of that, the cluster, and the sizes of files and of pages. A standby has no position.
    pub(crate) fn of_primary(&self) -> Vec<String> {
        let file = format!("{:08X}0000000000000003", self.says.0);
        let lsn = if self.is_standby { String::new() } else { self.lsn() };
        vec![lsn, file, "7".to_owned(), "16777216".to_owned(), "8192".to_owned()]
    }

    /// Returns the answer of a standby to the question how much it has replayed: that, the
    /// timeline, the cluster, and when it was started. A primary replays nothing.
    pub(crate) fn of_standby(&self) -> Vec<String> {
        let lsn = if self.is_standby { self.lsn() } else { String::new() };
        vec![lsn, self.says.0.to_string(), "7".to_owned(), self.started.to_string()]
    }

    fn lsn(&self) -> String {
        format!("{:X}/{:X}", self.says.1 >> u32::BITS, self.says.1 & u64::from(u32::MAX))
    }
}

/// A host, as far as its log goes.
#[derive(Clone, Copy, Debug)]
struct Replay {
    /// The end of what it has replayed of the log that all share.
    replayed: u64,
    /// The timeline that it says.
    timeline: u32,
    /// The end of its own log, if that is another one from some point on.
    stray: Option<u64>,
    /// How often it has been started anew.
    restarts: u64,
}

/// Returns when a host was started that has been started anew so often, in microseconds: no two
/// hosts at the same time, and none twice.
///
/// The engine compares that behind ALTER ROLE and ALTER DATABASE alone, for the defaults of new
/// sessions. Clients here send neither, so no checker would find a bug that takes all of these
/// times for the same, and none is planted.
fn started(host: usize, restarts: u64) -> u64 {
    1 + host as u64 + restarts * HOSTS as u64
}

/// The hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    primary: Option<usize>,
    /// The timeline of the last primary.
    timeline: u32,
    /// The position where that timeline begins.
    forked: u64,
    replays: [Replay; HOSTS],
    /// The time until which each refuses connections.
    down_until: [u64; HOSTS],
    /// The time until which the engine may wait for an answer of each that never comes.
    silent_until: [u64; HOSTS],
}

impl Default for Hosts {
    fn default() -> Self {
        let replay = Replay { replayed: 0, timeline: 1, stray: None, restarts: 0 };
        Self {
            primary: Some(0),
            timeline: 1,
            forked: 0,
            replays: [replay; HOSTS],
            down_until: [0; HOSTS],
            silent_until: [0; HOSTS],
        }
    }
}

impl Hosts {
    /// Returns the number of a host by its name in the configuration.
    pub(crate) fn number(host: &str) -> usize {
        ["a:", "b:", "c:"].iter().position(|name| host.starts_with(name)).unwrap_or(0)
    }

    /// Returns the primary, if there is one now.
    pub(crate) fn primary(&self) -> Option<usize> {
        self.primary
    }

    /// Whether a host refuses connections at this time.
    pub(crate) fn is_down(&self, host: usize, now: u64) -> bool {
        now < self.down_until[host]
    }

    /// Returns the first time from now on at which a host takes connections.
    pub(crate) fn up_from(&self, host: usize, now: u64) -> u64 {
        now.max(self.down_until[host])
    }

    /// Has a host refuse connections until this time.
    pub(crate) fn stop(&mut self, host: usize, until: u64) {
        self.down_until[host] = until;
    }

    /// Notes that a host does not answer a connection, for which the engine waits until this time.
    pub(crate) fn fall_silent(&mut self, host: usize, until: u64) {
        self.silent_until[host] = until;
    }

    /// Whether the engine may wait at this time for an answer that never comes, of this host or of
    /// any.
    pub(crate) fn is_silent(&self, host: Option<usize>, now: u64) -> bool {
        match host {
            Some(host) => now < self.silent_until[host],
            None => self.silent_until.iter().any(|until| now < *until),
        }
    }

    /// Returns what a host shows and says of itself, where the log that all share ends at `end`.
    pub(crate) fn stand(&self, host: usize, end: u64) -> Stand {
        let Replay { replayed, timeline, stray, restarts } = self.replays[host];
        let started = started(host, restarts);
        if self.primary == Some(host) {
            return Stand { says: (self.timeline, end), started, ..Stand::default() };
        }
        let says = (timeline, stray.unwrap_or(replayed));
        Stand { is_standby: true, shows: replayed, says, conflicts: false, started }
    }

    /// Has no host be the primary until one is promoted. The old one has all of the log, which ends
    /// at `end`, and some more.
    pub(crate) fn demote(&mut self, end: u64, rng: &mut Rng) {
        let Some(primary) = self.primary.take() else { return };
        let stray = end + rng.below(STRAY_BYTES_MAX);
        let restarts = self.replays[primary].restarts + 1;
        let timeline = self.timeline;
        self.replays[primary] = Replay { replayed: end, timeline, stray: Some(stray), restarts };
    }

    /// Has a host become the primary, unless there is one. It replays all of the log first, which
    /// ends at `end`. Returns whether it has become the primary.
    pub(crate) fn promote(&mut self, host: usize, end: u64) -> bool {
        if self.primary.is_some() {
            return false;
        }
        self.primary = Some(host);
        self.timeline += 1;
        self.forked = end;
        let timeline = self.timeline;
        let restarts = self.replays[host].restarts;
        self.replays[host] = Replay { replayed: end, timeline, stray: None, restarts };
        true
    }

    /// Has a standby replay some of the log, which ends at `end`, or all of it. Returns true if it
    /// was an old primary, which is set up anew and so loses all sessions.
    pub(crate) fn replay(&mut self, host: usize, end: u64, all: bool, rng: &mut Rng) -> bool {
        if self.primary == Some(host) {
            return false;
        }
        let (timeline, forked) = (self.timeline, self.forked);
        let replay = &mut self.replays[host];
        if replay.stray.is_some() {
            let anew = self.primary.is_some() && (all || rng.chance(SET_UP_ANEW));
            if anew {
                let (replayed, restarts) = (replay.replayed.min(forked), replay.restarts + 1);
                *replay = Replay { replayed, timeline, stray: None, restarts };
            }
            return anew;
        }
        replay.replayed = if all { end } else { rng.range(replay.replayed, end) };
        if replay.replayed > forked && (all || rng.chance(RESTART_POINT)) {
            replay.timeline = timeline;
        }
        false
    }

    /// Restarts a standby, which then replays what it has replayed since its last restart point.
    pub(crate) fn restart_standby(&mut self, host: usize, until: u64, rng: &mut Rng) {
        self.stop(host, until);
        let replay = &mut self.replays[host];
        replay.restarts += 1;
        if replay.stray.is_none() {
            replay.replayed = replay.replayed.saturating_sub(rng.below(REPLAYED_AGAIN_MAX));
        }
    }

    /// Has all hosts take connections, and one of them be the primary.
    pub(crate) fn calm(&mut self, end: u64) {
        self.down_until = [0; HOSTS];
        self.promote(0, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_primary_at_most() {
        let (mut hosts, mut rng) = (Hosts::default(), Rng::new(1));
        assert!(!hosts.promote(1, 100));
        hosts.demote(100, &mut rng);
        hosts.stop(0, 10);
        assert!(hosts.is_down(0, 9) && !hosts.is_down(1, 9) && !hosts.is_down(0, 10));
        assert!(hosts.promote(1, 100) && !hosts.promote(0, 100));
        assert_eq!(hosts.primary(), Some(1));
    }

    #[test]
    fn a_standby_shows_what_it_has_replayed() {
        let (mut hosts, mut rng) = (Hosts::default(), Rng::new(1));
        hosts.replay(1, 500, true, &mut rng);
        let stand = hosts.stand(1, 700);
        assert_eq!((stand.is_standby, stand.shows, stand.says), (true, 500, (1, 500)));
        assert_eq!(hosts.stand(0, 700).says, (1, 700));
        hosts.replay(1, 700, false, &mut rng);
        assert!((500..=700).contains(&hosts.stand(1, 700).shows));
    }

    #[test]
    fn no_two_starts_are_at_the_same_time() {
        let (mut hosts, mut rng) = (Hosts::default(), Rng::new(1));
        let mut seen = Vec::new();
        for _ in 0..5 {
            hosts.restart_standby(1, 10, &mut rng);
            seen.extend([1, 2].map(|host| hosts.stand(host, 700).started));
            hosts.restart_standby(2, 10, &mut rng);
        }
        hosts.demote(700, &mut rng);
        seen.push(hosts.stand(0, 700).started);
        hosts.promote(1, 700);
        while !hosts.replay(0, 900, false, &mut rng) {}
        seen.push(hosts.stand(0, 900).started);
        let of_standby = hosts.stand(0, 900).of_standby();
        assert_eq!(of_standby.last(), seen.last().map(u64::to_string).as_ref());
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn an_old_primary_stands_still_on_its_timeline() {
        let (mut hosts, mut rng) = (Hosts::default(), Rng::new(1));
        hosts.demote(700, &mut rng);
        assert!(hosts.promote(1, 700));
        let old = hosts.stand(0, 900);
        assert!(old.says.0 == 1 && old.says.1 >= 700 && old.shows == 700, "{old:?}");
        assert_eq!(hosts.stand(1, 900).says, (2, 900));
        while !hosts.replay(0, 900, false, &mut rng) {}
        hosts.replay(0, 900, true, &mut rng);
        assert_eq!(hosts.stand(0, 900).says, (2, 900));
    }

    #[test]
    fn a_standby_says_late_that_it_follows_a_new_timeline() {
        let (mut hosts, mut rng) = (Hosts::default(), Rng::new(1));
        hosts.demote(700, &mut rng);
        hosts.promote(1, 700);
        let says: Vec<u32> = (0..50)
            .map(|_| {
                hosts.replay(2, 900, false, &mut rng);
                hosts.stand(2, 900).says.0
            })
            .collect();
        assert!(says.starts_with(&[1]) && says.ends_with(&[2]) && says.is_sorted(), "{says:?}");
    }
}
