//! What a client does: an endless random script of small units of the protocol.
//!
//! A unit ends in a place where a client can wait for its replies. The script does not look at replies: whatever the
//! server makes of a unit in the state it is in, the oracle makes the same. What it keeps away from is what no
//! proxy can get right, said where it does so.

use crate::feature::{FEATURES, Feature, index};
use crate::say::Say;

/// What a client says before it waits, or does not.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The messages.
    pub bytes: Vec<u8>,
    /// Whether it waits for all replies before it goes on.
    pub waits: bool,
}

/// What a script does and does not do, whatever it is about.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Whether it opens transaction blocks.
    pub blocks: bool,
    /// Whether it waits after each unit: in a COPY that a cancel may hit, the Sync behind it is ambiguous.
    pub patient: bool,
    /// Whether it resets settings.
    pub resets: bool,
    /// Whether its results may be longer than all buffers on the way together.
    pub floods: bool,
}

/// A client's script.
#[derive(Debug)]
pub struct Script {
    pub(crate) client: usize,
    request: u32,
    pub(crate) weights: [u64; FEATURES.len()],
    pub(crate) say: Say,
    /// Whether a block was begun and not ended, as far as the script knows.
    pub in_block: bool,
    /// Whether one ever was.
    pub opened_block: bool,
    pub(crate) habits: Habits,
    /// The messages of a COPY that waits for the server to be ready.
    pub(crate) later: Option<Vec<u8>>,
    /// Whether constants may be of types whose meaning settings change: not where the client changes those, since
    /// a server that lacks the statement is told of it under the client's later settings.
    pub(crate) freezes: bool,
}

impl Script {
    /// A script of a client.
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
        }
    }

    pub(crate) fn tag(&mut self) -> String {
        self.request += 1;
        format!("c{}-{}", self.client, self.request)
    }
}
