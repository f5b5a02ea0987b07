//! Commands of the console as clients ask for them, and the outcomes.

use super::Wait;
use crate::console::{Part, Refusal, Reply};

/// A command of a client.
pub(super) struct Asked<'q> {
    pub(super) user: &'q str,
    /// True if the user may run commands that change something.
    pub(super) admin: bool,
    /// True if the client wants to know the columns alone.
    pub(super) describes: bool,
    pub(super) query: &'q str,
}

/// The outcome of a command.
pub(super) enum Outcome {
    Reply(Reply),
    /// The reply follows when the wait is over.
    Wait(Wait),
}

/// The outcome of a command, or the error with which the command is refused.
pub(super) type Answer = Result<Outcome, Refusal>;

/// Makes the reply to a command that shows nothing.
pub(super) fn done(tag: &'static str) -> Answer {
    Ok(Outcome::Reply(vec![Part::Done(tag.into())]))
}
