//! Stored literals: whether the literals of an INSERT fit the columns that they are stored in.
//!
//! That matters where a sequence gives the row a value: the sequence does not take the value back,
//! even if the row fails. PostgreSQL finds a literal that does not fit while it plans the text,
//! before the sequence gives a value. It finds a parameter that does not fit when it runs the
//! statement, after that: a parameter has a type, and a column may take less than the type does. So
//! Refrain runs such a text as it was sent.
//!
//! A literal that is not known to fit does not fit. A value that the type of its parameter does not
//! take fails when it is bound, before anything runs; it counts as one that fits.

use refrain_sql::normalize::{Class, Mentions, Span, StoredIn};

/// The beginning of a row of the catalog's answer that is about a column.
pub(crate) const COLUMN: &str = "column ";

/// The first OID that is not the system's own.
const FIRST_OWN: u32 = 16384;
/// Characters of a plain number, beyond which it may be out of range of some type.
const LONG: usize = 30;

/// A column of a table in which a sequence gives values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its place among the columns of the table, from 1 on.
    at: usize,
    takes: Takes,
    name: String,
}

/// The values of a parameter that a column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// All strings, and plain numbers.
    Text,
    /// Plain numbers.
    Numbers,
    /// Integers up to a bound.
    Integers(i64),
    /// Plain numbers with at most these numbers of digits before the point, and behind it.
    Digits(usize, usize),
    /// Texts of at most this number of characters.
    Characters(usize),
    /// All strings, which PostgreSQL checks by the type when it binds a value. Of numbers nothing
    /// is known.
    Strings,
    /// Nothing is known.
    Unknown,
}

/// A literal, and the values that its column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredLiteral {
    literal: usize,
    takes: Takes,
}

impl Column {
    /// Reads a column from a row of the answer.
    pub(crate) fn read(row: &[u8]) -> Option<Self> {
        let row = std::str::from_utf8(row).ok()?.strip_prefix(COLUMN)?;
        let mut words = row.splitn(4, ' ');
        let (at, kind, modifier) = (words.next()?, words.next()?, words.next()?);
        let takes = takes(kind.parse().ok()?, modifier.parse().ok()?);
        Some(Self { at: at.parse().ok()?, takes, name: words.next()?.to_owned() })
    }
}

/// Returns the values that a column of this type, with this modifier, takes.
fn takes(kind: u32, modifier: i32) -> Takes {
    match (kind, usize::try_from(modifier).ok()) {
        (21, _) => Takes::Integers(i16::MAX.into()),
        (23, _) => Takes::Integers(i32::MAX.into()),
        (20, _) => Takes::Integers(i64::MAX),
        (700 | 701 | 1700, None) => Takes::Numbers,
        (1700, Some(modifier)) => digits_of(modifier.saturating_sub(4)),
        (25 | 1043, None) => Takes::Text,
        (1042 | 1043, Some(modifier)) => Takes::Characters(modifier.saturating_sub(4)),
        // The modifiers of dates and times cut off.
        (1083 | 1114 | 1184 | 1186 | 1266, _) => Takes::Strings,
        (..FIRST_OWN, None) => Takes::Strings,
        _ => Takes::Unknown,
    }
}

/// Returns the values that a `numeric` takes, by its modifier: precision and scale. A scale may be
/// below zero, and larger than the precision.
fn digits_of(modifier: usize) -> Takes {
    let (precision, scale) = (modifier >> 16, modifier & 0x7ff);
    match precision.checked_sub(scale) {
        Some(before) => Takes::Digits(before, scale),
        None => Takes::Unknown,
    }
}

/// Returns the literals of a plan that have to fit; `None` if a column of theirs is not known.
pub(crate) fn stored(mentions: &Mentions, columns: &[Column]) -> Option<Box<[StoredLiteral]>> {
    if columns.is_empty() {
        return Some(Box::default());
    }
    if mentions.computes {
        return None;
    }
    let takes = |column: &StoredIn| {
        let found = columns.iter().find(|it| match column {
            StoredIn::Named(name) => *name == it.name,
            StoredIn::At(at) => *at == it.at,
        });
        found.map(|it| it.takes)
    };
    mentions
        .stores
        .iter()
        .map(|it| Some(StoredLiteral { literal: it.literal, takes: takes(&it.column)? }))
        .collect()
}

impl StoredLiteral {
    /// True if the literal of a text in this place fits.
    pub(crate) fn fits(&self, text: &[u8], spans: &[Span]) -> bool {
        let Some(span) = spans.get(self.literal) else { return false };
        let literal = span.of(text);
        match span.class {
            // A sign may stand in front.
            class if class.is_number() => self.takes.number(literal, literal.len() + 1),
            Class::Str => {
                let inside = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
                let characters =
                    std::str::from_utf8(inside).map_or(inside.len(), |it| it.chars().count());
                self.takes.string() || self.takes.number(inside, characters)
            }
            // Escapes and quotes make it shorter only.
            class if class.is_string() => {
                self.takes.string()
                    || matches!(self.takes, Takes::Characters(most) if literal.len() <= most)
            }
            _ => false,
        }
    }
}

impl Takes {
    /// Whether it takes every string that can be bound.
    fn string(self) -> bool {
        matches!(self, Self::Text | Self::Strings)
    }

    /// Whether it takes `literal` as a number, or a text of at most this number of characters.
    fn number(self, literal: &[u8], characters: usize) -> bool {
        if let Self::Characters(most) = self {
            return characters <= most;
        }
        let Some((whole, fraction)) = digits(literal) else { return false };
        match self {
            Self::Text | Self::Numbers => literal.len() <= LONG,
            Self::Integers(most) => {
                // A fraction may be rounded up, by one at most.
                let value = std::str::from_utf8(whole).ok().and_then(|it| it.parse::<i64>().ok());
                value.is_some_and(|value| value < most)
            }
            Self::Digits(before, behind) => {
                whole.len() < before || whole.len() == before && fraction.len() <= behind
            }
            Self::Characters(_) | Self::Strings | Self::Unknown => false,
        }
    }
}

/// Returns the digits of a plain number before the point, and behind it.
fn digits(literal: &[u8]) -> Option<(&[u8], &[u8])> {
    let unsigned = literal.strip_prefix(b"-").unwrap_or(literal);
    let point = unsigned.iter().position(|byte| *byte == b'.').unwrap_or(unsigned.len());
    let (whole, rest) = unsigned.split_at(point);
    let fraction = rest.get(1..).unwrap_or_default();
    let plain = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    (!whole.is_empty() && plain(whole) && plain(fraction)).then_some((whole, fraction))
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use refrain_sql::normalize::{Store, normalize};

    use super::*;

    /// Whether the literals of a text fit columns of these types and modifiers, one after the
    /// other.
    fn fits(values: &str, columns: &[(u32, i32)]) -> bool {
        let text = format!("INSERT INTO t VALUES ({values})");
        let mut spans = Vec::new();
        normalize(text.as_bytes(), &RandomState::new(), 100, &mut spans).unwrap();
        let stores = (0..spans.len()).map(|at| Store { literal: at, column: StoredIn::At(at + 1) });
        let mentions = Mentions { stores: stores.collect(), ..Mentions::default() };
        let rows = columns.iter().zip(1..);
        let rows =
            rows.map(|((kind, modifier), at)| format!("{COLUMN}{at} {kind} {modifier} c {at}"));
        let columns: Vec<_> = rows.map(|row| Column::read(row.as_bytes()).unwrap()).collect();
        let stored = stored(&mentions, &columns).unwrap();
        stored.iter().all(|it| it.fits(text.as_bytes(), &spans))
    }

    const SMALL: (u32, i32) = (21, -1);
    const THREE: (u32, i32) = (1043, 7);
    /// numeric(4, 1)
    const NUMERIC: (u32, i32) = (1700, (4 << 16 | 1) + 4);

    #[test]
    fn what_fits_its_column() {
        for (values, column) in [
            ("7", SMALL),
            ("-32766.4", SMALL),
            ("'7'", SMALL),
            ("'abc'", THREE),
            ("'\u{e9}\u{e9}\u{e9}'", THREE),
            ("12", THREE),
            ("E'a'", (1043, 8)),
            ("123.4", NUMERIC),
            ("12.99", NUMERIC),
            ("'-123.4'", NUMERIC),
            ("'2020-01-01'", (1082, -1)),
            ("'{1,2}'", (1007, -1)),
            ("$$anything$$", (25, -1)),
            ("1.5", (701, -1)),
        ] {
            assert!(fits(values, &[column]), "{values} {column:?}");
        }
    }

    #[test]
    fn what_may_not_fit() {
        for (values, column) in [
            ("32768", SMALL),
            ("70000", SMALL),
            ("1e3", SMALL),
            ("'abcd'", THREE),
            ("E'abc'", THREE),
            ("123", (1042, 6)),
            ("999.99", NUMERIC),
            ("1234.5", NUMERIC),
            ("'NaN'", NUMERIC),
            ("1e400", (701, -1)),
            ("B'1'", (1560, 1)),
            ("'a'", (20_000, -1)),
            ("'101'", (1560, 3)),
            ("5", (1082, -1)),
        ] {
            assert!(!fits(values, &[column]), "{values} {column:?}");
        }
    }

    #[test]
    fn what_is_not_stored_as_it_is_written_is_not_known() {
        let column = Column::read(b"column 1 23 -1 id").unwrap();
        let mentions = Mentions { computes: true, ..Mentions::default() };
        assert_eq!(stored(&mentions, &[]), Some(Box::default()));
        assert_eq!(stored(&mentions, &[column]), None);
    }
}
