//! Literals for the holes of a template. Most are valid, some are at the edge of their type, some
//! are invalid.

use crate::rng::Rng;

/// The kind of literal that a hole takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole {
    /// An integer, bare.
    Int,
    /// A number with a fraction or an exponent, bare.
    Number,
    /// A small number of rows, bare.
    Count,
    /// A text.
    Text,
    /// A text with escapes.
    Escaped,
    /// A pattern for LIKE.
    Like,
    /// A pattern for `~`.
    Regex,
    /// A date.
    Date,
    /// A timestamp.
    Moment,
    /// An interval.
    Interval,
    /// A time zone.
    Zone,
    /// An array of integers.
    Array,
    /// A JSON value.
    Json,
    /// A UUID.
    Uuid,
    /// A label of the enum.
    Label,
    /// Bytes.
    Bytes,
    /// A range of integers.
    Range,
    /// A bit string.
    Bits,
    /// A number as a text.
    Quoted,
    /// A network.
    Inet,
}

const INT: [&str; 5] = ["0", "2147483647", "2147483648", "32768", "9223372036854775807"];
const NUMBER: [&str; 9] = [
    "0.1",
    "1.50",
    "99999.994",
    "1e10",
    "1e-7",
    "0.30000000000000004",
    "1e400",
    "123456.789",
    "1e39",
];
const TEXT: [&str; 12] =
    ["", "a", "b", "v1", "v2", "abcdef", "é", "it''s", "a b ", "NULL", "1", "longer than all"];
const ESCAPED: [&str; 6] = ["a\\nb", "\\x41", "it\\'s", "\\u00e9", "back\\\\slash", "\\u12"];
const LIKE: [&str; 8] = ["%", "v%", "_1", "a\\_b", "\\", "", "%e_", "V%"];
const REGEX: [&str; 8] = ["v", "^v[0-3]$", ".", "(", "a{1,2}", "\\d", "[", "x|v1"];
const DATE: [&str; 8] = [
    "2024-01-05",
    "2024-02-29",
    "2023-02-29",
    "infinity",
    "-infinity",
    "01/02/2024",
    "epoch",
    "nonsense",
];
const MOMENT: [&str; 9] = [
    "2024-01-05 12:00:00",
    "2024-03-10 02:30:00",
    "2024-01-05 12:00:00+05",
    "2024-11-03 01:30:00 America/New_York",
    "infinity",
    "2024-13-01",
    "2024-01-05",
    "24:00",
    "290000-01-01",
];
const INTERVAL: [&str; 8] = [
    "1 day",
    "1 mon -1 day",
    "P1Y2M",
    "1.5 hours",
    "-3:04:05",
    "",
    "9999999999 years",
    "1 day ago",
];
const ZONE: [&str; 5] = ["UTC", "America/New_York", "Asia/Tokyo", "+03", "Nowhere/City"];
const ARRAY: [&str; 6] = ["{1,2,3}", "{}", "{NULL,2}", "{1,2", "{{1,2},{3,4}}", "{9999999999}"];
const JSON: [&str; 7] =
    ["{\"a\":1}", "[1,2]", "null", "{\"a\":{\"b\":\"x\"}}", "{", "\"t\"", "{\"b\": 2.50}"];
const UUID: [&str; 3] =
    ["11111111-1111-1111-1111-111111111111", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "not-a-uuid"];
const LABEL: [&str; 5] = ["p", "q", "r", "none", ""];
const BYTES: [&str; 5] = ["\\x00ff", "\\x", "\\x0g", "abc", "a\\000b"];
const RANGE: [&str; 5] = ["[1,5)", "empty", "(,3]", "[5,1]", "[1,5"];
const BITS: [&str; 4] = ["101", "", "1111", "102"];
const QUOTED: [&str; 8] = ["1", "-7", "2147483648", "1.25", "1e3", "x", " 4 ", "NaN"];
const INET: [&str; 4] = ["10.0.0.1", "10.0.0.0/8", "::1", "300.1.1.1"];

impl Hole {
    /// Returns a literal.
    pub(super) fn fill(self, rng: &mut Rng) -> String {
        let list: &[&str] = match self {
            Self::Int if rng.chance(70) => return rng.below(12).to_string(),
            Self::Int => return format!("{}{}", ["", "-"][rng.below(2)], rng.pick(&INT)),
            Self::Number if rng.chance(40) => return format!("{}.{}", rng.below(20), rng.below(9)),
            Self::Number => return (*rng.pick(&NUMBER)).to_owned(),
            Self::Count => return rng.below(5).to_string(),
            Self::Escaped => return format!("E'{}'", rng.pick(&ESCAPED)),
            Self::Text => &TEXT,
            Self::Like => &LIKE,
            Self::Regex => &REGEX,
            Self::Date => &DATE,
            Self::Moment => &MOMENT,
            Self::Interval => &INTERVAL,
            Self::Zone => &ZONE,
            Self::Array => &ARRAY,
            Self::Json => &JSON,
            Self::Uuid => &UUID,
            Self::Label => &LABEL,
            Self::Bytes => &BYTES,
            Self::Range => &RANGE,
            Self::Bits => &BITS,
            Self::Quoted => &QUOTED,
            Self::Inet => &INET,
        };
        // Nearly all of the first three of each list are valid, and chosen most often.
        let reach = if rng.chance(60) { list.len().min(3) } else { list.len() };
        let chosen = list[rng.below(reach)];
        format!("'{chosen}'")
    }
}
