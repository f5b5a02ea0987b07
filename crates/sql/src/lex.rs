//! PostgreSQL's tokens, as spans of a text.
//!
//! What: [`Lexer`] walks an SQL text and says where each token, run of blanks and comment begins
//! and ends, by the rules of PostgreSQL's `scan.l` (manual, 4.1 Lexical Structure; number forms as
//! of version 16).
//!
//! Why: a proxy must not be misled by the content of a string, a quoted identifier or a comment.
//! For this it needs the server's own token boundaries, and no more than those.
//!
//! What always holds:
//! - The tokens tile the text: each starts where the one before ended, none is empty, and the last
//!   ends with the text. This holds for any bytes, including invalid UTF-8, NUL and unterminated
//!   quotes. The lexer does not panic or allocate.
//! - The time is linear in the length of the text.
//! - A quote or block comment that is never closed is one [`TokenKind::Unterminated`] token up to
//!   the end. The server refuses such a text as a whole and runs none of it.
//!
//! What it does not do: report errors (junk after a number is a number and then a word, as before
//! version 15), distinguish keywords from names, unescape anything, or know encodings. In SJIS,
//! BIG5, GBK, UHC, GB18030 and JOHAB the second byte of a character may be a backslash, which then
//! counts as an escape in an `E'…'` string. No other quote is affected.

mod class;

mod skim;

mod notable;

pub(crate) use class::is_word;
pub(crate) use skim::Trail;

use class::{CLASSES, Class, classes, is_newline, is_space};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A run of blanks: space, tab, newline, carriage return, form feed, vertical tab.
    Space,
    /// `-- …` up to, not including, the end of the line.
    LineComment,
    /// `/* … */`, nested ones included.
    BlockComment,
    /// A key word or an unquoted identifier.
    Word,
    /// `"…"`.
    Quoted,
    /// `U&"…"`. A `UESCAPE '…'` after it is made of tokens of its own.
    UnicodeQuoted,
    /// `'…'`, with all its continuations on later lines. Also the string after `N`, which is a
    /// [`TokenKind::Word`].
    Text,
    /// `E'…'`, with continuations.
    EscapeText,
    /// `U&'…'`, with continuations.
    UnicodeText,
    /// `B'…'` or `X'…'`, with continuations.
    BitText,
    /// `$$…$$` or `$tag$…$tag$`.
    DollarText,
    /// `12`, `1_000`, `0x1F`, `0o17`, `0b11`.
    Integer,
    /// `1.5`, `.5`, `1.`, `1e10`.
    Decimal,
    /// `$1`.
    Parameter,
    /// One or more of ``+ - * / < > = ~ ! @ # % ^ & | ` ?``, split as the server splits them.
    Operator,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// `:`
    Colon,
    /// `::`
    Cast,
    /// `:=`
    Assign,
    /// A string, quoted identifier or block comment that is not closed before the end of the text.
    Unterminated,
    /// A byte that begins no token: a lone `$`, `\`, `{`, `}` or a control character.
    Other,
}

impl TokenKind {
    /// True if it is a blank or a comment, which the grammar does not see.
    pub const fn is_trivia(self) -> bool {
        matches!(self, Self::Space | Self::LineComment | Self::BlockComment)
    }

    /// True if it is a string constant in any notation except that of bits.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::EscapeText | Self::UnicodeText | Self::DollarText)
    }
}

/// A token: its kind, and its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte; greater than `start`.
    pub end: u32,
}

impl Token {
    /// Returns the bytes of the token. `text` is the text from which it was read; for another text,
    /// the result is the bytes at that place, or nothing.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Walks the tokens of a text, blanks and comments included. [`Lexer::significant`] leaves those
/// out.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    backslash: bool,
}

impl<'a> Lexer<'a> {
    /// Begins at the start of `text`, which has no NUL at its end. If `backslash` is true, a
    /// backslash escapes in `'…'`, as it does while `standard_conforming_strings` is off. Of a text
    /// over 4 GiB (no message is that long) the lexer reads the first 4 GiB.
    pub fn new(text: &'a [u8], backslash: bool) -> Self {
        let text = text.get(..u32::MAX as usize).unwrap_or(text);
        Lexer { text, at: 0, backslash }
    }

    /// Returns the text that is being read.
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Returns the offset of the first byte that is not yet read.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the next token that is neither blank nor comment.
    #[inline]
    pub fn significant(&mut self) -> Option<Token> {
        loop {
            while self.peek(self.at).is_some_and(is_space) {
                self.at += 1;
            }
            let token = self.next()?;
            if !token.kind.is_trivia() {
                return Some(token);
            }
        }
    }

    /// Goes back to the start of a token that was read.
    pub(crate) fn rewind(&mut self, token: Token) {
        self.at = token.start as usize;
    }

    #[inline]
    fn peek(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// Returns the offset of the first byte from `from` on for which `stop` holds, or the end of
    /// the text.
    #[inline]
    fn until(&self, from: usize, stop: impl Fn(u8) -> bool) -> usize {
        let mut at = from;
        while let Some(&byte) = self.text.get(at) {
            if stop(byte) {
                break;
            }
            at += 1;
        }
        at
    }

    /// Returns the token if its closing quote was found at `end`, otherwise an unterminated token
    /// up to the end of the text.
    fn closed(&self, kind: TokenKind, end: Option<usize>) -> (TokenKind, usize) {
        end.map_or((TokenKind::Unterminated, self.text.len()), |end| (kind, end))
    }

    fn word(&self, start: usize) -> (TokenKind, usize) {
        (TokenKind::Word, self.until(start + 1, |byte| !is_word(byte)))
    }

    /// Reads a word that begins with b, e, u or x, which may be the prefix of a quote.
    fn prefixed(&self, start: usize, first: u8) -> (TokenKind, usize) {
        match (first | 0x20, self.peek(start + 1), self.peek(start + 2)) {
            (b'e', Some(b'\''), _) => self.string(TokenKind::EscapeText, start + 2),
            (b'b' | b'x', Some(b'\''), _) => self.string(TokenKind::BitText, start + 2),
            (b'u', Some(b'&'), Some(b'\'')) => self.string(TokenKind::UnicodeText, start + 3),
            (b'u', Some(b'&'), Some(b'"')) => self.quoted(TokenKind::UnicodeQuoted, start + 3),
            _ => self.word(start),
        }
    }

    /// Reads a quoted identifier or a string. `inside` is the offset just past the opening quote.
    fn quoted(&self, kind: TokenKind, inside: usize) -> (TokenKind, usize) {
        let mut at = inside;
        loop {
            at = self.until(at, |byte| byte == b'"') + 1;
            if at > self.text.len() {
                return self.closed(kind, None);
            }
            if self.peek(at) != Some(b'"') {
                return (kind, at);
            }
            at += 1;
        }
    }

    /// Reads a string constant and its continuations. `inside` is the offset just past the opening
    /// quote.
    fn string(&self, kind: TokenKind, inside: usize) -> (TokenKind, usize) {
        let mut at = inside;
        loop {
            let Some(end) = self.part(kind, at) else { return self.closed(kind, None) };
            match self.continuation(end) {
                Some(again) => at = again,
                None => return (kind, end),
            }
        }
    }

    /// Returns the end of one part of a string constant: from just past its opening quote to just
    /// past its closing one.
    #[inline]
    fn part(&self, kind: TokenKind, inside: usize) -> Option<usize> {
        let escapes = kind == TokenKind::EscapeText || (kind == TokenKind::Text && self.backslash);
        let doubles = kind != TokenKind::BitText;
        let mut at = inside;
        loop {
            at = self.until(at, |byte| byte == b'\'' || (escapes && byte == b'\\'));
            match (self.peek(at)?, self.peek(at + 1)) {
                (b'\\', _) => at += 2,
                (_, Some(b'\'')) if doubles => at += 2,
                _ => return Some(at + 1),
            }
        }
    }

    /// Returns the offset just past the quote that continues a string constant, which ended at
    /// `end`. Between the two stand blanks and line comments with at least one newline
    /// (`quotecontinue` in scan.l).
    fn continuation(&self, end: usize) -> Option<usize> {
        let mut newline = false;
        let mut at = end;
        loop {
            match self.peek(at)? {
                b'\n' | b'\r' => newline = true,
                b'\'' if newline => return Some(at + 1),
                b'-' if self.peek(at + 1) == Some(b'-') => {
                    at = self.until(at, is_newline);
                    continue;
                }
                byte if is_space(byte) => {}
                _ => return None,
            }
            at += 1;
        }
    }

    /// Reads a token that begins with `$`: a parameter, a dollar quote or neither.
    fn dollar(&self, start: usize) -> (TokenKind, usize) {
        let first = self.peek(start + 1);
        if first.is_some_and(|byte| byte.is_ascii_digit()) {
            return (TokenKind::Parameter, self.until(start + 1, |byte| !byte.is_ascii_digit()));
        }
        // A tag is an identifier without `$`, or empty.
        let tag_end = self.until(start + 1, |byte| !is_word(byte) || byte == b'$');
        if self.peek(tag_end) != Some(b'$') {
            return (TokenKind::Other, start + 1);
        }
        let delimiter = &self.text[start..=tag_end];
        let mut at = tag_end + 1;
        loop {
            at = self.until(at, |byte| byte == b'$');
            match self.text.get(at..at + delimiter.len()) {
                None => return self.closed(TokenKind::DollarText, None),
                Some(here) if here == delimiter => {
                    return (TokenKind::DollarText, at + delimiter.len());
                }
                Some(_) => at += 1,
            }
        }
    }

    /// Reads a number. `start` is a digit, or a dot before a digit.
    fn number(&self, start: usize) -> (TokenKind, usize) {
        if self.peek(start) == Some(b'0') {
            let radix: Option<fn(u8) -> bool> = match self.peek(start + 1).map(|byte| byte | 0x20) {
                Some(b'x') => Some(|byte| byte.is_ascii_hexdigit()),
                Some(b'o') => Some(|byte| matches!(byte, b'0'..=b'7')),
                Some(b'b') => Some(|byte| matches!(byte, b'0' | b'1')),
                _ => None,
            };
            let end = radix.map_or(start, |digit| self.digits(start + 2, digit, true));
            if end > start + 2 {
                return (TokenKind::Integer, end);
            }
        }
        let decimal = |byte: u8| byte.is_ascii_digit();
        let mut kind = TokenKind::Integer;
        let mut end = self.digits(start, decimal, false);
        if self.peek(end) == Some(b'.') && self.peek(end + 1) != Some(b'.') {
            kind = TokenKind::Decimal;
            end = self.digits(end + 1, decimal, false);
        }
        if matches!(self.peek(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(end + 1), Some(b'+' | b'-')));
            let exponent = self.digits(end + 1 + sign, decimal, false);
            if exponent > end + 1 + sign {
                return (TokenKind::Decimal, exponent);
            }
        }
        (kind, end)
    }

    /// Returns the end of a run of digits. Each digit but the first (the first too if `leading`)
    /// may have an underscore before it.
    fn digits(&self, start: usize, digit: impl Fn(u8) -> bool, leading: bool) -> usize {
        let mut end = start;
        loop {
            let underscore = self.peek(end) == Some(b'_') && (leading || end > start);
            let next = end + usize::from(underscore);
            if !self.peek(next).is_some_and(&digit) {
                return end;
            }
            end = next + 1;
        }
    }

    fn block_comment(&self, start: usize) -> (TokenKind, usize) {
        let mut depth = 1_usize;
        let mut at = start + 2;
        loop {
            at = self.until(at, |byte| byte == b'*' || byte == b'/');
            match (self.peek(at), self.peek(at + 1)) {
                (None, _) => return self.closed(TokenKind::BlockComment, None),
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
            if depth == 0 {
                return (TokenKind::BlockComment, at);
            }
        }
    }

    /// Reads an operator, or the comment that the same bytes begin.
    fn operator(&self, start: usize) -> (TokenKind, usize) {
        match (self.peek(start), self.peek(start + 1)) {
            (Some(b'-'), Some(b'-')) => {
                return (TokenKind::LineComment, self.until(start, is_newline));
            }
            (Some(b'/'), Some(b'*')) => return self.block_comment(start),
            (_, Some(next)) if CLASSES[next as usize] == Class::Operator => {}
            _ => return (TokenKind::Operator, start + 1),
        }
        let ahead = &self.text[start..];
        // One byte more than an operator may have, for a comment that begins with the last byte.
        let ahead = &ahead[..ahead.len().min(OPERATOR_RUN + 1)];
        let other = |byte: &u8| CLASSES[*byte as usize] != Class::Operator;
        let run = &ahead[..ahead.iter().position(other).unwrap_or(ahead.len())];
        let comment = run.windows(2).position(|pair| pair == b"/*" || pair == b"--");
        let end = comment.unwrap_or(run.len()).min(OPERATOR_RUN);
        (TokenKind::Operator, start + operator_length(&run[..end]))
    }

    fn punctuation(&self, start: usize, first: u8) -> (TokenKind, usize) {
        let kind = match (first, self.peek(start + 1)) {
            (b'.', Some(b'0'..=b'9')) => return self.number(start),
            (b'.', Some(b'.')) => return (TokenKind::DotDot, start + 2),
            (b':', Some(b':')) => return (TokenKind::Cast, start + 2),
            (b':', Some(b'=')) => return (TokenKind::Assign, start + 2),
            (b'.', _) => TokenKind::Dot,
            (b':', _) => TokenKind::Colon,
            (b'(', _) => TokenKind::Open,
            (b')', _) => TokenKind::Close,
            (b'[', _) => TokenKind::OpenBracket,
            (b']', _) => TokenKind::CloseBracket,
            (b',', _) => TokenKind::Comma,
            (b';', _) => TokenKind::Semicolon,
            _ => TokenKind::Other,
        };
        (kind, start + 1)
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    // With several users, the compiler would otherwise call it for each token of every text.
    #[inline(always)]
    fn next(&mut self) -> Option<Token> {
        let start = self.at;
        let first = self.peek(start)?;
        let (kind, end) = match CLASSES[first as usize] {
            Class::Word => self.word(start),
            Class::Prefix => self.prefixed(start, first),
            Class::Space => (TokenKind::Space, self.until(start + 1, |byte| !is_space(byte))),
            Class::Digit => self.number(start),
            Class::Operator => self.operator(start),
            Class::Quote => self.string(TokenKind::Text, start + 1),
            Class::DoubleQuote => self.quoted(TokenKind::Quoted, start + 1),
            Class::Dollar => self.dollar(start),
            Class::Punctuation => self.punctuation(start, first),
        };
        self.at = end;
        Some(Token { kind, start: start as u32, end: end as u32 })
    }
}

/// How many operator characters in a row the lexer reads for one operator: without a limit, a run
/// of `+` would cost the square of its length. The server accepts no operator over 63 bytes, and a
/// longer run that it splits is split alike here.
const OPERATOR_RUN: usize = 128;

/// Returns how much of a run of operator characters is one operator. A `+` or `-` ends an operator
/// only if it also holds a character that no operator of the SQL standard has, so `a*-1` is `*` and
/// `-`.
fn operator_length(run: &[u8]) -> usize {
    let special = |byte: &u8| b"~!@#^&|`?%".contains(byte);
    let mut length = run.len();
    let sign = |length: usize| length > 1 && matches!(run[length - 1], b'+' | b'-');
    if sign(length) && !run[..length - 1].iter().any(special) {
        while sign(length) {
            length -= 1;
        }
    }
    length
}
