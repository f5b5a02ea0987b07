//! Stream: how far a stream is, from the login on, and what is known of it.

use std::time::Duration;

use refrain_pool::Now;

use crate::changes::coverage::PublishedTables;
use crate::changes::doubts::Doubts;
use crate::changes::proofs::Proofs;
use crate::changes::questions::{Checked, StreamQuestion};
use crate::changes::relations::NamedRelations;
use crate::changes::transactions::Transactions;
use crate::changes::waits::Waits;

/// Shortest and longest time between two snapshots that show nothing new.
pub(super) const SNAPSHOT_PAUSES: [Duration; 2] =
    [Duration::from_millis(1), Duration::from_millis(50)];

/// Time between two snapshots while the walsender does a command, which may take hours: they show
/// whether the server still answers.
const ALIVE_EVERY: Duration = Duration::from_secs(3);
/// Time after which a server that says nothing is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream that is to be followed, and how.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The database, as clients name it.
    pub database: String,
    /// The publications.
    pub publications: Vec<String>,
    /// The name of the slot, which no other stream has.
    pub slot: String,
    /// Time between two proofs while replies are asked for.
    pub proof_every: Duration,
}

/// How far a stream is.
#[derive(Debug)]
pub(super) enum Phase {
    Checking,
    Creating,
    Locating,
    Starting,
    Waiting(Waits),
    Live,
}

/// A stream, from the login on.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    /// The walsender's process.
    pub(super) walsender: u32,
    pub(super) checked: Option<Checked>,
    /// Whether the walsender has got the command of this phase.
    pub(super) is_commanded: bool,
    pub(super) transactions: Transactions,
    pub(super) relations: Option<NamedRelations>,
    pub(super) tables: PublishedTables,
    pub(super) doubts: Doubts,
    pub(super) proofs: Proofs,
    /// The questions that are under way, and since when.
    pub(super) asked: Vec<(StreamQuestion, Now)>,
    /// The numbers of the last snapshot and the last look.
    pub(super) snapshots: u64,
    pub(super) looks: u64,
    /// The tables and relations that the look under way is about.
    pub(super) looked_at: [Vec<u32>; 2],
    /// When the next question of each kind is due.
    pub(super) snapshot_due: Now,
    pub(super) snapshot_pause: Duration,
    pub(super) look_due: Now,
    pub(super) proof_due: Now,
    /// When the last status update went out.
    pub(super) told: Now,
    /// When the walsender has said something last.
    pub(super) heard: Now,
}

impl Stream {
    /// Begins with a walsender of this process.
    pub(super) fn new(now: Now, walsender: u32) -> Self {
        Self {
            phase: Phase::Checking,
            walsender,
            checked: None,
            is_commanded: false,
            transactions: Transactions::default(),
            relations: None,
            tables: PublishedTables::default(),
            doubts: Doubts::default(),
            proofs: Proofs::default(),
            asked: Vec::new(),
            snapshots: 0,
            looks: 0,
            looked_at: Default::default(),
            snapshot_due: now.after(ALIVE_EVERY),
            snapshot_pause: SNAPSHOT_PAUSES[0],
            look_due: now,
            proof_due: now,
            told: now,
            heard: now,
        }
    }

    /// Whether the stream has begun.
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Live)
    }

    /// Whether a question is under way.
    pub(super) fn is_asking(&self, question: StreamQuestion) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == question)
    }

    /// Whether a snapshot may show something new, or whether the server still answers.
    pub(super) fn wants_snapshot(&self) -> bool {
        let names = self.relations.as_ref().is_some_and(|relations| relations.are_due().1);
        names
            || matches!(self.phase, Phase::Creating | Phase::Starting | Phase::Waiting(_))
            || self.doubts.len() > 0
            || self.tables.wait()
    }

    /// Notes that a snapshot is asked for.
    pub(super) fn asks_snapshot(&mut self, now: Now) {
        self.snapshots += 1;
        if !self.is_streaming() {
            self.snapshot_due = now.after(ALIVE_EVERY);
        }
    }

    /// Notes that the walsender streams from now on.
    pub(super) fn streams(&mut self, now: Now) {
        self.phase = Phase::Waiting(Waits::new(self.snapshots + 1));
        (self.heard, self.look_due) = (now, now);
        (self.snapshot_due, self.snapshot_pause) = (now, SNAPSHOT_PAUSES[0]);
    }

    /// Checks that the server has not been silent for too long.
    pub(super) fn check(&self, now: Now) -> Result<(), String> {
        if self.asked.iter().any(|(_, since)| since.after(PATIENCE) <= now) {
            return Err("the server does not answer".to_owned());
        }
        if self.is_streaming() && self.heard.after(PATIENCE) <= now {
            return Err("the walsender is silent".to_owned());
        }
        Ok(())
    }

    /// Whether the catalog is to be asked.
    pub(super) fn look_is_due(&self, now: Now) -> bool {
        let names = self.relations.as_ref().is_some_and(|relations| relations.are_due().0);
        names || self.look_due <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walsender may wait for an open transaction for hours. Questions show meanwhile whether the
    /// server is there.
    #[test]
    fn a_server_is_asked_while_its_walsender_does_a_command() {
        for phase in [Phase::Creating, Phase::Starting] {
            let start = Now(1_000_000);
            let mut stream = Stream { phase, ..Stream::new(start, 7) };
            let mut now = stream.snapshot_due;
            for _ in 0..100 {
                assert!(stream.wants_snapshot() && stream.snapshot_due <= now);
                stream.asks_snapshot(now);
                stream.asked.push((StreamQuestion::Snapshot, now));
                assert!(stream.snapshot_due > now, "it is not asked without a pause");
                assert_eq!(stream.check(now), Ok(()));
                stream.asked.clear();
                now = stream.snapshot_due;
                assert!(now < start.after(PATIENCE * 100));
            }
            stream.asks_snapshot(now);
            stream.asked.push((StreamQuestion::Snapshot, now));
            assert!(stream.check(now.after(PATIENCE)).is_err());
            stream.streams(now);
            assert_eq!(stream.snapshot_due, now);
        }
    }
}
