//! The error for bytes from a peer, or from a configuration, that break their grammar.

use std::fmt;

/// The fault of malformed input, in words that may be shown to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}
