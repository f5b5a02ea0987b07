//! Run: the state of a simple query that a server is running, if autoprepare has looked at it.

use refrain_wire::back::Fields;

use crate::normalized::compare_times::Turn;
use crate::normalized::query::Place;

/// A text that is being run, and that autoprepare has looked at.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its normalized query.
    pub(crate) place: Place,
    /// Whether it runs prepared, or by the simple protocol.
    pub(crate) turn: Turn,
    /// Whether it stands outside any transaction, so that it may be run again.
    pub(crate) alone: bool,
    /// Whether the server has bound the values: from then on the statement runs.
    pub(crate) bound: bool,
    /// Whether an error came.
    pub(crate) failed: bool,
    /// The error of the prepared execution, if the text was then run again by the simple protocol.
    pub(crate) again: Option<Again>,
    /// Whether it writes: then the client gets its columns only after it has run.
    pub(crate) writes: bool,
    /// Messages that the client gets only if no error follows.
    pub(crate) held: Vec<u8>,
    /// Notices that came before the values were bound: the client gets them only if the text is not
    /// run again.
    pub(crate) notices: Vec<u8>,
    /// The text; empty if it runs by the simple protocol.
    pub(crate) text: Vec<u8>,
}

/// The reason why a text was run again by the simple protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) sqlstate: [u8; 5],
    /// Whether that error says that the schema has changed.
    pub(crate) changed: bool,
}

impl Run {
    /// Makes a run of a text by the simple protocol.
    pub(crate) fn watched(place: Place) -> Self {
        let text = Vec::new();
        Self { turn: Turn::Simple, bound: true, ..Self::prepared(place, false, false, text) }
    }

    /// Makes a run of a statement in place of a text.
    pub(crate) fn prepared(place: Place, alone: bool, writes: bool, text: Vec<u8>) -> Self {
        Self {
            place,
            turn: Turn::Prepared,
            alone,
            bound: false,
            failed: false,
            again: None,
            writes,
            held: Vec::new(),
            notices: Vec::new(),
            text,
        }
    }

    /// True if the client's next message has to wait.
    pub(crate) fn holds(&self) -> bool {
        self.turn == Turn::Prepared || self.again.is_some()
    }

    /// True if a text that failed like this has had no effect, and may run again by the simple
    /// protocol.
    pub(crate) fn may_be_repeated(&self, fields: &Fields<'_>) -> bool {
        self.turn == Turn::Prepared && self.alone && !self.bound && !is_passing(fields)
    }
}

/// True if an error says nothing about the text: an operator intervened, or a resource ran out.
pub(crate) fn is_passing(fields: &Fields<'_>) -> bool {
    // Connection, transaction rollback, resources, object state, operator intervention, system.
    let classes: [&[u8]; 6] = [b"08", b"40", b"53", b"55", b"57", b"58"];
    fields.sqlstate().get(..2).is_some_and(|class| classes.contains(&class))
}
