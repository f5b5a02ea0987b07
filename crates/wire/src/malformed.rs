//! What is wrong with bytes that can never become a message.

use std::fmt;

/// A message that breaks the protocol, with the rule that it breaks.
///
/// The connection that sent it cannot be trusted to be in step any more and has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The message or field that is wrong, in the manual's words.
    pub what: &'static str,
}

impl Malformed {
    /// Names the message or field that is wrong.
    pub const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.what)
    }
}

impl std::error::Error for Malformed {}
