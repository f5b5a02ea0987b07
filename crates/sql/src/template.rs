//! What a text has in common with others that differ from it in their literals.
//!
//! What: [`generalise`] finds the literals of a text and makes a [`Key`] of all the rest; an [`Exemplar`] is a text
//! to compare others with; [`Grammar`] judges once
//! per template what is to become of each literal, and the [`Plan`] it gives makes the text that is prepared and
//! the values that are bound.
//!
//! Why: most applications write values into their texts. The server parses and plans each anew, though a thousand
//! of them are one statement with other values.
//!
//! What always holds:
//! - Two texts of which an exemplar says that they match are, for PostgreSQL's scanner, the same tokens but for the
//!   values of literals of the same class; and a literal of
//!   a class is a constant of one type. So they have the same parse tree but for constants, save where a value
//!   itself steers the grammar; what is such, is kept.
//! - A key places a text and decides nothing: a key shared by chance, or by somebody's intent, must not give one
//!   client the statement of another.
//! - [`generalise`] takes time linear in the text, allocates nothing but spans and never panics.
//!
//! What it does not do: parse (that is for whoever is behind [`Grammar`]), know of settings (with
//! `standard_conforming_strings` off, or in an encoding whose characters
//! may hold ASCII bytes, the caller does not ask) or fold letters and blanks: other bytes, other template.

mod reason;

mod value;

mod plan;

mod exemplar;

pub use exemplar::Exemplar;
pub use plan::{Bound, Edit, Grammar, Mentions, Plan, Slot, Store, StoredIn, Verdict};
pub use reason::{REFUSALS, Reason};
pub use value::{Undecodable, value};

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

use crate::lex::{Lexer, Token, TokenKind};
use reason::Refusal;

/// What kind of token a literal is, and of which type a constant the server makes of it.
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
    /// What an operator reads.
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

    /// Whether the literal is a string, to which its place gives a type.
    pub const fn is_string(self) -> bool {
        matches!(self, Self::Str | Self::EStr | Self::Dollar)
    }

    /// Whether the literal is a number, before which the grammar may fold a minus sign in.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Int4 | Self::Int4Edge | Self::Int8 | Self::Int8Edge | Self::Numeric)
    }

    /// The OID of the type of the constant (`make_const` in `parse_node.c`); 0 for a string. `negative` says that a
    /// minus sign is folded in.
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

/// Where a literal stands, its prefix and quotes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
    /// What it is.
    pub class: Class,
}

impl Span {
    /// The bytes of the literal. `text` is the text it was found in; of another text, what lies there, or nothing.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A seeded hash of all that texts of one template have in common. See [`Exemplar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// Finds the literals of `text`, which has no NUL at its end, and hashes all the rest of it with a hasher of
/// `seed`. The spans are in the order of the text; what
/// `spans` held before is gone. Refuses a text that no template is made of, or that has more than `most` literals;
/// `spans` is then of no use.
pub fn generalise(
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

/// Whether the text begins as a statement does that a template is made of. EXPLAIN, COPY and the like have no plan
/// that would be kept.
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

/// Whether nothing but semicolons follows.
fn ends(lexer: &mut Lexer<'_>) -> Result<(), &'static Reason> {
    while let Some(token) = lexer.significant() {
        if token.kind != TokenKind::Semicolon {
            return Refusal::Several.reason();
        }
    }
    Ok(())
}

/// The class of a literal that `lexer` has just read.
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

/// The class of a number by its value, as the server reads it (`process_integer_literal` in `scan.l`, `make_const`
/// in `parse_node.c`).
#[inline]
fn number(lexer: &Lexer<'_>, token: Token) -> Result<Class, &'static Reason> {
    let written = token.of(lexer.text());
    let next = lexer.text().get(token.end as usize);
    let decimal = token.kind == TokenKind::Decimal;
    let newer =
        if decimal { written.contains(&b'_') } else { !written.iter().all(u8::is_ascii_digit) };
    // What `0x1F`, `1_000` and `1a` are depends on the server's version.
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

/// The size of the smallest `int4`, which no `int4` is without its sign.
const INT4_EDGE: u64 = 1 << 31;

/// The same of `int8`.
const INT8_EDGE: u64 = 1 << 63;
