//! Literals: a text without the data in it, for people to look at.
//!
//! A text that stands in a listing or a log must not show what users have entered.
//! [`crate::normalize`] takes literals out of texts that have a plan to keep; this file does so for
//! any text, whether or not PostgreSQL would take it.

use crate::lex::{Lexer, TokenKind};

/// Returns a text with `''` in place of each string and `0` in place of each number, and without
/// its comments. A literal that does not end, and all behind it, is `…`.
pub fn without_literals(text: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    for token in Lexer::new(text, false) {
        shown.extend_from_slice(match token.kind {
            TokenKind::LineComment | TokenKind::BlockComment => b" ",
            TokenKind::Text
            | TokenKind::EscapeText
            | TokenKind::UnicodeText
            | TokenKind::BitText
            | TokenKind::DollarText => b"''",
            TokenKind::Integer | TokenKind::Decimal => b"0",
            TokenKind::Unterminated => {
                shown.extend_from_slice("…".as_bytes());
                break;
            }
            _ => token.of(text),
        });
    }
    shown.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_stays() {
        let all = [
            ("create role a password 'secret'", "create role a password ''"),
            ("select 7.5, E'a\\'b', $x$y$x$, B'01', U&'z' -- x", "select 0, '', '', '', ''"),
            ("/* who */ copy \"T\" (a) from stdin", "copy \"T\" (a) from stdin"),
            ("insert into t values ($1, 5); select 'x", "insert into t values ($1, 0); select …"),
            ("", ""),
        ];
        for (text, due) in all {
            assert_eq!(String::from_utf8(without_literals(text.as_bytes())).unwrap(), due);
        }
    }
}
