//! The error for bytes that can never become a message.

use std::fmt;

/// A message that breaks the protocol, with the rule that it breaks.
///
/// The connection that sent it may be out of step with the protocol, and has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The malformed message or field, by its name in the manual.
    pub what: &'static str,
}

impl Malformed {
    /// Creates the error for a message or field.
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
