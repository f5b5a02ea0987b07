//! The rest of a text whose beginning was scanned, piece by piece as it arrives.
//!
//! What: [`Rest`] looks at every byte behind the beginning of a long query string, and says at its
//! end whether the string may do more than its beginning shows ([`Behind`]), and which custom
//! parameters (`my.x`) it may set then.
//!
//! Why: a query string may have a gigabyte, and a proxy does not keep it. But a long INSERT of
//! values is everyday, and must not count as a text that may do anything.
//!
//! What always holds: in doubt, the answer is [`Behind::Anything`]. The rest is judged byte by
//! byte, so it does not matter where a piece ends.
//!
//! What it does not do: find statements. PostgreSQL lists every setting but custom parameters, so
//! a proxy can ask for all others once the text has run.

use std::borrow::Cow;

use crate::lex::{Lexer, TokenKind, is_word};
use crate::scan::{Kind, Scan};
use crate::set::{ANY_PARAMETER, Custom, custom_behind};

/// Bytes that are kept of what has arrived: a name may begin there and end in the next piece.
const KEPT: usize = 1024;
/// Bytes in which SET, with the name of its parameter, has to fit.
const SET_BYTES_MAX: usize = 512;
/// Most names that are kept.
const NAMES_MAX: usize = 256;

/// The effects that a text may have behind its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing more than the beginning shows: its one statement goes on with values.
    Values,
    /// Anything.
    Anything {
        /// The custom parameters that it may set, as far as they can be read.
        names: Vec<Vec<u8>>,
        /// True if it may set others, whose names cannot be read.
        unreadable: bool,
        /// The parameters behind the word RESET, in lower case; [`crate::ANY_PARAMETER`] for RESET
        /// ALL and DISCARD ALL.
        resets: Vec<Vec<u8>>,
    },
}

/// Where a place of the rest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no string.
    Outside,
    /// In a string, which ends with the next quote.
    Inside,
    /// In a string or not: a backslash, a dollar or a double quote has come.
    Anywhere,
}

/// The rest of a text.
#[derive(Debug)]
pub struct Rest {
    /// Whether it has been nothing but values so far.
    is_values: bool,
    /// Whether INTO would make a table.
    may_make_table: bool,
    /// The last byte that is no blank.
    before: u8,
    place: Place,
    /// The last bytes that have arrived.
    kept: Vec<u8>,
    names: Vec<Vec<u8>>,
    unreadable: bool,
    resets: Vec<Vec<u8>>,
}

impl Rest {
    /// Begins behind `beginning`, whose facts are `scan`.
    pub fn behind(beginning: &[u8], scan: &Scan, backslash: bool) -> Self {
        let rows = matches!(scan.kind, Kind::Insert | Kind::Select | Kind::Update | Kind::Delete);
        let place = place_behind(beginning, backslash);
        let plain = scan.traits.is_empty() && !scan.sets;
        let is_values = rows && plain && place.is_some();
        let last = beginning.trim_ascii_end().last().copied().unwrap_or(b';');
        // A semicolon within a string ends no statement.
        let before = if place == Some(Place::Inside) { b'\'' } else { last };
        let may_make_table = scan.kind == Kind::Select;
        let mut rest = Self {
            is_values: is_values && before != b';',
            may_make_table,
            before,
            place: place.unwrap_or(Place::Anywhere),
            kept: Vec::new(),
            names: Vec::new(),
            unreadable: false,
            resets: Vec::new(),
        };
        rest.keep(beginning);
        rest
    }

    /// Looks at the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.read(piece, false);
    }

    /// Says what the whole rest may do: no piece is left. The last piece may have had the NUL that
    /// ends the text.
    pub fn end(mut self) -> Behind {
        self.read(&[], true);
        if self.is_values {
            return Behind::Values;
        }
        Behind::Anything { names: self.names, unreadable: self.unreadable, resets: self.resets }
    }

    fn read(&mut self, piece: &[u8], is_last: bool) {
        if self.is_values {
            self.is_values = self.goes_on_with_values(piece);
        }
        let kept = std::mem::take(&mut self.kept);
        let window = match kept.is_empty() {
            true => Cow::Borrowed(piece),
            false => Cow::Owned([&kept, piece].concat()),
        };
        if self.is_values && self.may_make_table {
            self.is_values = !has_word(&window, b"into");
        }
        if !self.is_values {
            self.find_names(&window, is_last);
        }
        self.kept = kept;
        self.kept.clear();
        self.keep(&window);
    }

    fn keep(&mut self, window: &[u8]) {
        self.kept.extend_from_slice(&window[window.len().saturating_sub(KEPT)..]);
    }

    /// Whether a piece has no comment, no other statement, and no parenthesis that could belong to
    /// a call.
    fn goes_on_with_values(&mut self, piece: &[u8]) -> bool {
        let (mut before, mut place) = (self.before, self.place);
        for &byte in piece {
            place = match (place, byte) {
                (Place::Outside, b'\'') => Place::Inside,
                (Place::Inside, b'\'') => Place::Outside,
                (Place::Outside, b'$' | b'"') | (_, b'\\') => Place::Anywhere,
                (place, _) => place,
            };
            match (before, byte) {
                _ if place == Place::Inside => {}
                (_, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0) => continue,
                (b',' | b'(', b'(') => {}
                (b';', b';') => {}
                (_, b'(') | (b';', _) | (b'-', b'-') | (b'/', b'*') => return false,
                _ => {}
            }
            before = byte;
        }
        (self.before, self.place) = (before, place);
        true
    }

    /// Notes the custom parameters that bytes may set, and that no other window shows in full.
    fn find_names(&mut self, window: &[u8], is_last: bool) {
        let judged = match is_last {
            true => window.len(),
            false => window.len().saturating_sub(SET_BYTES_MAX),
        };
        for at in 0..judged {
            let first = window[at] | 0x20;
            if !matches!(first, b's' | b'r' | b'd') || at > 0 && is_word(window[at - 1]) {
                continue;
            }
            let end = window.len().min(at + SET_BYTES_MAX);
            if first != b's' {
                self.find_reset(&window[at..end]);
                continue;
            }
            match custom_behind(&window[at..end], is_last && end == window.len()) {
                Custom::Nothing => {}
                Custom::Unreadable => self.unreadable = true,
                Custom::Name(name) if self.names.len() < NAMES_MAX => {
                    if !self.names.iter().any(|known| **known == *name) {
                        self.names.push(name.into_owned());
                    }
                }
                Custom::Name(_) => self.unreadable = true,
            }
        }
    }

    /// Notes the parameter that bytes reset, if they begin with RESET or DISCARD ALL.
    fn find_reset(&mut self, bytes: &[u8]) {
        let (word, rest) = first_word(bytes);
        let name = first_word(rest).0.to_ascii_lowercase();
        let all = name == b"all";
        let name = match word.to_ascii_lowercase().as_slice() {
            _ if name.is_empty() => return,
            b"reset" if name == b"time" => b"timezone".to_vec(),
            b"reset" if !all => name,
            b"reset" | b"discard" if all => ANY_PARAMETER.to_vec(),
            _ => return,
        };
        if self.resets.len() < NAMES_MAX && !self.resets.contains(&name) {
            self.resets.push(name);
        }
    }
}

/// Returns the word at the beginning of bytes, and what stands behind it and blanks.
fn first_word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !is_word(*byte) && *byte != b'.');
    let (word, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    (word, rest.trim_ascii_start())
}

/// Returns where the place behind a text is, if the text ends among values: not in a comment, and
/// not in a name, which may go on and which rules may want to know.
fn place_behind(text: &[u8], backslash: bool) -> Option<Place> {
    let mut place = None;
    for token in Lexer::new(text, backslash) {
        let is_last = token.end as usize == text.len();
        place = match (token.kind, token.of(text)) {
            (TokenKind::Space | TokenKind::BlockComment, _) => place,
            (TokenKind::LineComment, _) if !is_last => place,
            (TokenKind::LineComment, _) => None,
            (TokenKind::Word | TokenKind::Quoted | TokenKind::UnicodeQuoted, _) => None,
            (TokenKind::Dot, _) => None,
            (TokenKind::Unterminated, [b'\'', ..]) if !backslash => Some(Place::Inside),
            (TokenKind::Unterminated, [b'/' | b'"', ..] | [b'u' | b'U', b'&', b'"', ..]) => None,
            (TokenKind::Unterminated, _) => Some(Place::Anywhere),
            _ => Some(Place::Outside),
        };
    }
    place.map(|place| if backslash { Place::Anywhere } else { place })
}

/// True if bytes contain a word, in upper or lower case, wherever it stands: also within another
/// word, a literal or a comment.
pub fn has_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the rest of a text may do that is cut at `at`, and arrives in pieces.
    fn behind(text: &[u8], at: usize, piece: usize) -> Behind {
        let (beginning, rest) = text.split_at(at);
        let mut behind = Rest::behind(beginning, &crate::scan(beginning), false);
        rest.chunks(piece).for_each(|piece| behind.add(piece));
        behind.end()
    }

    fn for_every_cut(text: &str, holds: impl Fn(&Behind) -> bool) {
        for at in 0..text.len() {
            for piece in [1, 2, 7, 4096] {
                let found = behind(text.as_bytes(), at, piece);
                assert!(holds(&found), "{text:?} cut at {at}, by {piece}: {found:?}");
            }
        }
    }

    #[test]
    fn a_list_of_values_is_nothing_else_wherever_it_is_cut() {
        let rows = "insert into t (a, b) values (1, 'a'), ('it''s set app.x', -2.5), ($$b$$, null)";
        let from = rows.find("'a'").unwrap();
        for at in from..rows.len() {
            let in_word = rows.as_bytes()[at - 1].is_ascii_alphabetic() && at > 70;
            assert!(in_word || behind(rows.as_bytes(), at, 3) == Behind::Values, "cut at {at}");
        }
    }

    #[test]
    fn what_may_have_an_effect_is_seen_wherever_it_is_cut() {
        // What stands in the beginning, the scan of the beginning has seen.
        for text in [
            "insert into t values (1); set role r",
            "insert into t values (1) returning f(1)",
            "insert into t values (1) returning f/* , */(1)",
            "insert into t values (1) returning f --,\n(1)",
            "update pg_settings set setting = 1",
            "select 1, 2 into temp t",
            "select 1, f (2)",
            "delete from t; listen x",
        ] {
            for at in 0..text.len() {
                let seen = crate::scan(&text.as_bytes()[..at]);
                let whole = crate::scan(text.as_bytes());
                let known = (seen.traits, seen.calls, seen.statements > 1)
                    == (whole.traits, whole.calls, whole.statements > 1);
                let is_values = behind(text.as_bytes(), at, 1) == Behind::Values;
                assert!(known || !is_values, "{text:?} cut at {at}");
            }
        }
    }

    #[test]
    fn names_of_custom_parameters_are_read_wherever_they_are_cut() {
        for (text, name) in [
            ("; set app.x = 1; select 1", "app.x"),
            ("; SET SESSION App . \"X\" to 1; select 1", "app.X"),
            ("; set /* c */ local /* d */ app.x = 1", "app.x"),
            ("; select set_config('app.x', '1', false)", "app.x"),
            ("; select \"set_config\" ( 'App.X' , '1', false)", "app.x"),
            ("; do 'begin perform set_config(''app.x'', ''1'', false); end'", "app.x"),
            ("; set session.x = 1", "session.x"),
        ] {
            let due = Behind::Anything {
                names: vec![name.as_bytes().to_vec()],
                unreadable: false,
                resets: vec![],
            };
            for_every_cut(text, |found| *found == due);
        }
    }

    #[test]
    fn a_name_that_cannot_be_read_is_told_of() {
        let long = format!("; set /*{}*/ app.x = 1", "x".repeat(600));
        for text in [
            "; select set_config('app.' || 'x', '1', false)",
            "; select set_config($1, '1', false)",
            "; set U&\"app\".x = 1",
            "; select set_config(name, '1', false)",
            &long,
        ] {
            for_every_cut(text, |found| matches!(found, Behind::Anything { unreadable: true, .. }));
        }
        for text in ["; set role r", "; update t set \"a\" = 1", "; select 'the set', sets(1)"] {
            let nothing = Behind::Anything { names: Vec::new(), unreadable: false, resets: vec![] };
            for_every_cut(text, |found| *found == nothing || *found == Behind::Values);
        }
    }

    #[test]
    fn what_is_reset_by_name_is_seen_wherever_it_is_cut() {
        let rows: &[(&str, &[&str])] = &[
            ("select 1; reset DateStyle", &["datestyle"]),
            ("select 1; RESET  time zone; reset my.x;", &["timezone", "my.x"]),
            ("select 1; discard\nALL", &["ALL"]),
            ("select 1; reset all; reset x", &["ALL", "x"]),
            ("select 1; discard plans; presets all; reset", &[]),
        ];
        for (text, names) in rows {
            for at in 0..text.find(';').unwrap() {
                let Behind::Anything { resets, .. } = behind(text.as_bytes(), at, 3) else {
                    panic!("{text:?} cut at {at}")
                };
                let named: Vec<_> = resets.iter().map(|it| String::from_utf8_lossy(it)).collect();
                assert_eq!(named, *names, "{text:?} cut at {at}");
            }
        }
    }
}
