//! A text whose beginning has been sent, and whose rest is still to come.

use refrain_sql::{Behind, Rest};

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::Seq;

/// A text of which the rest streams through.
#[derive(Debug)]
pub(crate) struct UnreadText {
    rest: Rest,
    /// Its request and the segment of that, if it is a query string; `None` for a Parse.
    pub(crate) query: Option<(Seq, Segment)>,
}

impl UnreadText {
    /// Begins to watch the rest of a text.
    pub(crate) fn new(rest: Rest, query: Option<(Seq, Segment)>) -> Self {
        Self { rest, query }
    }

    /// Looks at a piece of the rest.
    pub(crate) fn see(&mut self, piece: &[u8]) {
        self.rest.add(piece);
    }

    /// Returns what the text may do behind its beginning: no piece is left.
    pub(crate) fn end(self) -> Behind {
        self.rest.end()
    }
}
