//! QueryRun: the state of a simple query that a server is running, if autoprepare has looked at it.

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::tag::back;

use crate::normalized::compare_times::Turn;
use crate::normalized::query::QueryPlace;

/// The query string under way, if autoprepare has looked at it, and a buffer for its text.
#[derive(Debug, Default)]
pub(crate) struct QueryRun {
    run: Option<Run>,
    /// The text in whose place a statement ran last; empty if the last one ran as it was sent.
    text: Vec<u8>,
}

/// A text that is being run, and that autoprepare has looked at.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its normalized query.
    place: QueryPlace,
    way: Way,
    /// Whether an error came.
    failed: bool,
}

/// How a text runs.
#[derive(Debug)]
enum Way {
    /// As it was sent.
    Simple,
    /// A statement runs in its place.
    Prepared(PreparedWay),
    /// As it was sent, after the statement in its place has failed.
    Again(Again),
}

/// A statement that runs in place of a text.
#[derive(Debug)]
struct PreparedWay {
    /// Whether it stands outside any transaction, so that the text may be run again.
    alone: bool,
    /// Whether it writes: then the client gets its columns only after it has run.
    writes: bool,
    /// Whether the server has bound the values: from then on the statement runs.
    bound: bool,
    /// Messages that the client gets only if no error follows.
    held: Vec<u8>,
    /// Notices that came before the values were bound: the client gets them only if the text is not
    /// run again.
    notices: Vec<u8>,
}

/// The reason why a text was run again by the simple protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) sqlstate: [u8; 5],
    /// Whether that error says that the schema has changed.
    pub(crate) changed: bool,
}

impl QueryRun {
    /// Begins to watch a text that runs as it was sent.
    pub(crate) fn watch(&mut self, place: QueryPlace) {
        self.text.clear();
        self.run = Some(Run { place, way: Way::Simple, failed: false });
    }

    /// Begins a statement in place of `text`.
    pub(crate) fn begin(&mut self, place: QueryPlace, alone: bool, writes: bool, text: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(text);
        let (held, notices) = (Vec::new(), Vec::new());
        let way = Way::Prepared(PreparedWay { alone, writes, bound: false, held, notices });
        self.run = Some(Run { place, way, failed: false });
    }

    /// Returns the text under way, if any.
    #[inline]
    pub(crate) fn under_way(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Returns the text in whose place a statement runs, or ran last.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    fn prepared(&mut self) -> Option<&mut PreparedWay> {
        match &mut self.run {
            Some(Run { way: Way::Prepared(prepared), .. }) => Some(prepared),
            _ => None,
        }
    }

    /// True if the client's next message has to wait: a statement may have to give way to its text.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !matches!(run.way, Way::Simple))
    }

    /// Notes that the server has bound the values: from now on the statement runs.
    pub(crate) fn bind(&mut self) {
        if let Some(prepared) = self.prepared() {
            prepared.bound = true;
        }
    }

    /// Whether to hold a reply back until it is known that no error follows. The reply is the first
    /// `length` bytes of `input`. A query string that writes sends its columns once the writing is
    /// done, and completes once its transaction has been committed.
    pub(crate) fn hold_reply(&mut self, input: &[u8], length: usize) -> bool {
        let Some(prepared) = self.prepared() else { return false };
        let holds = match (input[0], input.get(length)) {
            (back::ROW_DESCRIPTION, next) => prepared.writes && next != Some(&back::DATA_ROW),
            (back::COMMAND_COMPLETE, next) => {
                prepared.alone && next != Some(&back::READY_FOR_QUERY)
            }
            _ => false,
        };
        if holds {
            prepared.held.extend_from_slice(&input[..length]);
        }
        holds
    }

    /// Takes the replies that were held back, for the client.
    #[inline]
    pub(crate) fn take_replies(&mut self) -> Option<Vec<u8>> {
        let prepared = self.prepared().filter(|prepared| !prepared.held.is_empty())?;
        Some(std::mem::take(&mut prepared.held))
    }

    /// Returns the buffer for a notice to be held back: one that comes before the values are bound.
    pub(crate) fn hold_notice(&mut self) -> Option<&mut Vec<u8>> {
        let prepared = self.prepared().filter(|prepared| !prepared.bound)?;
        Some(&mut prepared.notices)
    }

    /// Takes the notices that were held back.
    #[inline]
    pub(crate) fn take_notices(&mut self) -> Option<Vec<u8>> {
        let prepared = self.prepared().filter(|prepared| !prepared.notices.is_empty())?;
        Some(std::mem::take(&mut prepared.notices))
    }

    /// Notes an error that stands: the replies held back do not go to the client.
    pub(crate) fn fail(&mut self) {
        if let Some(run) = &mut self.run {
            run.failed = true;
        }
        if let Some(prepared) = self.prepared() {
            prepared.held.clear();
        }
    }

    /// Notes that the text itself runs after all. `again` has the reason, if the error gave one.
    pub(crate) fn repeat(&mut self, again: Option<Again>) {
        if let Some(run) = &mut self.run {
            run.way = again.map_or(Way::Simple, Way::Again);
        }
    }

    /// Ends the text under way, and returns it.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<Run> {
        // Most requests have none. Then nothing is moved.
        self.run.as_ref()?;
        self.run.take()
    }
}

impl Run {
    /// Returns its normalized query.
    pub(crate) fn place(&self) -> QueryPlace {
        self.place
    }

    /// Returns whether it runs prepared, or as it was sent.
    pub(crate) fn turn(&self) -> Turn {
        match self.way {
            Way::Prepared(_) => Turn::Prepared,
            Way::Simple | Way::Again(_) => Turn::Simple,
        }
    }

    /// Returns the reason why the text was run again, if it was.
    pub(crate) fn again(&self) -> Option<Again> {
        match self.way {
            Way::Again(again) => Some(again),
            Way::Simple | Way::Prepared(_) => None,
        }
    }

    /// True if an error came that stands.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// True if a statement runs in its place whose values are not bound.
    pub(crate) fn is_unbound(&self) -> bool {
        matches!(&self.way, Way::Prepared(prepared) if !prepared.bound)
    }

    /// True if a statement runs in its place within a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        matches!(&self.way, Way::Prepared(prepared) if !prepared.alone)
    }

    /// True if a text that failed like this has had no effect, and may run again by the simple
    /// protocol.
    pub(crate) fn may_be_repeated(&self, fields: &Fields<'_>) -> bool {
        self.is_unbound() && !self.is_in_transaction() && !is_passing(fields)
    }
}

/// True if an error says nothing about the text: an operator intervened, or a resource ran out.
pub(crate) fn is_passing(fields: &Fields<'_>) -> bool {
    // Connection, transaction rollback, resources, object state, operator intervention, system.
    let classes: [&[u8]; 6] = [b"08", b"40", b"53", b"55", b"57", b"58"];
    fields.sqlstate().get(..2).is_some_and(|class| classes.contains(&class))
}
