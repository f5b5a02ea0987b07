//! Rewrites parts of a text of PostgreSQL's for SQLite without moving a byte.
//!
//! Three forms have another meaning in SQLite: `$2` before `$1` (to SQLite they are names, numbered
//! in their order), `$1::int8` (one name, another than `$1`), and `$$…$$` (the name of a parameter
//! that is null). So `$n` becomes `?n`, which SQLite reads as a number. A cast after a parameter
//! becomes a comment, which differs by type, so that texts with different casts stay different. A
//! form without a counterpart in SQLite is refused.
//!
//! As no byte moves, an error's position is one in the client's text.

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::failure::{Failure, state};
use crate::types::Type;

/// The maximum number of parameters, which Bind can carry and SQLite accepts.
pub(crate) const PARAMETERS_MAX: usize = 32_766;

/// Words that continue the name of a type.
const TYPE_WORDS: &[&str] = &["precision", "varying", "with", "without", "time", "zone"];

/// A text that is ready for SQLite.
#[derive(Debug)]
pub(crate) struct Source {
    /// The text, as long as the client's.
    pub(crate) bytes: Vec<u8>,
    /// Refused forms with their positions, in order. Each counts for the statement that contains
    /// it.
    refusals: Vec<(usize, Failure)>,
}

impl Source {
    /// Rewrites a text.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut pass = Pass {
            source: text,
            lexer: Lexer::new(text, false),
            made: Self { bytes: text.to_vec(), refusals: Vec::new() },
        };
        while let Some(token) = pass.lexer.next() {
            pass.token(token);
        }
        pass.made
    }

    /// Returns the first error between two positions, if there is one.
    pub(crate) fn refusal(&self, from: usize, to: usize) -> Option<&Failure> {
        let within = |(offset, _): &&(usize, Failure)| (from..to).contains(offset);
        self.refusals.iter().find(within).map(|(_, failure)| failure)
    }
}

struct Pass<'a> {
    source: &'a [u8],
    lexer: Lexer<'a>,
    made: Source,
}

impl Pass<'_> {
    fn token(&mut self, token: Token) {
        let bytes = token.of(self.source);
        match token.kind {
            TokenKind::Parameter => self.parameter(token),
            TokenKind::DollarText => {
                self.refuse(token, "dollar-quoted strings are not supported", "write '…'");
            }
            TokenKind::EscapeText => {
                self.refuse(token, "strings with escapes are not supported", "write '…'");
            }
            TokenKind::UnicodeText | TokenKind::UnicodeQuoted => {
                self.refuse(token, "U& is not supported", "write the characters themselves");
            }
            TokenKind::BlockComment if bytes.get(2..).is_some_and(|rest| contains(rest, b"/*")) => {
                self.refuse(token, "comments inside comments are not supported", "");
            }
            TokenKind::Cast => {
                self.refuse(
                    token,
                    ":: is supported after a parameter only",
                    "write CAST(… AS type)",
                );
            }
            TokenKind::Operator if bytes.contains(&b'?') || bytes == b"@" => {
                self.refuse(token, "parameters are written $1, $2, …", "");
            }
            TokenKind::Colon | TokenKind::Assign => {
                self.refuse(token, "parameters are written $1, $2, …", "");
            }
            _ => {}
        }
    }

    fn refuse(&mut self, token: Token, message: &'static str, hint: &'static str) {
        let offset = token.start as usize;
        let failure = Failure::new(state::SYNTAX, message).hint(hint).at(self.source, offset);
        self.made.refusals.push((offset, failure));
    }

    fn parameter(&mut self, token: Token) {
        let digits = token.of(self.source).get(1..).unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        if !number.is_some_and(|number| (1..=PARAMETERS_MAX).contains(&number)) {
            let offset = token.start as usize;
            let message = format!("there is no parameter ${}", String::from_utf8_lossy(digits));
            let failure = Failure::new("42P02", message).at(self.source, offset);
            return self.made.refusals.push((offset, failure));
        }
        if let Some(dollar) = self.made.bytes.get_mut(token.start as usize) {
            *dollar = b'?';
        }
        let mut ahead = self.lexer.clone();
        if ahead.significant().is_some_and(|next| next.kind == TokenKind::Cast) {
            self.cast(token, ahead);
        }
    }

    /// Replaces a cast after a parameter. `ahead` stands behind its `::`.
    fn cast(&mut self, parameter: Token, mut ahead: Lexer<'_>) {
        let Some((name, end)) = type_name(self.source, &mut ahead) else { return };
        let Some(is) = Type::named(&name) else {
            let offset = parameter.end as usize;
            let failure = Failure::new(state::NO_OBJECT, format!("type \"{name}\" does not exist"));
            return self.made.refusals.push((offset, failure.at(self.source, offset)));
        };
        let cast = parameter.end as usize..end;
        if let Some(bytes) = self.made.bytes.get_mut(cast) {
            bytes.fill(b' ');
            // Every type's name has three letters at least, so the comment fits.
            let note = [b'/', b'*', is.letter(), b'*', b'/'];
            bytes.iter_mut().zip(note).for_each(|(byte, noted)| *byte = noted);
        }
        while self.lexer.position() < end && self.lexer.next().is_some() {}
    }
}

/// Reads a type's name and modifier. Returns the name in lower case, and the position of the end.
fn type_name(text: &[u8], lexer: &mut Lexer<'_>) -> Option<(String, usize)> {
    let mut end = 0;
    let mut name = String::new();
    loop {
        let before = lexer.clone();
        let token = lexer.significant();
        let word = token.map(|token| String::from_utf8_lossy(token.of(text)).to_ascii_lowercase());
        match (token, word) {
            (Some(token), Some(word)) if token.kind == TokenKind::Word => {
                if name.is_empty() {
                    name = word;
                } else if TYPE_WORDS.contains(&word.as_str()) {
                    name.push(' ');
                    name.push_str(&word);
                } else {
                    *lexer = before;
                    break;
                }
                end = token.end as usize;
            }
            // `pg_catalog.int4`
            (Some(token), _) if token.kind == TokenKind::Dot && !name.is_empty() => name.clear(),
            (Some(token), _) if token.kind == TokenKind::Open && !name.is_empty() => {
                let close = lexer.by_ref().find(|token| token.kind == TokenKind::Close)?;
                end = close.end as usize;
            }
            _ => {
                *lexer = before;
                break;
            }
        }
    }
    (!name.is_empty()).then_some((name, end))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let made = Source::read(text.as_bytes());
        assert_eq!(made.refusal(0, text.len()), None, "{text}");
        assert_eq!(made.bytes.len(), text.len());
        String::from_utf8(made.bytes).unwrap()
    }

    #[test]
    fn parameters_keep_their_numbers() {
        assert_eq!(read("select $2, $1"), "select ?2, ?1");
        assert_eq!(read("select '$1', \"$2\" -- $3"), "select '$1', \"$2\" -- $3");
        assert_eq!(read("select $1::oid, 1"), "select ?1/*i*/, 1");
        assert_eq!(read("select $1 :: int4, 1"), "select ?1/*g*/   , 1");
        let text = read("select $1::pg_catalog.timestamp(3) with time zone as x, $2::varchar(9) y");
        assert!(text.starts_with("select ?1/*s*/  ") && text.ends_with("  y"), "{text}");
        assert_ne!(read("select $1::int4"), read("select $1::int8"));
    }

    #[test]
    fn what_sqlite_would_misread_is_refused() {
        for (text, sqlstate) in [
            ("select $$text$$", "42601"),
            ("select E'a\\n'", "42601"),
            ("select U&'x'", "42601"),
            ("select 'a'::int", "42601"),
            ("select ?", "42601"),
            ("select :name", "42601"),
            ("select @name", "42601"),
            ("select /* /* */ */ 1", "42601"),
            ("select $0", "42P02"),
            ("select $99999", "42P02"),
            ("select $1::point", "42704"),
        ] {
            let made = Source::read(text.as_bytes());
            let refusal = made.refusal(0, text.len());
            assert_eq!(refusal.map(|t| t.sqlstate), Some(sqlstate), "{text}");
            assert_eq!(made.refusal(0, 3), None, "{text}");
        }
    }
}
