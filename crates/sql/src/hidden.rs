//! Words of texts that may run a function which the texts do not call by its name.
//!
//! What: a database has views, operators, casts, domains and policies that run functions, and
//! functions that run other functions. [`Words`] are the names of those that run a volatile one,
//! and [`Words::hidden`] says what a text with such a word may hide.
//!
//! Why: the label of a function says nothing about the functions that its body calls, and a text
//! that names a view says nothing about the functions of the view.
//!
//! What always holds: in doubt a text hides something. A word counts wherever it stands, whether it
//! is the name of a column there or of a function.

use std::collections::HashMap;

use crate::lex::{Lexer, TokenKind};
use crate::name::fold;

/// The kinds of things that a text may hide. Each includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hides {
    /// Nothing.
    #[default]
    Nothing,
    /// A function that returns something else each time.
    Volatile,
    /// A function that may change rows, or anything else.
    Writes,
}

/// Operators that PostgreSQL applies where a text does not show them, as for DISTINCT and LIKE.
const UNWRITTEN: [&[u8]; 10] =
    [b"=", b"<>", b"<", b"<=", b">", b">=", b"~~", b"!~~", b"~~*", b"!~~*"];

/// The words of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    words: HashMap<Box<[u8]>, Hides>,
    /// The most that a name may hide.
    most: Hides,
    /// The kind that each text may hide.
    any: Hides,
    /// The kind behind a name beyond ASCII: other clients may write it in other bytes.
    beyond_ascii: Hides,
    /// The kind behind a parameter of a type of the user's.
    parameters: Hides,
}

impl Words {
    /// Returns words that are in each text.
    pub fn any() -> Self {
        Self { any: Hides::Writes, ..Self::default() }
    }

    /// Adds a name as the catalog has it. A blank stands for any name beyond ASCII.
    pub fn add(&mut self, name: &[u8], hides: Hides) {
        let of = if UNWRITTEN.contains(&name) {
            &mut self.any
        } else if name.is_ascii() && name != b" " {
            self.words.entry(name.into()).or_default()
        } else {
            &mut self.beyond_ascii
        };
        *of = (*of).max(hides);
        self.most = self.most.max(hides);
    }

    /// Notes what parameters of types of the user's may hide.
    pub fn add_parameters(&mut self, hides: Hides) {
        self.parameters = self.parameters.max(hides);
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True if no text hides anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what a text may hide. `own_types` says that it has a parameter of a type of the
    /// user's.
    pub fn hidden(&self, text: &[u8], own_types: bool) -> Hides {
        let parameters = if own_types { self.parameters } else { Hides::Nothing };
        // What a backslash means in a string depends on a setting, and so does where words begin.
        let ways = if text.contains(&b'\\') { &[false, true][..] } else { &[false] };
        let words = ways.iter().map(|backslash| self.in_text(text, *backslash)).max();
        self.any.max(parameters).max(words.unwrap_or_default())
    }

    fn in_text(&self, text: &[u8], backslash: bool) -> Hides {
        let most = self.most;
        let (mut lexer, mut found) = (Lexer::new(text, backslash), Hides::Nothing);
        while found < most
            && let Some(token) = lexer.significant()
        {
            let written = token.of(text);
            found = found.max(match token.kind {
                TokenKind::Word | TokenKind::Quoted if !written.is_ascii() => self.beyond_ascii,
                TokenKind::Word | TokenKind::Quoted => self.of(&fold(written)),
                TokenKind::Operator => self.of(written),
                // It may spell any name.
                TokenKind::UnicodeQuoted => most,
                _ => Hides::Nothing,
            });
        }
        found
    }

    fn of(&self, name: &[u8]) -> Hides {
        self.words.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let mut words = Words::default();
        words.add(b"chance", Hides::Volatile);
        words.add(b"Acts", Hides::Writes);
        words.add(b"@@@", Hides::Writes);
        words.add(&[b'x'; 63], Hides::Writes);
        words
    }

    #[test]
    fn a_word_counts_wherever_it_stands() {
        let long = "x".repeat(80);
        for (text, hides) in [
            ("select chance from t", Hides::Volatile),
            ("select t . CHANCE from t", Hides::Volatile),
            ("select t.\"chance\", 'Acts' from t", Hides::Volatile),
            ("select acts, chances, \"Chance\" from t", Hides::Nothing),
            ("select chance, \"Acts\" from t", Hides::Writes),
            ("select 1 @@@ 2", Hides::Writes),
            ("select 1 @@ 2", Hides::Nothing),
            ("select /* chance */ '@@@' -- chance", Hides::Nothing),
            ("select U&\"ch\\0061nce\"", Hides::Writes),
            ("select \"ächance\"", Hides::Nothing),
            (&*format!("select {long}"), Hides::Writes),
            // The one or the other is in a string.
            (r"select '\' chance '", Hides::Volatile),
            (r"select '\'' chance '", Hides::Volatile),
            ("", Hides::Nothing),
        ] {
            assert_eq!(words().hidden(text.as_bytes(), true), hides, "{text}");
        }
    }

    #[test]
    fn what_no_word_shows() {
        assert!(Words::default().is_empty() && !words().is_empty());
        assert_eq!(Words::default().hidden(b"select U&\"a\"", true), Hides::Nothing);
        let mut typed = Words::default();
        typed.add_parameters(Hides::Volatile);
        assert_eq!(typed.hidden(b"select $1", true), Hides::Volatile);
        assert_eq!(typed.hidden(b"select $1", false), Hides::Nothing);
        let mut beyond = Words::default();
        beyond.add("größe".as_bytes(), Hides::Writes);
        assert_eq!(beyond.hidden("select \"Straße\"".as_bytes(), false), Hides::Writes);
        assert_eq!(beyond.hidden("select 'Straße'".as_bytes(), false), Hides::Nothing);
        for name in UNWRITTEN {
            let mut equals = Words::default();
            equals.add(name, Hides::Volatile);
            assert_eq!(equals.hidden(b"select distinct a from t", false), Hides::Volatile);
        }
        assert_eq!(Words::any().hidden(b"select 1", false), Hides::Writes);
    }
}
