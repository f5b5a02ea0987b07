//! The part of a text that it shares with texts that differ from it only in their literals.
//!
//! What: [`normalize`] finds the literals of a text and makes a [`Key`] of the rest. An
//! [`Sample`] is a text with which others are compared. [`Grammar`] decides once per normalized
//! query how each literal is treated. The resulting [`Plan`] builds the text that is prepared and
//! the values that are bound.
//!
//! Why: most applications write values into the SQL text. The server then parses and plans each
//! query, although a thousand of them are one statement with different values.
//!
//! What always holds:
//! - Two texts that a sample matches have the same tokens for PostgreSQL's scanner, except for the
//!   values of literals of the same class; and a literal of a class is a constant of one type. So
//!   they have the same parse tree except for constants, unless a value itself steers the grammar;
//!   such literals are kept.
//! - A key locates a normalized query and decides nothing: a key shared by chance, or by intent,
//!   must not give one client the statement of another.
//! - [`normalize`] takes time linear in the length of the text, allocates nothing but spans and
//!   never panics.
//!
//! What it does not do: parse (that is the task of a [`Grammar`]), know parameters (with
//! `standard_conforming_strings` off, or in an encoding whose characters may contain ASCII bytes,
//! the caller must not ask), or fold letters and blanks: texts that differ in such bytes are
//! different normalized queries.

mod reason;

mod value;

mod plan;

mod sample;

pub use plan::{Analysis, Bound, Edit, Grammar, Mentions, Plan, Slot, Store, StoredIn};
pub use reason::{REFUSALS, Reason};
pub use sample::Sample;
pub use value::{Undecodable, value};

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

use crate::lex::{Lexer, Token, TokenKind};
use crate::moments::names_moment;
use reason::Refusal;

/// The kind of a literal's token, and the type of the constant that the server makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Digits up to 2147483647: `int4`.
    Int4,
    /// 2147483648: `int8`, but with a minus sign folded in `int4`.
    Int4Edge,
    /// Digits up to 9223372036854775807: `int8`.
    Int8,
    /// 9223372036854775808: `numeric`, but with a minus sign folded in `int8`.
    Int8Edge,
    /// Any other number: `numeric`.
    Numeric,
    /// `'…'`: of no type yet.
    Str,
    /// `E'…'`: of no type yet.
    EStr,
    /// `$tag$…$tag$`: of no type yet.
    Dollar,
    /// `B'…'`: `bit`.
    Bit,
    /// `X'…'`: `bit`.
    Hex,
}

impl Class {
    /// Returns the name that operators see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int4 => "int4",
            Self::Int4Edge => "2^31",
            Self::Int8 => "int8",
            Self::Int8Edge => "2^63",
            Self::Numeric => "numeric",
            Self::Str => "string",
            Self::EStr => "escape string",
            Self::Dollar => "dollar string",
            Self::Bit => "bit string",
            Self::Hex => "hex string",
        }
    }

    /// True if the literal is a string, which gets its type from its place.
    pub const fn is_string(self) -> bool {
        matches!(self, Self::Str | Self::EStr | Self::Dollar)
    }

    /// True if the literal is a number, into which the grammar may fold a minus sign.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Int4 | Self::Int4Edge | Self::Int8 | Self::Int8Edge | Self::Numeric)
    }

    /// Returns the OID of the type of the constant (`make_const` in `parse_node.c`); 0 for a
    /// string. `negative` is true if a minus sign is folded in.
    pub const fn oid(self, negative: bool) -> u32 {
        match (self, negative) {
            (Self::Str | Self::EStr | Self::Dollar, _) => 0,
            (Self::Int4, _) | (Self::Int4Edge, true) => 23,
            (Self::Int8, _) | (Self::Int4Edge, false) | (Self::Int8Edge, true) => 20,
            (Self::Numeric, _) | (Self::Int8Edge, false) => 1700,
            (Self::Bit | Self::Hex, _) => 1560,
        }
    }
}

/// The place of a literal, its prefix and quotes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
    /// Its class.
    pub class: Class,
}

impl Span {
    /// Returns the bytes of the literal. `text` is the text in which it was found; for another
    /// text, the result is the bytes at that place, or nothing.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// True if the literal is a string that may name a moment that depends on the present.
    #[inline]
    pub fn names_moment(&self, text: &[u8]) -> bool {
        let literal = self.of(text);
        match self.class {
            // What is doubled or quotes is no letter.
            Class::Str | Class::Dollar => names_moment(literal),
            Class::EStr => {
                let mut said = Vec::new();
                value(self.class, literal, true, &mut said).is_err() || names_moment(&said)
            }
            _ => false,
        }
    }
}

/// A seeded hash of a text without its literals. See [`Sample`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// Finds the literals of `text`, which has no NUL at its end, and hashes the rest with a hasher of
/// `seed`. The spans are in the order of the text and replace the content of `spans`. Refuses a
/// text that cannot be normalized, or that has more than `most` literals; the content of `spans` is
/// then meaningless.
pub fn normalize(
    text: &[u8],
    seed: &impl BuildHasher,
    most: usize,
    spans: &mut Vec<Span>,
) -> Result<Key, &'static Reason> {
    spans.clear();
    let mut lexer = Lexer::new(text, false);
    begins(&lexer)?;
    let mut hasher = seed.build_hasher();
    let mut at = 0;
    while let Some(token) = lexer.notable() {
        if token.kind == TokenKind::Semicolon {
            ends(&mut lexer)?;
            break;
        }
        if spans.len() >= most {
            return Refusal::Many.reason();
        }
        let span = Span { start: token.start, end: token.end, class: class(&lexer, token)? };
        hasher.write(&text[at..token.start as usize]);
        hasher.write_u8(span.class as u8);
        spans.push(span);
        at = token.end as usize;
    }
    hasher.write(&text[at..]);
    Ok(Key(hasher.finish()))
}

/// Whether a text begins like a command that has a plan to keep.
pub fn has_plan(text: &[u8]) -> bool {
    begins(&Lexer::new(text, false)).is_ok()
}

/// Checks whether a text may be prepared with its literals in it, and with parameters of its own.
/// What PostgreSQL does at each Parse of the text, it does once for a prepared statement: it reads
/// the literals, and tells of names that it cuts off.
///
/// # Errors
/// The reason why the text must not be prepared.
pub fn may_keep_all(text: &[u8]) -> Result<(), &'static Reason> {
    let mut lexer = Lexer::new(text, false);
    begins(&lexer)?;
    while let Some(token) = lexer.notable() {
        match token.kind {
            TokenKind::Semicolon => return ends(&mut lexer),
            TokenKind::Parameter | TokenKind::Integer | TokenKind::Decimal => {}
            _ => {
                let class = class(&lexer, token)?;
                let span = Span { start: token.start, end: token.end, class };
                if span.names_moment(text) {
                    return Refusal::Moving.reason();
                }
            }
        }
    }
    Ok(())
}

/// Checks the first word of the text. EXPLAIN, COPY and the like have no plan to keep.
#[inline]
fn begins(lexer: &Lexer<'_>) -> Result<(), &'static Reason> {
    let Some(first) = lexer.clone().significant() else { return Refusal::Utility.reason() };
    let word = first.of(lexer.text());
    let known: &[&str] = match word.len() {
        1 => &["("],
        4 => &["with"],
        5 => &["merge", "table"],
        6 => &["select", "insert", "update", "delete", "values"],
        _ => &[],
    };
    if known.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
        return Ok(());
    }
    Refusal::Utility.reason()
}

/// Checks that nothing but semicolons follows.
fn ends(lexer: &mut Lexer<'_>) -> Result<(), &'static Reason> {
    while let Some(token) = lexer.significant() {
        if token.kind != TokenKind::Semicolon {
            return Refusal::Several.reason();
        }
    }
    Ok(())
}

/// Returns the class of a literal that `lexer` has just read.
#[inline]
fn class(lexer: &Lexer<'_>, token: Token) -> Result<Class, &'static Reason> {
    let written = token.of(lexer.text());
    let class = match token.kind {
        TokenKind::Integer | TokenKind::Decimal => return number(lexer, token),
        TokenKind::DollarText => return Ok(Class::Dollar),
        TokenKind::Text => Class::Str,
        TokenKind::EscapeText => Class::EStr,
        TokenKind::BitText if written[0] | 0x20 == b'b' => Class::Bit,
        TokenKind::BitText => Class::Hex,
        TokenKind::Parameter => return Refusal::Parameter.reason(),
        TokenKind::UnicodeText | TokenKind::UnicodeQuoted => return Refusal::Unicode.reason(),
        TokenKind::Word | TokenKind::Quoted => return Refusal::LongName.reason(),
        _ => return Refusal::Malformed.reason(),
    };
    if lexer.continues() {
        return Refusal::Continued.reason();
    }
    Ok(class)
}

/// Returns the class of a number by its value, as the server reads it (`process_integer_literal` in
/// `scan.l`, `make_const` in `parse_node.c`).
#[inline]
fn number(lexer: &Lexer<'_>, token: Token) -> Result<Class, &'static Reason> {
    let written = token.of(lexer.text());
    let next = lexer.text().get(token.end as usize);
    let decimal = token.kind == TokenKind::Decimal;
    let newer =
        if decimal { written.contains(&b'_') } else { !written.iter().all(u8::is_ascii_digit) };
    // The meaning of `0x1F`, `1_000` and `1a` depends on the server's version.
    if newer || next.is_some_and(|byte| crate::lex::is_word(*byte)) {
        return Refusal::Junk.reason();
    }
    if decimal {
        return Ok(Class::Numeric);
    }
    let zeros = written.iter().position(|digit| *digit != b'0').unwrap_or(written.len());
    let digits = &written[zeros..];
    let value = || digits.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Ok(match digits.len() {
        0..=9 => Class::Int4,
        10..=19 => by_value(value()),
        _ => Class::Numeric,
    })
}

fn by_value(value: u64) -> Class {
    match (value.cmp(&INT4_EDGE), value.cmp(&INT8_EDGE)) {
        (Ordering::Less, _) => Class::Int4,
        (Ordering::Equal, _) => Class::Int4Edge,
        (_, Ordering::Less) => Class::Int8,
        (_, Ordering::Equal) => Class::Int8Edge,
        (_, Ordering::Greater) => Class::Numeric,
    }
}

/// The magnitude of the smallest `int4`, which is no `int4` without its sign.
const INT4_EDGE: u64 = 1 << 31;

/// The magnitude of the smallest `int8`.
const INT8_EDGE: u64 = 1 << 63;
