//! Kinds of values: a letter for the holes of templates, PostgreSQL's name of the type, and
//! literals.

use crate::soak::dice::Dice;

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Char,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Bytea,
    Json,
    Jsonb,
    Int4Array,
    TextArray,
    Enum,
}

/// Kinds with their letters and the names of their types.
const KINDS: &[(ValueKind, char, &str)] = &[
    (ValueKind::Bool, 'b', "boolean"),
    (ValueKind::Int2, 's', "smallint"),
    (ValueKind::Int4, 'i', "int"),
    (ValueKind::Int8, 'l', "bigint"),
    (ValueKind::Float4, 'r', "real"),
    (ValueKind::Float8, 'f', "double precision"),
    (ValueKind::Numeric, 'n', "numeric"),
    (ValueKind::Text, 't', "text"),
    (ValueKind::Varchar, 'v', "varchar(12)"),
    (ValueKind::Char, 'c', "char(5)"),
    (ValueKind::Date, 'd', "date"),
    (ValueKind::Time, 'o', "time"),
    (ValueKind::Timestamp, 'm', "timestamp"),
    (ValueKind::Timestamptz, 'z', "timestamptz"),
    (ValueKind::Interval, 'p', "interval"),
    (ValueKind::Uuid, 'u', "uuid"),
    (ValueKind::Bytea, 'y', "bytea"),
    (ValueKind::Json, 'j', "json"),
    (ValueKind::Jsonb, 'g', "jsonb"),
    (ValueKind::Int4Array, 'I', "int[]"),
    (ValueKind::TextArray, 'T', "text[]"),
    (ValueKind::Enum, 'e', "mood"),
];

/// Kinds of columns. Columns of `numeric` and intervals are refused, so they are few.
pub(super) const STORED: &[ValueKind] = &[
    ValueKind::Bool,
    ValueKind::Int2,
    ValueKind::Int4,
    ValueKind::Int4,
    ValueKind::Int8,
    ValueKind::Float4,
    ValueKind::Float8,
    ValueKind::Text,
    ValueKind::Text,
    ValueKind::Varchar,
    ValueKind::Char,
    ValueKind::Date,
    ValueKind::Time,
    ValueKind::Timestamp,
    ValueKind::Timestamptz,
    ValueKind::Uuid,
    ValueKind::Bytea,
    ValueKind::Json,
    ValueKind::Jsonb,
    ValueKind::Int4Array,
    ValueKind::TextArray,
    ValueKind::Enum,
];

/// Texts of letters of ASCII: `lower` and `upper` change no others here (`docs/sqlite.md`).
const TEXTS: &[&str] = &[
    "",
    "a",
    "A",
    "b",
    "ab",
    "aB",
    "ab ",
    " ab",
    "abc",
    "a b",
    "a%b",
    "a_b",
    "10",
    "9",
    "-1",
    "x''y",
    "%",
    "_",
    "null",
    "t",
    "true",
    "1.5",
    "2020-01-02",
    "sad",
    "a,b",
    "{}",
    "\"q\"",
];
const DATES: &[&str] = &[
    "1999-12-31",
    "2000-01-01",
    "2000-02-29",
    "2020-01-02",
    "2024-02-29",
    "2024-12-30",
    "1969-07-20",
];
const TIMES: &[&str] = &["00:00:00", "01:02:03", "12:34:56.789", "23:59:59.999999", "10:00:00.5"];
const INTERVALS: &[&str] = &[
    "1 day",
    "-1 day",
    "2 hours",
    "1 month",
    "1 year 2 mons",
    "90 minutes",
    "0",
    "1 day -00:00:01",
    "00:00:00.5",
    "30 days",
    "24 hours",
];
const UUIDS: &[&str] = &[
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "00000000-0000-0000-0000-000000000000",
    "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12",
];
const JSONS: &[&str] = &[
    "{\"a\": 1, \"b\": [1, 2, {\"c\": null}]}",
    "{\"a\":\"x\", \"a\":true}",
    "[1, \"2\", null, 1.50]",
    "[]",
    "{}",
    "null",
    "3",
    "\"a\\u00e4\"",
    "{\"b\": {\"a\": [1]}, \"aa\": false}",
];
const NUMBERS: &[&str] = &["0", "1.5", "2.50", "-3", "0.001", "12345678901234567890", "100"];
const FLOATS: &[&str] = &["0", "1.5", "-2.25", "3", "0.5", "1e10", "-4", "100"];
const INT_ARRAYS: &[&str] = &["{}", "{1}", "{1,2,3}", "{NULL,2}", "{3,3}"];
const TEXT_ARRAYS: &[&str] = &["{}", "{a}", "{a,b,NULL}", "{\"\",\"a b\"}", "{\"x,y\",null}"];
pub(super) const LABELS: &[&str] = &["sad", "ok", "happy", "Ok"];

impl ValueKind {
    /// Returns the kind of a letter.
    pub(super) fn of(letter: char) -> Option<ValueKind> {
        KINDS.iter().find(|(_, known, _)| *known == letter).map(|(kind, ..)| *kind)
    }

    /// Returns any kind.
    pub(super) fn any(dice: &mut Dice) -> ValueKind {
        KINDS[dice.index(KINDS.len())].0
    }

    /// Returns a kind that a column may have.
    pub(super) fn stored(dice: &mut Dice) -> ValueKind {
        STORED[dice.index(STORED.len())]
    }

    /// Returns the name of the type.
    pub(super) fn type_name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("text", |(.., name)| name)
    }

    /// True if values have an equality that DISTINCT and GROUP BY use, here too.
    pub(super) fn is_grouped(self) -> bool {
        !matches!(
            self,
            ValueKind::Json | ValueKind::Jsonb | ValueKind::Numeric | ValueKind::Interval
        )
    }

    /// True if values are ordered.
    pub(super) fn is_ordered(self) -> bool {
        self.is_grouped() && !matches!(self, ValueKind::Int4Array | ValueKind::TextArray)
    }

    /// Returns the inside of a literal in quotes, or a number.
    fn plain(self, dice: &mut Dice) -> String {
        let mut of = |all: &[&str]| all[dice.index(all.len())].to_owned();
        match self {
            ValueKind::Bool => of(&["true", "false"]),
            ValueKind::Int2 | ValueKind::Int4 | ValueKind::Int8 => match dice.below(10) {
                0 => (100 + dice.below(900)).to_string(),
                1 => format!("-{}", 1 + dice.below(5)),
                _ => dice.below(7).to_string(),
            },
            ValueKind::Float4 | ValueKind::Float8 => of(FLOATS),
            ValueKind::Numeric => of(NUMBERS),
            ValueKind::Text | ValueKind::Varchar => of(TEXTS),
            ValueKind::Char => of(&["a", "ab", "ab ", "abc", "", "abcde", "A"]),
            ValueKind::Date => of(DATES),
            ValueKind::Time => of(TIMES),
            ValueKind::Timestamp => format!("{} {}", of(DATES), of(TIMES)),
            ValueKind::Timestamptz => {
                format!("{} {}{}", of(DATES), of(TIMES), of(&["+00", "+02", "-05:30", "Z"]))
            }
            ValueKind::Interval => of(INTERVALS),
            ValueKind::Uuid => of(UUIDS),
            ValueKind::Bytea => of(&["\\x", "\\x00ff", "\\x6162", "abc"]),
            ValueKind::Json | ValueKind::Jsonb => of(JSONS),
            ValueKind::Int4Array => of(INT_ARRAYS),
            ValueKind::TextArray => of(TEXT_ARRAYS),
            ValueKind::Enum => of(LABELS),
        }
    }

    /// True if a literal has no quotes.
    fn is_bare(self) -> bool {
        matches!(self, ValueKind::Bool | ValueKind::Int2 | ValueKind::Int4 | ValueKind::Int8)
            || matches!(self, ValueKind::Float4 | ValueKind::Float8 | ValueKind::Numeric)
    }

    /// Returns a literal without its type, as INSERT has it.
    pub(super) fn value(self, dice: &mut Dice) -> String {
        let plain = self.plain(dice);
        if self.is_bare() { plain } else { format!("'{plain}'") }
    }

    /// Returns an expression of exactly this type.
    pub(super) fn literal(self, dice: &mut Dice) -> String {
        if dice.once_in(15) {
            return format!("NULL::{}", self.type_name());
        }
        let value = self.value(dice);
        match self {
            ValueKind::Bool | ValueKind::Int4 => value,
            ValueKind::Date | ValueKind::Interval if dice.once_in(2) => {
                format!("{} {value}", self.type_name().to_uppercase())
            }
            _ if value.starts_with('-') => format!("({value})::{}", self.type_name()),
            _ => format!("{value}::{}", self.type_name()),
        }
    }
}
