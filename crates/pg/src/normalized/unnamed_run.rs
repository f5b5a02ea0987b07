//! UnnamedRuns: the state of a client's unnamed statement that a server is running, if autoprepare
//! has looked at it.

use crate::normalized::compare_times::Turn;
use crate::normalized::query::QueryPlace;
use crate::normalized::run::Again;
use crate::statements::statement::Statement;

/// The way of a client's Parse of its unnamed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseWay {
    /// To the server, unless the server's unnamed statement is the same.
    Usual,
    /// To the server in any case, which then plans the statement for its values.
    Sent,
    /// To nobody: the server has the statement under a name.
    Named,
}

/// The unnamed statement under way, if autoprepare has looked at it, and a buffer for the client's
/// messages.
#[derive(Debug, Default)]
pub(crate) struct UnnamedRuns {
    run: Option<UnnamedRun>,
    /// The client's messages behind the last Parse that Refrain has answered; empty if the last
    /// statement ran as it was sent.
    behind: Vec<u8>,
    /// A ParameterDescription, which the client gets if no error follows.
    held: Vec<u8>,
}

/// An unnamed statement of a client that is being run or described: the client sent all messages
/// from the Parse to the Sync in one piece.
#[derive(Debug)]
pub(crate) struct UnnamedRun {
    /// Its normalized query.
    pub(crate) place: QueryPlace,
    /// Whether it runs as the named statement, or as the client sent it.
    pub(crate) turn: Turn,
    /// Whether it is executed. If not, the client asked what it returns, and will execute it.
    pub(crate) executes: bool,
    /// The statement, while its messages may be sent again: it stands outside of any transaction,
    /// and the client has got no reply but that to its Parse.
    pub(crate) repeats: Option<Statement>,
    /// The error of the named statement, if the client's messages were then sent again for the
    /// unnamed one.
    pub(crate) again: Option<Again>,
    /// Whether an error came that stands.
    pub(crate) failed: bool,
}

impl UnnamedRun {
    /// Makes a run, or a question, that has not begun.
    pub(crate) fn new(place: QueryPlace, turn: Turn, executes: bool) -> Self {
        Self { place, turn, executes, repeats: None, again: None, failed: false }
    }
}

impl UnnamedRuns {
    /// Begins a statement. `behind` is the messages behind its Parse, if Refrain answers that.
    pub(crate) fn begin(&mut self, run: UnnamedRun, behind: &[u8]) {
        self.behind.clear();
        self.behind.extend_from_slice(behind);
        self.run = Some(run);
    }

    /// Returns the statement under way, if any.
    #[inline]
    pub(crate) fn under_way(&self) -> Option<&UnnamedRun> {
        self.run.as_ref()
    }

    /// Returns the messages behind the Parse that Refrain has answered last.
    pub(crate) fn behind(&self) -> &[u8] {
        &self.behind
    }

    /// True if the client's next message has to wait, once its Sync is sent: its messages may have
    /// to be sent again.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.repeats.is_some())
    }

    /// Whether to hold a ParameterDescription back until it is known that no error follows:
    /// PostgreSQL sends it before it finds that the columns have changed.
    pub(crate) fn hold_reply(&mut self, reply: &[u8]) -> bool {
        let holds = self.holds();
        if holds {
            self.held.extend_from_slice(reply);
        }
        holds
    }

    /// Takes the reply that was held back.
    #[inline]
    pub(crate) fn take_reply(&mut self) -> Option<Vec<u8>> {
        (!self.held.is_empty()).then(|| std::mem::take(&mut self.held))
    }

    /// Notes that the server has bound the values, or has described the statement: from now on the
    /// client has replies.
    pub(crate) fn answer(&mut self) {
        if let Some(run) = &mut self.run {
            run.repeats = None;
        }
    }

    /// Notes an error that stands.
    pub(crate) fn fail(&mut self) {
        if let Some(run) = &mut self.run {
            (run.failed, run.repeats) = (true, None);
        }
    }

    /// Notes that the statement runs after all as the client sent it.
    pub(crate) fn repeat(&mut self, again: Again) {
        self.held.clear();
        if let Some(run) = &mut self.run {
            (run.turn, run.again, run.repeats) = (Turn::Simple, Some(again), None);
        }
    }

    /// Ends the statement under way, and returns it.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<UnnamedRun> {
        self.held.clear();
        // Most requests have none. Then nothing is moved.
        self.run.as_ref()?;
        self.run.take()
    }
}
