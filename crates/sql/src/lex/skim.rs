//! A fast walk over the tokens that [`crate::scan()`] has no rule for.
//!
//! What: [`Lexer::skim`] moves to the next token for which a caller has a use.
//!
//! Why: a proxy scans every query once, and nearly all texts have no such token. Most of the time
//! is saved by building no [`Token`] for the others.
//!
//! What always holds (and a test compares): `skim` finds the same tokens as
//! [`Lexer::significant`] with a filter.

use super::{CLASSES, Class, Lexer, Token, TokenKind, is_word};

/// The memory of [`Lexer::skim`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail {
    /// The begin of the last token that `skim` passed over, or a byte of an operator. A caller that
    /// gets a token sets this to the begin of that token.
    pub(crate) before: usize,
    /// The number of open parentheses. It never falls below zero.
    pub(crate) depth: usize,
}

impl Lexer<'_> {
    /// Returns the next token that is a semicolon, a `U&"…"`, a parenthesis that opens after a
    /// possible name, or a word or `"…"` for which `noted` is true. `noted` gets the first byte and
    /// the length of a word, or of the text inside a `"…"`.
    #[inline]
    pub(crate) fn skim(
        &mut self,
        trail: &mut Trail,
        noted: impl Fn(u8, usize) -> bool,
    ) -> Option<Token> {
        let mut at = self.at;
        loop {
            let start = at;
            let Some(first) = self.peek(start) else {
                self.at = at;
                return None;
            };
            at += 1;
            match self.way(start, first) {
                Way::Blank => continue,
                Way::Single => {}
                Way::Word => {
                    at = self.until(at, |byte| !is_word(byte));
                    if noted(first, at - start) {
                        return Some(self.found(TokenKind::Word, start, at));
                    }
                    // Most words have a blank after them: this saves one turn of the loop.
                    at += usize::from(self.peek(at) == Some(b' '));
                }
                Way::Open => {
                    trail.depth += 1;
                    if self.may_be_name(trail.before) {
                        return Some(self.found(TokenKind::Open, start, at));
                    }
                }
                Way::Close => trail.depth = trail.depth.saturating_sub(1),
                Way::Semicolon => return Some(self.found(TokenKind::Semicolon, start, at)),
                Way::Lexer => {
                    self.at = start;
                    let token = self.next()?;
                    at = self.at;
                    let noted = match token.kind {
                        TokenKind::UnicodeQuoted => true,
                        TokenKind::Quoted => {
                            noted(self.peek(start + 1).unwrap_or_default(), at - start - 2)
                        }
                        TokenKind::Word => noted(first, at - start),
                        kind if kind.is_trivia() => continue,
                        _ => false,
                    };
                    if noted {
                        return Some(token);
                    }
                }
            }
            trail.before = start;
        }
    }

    /// Whether the token that begins here may be a name.
    #[inline]
    fn may_be_name(&self, start: usize) -> bool {
        let class = self.peek(start).map(|first| CLASSES[first as usize]);
        matches!(class, Some(Class::Word | Class::Prefix | Class::DoubleQuote))
    }

    fn found(&mut self, kind: TokenKind, start: usize, end: usize) -> Token {
        self.at = end;
        Token { kind, start: start as u32, end: end as u32 }
    }

    #[inline]
    fn way(&self, start: usize, first: u8) -> Way {
        let way = WAYS[first as usize];
        if way != Way::Lexer {
            return way;
        }
        let next = self.peek(start + 1);
        let plain = match CLASSES[first as usize] {
            Class::Prefix if !matches!(next, Some(b'\'' | b'&')) => return Way::Word,
            // A run of operator bytes may be skipped byte by byte: comments begin at the same
            // places.
            Class::Operator => !matches!((first, next), (b'-', Some(b'-')) | (b'/', Some(b'*'))),
            Class::Digit => !next.is_some_and(|next| is_word(next) || next == b'.'),
            _ => false,
        };
        if plain { Way::Single } else { Way::Lexer }
    }
}

/// The action at the beginning of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Lexer,
    Blank,
    Word,
    Single,
    Open,
    Close,
    Semicolon,
}

/// The action by the first byte of a token; [`Way::Lexer`] if the first byte alone does not decide.
static WAYS: [Way; 256] = {
    let mut table = [Way::Lexer; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match (super::classes()[at], at as u8) {
            (Class::Space, _) => Way::Blank,
            (Class::Word, _) => Way::Word,
            (Class::Operator, b'-' | b'/') => Way::Lexer,
            (Class::Operator, _) | (_, b',') => Way::Single,
            (_, b'(') => Way::Open,
            (_, b')') => Way::Close,
            (_, b';') => Way::Semicolon,
            _ => Way::Lexer,
        };
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens that `skim` should find, each with its trail.
    fn expected(text: &[u8], noted: impl Fn(u8, usize) -> bool) -> Vec<(Token, u8, usize)> {
        let mut lexer = Lexer::new(text, false);
        let (mut found, mut before, mut depth) = (Vec::new(), 0, 0_usize);
        while let Some(token) = lexer.significant() {
            let written = token.of(text);
            match token.kind {
                TokenKind::Open => {
                    depth += 1;
                    let class = CLASSES[before as usize];
                    if matches!(class, Class::Word | Class::Prefix | Class::DoubleQuote) {
                        found.push((token, before, depth));
                    }
                }
                TokenKind::Close => depth = depth.saturating_sub(1),
                TokenKind::Semicolon | TokenKind::UnicodeQuoted => {
                    found.push((token, before, depth))
                }
                TokenKind::Word if noted(written[0], written.len()) => {
                    found.push((token, before, depth))
                }
                TokenKind::Quoted if noted(written[1], written.len() - 2) => {
                    found.push((token, before, depth));
                }
                _ => {}
            }
            let operator = token.kind == TokenKind::Operator;
            before = if operator { b'+' } else { written[0] };
        }
        found
    }

    fn skimmed(text: &[u8], noted: impl Fn(u8, usize) -> bool) -> Vec<(Token, u8, usize)> {
        let mut lexer = Lexer::new(text, false);
        let mut trail = Trail { before: usize::MAX, depth: 0 };
        let mut found = Vec::new();
        while let Some(token) = lexer.skim(&mut trail, &noted) {
            let before = text.get(trail.before).copied().unwrap_or_default();
            let operator = CLASSES[before as usize] == Class::Operator && before != 0;
            found.push((token, if operator { b'+' } else { before }, trail.depth));
            trail.before = token.start as usize;
        }
        found
    }

    #[test]
    fn skims_what_the_lexer_finds() {
        let alphabet = b"'\"\"$$--/**/\\\nEeUu&xXiI0123_..;:()@+,= aab\xff\0";
        let mut state = 0x5eed_u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for _ in 0..500_000 {
            let length = random(24);
            let text: Vec<u8> = (0..length).map(|_| alphabet[random(alphabet.len())]).collect();
            let noted = |first: u8, length: usize| {
                matches!((first, length), (b'a' | b'i' | b'e' | b'x', 1) | (b'a', 2))
            };
            assert_eq!(
                skimmed(&text, noted),
                expected(&text, noted),
                "of {:?}",
                text.escape_ascii()
            );
        }
    }
}
