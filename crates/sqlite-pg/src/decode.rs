//! Parameters: decodes a client's value as a value of SQLite.
//!
//! A parameter is bound by its type, and not as text because it came as text: with a text `'1'`,
//! `WHERE 1 = $1` would match nothing. Dates, times and UUIDs are stored as texts in one notation,
//! so that equal values are equal texts. `numeric` becomes an integer if it is one, and a double
//! otherwise; a value that would change is refused.

use std::borrow::Cow;

use refrain_sqlite::Value;

use crate::arrays;
use crate::byte_texts::{bytea, bytea_trouble, uuid, uuid_text};
use crate::calendar;
use crate::failure::{Failure, state};
use crate::intervals::Interval;
use crate::json;
use crate::types::Type;

/// A parameter's value, borrowed from the message or made from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoded<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, [u8]>),
    Blob(Cow<'a, [u8]>),
}

impl Decoded<'_> {
    /// Returns the value for SQLite.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::Integer(*number),
            Self::Real(number) => Value::Real(*number),
            Self::Text(text) => Value::Text(text),
            Self::Blob(bytes) => Value::Blob(bytes),
        }
    }

    /// Copies what is borrowed.
    pub(crate) fn into_owned(self) -> Decoded<'static> {
        match self {
            Self::Null => Decoded::Null,
            Self::Integer(number) => Decoded::Integer(number),
            Self::Real(number) => Decoded::Real(number),
            Self::Text(text) => Decoded::Text(Cow::Owned(text.into_owned())),
            Self::Blob(bytes) => Decoded::Blob(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// Decodes a value in the text format.
///
/// # Errors
/// The type's error for a text that is no value of it, such as 22P02.
pub(crate) fn text(bytes: &[u8], is: Type) -> Result<Decoded<'_>, Failure> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Failure::new("22021", "invalid byte sequence for encoding \"UTF8\""));
    };
    let trimmed = text.trim();
    let bad = || invalid(is, text);
    Ok(match is {
        Type::Bool => Decoded::Integer(i64::from(boolean(trimmed).ok_or_else(bad)?)),
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => {
            let number = trimmed.parse().map_err(|_| integer_trouble(is, trimmed))?;
            Decoded::Integer(in_range(number, is)?)
        }
        Type::Float4 | Type::Float8 => float(trimmed, is)?,
        Type::Numeric => numeric(trimmed)?,
        Type::Regtype => match trimmed.parse() {
            Ok(number) => Decoded::Integer(number),
            Err(_) => Decoded::Integer(i64::from(type_oid(trimmed)?)),
        },
        Type::Regnamespace => Decoded::Integer(namespace(trimmed)?),
        Type::Regprocedure if trimmed.replace(' ', "") == ARRAY_IN_NAME => {
            Decoded::Integer(ARRAY_IN)
        }
        Type::Regproc if trimmed == "array_in" => Decoded::Integer(ARRAY_IN),
        Type::Regclass | Type::Regproc | Type::Regprocedure => {
            Decoded::Integer(trimmed.parse().map_err(|_| {
                Failure::unsupported(format!("a {} of this text is not supported", is.name()))
                    .hint("write the name in the statement: 't'::regclass")
            })?)
        }
        Type::Bytea => {
            let trouble = || bytea_trouble(text).unwrap_or_else(bad);
            Decoded::Blob(Cow::Owned(bytea(bytes).ok_or_else(trouble)?))
        }
        Type::Date => owned(calendar::read_date(bytes).and_then(calendar::date_text), is, text)?,
        Type::Time => owned(calendar::read_time(bytes).and_then(calendar::time_text), is, text)?,
        Type::Timestamp | Type::Timestamptz => {
            let zoned = is == Type::Timestamptz;
            if zoned && !calendar::is_zoned(bytes) {
                calendar::in_utc()?;
            }
            let micros = calendar::read_timestamp(bytes, zoned);
            owned(micros.and_then(|micros| calendar::timestamp_text(micros, zoned)), is, text)?
        }
        Type::Interval => Decoded::Text(Cow::Owned(Interval::parse(trimmed)?.text().into_bytes())),
        Type::Uuid => owned(uuid(trimmed).map(|bytes| uuid_text(&bytes)), is, text)?,
        Type::Json => {
            json::check(text)?;
            Decoded::Text(Cow::Borrowed(bytes))
        }
        Type::Jsonb => Decoded::Text(Cow::Owned(json::normal(text)?.into_bytes())),
        Type::Name => Decoded::Text(Cow::Borrowed(truncated(text).as_bytes())),
        Type::Text | Type::Varchar | Type::Bpchar | Type::Void | Type::Unknown => {
            Decoded::Text(Cow::Borrowed(bytes))
        }
        Type::Char => Decoded::Text(Cow::Owned(one_byte(text).into_bytes())),
        Type::Enum(of) => Decoded::Text(Cow::Borrowed(of.label(text)?.as_bytes())),
        _ => array_text(text, is)?,
    })
}

/// Returns the text of a `"char"`, which is one byte: `charin` and `charout` of the server.
fn one_byte(text: &str) -> String {
    let digits = text.strip_prefix('\\').filter(|it| it.len() == 3);
    let digits = digits.filter(|it| it.bytes().all(|digit| (b'0'..=b'7').contains(&digit)));
    let octal = digits.and_then(|it| u16::from_str_radix(it, 8).ok()).map(|it| it.to_le_bytes()[0]);
    match octal.or(text.bytes().next()) {
        None | Some(0) => String::new(),
        Some(byte) if byte.is_ascii() => char::from(byte).to_string(),
        Some(byte) => format!("\\{byte:03o}"),
    }
}

/// The OID of the input function of all arrays, and its name with its arguments.
pub(crate) const ARRAY_IN: i64 = 101_009;
pub(crate) const ARRAY_IN_NAME: &str = "array_in(cstring,oid,integer)";

/// The schemas, with their OIDs.
pub(crate) const NAMESPACES: &[(i64, &str)] =
    &[(11, "pg_catalog"), (99, "pg_toast"), (2200, "public"), (13_000, "information_schema")];

fn namespace(text: &str) -> Result<i64, Failure> {
    let known = NAMESPACES.iter().find(|(_, name)| *name == text.trim_matches('"'));
    let missing = || Failure::new("3F000", format!("schema \"{text}\" does not exist"));
    known.map(|(oid, _)| *oid).or_else(|| text.parse().ok()).ok_or_else(missing)
}

/// Returns the OID of a type by its name.
///
/// # Errors
/// 42704.
pub(crate) fn type_oid(name: &str) -> Result<u32, Failure> {
    let unquoted = name.replace('"', "");
    let plain = unquoted.strip_prefix("pg_catalog.").unwrap_or(&unquoted);
    let plain = plain.split('(').next().unwrap_or_default().trim();
    let serial = plain.contains("serial");
    let is = Type::named(plain).filter(|_| !serial);
    let is = is.or_else(|| Type::named(plain.strip_suffix("[]")?)?.array());
    let missing = || {
        Failure::new(state::NO_OBJECT, format!("type \"{name}\" does not exist"))
            .hint("CREATE TYPE … AS ENUM makes a type; others are not supported")
    };
    is.map(Type::oid).ok_or_else(missing)
}

fn array_text(text: &str, is: Type) -> Result<Decoded<'static>, Failure> {
    let of = is.element().unwrap_or(Type::Text);
    let elements = match is.first_subscript() {
        0 => text.split_whitespace().map(|word| Some(word.to_owned())).collect(),
        _ => arrays::split(text)?,
    };
    let made: Result<Vec<String>, Failure> = elements
        .iter()
        .map(|element| match element {
            Some(element) => self::text(element.as_bytes(), of).map(|value| json_of(&value)),
            None => Ok("null".to_owned()),
        })
        .collect();
    Ok(Decoded::Text(Cow::Owned(format!("[{}]", made?.join(",")).into_bytes())))
}

fn array_binary(bytes: &[u8], is: Type) -> Result<Decoded<'static>, Failure> {
    let bad = || {
        Failure::new(state::BAD_BINARY, format!("incorrect binary data format for {}", is.name()))
            .hint("arrays have one dimension")
    };
    let sent = arrays::split_binary(bytes).ok_or_else(bad)?;
    let of = is.element().filter(|of| of.oid() == sent.of || sent.elements.is_empty());
    let of = of.ok_or_else(bad)?;
    let made: Result<Vec<String>, Failure> = sent
        .elements
        .iter()
        .map(|element| match element {
            Some(element) => binary(element, of).map(|value| json_of(&value)),
            None => Ok("null".to_owned()),
        })
        .collect();
    Ok(Decoded::Text(Cow::Owned(format!("[{}]", made?.join(",")).into_bytes())))
}

/// Writes a value as an element of a JSON array.
fn json_of(value: &Decoded<'_>) -> String {
    match value {
        Decoded::Null => "null".to_owned(),
        Decoded::Integer(number) => number.to_string(),
        // The text is the one that SQLite's own functions write, as arrays are compared as texts.
        Decoded::Real(number) => refrain_sqlite::real_text(*number),
        Decoded::Text(text) | Decoded::Blob(text) => {
            arrays::json_string(&String::from_utf8_lossy(text))
        }
    }
}

/// Returns the part of a text that a `name` keeps: 63 bytes.
fn truncated(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Decodes a value in the binary format, which PostgreSQL's `send` functions write.
///
/// # Errors
/// 22P03: the bytes are no value of the type.
pub(crate) fn binary(bytes: &[u8], is: Type) -> Result<Decoded<'_>, Failure> {
    let bad = || {
        Failure::new(state::BAD_BINARY, format!("incorrect binary data format for {}", is.name()))
    };
    Ok(match is {
        Type::Bool => Decoded::Integer(i64::from(u8::from_be_bytes(fixed(bytes, bad)?) != 0)),
        Type::Int2 => Decoded::Integer(i64::from(i16::from_be_bytes(fixed(bytes, bad)?))),
        Type::Int4 => Decoded::Integer(i64::from(i32::from_be_bytes(fixed(bytes, bad)?))),
        is if is == Type::Oid || is.is_reg() => {
            Decoded::Integer(i64::from(u32::from_be_bytes(fixed(bytes, bad)?)))
        }
        Type::Int8 => Decoded::Integer(i64::from_be_bytes(fixed(bytes, bad)?)),
        Type::Float4 => no_nan_in(f64::from(f32::from_be_bytes(fixed(bytes, bad)?)))?,
        Type::Float8 => no_nan_in(f64::from_be_bytes(fixed(bytes, bad)?))?,
        Type::Numeric => numeric(&numeric_text(bytes).ok_or_else(bad)?)?,
        Type::Bytea => Decoded::Blob(Cow::Borrowed(bytes)),
        Type::Date => {
            let days = i32::from_be_bytes(fixed(bytes, bad)?);
            owned(calendar::date_text(days), is, "")?
        }
        Type::Time => {
            let micros = i64::from_be_bytes(fixed(bytes, bad)?);
            owned(calendar::time_text(micros), is, "")?
        }
        Type::Timestamp | Type::Timestamptz => {
            let micros = i64::from_be_bytes(fixed(bytes, bad)?);
            owned(calendar::timestamp_text(micros, is == Type::Timestamptz), is, "")?
        }
        Type::Interval => {
            let made = Interval::of_bytes(bytes).ok_or_else(bad)?;
            Decoded::Text(Cow::Owned(made.text().into_bytes()))
        }
        Type::Uuid => Decoded::Text(Cow::Owned(uuid_text(&fixed(bytes, bad)?).into_bytes())),
        Type::Jsonb => text(bytes.strip_prefix(&[1]).ok_or_else(bad)?, is)?,
        Type::Json
        | Type::Text
        | Type::Varchar
        | Type::Bpchar
        | Type::Name
        | Type::Char
        | Type::Void
        | Type::Enum(_)
        | Type::Unknown => text(bytes, is)?,
        _ => array_binary(bytes, is)?,
    })
}

fn fixed<const N: usize>(bytes: &[u8], bad: impl FnOnce() -> Failure) -> Result<[u8; N], Failure> {
    bytes.try_into().map_err(|_| bad())
}

/// Returns the error for NaN, which SQLite cannot store.
pub(crate) fn no_nan() -> Failure {
    Failure::unsupported("NaN is not supported").hint("SQLite would store NULL in its place")
}

fn no_nan_in(number: f64) -> Result<Decoded<'static>, Failure> {
    if number.is_nan() { Err(no_nan()) } else { Ok(Decoded::Real(number)) }
}

fn float(text: &str, is: Type) -> Result<Decoded<'static>, Failure> {
    let number: f64 = text.parse().map_err(|_| invalid(is, text))?;
    let number = if is == Type::Float4 { f64::from(number as f32) } else { number };
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = number == 0.0 && digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if vanished || number.is_infinite() && !text.to_ascii_lowercase().contains("inf") {
        return Err(Failure::new(
            state::TOO_LARGE_NUMBER,
            format!("\"{text}\" is out of range for type {}", is.name()),
        ));
    }
    no_nan_in(number)
}

/// True if a text has the form of a date or a time, so that an error is about one of its numbers
/// and not about the form.
fn has_form(text: &str) -> bool {
    let plain = text.trim();
    let digits = plain.split(|letter: char| !letter.is_ascii_digit());
    let letters = plain.bytes().all(|byte| byte.is_ascii_digit() || b"-:. T+Z".contains(&byte));
    let lengths: Vec<usize> = digits.map(str::len).collect();
    letters && matches!(lengths[..], [4, 1..=2, 1..=2, ..] | [1..=2, 2] | [1..=2, 2, 2, ..])
}

fn invalid(is: Type, text: &str) -> Failure {
    if matches!(is, Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz) {
        const WORDS: &[&str] = &[
            "now",
            "today",
            "tomorrow",
            "yesterday",
            "epoch",
            "infinity",
            "-infinity",
            "allballs",
        ];
        if WORDS.iter().any(|word| text.trim().eq_ignore_ascii_case(word)) {
            let message = format!("the special value \"{text}\" of {} is not supported", is.name());
            return Failure::unsupported(message).hint("write now(), CURRENT_DATE or the moment");
        }
        let failure = match has_form(text) {
            true => {
                Failure::new("22008", format!("date/time field value out of range: \"{text}\""))
            }
            false => {
                let message = format!("invalid input syntax for type {}: \"{text}\"", is.name());
                Failure::new(state::BAD_DATETIME, message)
            }
        };
        return failure
            .hint("dates and times are written as in ISO 8601: 2024-02-29 12:34:56.789+02");
    }
    let sqlstate = state::BAD_TEXT;
    Failure::new(sqlstate, format!("invalid input syntax for type {}: \"{text}\"", is.name()))
}

fn owned(made: Option<String>, is: Type, text: &str) -> Result<Decoded<'static>, Failure> {
    let made = made.ok_or_else(|| invalid(is, text))?;
    Ok(Decoded::Text(Cow::Owned(made.into_bytes())))
}

/// Returns the error for a text that is no integer of 64 bits: out of range for digits, else
/// invalid.
fn integer_trouble(is: Type, text: &str) -> Failure {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return out_of_range(is, text);
    }
    invalid(is, text)
}

/// Returns 22003, with PostgreSQL's message for integers.
pub(crate) fn out_of_range(is: Type, text: &str) -> Failure {
    let message = format!("value \"{text}\" is out of range for type {}", is.name());
    Failure::new(state::TOO_LARGE_NUMBER, message)
}

/// Checks that an integer is one of its type.
///
/// # Errors
/// 22003.
pub(crate) fn in_range(number: i64, is: Type) -> Result<i64, Failure> {
    let fits = match is {
        Type::Int2 => i16::try_from(number).is_ok(),
        Type::Int4 => i32::try_from(number).is_ok(),
        is if is == Type::Oid || is.is_reg() => u32::try_from(number).is_ok(),
        _ => true,
    };
    if fits { Ok(number) } else { Err(out_of_range(is, &number.to_string())) }
}

/// Reads the spellings of `boolin`: each prefix that belongs to one of the words alone.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    const SPELLED: [(&str, usize, bool); 6] = [
        ("true", 1, true),
        ("false", 1, false),
        ("yes", 1, true),
        ("no", 1, false),
        ("on", 2, true),
        ("off", 2, false),
    ];
    let text = text.to_ascii_lowercase();
    match text.as_str() {
        "1" => return Some(true),
        "0" => return Some(false),
        _ => {}
    }
    let fits = |(word, least, _): &&(&str, usize, bool)| {
        text.len() >= *least && word.starts_with(text.as_str())
    };
    SPELLED.iter().find(fits).map(|(_, _, is)| *is)
}

/// Reads an integer if the value is one that fits, else a double.
fn numeric(text: &str) -> Result<Decoded<'static>, Failure> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    };
    if let Ok(integer) = whole.parse() {
        return Ok(Decoded::Integer(integer));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && !text.to_ascii_lowercase().contains("inf") => {
            Err(out_of_range(Type::Numeric, text))
        }
        Ok(number) => Ok(Decoded::Real(number)),
        Err(_) => Err(invalid(Type::Numeric, text)),
    }
}

/// Returns the text of a binary `numeric` (`numeric_send`): count, weight, sign, scale, digits to
/// the base of ten thousand.
fn numeric_text(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    let count = usize::try_from(words.next()?).ok()?;
    let weight = words.next()?;
    let sign = words.next()?.cast_unsigned();
    let scale = usize::try_from(words.next()?).ok()?;
    match sign {
        0 | 0x4000 => {}
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => return None,
    }
    let digits: Vec<i16> = words.collect();
    if digits.len() != count || digits.iter().any(|digit| !(0..10_000).contains(digit)) {
        return None;
    }
    let digit = |place: i32| usize::try_from(place).ok().and_then(|place| digits.get(place));
    let weight = i32::from(weight);
    let mut text = String::from(if sign == 0x4000 { "-" } else { "" });
    (0..=weight.max(0)).for_each(|place| {
        let digit = if weight < 0 { None } else { digit(place) };
        text.push_str(&format!("{:04}", digit.copied().unwrap_or(0)));
    });
    let mut fraction = String::new();
    let mut place = weight + 1;
    while fraction.len() < scale {
        fraction.push_str(&format!("{:04}", digit(place).copied().unwrap_or(0)));
        place += 1;
    }
    fraction.truncate(scale);
    if scale > 0 {
        text.push('.');
        text.push_str(&fraction);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_text(made: Result<Decoded<'_>, Failure>) -> String {
        match made.unwrap() {
            Decoded::Text(text) => String::from_utf8(text.into_owned()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_is_bound_as_its_type() {
        assert_eq!(text(b" 42 ", Type::Int8), Ok(Decoded::Integer(42)));
        assert_eq!(text(b"70000", Type::Int2).unwrap_err().sqlstate, "22003");
        assert_eq!(text(b"99999999999999999999", Type::Int8).unwrap_err().sqlstate, "22003");
        assert_eq!(text(b"x", Type::Int8).unwrap_err().sqlstate, "22P02");
        assert_eq!(text(b"t", Type::Bool), Ok(Decoded::Integer(1)));
        assert_eq!(text(b"o", Type::Bool).unwrap_err().sqlstate, "22P02");
        assert_eq!(text(b"OFF", Type::Bool), Ok(Decoded::Integer(0)));
        assert_eq!(text(b"1.50", Type::Numeric), Ok(Decoded::Real(1.5)));
        assert_eq!(text(b"12.00", Type::Numeric), Ok(Decoded::Integer(12)));
        assert_eq!(text(b"\\x00fF", Type::Bytea), Ok(Decoded::Blob(vec![0, 255].into())));
        assert_eq!(text(b"a\\\\\\001", Type::Bytea), Ok(Decoded::Blob(b"a\\\x01".into())));
        assert_eq!(text(b"2024-13-01", Type::Date).unwrap_err().sqlstate, "22008");
        assert_eq!(text(b"someday", Type::Date).unwrap_err().sqlstate, "22007");
        assert_eq!(
            as_text(text(b"2024-01-02T03:04Z", Type::Timestamptz)),
            "2024-01-02 03:04:00+00"
        );
        let uuid = "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}";
        let plain = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        assert_eq!(as_text(text(uuid.as_bytes(), Type::Uuid)), plain);
        assert_eq!(text(b"\xff", Type::Text).unwrap_err().sqlstate, "22021");
    }

    #[test]
    fn binary_is_what_send_functions_write() {
        assert_eq!(binary(&[0, 7], Type::Int2), Ok(Decoded::Integer(7)));
        assert_eq!(binary(&[0, 7], Type::Int4).unwrap_err().sqlstate, "22P03");
        assert_eq!(binary(&1.5f64.to_be_bytes(), Type::Float8), Ok(Decoded::Real(1.5)));
        assert_eq!(as_text(binary(&0i32.to_be_bytes(), Type::Date)), "2000-01-01");
        assert_eq!(as_text(binary(b"\x01{}", Type::Jsonb)), "{}");
        // 12345.678: digits 1, 2345, 6780; weight 1; scale 3.
        let number = [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c];
        assert_eq!(binary(&number, Type::Numeric), Ok(Decoded::Real(12_345.678)));
        // 0.0005: one digit 5, weight -1, scale 4.
        let number = [0, 1, 0xff, 0xff, 0x40, 0, 0, 4, 0, 5];
        assert_eq!(binary(&number, Type::Numeric), Ok(Decoded::Real(-0.0005)));
    }
}
