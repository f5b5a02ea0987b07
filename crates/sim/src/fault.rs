//! An error of a session of the model server.

/// An error with its SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The SQLSTATE.
    pub sqlstate: &'static str,
    /// The message.
    pub message: String,
    /// Whether the session ends.
    pub fatal: bool,
}

impl Fault {
    /// Creates an error that the session survives.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), fatal: false }
    }

    /// Creates the error of a statement that a cancel request hits.
    pub fn cancelled() -> Self {
        Self::new("57014", "canceling statement due to user request")
    }

    /// Creates the error of a statement on a standby that is in the way of what that replays.
    pub fn in_the_way() -> Self {
        Self::new("40001", "canceling statement due to conflict with recovery")
    }

    pub(crate) fn aborted() -> Self {
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Self::new("25P02", message)
    }

    pub(crate) fn protocol(message: &str) -> Self {
        Self { sqlstate: "08P01", message: message.to_owned(), fatal: true }
    }
}

pub(crate) fn syntax_error(word: &str) -> Fault {
    Fault::new("42601", format!("syntax error at or near \"{word}\""))
}
