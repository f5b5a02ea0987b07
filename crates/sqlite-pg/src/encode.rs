//! Results: encodes a value of SQLite in the format that the client has asked for.
//!
//! A value that does not fit the announced type of its column is an error, and is never sent as
//! another type: a driver reads by the announced type. NULL fits every type, an integer fits a
//! float, and a float without a fraction fits an integer.

use std::io::Write as _;

use refrain_sqlite::Value;

use crate::arrays;
use crate::byte_texts::uuid;
use crate::calendar;
use crate::decode::{ARRAY_IN, ARRAY_IN_NAME, NAMESPACES};
use crate::failure::{Failure, state};
use crate::intervals::Interval;
use crate::types::Type;

/// The format of a value: the format codes of Bind and RowDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

impl Format {
    /// Reads a format code.
    pub(crate) fn of_code(code: u16) -> Result<Self, Failure> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            other => Err(Failure::protocol(format!("unsupported format code: {other}"))),
        }
    }

    /// Returns the format code.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// The error for a value that does not fit its column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

impl Unfit {
    /// Returns the error for the client.
    pub(crate) fn tell(value: &Value<'_>, is: Type, column: &str, row: u64) -> Failure {
        let message = format!(
            "column \"{column}\" is {}, but row {row} has a value of class {}",
            is.name(),
            class(value)
        );
        if let (Value::Integer(number), true) = (value, is.is_integer()) {
            let message = format!(
                "value \"{number}\" of column \"{column}\" in row {row} is out of range for type {}",
                is.name()
            );
            let hint = format!("cast it to a larger type: {column}::bigint");
            return Failure::new(state::TOO_LARGE_NUMBER, message).hint(hint);
        }
        let hint =
            format!("SQLite keeps any value in any column; CAST({column} AS …) gives it one type");
        Failure::new(state::BAD_TEXT, message).hint(hint)
    }
}

/// Returns SQLite's name of a value's class.
fn class(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "NULL",
        Value::Integer(_) => "INTEGER",
        Value::Real(_) => "REAL",
        Value::Text(_) => "TEXT",
        Value::Blob(_) => "BLOB",
    }
}

/// Appends a value, with its length in front.
///
/// # Errors
/// [`Unfit`]; `out` may have a part of the value.
#[inline]
pub(crate) fn value(
    out: &mut Vec<u8>,
    value: &Value<'_>,
    is: Type,
    format: Format,
) -> Result<(), Unfit> {
    if matches!(value, Value::Null) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match format {
        Format::Text => text(out, value, is)?,
        Format::Binary => binary(out, value, is)?,
    }
    let length = i32::try_from(out.len() - start - 4).map_err(|_| Unfit)?;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Appends a number's digits. Most rows consist of numbers, and this is several times as fast as
/// formatting.
pub(crate) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    // `u64::MAX` has 20 digits.
    let mut digits = [0; 20];
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        first -= 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Appends a value as PostgreSQL prints it, without its length.
pub(crate) fn text(out: &mut Vec<u8>, value: &Value<'_>, is: Type) -> Result<(), Unfit> {
    match is {
        Type::Int8 | Type::Int4 | Type::Int2 | Type::Oid => {
            let number = integer(value, is)?;
            if number < 0 {
                out.push(b'-');
            }
            decimal(out, number.unsigned_abs());
        }
        Type::Bool => out.push(if integer(value, is)? == 0 { b'f' } else { b't' }),
        Type::Float4 => float_text(out, float(value)?, true),
        Type::Float8 => float_text(out, float(value)?, false),
        Type::Numeric => match value {
            Value::Integer(number) => print(out, format_args!("{number}")),
            // A `numeric` that was not computed is stored as its digits.
            Value::Text(_) => out.extend_from_slice(string(value)?.as_bytes()),
            _ => print(out, format_args!("{}", float(value)?)),
        },
        Type::Bytea => {
            out.extend_from_slice(b"\\x");
            for byte in bytes(value)? {
                print(out, format_args!("{byte:02x}"));
            }
        }
        Type::Date => {
            let text = calendar::date_text(date(value)?).ok_or(Unfit)?;
            out.extend_from_slice(text.as_bytes());
        }
        Type::Time => {
            let text = calendar::time_text(time(value)?).ok_or(Unfit)?;
            out.extend_from_slice(text.as_bytes());
        }
        Type::Timestamp | Type::Timestamptz => {
            let zoned = is == Type::Timestamptz;
            let micros = timestamp(value, zoned)?;
            let text = calendar::timestamp_text(micros, zoned).ok_or(Unfit)?;
            out.extend_from_slice(text.as_bytes());
        }
        Type::Uuid | Type::Json | Type::Jsonb | Type::Interval => {
            out.extend_from_slice(string(value)?.as_bytes());
        }
        is if is.is_reg() => out.extend_from_slice(object_name(value, is)?.as_bytes()),
        is if is.element().is_some() => array_text(out, value, is)?,
        _ => anything(out, value)?,
    }
    Ok(())
}

fn binary(out: &mut Vec<u8>, value: &Value<'_>, is: Type) -> Result<(), Unfit> {
    match is {
        Type::Int8 => out.extend_from_slice(&integer(value, is)?.to_be_bytes()),
        Type::Int4 => out.extend_from_slice(&small::<i32>(value, is)?.to_be_bytes()),
        Type::Int2 => out.extend_from_slice(&small::<i16>(value, is)?.to_be_bytes()),
        is if is == Type::Oid || is.is_reg() => {
            out.extend_from_slice(&small::<u32>(value, is)?.to_be_bytes());
        }
        Type::Bool => out.push(u8::from(integer(value, is)? != 0)),
        Type::Float8 => out.extend_from_slice(&float(value)?.to_be_bytes()),
        Type::Float4 => out.extend_from_slice(&(float(value)? as f32).to_be_bytes()),
        Type::Numeric => numeric_binary(out, value)?,
        Type::Bytea => out.extend_from_slice(bytes(value)?),
        Type::Date => out.extend_from_slice(&date(value)?.to_be_bytes()),
        Type::Time => out.extend_from_slice(&time(value)?.to_be_bytes()),
        Type::Timestamp | Type::Timestamptz => {
            let micros = timestamp(value, is == Type::Timestamptz)?;
            out.extend_from_slice(&micros.to_be_bytes());
        }
        Type::Uuid => out.extend_from_slice(&uuid(string(value)?).ok_or(Unfit)?),
        Type::Interval => {
            let it = Interval::read(string(value)?).ok_or(Unfit)?;
            out.extend_from_slice(&it.micros.to_be_bytes());
            for number in [it.days, it.months] {
                out.extend_from_slice(&i32::try_from(number).map_err(|_| Unfit)?.to_be_bytes());
            }
        }
        Type::Jsonb => {
            out.push(1);
            out.extend_from_slice(string(value)?.as_bytes());
        }
        Type::Json => out.extend_from_slice(string(value)?.as_bytes()),
        is if is.element().is_some() => array_binary(out, value, is)?,
        _ => anything(out, value)?,
    }
    Ok(())
}

/// The functions of a type's input and output. Their OIDs here are those of the type plus a hundred
/// thousand for each place in this list.
const IN_AND_OUT: [&str; 4] = ["in", "out", "recv", "send"];

/// The OID of `anyenum`, which stands for all enums among the functions.
const ANY_ENUM: usize = 3500;

/// Returns the name of the object that an OID means. The name of a relation is a text already.
fn object_name(value: &Value<'_>, is: Type) -> Result<String, Unfit> {
    if let Value::Text(_) = value {
        return string(value).map(str::to_owned);
    }
    let number = integer(value, is)?;
    let name = match is {
        Type::Regtype => {
            u32::try_from(number).ok().and_then(Type::of_oid).map(|of| of.name().to_owned())
        }
        Type::Regnamespace => {
            NAMESPACES.iter().find(|(oid, _)| *oid == number).map(|(_, name)| (*name).to_owned())
        }
        Type::Regproc => function_name(number),
        Type::Regprocedure if number == ARRAY_IN => Some(ARRAY_IN_NAME.to_owned()),
        _ => None,
    };
    let none = if number == 0 { "-".to_owned() } else { number.to_string() };
    Ok(name.unwrap_or(none))
}

fn function_name(number: i64) -> Option<String> {
    let number = usize::try_from(number).ok()?;
    let word = IN_AND_OUT.get((number / 100_000).checked_sub(1)?)?;
    if number % 100_000 == ANY_ENUM {
        return Some(format!("enum_{word}"));
    }
    let of = Type::of_oid(u32::try_from(number % 100_000).ok()?)?;
    let joined = matches!(
        of,
        Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Numeric
            | Type::Interval
            | Type::Uuid
            | Type::Json
            | Type::Jsonb
            | Type::Void
    );
    Some(match of.first_subscript() {
        1 if of.element().is_some() => format!("array_{word}"),
        _ => format!("{}{}{word}", of.catalog_name(), if joined { "_" } else { "" }),
    })
}

/// Returns an array's elements as values.
fn elements<'a>(texts: &'a [arrays::Element], of: Type) -> Result<Vec<Value<'a>>, Unfit> {
    let element = |text: &'a arrays::Element| match text {
        None => Ok(Value::Null),
        Some(text) if of.is_integer() || of == Type::Bool => {
            text.parse().map(Value::Integer).map_err(|_| Unfit)
        }
        Some(text) if matches!(of, Type::Float4 | Type::Float8) => {
            text.parse().map(Value::Real).map_err(|_| Unfit)
        }
        Some(text) => Ok(Value::Text(text.as_bytes())),
    };
    texts.iter().map(element).collect()
}

fn array_text(out: &mut Vec<u8>, value: &Value<'_>, is: Type) -> Result<(), Unfit> {
    let of = is.element().ok_or(Unfit)?;
    let texts = arrays::read(string(value)?).ok_or(Unfit)?;
    let is_vector = is.first_subscript() == 0;
    let mut parts = Vec::new();
    for element in elements(&texts, of)? {
        let mut part = Vec::new();
        match element {
            Value::Null => part.extend_from_slice(b"NULL"),
            element => text(&mut part, &element, of)?,
        }
        let part = String::from_utf8(part).map_err(|_| Unfit)?;
        let null = matches!(element, Value::Null) || is_vector;
        parts.push(if null { part } else { arrays::quoted(&part) });
    }
    let made = match is_vector {
        true => parts.join(" "),
        false => format!("{{{}}}", parts.join(",")),
    };
    out.extend_from_slice(made.as_bytes());
    Ok(())
}

fn array_binary(out: &mut Vec<u8>, value: &Value<'_>, is: Type) -> Result<(), Unfit> {
    let of = is.element().ok_or(Unfit)?;
    let texts = arrays::read(string(value)?).ok_or(Unfit)?;
    let values = elements(&texts, of)?;
    let nulls = i32::from(texts.iter().any(Option::is_none));
    let count = i32::try_from(values.len()).map_err(|_| Unfit)?;
    let head = [i32::from(count > 0), nulls, of.oid().cast_signed()];
    let bounds = [count, i32::from(is.first_subscript())];
    let bounds = if count > 0 { &bounds[..] } else { &[] };
    for word in head.iter().chain(bounds) {
        out.extend_from_slice(&word.to_be_bytes());
    }
    values.iter().try_for_each(|element| self::value(out, element, of, Format::Binary))
}

/// Appends any value but bytes for a text column, as SQLite would print it.
fn anything(out: &mut Vec<u8>, value: &Value<'_>) -> Result<(), Unfit> {
    match value {
        Value::Integer(number) => print(out, format_args!("{number}")),
        Value::Real(number) => float_text(out, *number, false),
        _ => out.extend_from_slice(string(value)?.as_bytes()),
    }
    Ok(())
}

fn print(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(what);
}

fn integer(value: &Value<'_>, is: Type) -> Result<i64, Unfit> {
    let number = match value {
        Value::Integer(number) => *number,
        Value::Real(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => *number as i64,
        _ => return Err(Unfit),
    };
    let fits = match is {
        Type::Int2 => i16::try_from(number).is_ok(),
        Type::Int4 => i32::try_from(number).is_ok(),
        is if is == Type::Oid || is.is_reg() => u32::try_from(number).is_ok(),
        Type::Bool => matches!(number, 0 | 1),
        _ => true,
    };
    if fits { Ok(number) } else { Err(Unfit) }
}

fn small<T: TryFrom<i64>>(value: &Value<'_>, is: Type) -> Result<T, Unfit> {
    T::try_from(integer(value, is)?).map_err(|_| Unfit)
}

fn float(value: &Value<'_>) -> Result<f64, Unfit> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Real(number) => Ok(*number),
        _ => Err(Unfit),
    }
}

fn bytes<'a>(value: &Value<'a>) -> Result<&'a [u8], Unfit> {
    match value {
        Value::Blob(bytes) => Ok(bytes),
        _ => Err(Unfit),
    }
}

/// Returns the text of a value. SQLite does not promise that it is UTF-8.
fn string<'a>(value: &Value<'a>) -> Result<&'a str, Unfit> {
    match value {
        // The text format has lengths, but C clients end a value at a zero byte.
        Value::Text(text) if !text.contains(&0) => std::str::from_utf8(text).map_err(|_| Unfit),
        _ => Err(Unfit),
    }
}

fn date(value: &Value<'_>) -> Result<i32, Unfit> {
    calendar::read_date(string(value)?.as_bytes()).ok_or(Unfit)
}

fn time(value: &Value<'_>) -> Result<i64, Unfit> {
    calendar::read_time(string(value)?.as_bytes()).ok_or(Unfit)
}

fn timestamp(value: &Value<'_>, zoned: bool) -> Result<i64, Unfit> {
    calendar::read_timestamp(string(value)?.as_bytes(), zoned).ok_or(Unfit)
}

/// Appends the shortest digits that read back as the same number, in the layout of `float8out`:
/// with an exponent below 0.0001 and from 1e15 on (1e6 for `float4`).
fn float_text(out: &mut Vec<u8>, number: f64, single: bool) {
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_infinite() {
        let text: &[u8] = if number > 0.0 { b"Infinity" } else { b"-Infinity" };
        return out.extend_from_slice(text);
    }
    let shortest = if single { format!("{:e}", number as f32) } else { format!("{number:e}") };
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let limit = if single { 6 } else { 15 };
    if (-4..limit).contains(&exponent) {
        if single {
            print(out, format_args!("{}", number as f32));
        } else {
            print(out, format_args!("{number}"));
        }
        return;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    print(out, format_args!("{digits}e{sign}{:02}", exponent.abs()));
}

/// Appends the format of `numeric_send`: digits to the base of ten thousand.
fn numeric_binary(out: &mut Vec<u8>, value: &Value<'_>) -> Result<(), Unfit> {
    let mut text = Vec::new();
    self::text(&mut text, value, Type::Numeric)?;
    let text = std::str::from_utf8(&text).map_err(|_| Unfit)?;
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (0x4000u16, rest),
        None => (0, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        let sign = if text == "NaN" { 0xc000u16 } else { 0xd000 | sign >> 1 };
        [0, 0, sign, 0].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        return Ok(());
    }
    let mut digits = "0".repeat((4 - whole.len() % 4) % 4);
    digits.push_str(whole);
    let weight = digits.len() / 4;
    digits.push_str(fraction);
    digits.push_str(&"0".repeat((4 - fraction.len() % 4) % 4));
    let count = u16::try_from(digits.len() / 4).map_err(|_| Unfit)?;
    let weight = u16::try_from(weight).map_err(|_| Unfit)?.wrapping_sub(1);
    let scale = u16::try_from(fraction.len()).map_err(|_| Unfit)?;
    [count, weight, sign, scale].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    for group in digits.as_bytes().chunks(4) {
        let digit = group.iter().fold(0u16, |all, digit| 10 * all + u16::from(digit - b'0'));
        out.extend_from_slice(&digit.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: &Value<'_>, is: Type) -> String {
        let mut out = Vec::new();
        text(&mut out, value, is).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_of_all_lengths() {
        for number in [0, 9, 10, -1, 1_000_000, i64::MAX, i64::MIN] {
            assert_eq!(printed(&Value::Integer(number), Type::Int8), number.to_string());
        }
        let mut out = Vec::new();
        decimal(&mut out, u64::MAX);
        assert_eq!(out, u64::MAX.to_string().as_bytes());
    }

    fn word(text: &str) -> Value<'_> {
        Value::Text(text.as_bytes())
    }

    #[test]
    fn values_as_postgresql_prints_them() {
        assert_eq!(printed(&Value::Integer(-5), Type::Int8), "-5");
        assert_eq!(printed(&Value::Integer(1), Type::Bool), "t");
        assert_eq!(printed(&Value::Real(3.0), Type::Int8), "3");
        assert_eq!(printed(&Value::Blob(&[0, 255]), Type::Bytea), "\\x00ff");
        assert_eq!(printed(&word("2024-01-02T03:04:05Z"), Type::Timestamp), "2024-01-02 03:04:05");
        for (number, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-2.5e300, "-2.5e+300"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(printed(&Value::Real(number), Type::Float8), text);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut out = Vec::new();
        for (value, is) in [
            (word("x"), Type::Int8),
            (Value::Real(1.5), Type::Int8),
            (Value::Integer(2), Type::Bool),
            (Value::Integer(70_000), Type::Int2),
            (Value::Blob(b"x"), Type::Text),
            (word("a\0b"), Type::Text),
            (word("someday"), Type::Date),
            (word("x"), Type::Bytea),
        ] {
            assert_eq!(text(&mut out, &value, is), Err(Unfit), "{value:?} {is:?}");
            assert_eq!(binary(&mut out, &value, is), Err(Unfit), "{value:?} {is:?}");
        }
    }

    #[test]
    fn binary_reads_back() {
        for (is, value) in [
            (Type::Int8, Value::Integer(i64::MIN)),
            (Type::Int4, Value::Integer(-7)),
            (Type::Bool, Value::Integer(1)),
            (Type::Float8, Value::Real(0.1)),
            (Type::Numeric, Value::Real(12_345.678)),
            (Type::Numeric, Value::Integer(-100_000)),
            (Type::Date, word("2024-02-29")),
            (Type::Time, word("01:02:03.000004")),
            (Type::Timestamptz, word("1969-12-31 23:59:59.5+00")),
            (Type::Uuid, word("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
            (Type::Jsonb, word("{}")),
            (Type::Text, word("ä")),
        ] {
            let mut out = Vec::new();
            binary(&mut out, &value, is).unwrap();
            let read = crate::decode::binary(&out, is).unwrap();
            assert_eq!(read.value(), value, "{is:?}");
        }
    }
}
