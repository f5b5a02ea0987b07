//! Away: what is known of a client's reads on standbys.

use std::time::Duration;

use refrain_pool::Now;

use crate::standbys::position::Position;
use crate::standbys::progress::Written;

/// Most statements of a client that rest.
const RESTING_MAX: usize = 8;

/// A client, as far as its reads run on standbys.
#[derive(Debug)]
pub(crate) struct Away {
    /// The point behind the client's writes.
    pub(crate) written: Written,
    /// The need of its read under way.
    pub(crate) needs: Option<Position>,
    /// The statements that run on the primary for now, by ID, and until when.
    resting: Vec<(u64, Now)>,
}

impl Away {
    /// Begins with the client's first read that might run on a standby.
    pub(crate) fn new(written: Written) -> Self {
        Self { written, needs: None, resting: Vec::new() }
    }

    /// Has a statement run on the primary for a while: it could not be sent to a standby at once.
    pub(crate) fn rest(&mut self, statement: u64, now: Now, time: Duration) {
        self.resting.retain(|(other, until)| now < *until && *other != statement);
        if self.resting.len() >= RESTING_MAX {
            self.resting.remove(0);
        }
        self.resting.push((statement, now.after(time)));
    }

    /// Whether a statement runs on the primary for now.
    pub(crate) fn rests(&self, statement: u64, now: Now) -> bool {
        self.resting.iter().any(|(other, until)| *other == statement && now < *until)
    }
}
