//! Literals: a text without them, to be shown to others than its author.
//!
//! An operator who sees a statement must not see a customer's data in it, or a password. So the
//! tokens alone decide, also in commands that no client would prepare.

use crate::comments::without_comments;
use crate::lex::{Lexer, TokenKind};

/// Returns a text with `''` for each string and `0` for each number, and without its comments. The
/// rest behind a quote that is never closed is left out.
pub fn without_literals(text: &[u8]) -> Vec<u8> {
    let text = without_comments(text, false);
    let mut bytes = Vec::with_capacity(text.len());
    let mut before: &[u8] = b"";
    for token in Lexer::new(&text, false) {
        let is_behind_mark = before == b"?";
        before = token.of(&text);
        bytes.extend_from_slice(match token.kind {
            // SQLite's `?1`: a parameter.
            TokenKind::Integer if is_behind_mark => before,
            TokenKind::Integer | TokenKind::Decimal => b"0",
            TokenKind::Unterminated => "…".as_bytes(),
            kind if kind == TokenKind::BitText || kind.is_text() => b"''",
            _ => token.of(&text),
        });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_without_its_literals() {
        let of = |text: &str| String::from_utf8(without_literals(text.as_bytes())).unwrap();
        assert_eq!(
            of("select a1 from t where b = 'x''y' and c=$1"),
            "select a1 from t where b = '' and c=$1"
        );
        assert_eq!(of("create user u password E'a\\'b'"), "create user u password ''");
        assert_eq!(
            of("select -1.5e3, B'01', $q$it's$q$, U&'d' /* for 'ann' */"),
            "select -0, '', '', ''"
        );
        assert_eq!(of("select \"col 1\" -- 'ann'"), "select \"col 1\"");
        assert_eq!(of("select ?1, 'b'2 where a = 1"), "select ?1, ''0 where a = 0");
        assert_eq!(of("set x = 'never closed"), "set x = …");
        assert_eq!(of("/* 'ann' */ set x = $$no"), "set x = …");
    }
}
