//! A fast walk to the next literal.
//!
//! What: [`Lexer::notable`] moves to the next token that matters for [`crate::normalize`].
//!
//! Why: the text of every simple query may have to be normalized, and nearly all of it is names,
//! blanks and operators, for which the walk builds no [`Token`].
//!
//! What always holds (and a test compares): `notable` finds the same tokens as [`Lexer::next`] with
//! a filter.

use super::{Class, Lexer, Token, TokenKind, is_word};
use crate::name::MAX_NAME;

impl Lexer<'_> {
    /// Returns the next token that is a literal, a parameter, a semicolon, a name longer than
    /// [`MAX_NAME`], or one that some or all servers refuse: a vertical tab, `U&`, an unterminated
    /// token, or a byte that begins no token. The parts of a continued string are separate tokens:
    /// see [`Lexer::continues`].
    #[inline]
    pub(crate) fn notable(&mut self) -> Option<Token> {
        let mut at = self.at;
        loop {
            let start = at;
            let Some(first) = self.peek(start) else {
                self.at = at;
                return None;
            };
            at += 1;
            let (kind, end) = match self.course(start, first) {
                Course::Pass => continue,
                Course::Word => {
                    at = self.until(at, |byte| !is_word(byte));
                    if at - start <= MAX_NAME {
                        continue;
                    }
                    (TokenKind::Word, at)
                }
                Course::Stop(kind) => (kind, at),
                Course::Number => self.number(start),
                Course::Quote(kind) => {
                    self.closed(kind, self.part(kind, at + usize::from(kind != TokenKind::Text)))
                }
                Course::Lexer => {
                    self.at = start;
                    let token = self.next()?;
                    at = token.end as usize;
                    let noted = match token.kind {
                        TokenKind::Word => at - start > MAX_NAME,
                        TokenKind::Quoted => at - start > MAX_NAME + 2,
                        TokenKind::DotDot => false,
                        kind => !kind.is_trivia(),
                    };
                    if !noted {
                        continue;
                    }
                    (token.kind, at)
                }
            };
            self.at = end;
            return Some(Token { kind, start: start as u32, end: end as u32 });
        }
    }

    /// Whether a string constant whose last part was just read goes on after a newline.
    #[inline]
    pub(crate) fn continues(&self) -> bool {
        self.continuation(self.at).is_some()
    }

    #[inline]
    fn course(&self, start: usize, first: u8) -> Course {
        match COURSES[first as usize] {
            Course::Lexer => self.second(first, self.peek(start + 1)),
            course => course,
        }
    }

    /// Returns the action for a first byte that does not decide alone.
    #[inline]
    fn second(&self, first: u8, next: Option<u8>) -> Course {
        match (first, next) {
            (b'e' | b'E', Some(b'\'')) => Course::Quote(TokenKind::EscapeText),
            (b'b' | b'B' | b'x' | b'X', Some(b'\'')) => Course::Quote(TokenKind::BitText),
            (b'u' | b'U', Some(b'&')) => Course::Lexer,
            (b'.', Some(b'0'..=b'9')) => Course::Number,
            (b'-', Some(b'-')) | (b'/', Some(b'*')) | (b'.', Some(b'.')) => Course::Lexer,
            (b'"' | b'$', _) => Course::Lexer,
            (b'-' | b'/' | b'.', _) => Course::Pass,
            _ => Course::Word,
        }
    }
}

/// The action at the beginning of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The token does not matter, and its bytes may be skipped one by one.
    Pass,
    Word,
    Number,
    /// A part of a string constant. Unless the string is a plain one, the byte is its prefix.
    Quote(TokenKind),
    /// A token of one byte that matters.
    Stop(TokenKind),
    /// The first byte does not decide.
    Lexer,
}

/// The action by the first byte of a token.
static COURSES: [Course; 256] = {
    let classes = super::classes();
    let mut table = [Course::Pass; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match (classes[at], at as u8) {
            // A vertical tab is a blank since version 16. Older servers refuse it.
            (_, 0x0b) => Course::Stop(TokenKind::Other),
            (_, b';') => Course::Stop(TokenKind::Semicolon),
            (Class::Space, _) | (_, b'(' | b')' | b'[' | b']' | b',' | b':') => Course::Pass,
            (Class::Word, _) => Course::Word,
            (Class::Digit, _) => Course::Number,
            (Class::Quote, _) => Course::Quote(TokenKind::Text),
            (Class::Operator, b'-' | b'/') | (_, b'.') => Course::Lexer,
            (Class::Operator, _) => Course::Pass,
            (Class::Punctuation, _) => Course::Stop(TokenKind::Other),
            _ => Course::Lexer,
        };
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens that `notable` should find, with continued strings as one token.
    fn expected(text: &[u8]) -> Vec<Token> {
        let noted = |token: &Token| {
            let length = token.of(text).len();
            match token.kind {
                TokenKind::Word => length > MAX_NAME,
                TokenKind::Quoted => length > MAX_NAME + 2,
                TokenKind::Semicolon
                | TokenKind::UnicodeQuoted
                | TokenKind::BitText
                | TokenKind::Integer
                | TokenKind::Decimal
                | TokenKind::Parameter
                | TokenKind::Unterminated
                | TokenKind::Other => true,
                kind => kind.is_text(),
            }
        };
        // A vertical tab in a run of blanks counts as a token of its own.
        let parts = |token: Token| match token.kind {
            TokenKind::Space => (token.start..token.end)
                .filter(|at| text[*at as usize] == 0x0b)
                .map(|start| Token { kind: TokenKind::Other, start, end: start + 1 })
                .collect(),
            _ => vec![token],
        };
        let all = Lexer::new(text, false).flat_map(parts);
        all.filter(noted).collect()
    }

    fn found(text: &[u8]) -> Vec<Token> {
        let mut lexer = Lexer::new(text, false);
        let mut found: Vec<Token> = Vec::new();
        while let Some(mut token) = lexer.notable() {
            if lexer.continues() && (token.kind.is_text() || token.kind == TokenKind::BitText) {
                lexer.at = token.start as usize;
                token = lexer.next().unwrap();
            }
            found.push(token);
        }
        found
    }

    #[test]
    fn finds_what_the_lexer_finds() {
        let alphabet = b"a'\"\"$$--/**/\\\nEeUu&xXnN0123_..;:()@+,= aab\xff\0\x0b";
        let mut state = 0x5eed_u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for turn in 0..500_000 {
            let length = random(if turn % 100 == 0 { 300 } else { 24 });
            let letters = if turn % 1000 == 0 { 1 } else { alphabet.len() };
            let text: Vec<u8> =
                (0..length).map(|_| alphabet[alphabet.len() - 1 - random(letters)]).collect();
            assert_eq!(found(&text), expected(&text), "of {:?}", text.escape_ascii());
        }
    }
}
