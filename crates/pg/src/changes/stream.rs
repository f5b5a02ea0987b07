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
            snapshot_due: now,
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

    /// Whether a snapshot may show something new.
    pub(super) fn wants_snapshot(&self) -> bool {
        let names = self.relations.as_ref().is_some_and(|relations| relations.are_due().1);
        names
            || matches!(self.phase, Phase::Waiting(_))
            || self.doubts.len() > 0
            || self.tables.wait()
    }

    /// Whether the catalog is to be asked.
    pub(super) fn look_is_due(&self, now: Now) -> bool {
        let names = self.relations.as_ref().is_some_and(|relations| relations.are_due().0);
        names || self.look_due <= now
    }
}
