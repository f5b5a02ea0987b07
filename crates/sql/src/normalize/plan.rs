//! The treatment of each literal of a normalized query, and the text and values that follow from
//! it.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use super::reason::Refusal;
use super::{Reason, Span, Undecodable, value};
use crate::lex::is_word;

/// A grammar of SQL.
pub trait Grammar {
    /// Analyzes a text: may it be prepared, and how is each of its literals treated? May take long.
    fn analyse(&self, text: &str, spans: &[Span]) -> Analysis;
}

/// The result of analyzing a normalized query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Analysis {
    /// Its texts run as they are sent.
    Never(&'static Reason),
    /// It may be prepared.
    Normalized(Plan),
}

/// The treatment of one literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// It is kept as it is written. Texts that differ in it are different statements.
    Keep(&'static Reason),
    /// It becomes the next parameter.
    Parameter {
        /// The OID of the type to declare; 0 lets the server choose.
        oid: u32,
        /// Further changes in the text.
        edit: Edit,
    },
}

/// The change in the text besides the literal itself. Distances are the same in all texts of a
/// normalized query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Nothing.
    None,
    /// A minus sign, `back` bytes before the literal, goes into the value.
    Sign {
        /// Distance from the sign to the literal, in bytes.
        back: u32,
    },
    /// The name of a type in front, as in `date '…'`, becomes that of a cast: `CAST($1 AS date)`.
    Typed {
        /// Distance from the beginning of the name to the literal, in bytes.
        back: u32,
        /// Length of the name, in bytes.
        length: u32,
    },
}

impl Edit {
    /// Returns the distance from the beginning of the change to the literal, in bytes.
    const fn back(self) -> u32 {
        match self {
            Edit::None => 0,
            Edit::Sign { back } | Edit::Typed { back, .. } => back,
        }
    }
}

/// A parameter of a statement and the literal it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The literal.
    pub span: Span,
    /// The OID of the type to declare; 0 lets the server choose.
    pub oid: u32,
    /// Further changes in the text.
    pub edit: Edit,
}

impl Bound {
    /// Appends the value to `out`, in text format. See [`value()`].
    pub fn value(&self, text: &[u8], utf8: bool, out: &mut Vec<u8>) -> Result<(), Undecodable> {
        if matches!(self.edit, Edit::Sign { .. }) {
            out.push(b'-');
        }
        value(self.span.class, self.span.of(text), utf8, out)
    }

    /// Returns the place to which the server would point if it rejected the value.
    pub const fn start(&self) -> u32 {
        match self.edit {
            Edit::Sign { back } => self.span.start.saturating_sub(back),
            _ => self.span.start,
        }
    }
}

/// The treatment of the literals of a normalized query. All methods take a text of the query and
/// the spans that [`super::normalize`] found in it. For other texts their results are meaningless,
/// but they do not panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The treatment of each literal, in the order of the text.
    pub slots: Box<[Slot]>,
    /// True if a string is kept. The server reads it as it prepares the statement, so the
    /// parameters at that moment (`DateStyle`, `IntervalStyle`, `TimeZone`, `search_path`,
    /// `lc_monetary`, `xmloption`) are part of the statement's identity. Parameters of a Bind are
    /// read at each Bind.
    pub frozen: bool,
    /// The names in the text.
    pub mentions: Mentions,
}

/// The names in a text, about which only the server knows more. All names are as SQL writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// The tables that it writes.
    pub writes: Box<[String]>,
    /// The relations that it reads: tables, views, and names of its own WITH.
    pub reads: Box<[String]>,
    /// The functions that it calls, without their schemas.
    pub calls: Box<[String]>,
    /// The functions among them whose arguments have neither a column nor a parameter: the planner
    /// may run them once.
    pub constant_calls: Box<[String]>,
    /// True if `*` decides which columns it returns: the columns of a table may change.
    pub starred: bool,
    /// The literals of an INSERT that become parameters and are stored as they are written.
    pub stores: Box<[Store]>,
    /// For an INSERT, true if any other literal becomes a parameter.
    pub computes: bool,
}

/// A literal that is stored in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Index of the literal in the text.
    pub literal: usize,
    /// The column.
    pub column: StoredIn,
}

/// The column that a value is stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredIn {
    /// By its name.
    Named(String),
    /// By its place among the columns of the table, from 1 on.
    At(usize),
}

impl Plan {
    /// True if any literal is kept.
    pub fn keeps(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Keep(_)))
    }

    /// Iterates over the kept literals as written. Together with the normalized query they identify
    /// the statement.
    pub fn kept<'a>(&self, text: &'a [u8], spans: &[Span]) -> impl Iterator<Item = &'a [u8]> {
        self.kept_spans(spans).map(|span| span.of(text))
    }

    /// Iterates over the parameters, from `$1` on.
    pub fn bound(&self, spans: &[Span]) -> impl Iterator<Item = Bound> {
        let pairs = self.slots.iter().zip(spans);
        pairs.filter_map(|(slot, span)| match *slot {
            Slot::Keep(_) => None,
            Slot::Parameter { oid, edit } => Some(Bound { span: *span, oid, edit }),
        })
    }

    /// Returns the reason why this text of a normalized query must run as it is sent, although
    /// others need not. The caller asks for every new set of kept literals.
    pub fn refuses(&self, text: &[u8], spans: &[Span]) -> Option<&'static Reason> {
        let moves = self.kept_spans(spans).any(|span| span.names_moment(text));
        moves.then_some(Refusal::Moving.row())
    }

    /// Appends the text that is to be prepared to `out`.
    pub fn render(&self, text: &[u8], spans: &[Span], out: &mut Vec<u8>) {
        self.pieces(text, spans, |piece| out.extend_from_slice(&piece.bytes));
    }

    /// Returns the place in `text` that corresponds to `place` in the text that was prepared, both
    /// in characters from 1 as in an error's field `P`. If `utf8` is true, characters are UTF-8
    /// characters, otherwise bytes.
    pub fn position(&self, text: &[u8], spans: &[Span], place: usize, utf8: bool) -> usize {
        let mut prepared = Vec::new();
        self.render(text, spans, &mut prepared);
        let place = offset(&prepared, place, utf8);
        let (mut begin, mut found) = (0, text.len());
        self.pieces(text, spans, |piece| {
            let end = begin + piece.bytes.len();
            if (begin..end).contains(&place) {
                found = if piece.copied { piece.from + place - begin } else { piece.from };
            }
            begin = end;
        });
        characters(&text[..found.min(text.len())], utf8) + 1
    }

    /// Returns the place in `text` of the literal that became parameter `number` (from 1), in
    /// characters from 1.
    pub fn place(&self, text: &[u8], spans: &[Span], number: usize, utf8: bool) -> Option<usize> {
        let bound = self.bound(spans).nth(number.checked_sub(1)?)?;
        Some(characters(text.get(..bound.start() as usize)?, utf8) + 1)
    }

    fn kept_spans(&self, spans: &[Span]) -> impl Iterator<Item = Span> {
        let kept = |(slot, span): (&Slot, &Span)| matches!(slot, Slot::Keep(_)).then_some(*span);
        self.slots.iter().zip(spans).filter_map(kept)
    }

    /// Passes the text to be prepared to `each`, piece by piece.
    fn pieces<'a>(&self, text: &'a [u8], spans: &[Span], mut each: impl FnMut(Piece<'a>)) {
        let copy = |range: Range<usize>| Piece {
            from: range.start,
            bytes: Cow::Borrowed(text.get(range).unwrap_or_default()),
            copied: true,
        };
        let made = |from: usize, bytes: Vec<u8>| Piece { from, bytes: bytes.into(), copied: false };
        let word = |at: usize| text.get(at).is_some_and(|byte| is_word(*byte));
        let mut at = 0;
        for (bound, number) in self.bound(spans).zip(1..) {
            let (start, end) = (bound.span.start as usize, bound.span.end as usize);
            let mut from = start.saturating_sub(bound.edit.back() as usize);
            each(copy(at..from));
            if let Edit::Sign { .. } = bound.edit {
                each(made(from, b" ".to_vec()));
                from += 1;
                each(copy(from..start));
            }
            let mut parameter = Vec::new();
            // `$1` must not become the end of a word, nor must a word become the end of `$1`.
            if from > 0 && word(from - 1) {
                parameter.push(b' ');
            }
            // Writing to a vector never fails.
            let _ = match bound.edit {
                Edit::Typed { length, .. } => {
                    let name = text.get(from..from + length as usize).unwrap_or_default();
                    let name = String::from_utf8_lossy(name);
                    write!(parameter, "CAST(${number} AS {name})")
                }
                _ => write!(parameter, "${number}"),
            };
            if word(end) {
                parameter.push(b' ');
            }
            each(made(bound.start() as usize, parameter));
            at = end;
        }
        each(copy(at..text.len()));
    }
}

/// A piece of the text to be prepared, and its origin in the text that was sent.
struct Piece<'a> {
    from: usize,
    bytes: Cow<'a, [u8]>,
    copied: bool,
}

/// Returns the number of characters in `text`.
fn characters(text: &[u8], utf8: bool) -> usize {
    text.iter().filter(|byte| begins_character(**byte, utf8)).count()
}

/// Returns the offset of the `place`th character, counted from 1.
fn offset(text: &[u8], place: usize, utf8: bool) -> usize {
    let starts = text.iter().enumerate().filter(|(_, byte)| begins_character(**byte, utf8));
    starts.map(|(at, _)| at).nth(place.saturating_sub(1)).unwrap_or(text.len())
}

const fn begins_character(byte: u8, utf8: bool) -> bool {
    !utf8 || byte & 0xc0 != 0x80
}
