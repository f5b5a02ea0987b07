//! The text of a Query message, and the place that its statements have come to.

use std::sync::Arc;

use crate::text::Source;

/// A Query message whose statements run.
pub(super) struct Simple {
    /// The client's text.
    pub(super) client: Arc<str>,
    /// The text as SQLite gets it, of the same length.
    pub(super) source: Source,
    /// Where the next statement begins.
    pub(super) at: usize,
    /// Where the running statement ends.
    pub(super) end: usize,
    /// True if the text had any statement.
    pub(super) any: bool,
}

impl Simple {
    /// Moves on to the next statement.
    pub(super) fn advance(&mut self) {
        self.at = self.end;
        self.any = true;
    }

    pub(super) fn rest(&self) -> &str {
        self.client.get(self.at..).unwrap_or_default()
    }
}
