//! Errors in a file or a URL, for the person who wrote it.

use std::fmt;
use std::path::PathBuf;

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, from 1; `None` in a URL and for something missing from the file as a whole.
    pub line: Option<usize>,
    /// The option by its path in the file, such as `databases.app.pool_size`; empty if the error is
    /// about no option.
    pub option: String,
    /// The error and the expected value. Never contains a password.
    pub message: String,
    /// The file, if it is one that the configuration file includes.
    pub file: Option<PathBuf>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.option.is_empty() {
            write!(f, "{}: ", self.option)?;
        }
        f.write_str(&self.message)
    }
}

/// All errors, in the order of the lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<Error>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
