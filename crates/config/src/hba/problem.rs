//! A problem in a text of rules or maps, and its place.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file; `None` if the text stands in the configuration itself.
    pub(super) file: Option<Arc<Path>>,
    /// The number of the line, from 1.
    pub(super) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}, line {}", file.display(), self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// A problem: its place, what is wrong, and what was expected.
pub(super) fn at(place: &Place, message: &str) -> String {
    format!("{place}: {message}")
}
