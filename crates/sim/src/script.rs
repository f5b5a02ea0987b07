//! A client's script: an endless random sequence of small units of the protocol.
//!
//! A unit ends in a place where a client can wait for its replies. The script does not read
//! replies: the oracle handles each unit in the same state as the server. The script avoids
//! requests that no proxy can get right; a comment says so at each of them.

use std::collections::BTreeSet;

use crate::feature::{FEATURES, Feature, index};
use crate::rng::Rng;
use crate::rows::Need;
use crate::say::Say;

/// A unit of a script: messages that belong together.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The messages.
    pub bytes: Vec<u8>,
    /// The tags of reads of rows, or the rows.
    pub asked: Vec<String>,
    /// Whether the client waits for all replies before the next unit.
    pub waits: bool,
}

/// Restrictions of a script that do not depend on its features.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Whether the client opens transaction blocks.
    pub blocks: bool,
    /// Whether the client waits after each unit. The client may then cancel: in a COPY that a
    /// cancel may hit, a Sync sent ahead is ambiguous.
    pub patient: bool,
    /// Whether the client writes rows, and does not read them alone.
    pub writes: bool,
    /// Whether results may be longer than all buffers between server and client together.
    pub floods: bool,
}

/// A client's script.
#[derive(Debug)]
pub struct Script {
    pub(crate) client: usize,
    request: u32,
    pub(crate) weights: [u64; FEATURES.len()],
    pub(crate) say: Say,
    /// Whether a transaction block is open, as far as the script knows.
    pub in_block: bool,
    /// Whether the client has ever begun a transaction block.
    pub opened_block: bool,
    pub(crate) habits: Habits,
    /// The messages of the next unit: COPY data, or the Sync of an open segment.
    pub(crate) later: Option<Vec<u8>>,
    /// Whether constants may have types whose meaning depends on settings. If the client changes
    /// such settings, they may not: a server that lacks the statement gets its Parse under the
    /// client's later settings.
    pub(crate) freezes: bool,
    /// Which of the texts of [`Feature::Reads`] the client has prepared.
    pub(crate) prepared: u8,
    /// The names of statements of [`Feature::Rows`] that the client has prepared.
    pub(crate) row_statements: BTreeSet<String>,
    /// The lock that the open block has taken, as far as the script knows.
    pub(crate) locked: Option<Need>,
    /// Whether reads of rows look like those of other clients.
    pub(crate) alike: bool,
    /// The tags of reads of rows in the present unit, or the rows.
    pub(crate) asked: Vec<String>,
}

impl Script {
    /// Creates a client's script.
    pub fn new(client: usize, weights: [u64; FEATURES.len()], habits: Habits) -> Self {
        let freezes =
            [Feature::Reported, Feature::Discards].iter().all(|f| weights[index(*f)] == 0);
        Self {
            client,
            request: 0,
            weights,
            say: Say(Vec::new(), client),
            in_block: false,
            opened_block: false,
            habits,
            later: None,
            freezes,
            prepared: 0,
            row_statements: BTreeSet::new(),
            locked: None,
            alike: false,
            asked: Vec::new(),
        }
    }

    /// Has reads of rows look like those of other clients.
    #[must_use]
    pub fn with_reads_alike(self, alike: bool) -> Self {
        Self { alike, ..self }
    }

    pub(crate) fn tag(&mut self) -> String {
        self.request += 1;
        format!("c{}-{}", self.client, self.request)
    }

    /// Whether to begin a block for rows, or to end an open one. Most of what clients that share
    /// servers ask for are reads, and a block is to be short all the same.
    pub(crate) fn begins_or_ends_block(&self, feature: Feature, rng: &mut Rng) -> bool {
        match feature {
            Feature::Reads | Feature::Rows if self.in_block => rng.chance(250),
            Feature::Rows => rng.chance(40),
            _ => false,
        }
    }
}
