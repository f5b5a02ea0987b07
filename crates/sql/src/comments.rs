//! Comments: what a text is without them.
//!
//! sqlcommenter and the like give each request a comment of its own. Two texts that differ only in
//! their comments are one statement to PostgreSQL, and so they are to a cache.

use std::borrow::Cow;

use memchr::memchr2_iter;

use crate::lex::{Lexer, Token, TokenKind};

/// The bytes that stand for all comments and blanks between two tokens. A blank would join strings
/// that a block comment keeps apart: `'a' /* */` and then `'b'` on the next line is an error.
const PARTING: &[u8] = b"/**/";

/// Returns a text without the contents of its comments, and without the blanks and comments before
/// its first token and behind its last. The result has the same tokens, and means the same.
#[inline]
pub fn without_comments(text: &[u8], backslash: bool) -> Cow<'_, [u8]> {
    let begins = |at: usize| matches!(text[at..], [b'-', b'-', ..] | [b'/', b'*', ..]);
    if memchr2_iter(b'-', b'/', text).any(begins) {
        tokens(text, backslash)
    } else {
        Cow::Borrowed(text)
    }
}

#[cold]
fn tokens(text: &[u8], backslash: bool) -> Cow<'_, [u8]> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut blank, mut comment) = (None::<Token>, false);
    for token in Lexer::new(text, backslash) {
        if token.kind.is_trivia() {
            comment |= token.kind != TokenKind::Space;
            blank = Some(token);
            continue;
        }
        let between = blank.take().filter(|_| !bytes.is_empty());
        if std::mem::take(&mut comment) {
            bytes.extend_from_slice(between.map_or(b"", |_| PARTING));
        } else if let Some(between) = between {
            bytes.extend_from_slice(between.of(text));
        }
        bytes.extend_from_slice(token.of(text));
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        String::from_utf8(without_comments(text.as_bytes(), false).into_owned()).unwrap()
    }

    #[test]
    fn comments_leave_at_most_a_mark() {
        for (text, left) in [
            ("select 1", "select 1"),
            ("select 1 /*traceparent='00-a'*/", "select 1"),
            ("select 1 -- who", "select 1"),
            ("/* a */ -- b\n select 1", "select 1"),
            ("select/* a */1", "select/**/1"),
            ("select /* a */ -- b\n 1", "select/**/1"),
            ("select 1 /* x /* y */ z */ + 2", "select 1/**/+ 2"),
            ("select '/*', $$ -- $$, \"--\" /**/", "select '/*', $$ -- $$, \"--\""),
            ("select a +/* x */- 1", "select a +/**/- 1"),
            ("select 'a' -- b\n 'c' /* d */", "select 'a' -- b\n 'c'"),
            ("select 'a' /* b */\n 'c'", "select 'a'/**/'c'"),
            ("select 1 /* open", "select 1 /* open"),
            ("select e'\\'/*' /* a */", "select e'\\'/*'"),
            ("/* a */", ""),
        ] {
            assert_eq!(of(text), left, "{text}");
            assert_eq!(of(left), left, "{text}");
        }
        let of = |backslash| without_comments(br"select '\' /* ' */", backslash).into_owned();
        assert_eq!(of(false), br"select '\'");
        assert_eq!(of(true), br"select '\' /* ' */");
    }

    #[test]
    fn the_same_tokens_are_left() {
        let kinds = |text: &[u8]| -> Vec<(TokenKind, Vec<u8>)> {
            let tokens = Lexer::new(text, false).filter(|token| !token.kind.is_trivia());
            tokens.map(|token| (token.kind, token.of(text).to_vec())).collect()
        };
        let parts = ["'a'", "--", "/*", "*/", "\n", " ", "+", "-", "$$", "\"", "1", "e'\\'", "a"];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = Vec::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.extend_from_slice(parts[(state >> 33) as usize % parts.len()].as_bytes());
            }
            let left = without_comments(&text, false);
            assert_eq!(kinds(&text), kinds(&left), "{}", String::from_utf8_lossy(&text));
        }
    }
}
