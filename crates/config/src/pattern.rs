//! Regular expressions, by which texts are told apart.

use crate::value::{Given, Value};

/// A regular expression, by which texts are told apart.
#[derive(Clone, Debug)]
pub struct Pattern(regex::bytes::Regex);

impl Pattern {
    /// Reads an expression. The error says on one line what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let last_line = |error: regex::Error| {
            let words = error.to_string();
            words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        };
        regex::bytes::Regex::new(text).map(Self).map_err(last_line)
    }

    /// Returns the text of the expression.
    pub(crate) fn text(&self) -> &str {
        self.0.as_str()
    }

    /// Counts the parentheses that keep what they match.
    pub(crate) fn groups(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// Returns what the first parentheses match in a text, if they match anything; `None` if the
    /// text does not match.
    pub(crate) fn first_group<'a>(&self, text: &'a str) -> Option<Option<&'a str>> {
        let captures = self.0.captures(text.as_bytes())?;
        Some(captures.get(1).and_then(|group| text.get(group.range())))
    }

    /// Whether a text has a part that it describes.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Value for Pattern {
    fn what() -> String {
        "a regular expression".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        Self::new(given.text()?).ok()
    }

    fn show(&self) -> String {
        self.text().to_owned()
    }
}
