//! Functions that a translated statement calls where SQLite's own result would differ from
//! PostgreSQL's.
//!
//! Nearly all of them return NULL if an argument is NULL. They raise PostgreSQL's errors;
//! [`raised`] and [`Failure::raised`] carry those through SQLite.

use refrain_sqlite::{Connection, Error};
use rusqlite::functions::{Context as Call, FunctionFlags};
use rusqlite::types::{Value as Any, ValueRef};

use crate::arguments::{real, text, unfit, value, whole};
use crate::calendar;
use crate::decode::{self, Decoded};
use crate::dialect::{fitted, missing};
use crate::encode;
use crate::failure::{Failure, state};
use crate::json_parts;
use crate::lookups;
use crate::more_functions::MORE;
use crate::once::once;
use crate::times;
use crate::types::Type;

type ComputeResult = Result<Any, Failure>;

/// The code of a function.
type ComputeFunction = fn(&Call<'_>) -> ComputeResult;

/// A function: its name, its number of arguments (-1: any number), its code, and whether the same
/// arguments always give the same result.
const FUNCTIONS: &[(&str, i32, ComputeFunction, bool)] = &[
    ("refrain_in", 2, read, true),
    ("refrain_text", 2, written, true),
    ("refrain_int", 2, integer, true),
    ("refrain_float", 2, single, true),
    ("refrain_fit", 4, fit, true),
    ("refrain_zoneless", 1, zoneless, true),
    ("refrain_add", 3, |call| compute(call, i64::checked_add, |a, b| a + b), true),
    ("refrain_subtract", 3, |call| compute(call, i64::checked_sub, |a, b| a - b), true),
    ("refrain_multiply", 3, |call| compute(call, i64::checked_mul, |a, b| a * b), true),
    ("refrain_divide", 3, divide, true),
    ("refrain_remainder", 3, remainder, true),
    ("refrain_negate", 2, negate, true),
    ("refrain_abs", 2, absolute, true),
    ("refrain_round", 1, |call| Ok(Any::Real(real(call, 0)?.round_ties_even())), true),
    ("refrain_ceil", 1, |call| Ok(Any::Real(real(call, 0)?.ceil())), true),
    ("refrain_floor", 1, |call| Ok(Any::Real(real(call, 0)?.floor())), true),
    ("refrain_trunc", 1, |call| Ok(Any::Real(real(call, 0)?.trunc())), true),
    ("refrain_random", 0, random, false),
    ("refrain_days_between", 2, days_between, true),
    ("refrain_add_days", 2, add_days, true),
    ("refrain_ratio", 2, ratio, true),
    ("refrain_extract", 3, times::extract, true),
    ("refrain_date_part", 3, times::date_part, true),
    ("refrain_truncated", 3, times::truncated, true),
    ("refrain_plus", 3, |call| times::plus(call, 1), true),
    ("refrain_minus", 3, |call| times::plus(call, -1), true),
    ("refrain_between", 2, times::between, true),
    ("refrain_age", 2, times::age, true),
    ("refrain_intervals", 3, times::intervals, true),
    ("refrain_span", 1, times::span, true),
    ("refrain_zoned", 1, times::zoned, true),
    ("refrain_substring", 2, substring, true),
    ("refrain_substring", 3, substring, true),
    ("refrain_left", 2, |call| ends(call, true), true),
    ("refrain_right", 2, |call| ends(call, false), true),
    ("refrain_repeat", 2, repeat, true),
    ("refrain_reverse", 1, |call| Ok(Any::Text(text(call, 0)?.chars().rev().collect())), true),
    ("refrain_pad", 4, pad, true),
    ("refrain_step", 1, step, true),
    ("refrain_json_element", 4, json_parts::element, true),
    ("refrain_json_path", 4, json_parts::path, true),
    ("refrain_json_has", 3, json_parts::has_key, true),
    ("refrain_json_length", 2, json_parts::length, true),
    ("refrain_json_kind", 2, json_parts::kind, true),
    ("refrain_schema", 1, lookups::schema, true),
    ("refrain_own_name", 1, lookups::own_name, true),
    ("refrain_namespace", 1, lookups::namespace, true),
    ("refrain_series", 3, lookups::series, true),
    ("refrain_matches", 3, lookups::matches, true),
    // SQLite's operator REGEXP calls it.
    ("regexp", 2, lookups::regexp, true),
    ("refrain_relation_name", 1, lookups::relation_name, true),
    ("refrain_size", 1, |call| Ok(Any::Text(lookups::size(whole(call, 0)?))), true),
];

/// Functions that get NULL as an argument.
const NULLS_TOO: &[(&str, i32, ComputeFunction)] = &[
    ("refrain_limit", 2, limit),
    ("refrain_present", 3, present),
    ("refrain_once", -1, once),
    ("refrain_one", 0, |_| {
        Err(Failure::new("21000", "more than one row returned by a subquery used as an expression"))
    }),
    ("refrain_found", 2, lookups::found),
    ("refrain_json_key", 1, json_parts::key),
    ("refrain_longest", -1, lookups::longest),
    ("refrain_greatest", -1, |call| extreme(call, std::cmp::Ordering::Greater)),
    ("refrain_least", -1, |call| extreme(call, std::cmp::Ordering::Less)),
];

/// Defines these functions on a connection.
///
/// # Errors
/// If SQLite refuses one.
pub(crate) fn define(connection: &Connection) -> Result<(), Error> {
    let plain = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    let same = plain | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, arguments, function, deterministic) in FUNCTIONS.iter().chain(MORE) {
        let flags = if *deterministic { same } else { plain };
        connection.define_function(name, *arguments, flags, move |call| {
            let null = (0..call.len()).any(|index| call.get_raw(index) == ValueRef::Null);
            if null { Ok(Any::Null) } else { function(call).map_err(raised) }
        })?;
    }
    // LIKE is case-sensitive, as PostgreSQL's is; a translated ILIKE folds both sides.
    connection.trusted(|connection| connection.execute("PRAGMA case_sensitive_like = 1", &[]))?;
    for (name, arguments, function) in NULLS_TOO {
        connection
            .define_function(name, *arguments, plain, move |call| function(call).map_err(raised))?;
    }
    Ok(())
}

/// Makes SQLite's error from one of PostgreSQL's.
fn raised(failure: Failure) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(failure.carried().into())
}

fn is_of(call: &Call<'_>) -> Type {
    let oid = match call.get_raw(0) {
        ValueRef::Integer(oid) => u32::try_from(oid).unwrap_or(0),
        _ => 0,
    };
    Type::of_oid(oid).unwrap_or(Type::Text)
}

/// Reads a text as a value of a type.
fn read(call: &Call<'_>) -> ComputeResult {
    let given = decode::text(text(call, 1)?.as_bytes(), is_of(call))?;
    Ok(match given {
        Decoded::Null => Any::Null,
        Decoded::Integer(number) => Any::Integer(number),
        Decoded::Real(number) => Any::Real(number),
        Decoded::Text(text) => Any::Text(String::from_utf8_lossy(&text).into_owned()),
        Decoded::Blob(bytes) => Any::Blob(bytes.into_owned()),
    })
}

/// Writes a value of a type as PostgreSQL prints it.
fn written(call: &Call<'_>) -> ComputeResult {
    let mut out = Vec::new();
    if encode::text(&mut out, &value(call, 1), is_of(call)).is_err() {
        // Another program may have stored any text there, and a client reads it by a cast to text.
        return text(call, 1).map(|text| Any::Text(text.to_owned()));
    }
    Ok(Any::Text(String::from_utf8_lossy(&out).into_owned()))
}

/// Checks that an integer is in the range of its type.
fn ranged(number: i128, is: Type) -> ComputeResult {
    let fits = match is {
        Type::Int2 => i16::try_from(number).is_ok(),
        Type::Int4 => i32::try_from(number).is_ok(),
        _ => true,
    };
    let number = i64::try_from(number).ok().filter(|_| fits);
    number.map(Any::Integer).ok_or_else(|| overflow(is))
}

fn overflow(is: Type) -> Failure {
    let message = match is {
        Type::Float4 | Type::Float8 => "value out of range: overflow".to_owned(),
        is => format!("{} out of range", is.name()),
    };
    Failure::new(state::TOO_LARGE_NUMBER, message)
}

/// Converts a number to an integer: floats round to even, decimals away from zero.
fn integer(call: &Call<'_>) -> ComputeResult {
    let is = is_of(call);
    match call.get_raw(1) {
        ValueRef::Integer(number) => ranged(i128::from(number), is),
        ValueRef::Real(number) => {
            let rounded = number.round_ties_even();
            if !rounded.is_finite() || rounded.abs() > 1e30 {
                return Err(overflow(is));
            }
            ranged(rounded as i128, is)
        }
        ValueRef::Text(_) => {
            let digits = text(call, 1)?;
            let (head, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let negative = head.starts_with('-');
            let up = fraction.starts_with(['5', '6', '7', '8', '9']);
            let head = if matches!(head, "" | "-") { "0" } else { head };
            let number: i128 = head.parse().map_err(|_| overflow(is))?;
            ranged(number + i128::from(up) * if negative { -1 } else { 1 }, is)
        }
        _ => Err(unfit()),
    }
}

/// Converts a double to a float of four bytes.
fn single(call: &Call<'_>) -> ComputeResult {
    let number = real(call, 1)?;
    let single = number as f32;
    if single.is_infinite() && number.is_finite() {
        return Err(overflow(Type::Float4));
    }
    if single == 0.0 && number != 0.0 {
        return Err(underflow());
    }
    Ok(Any::Real(f64::from(single)))
}

fn fit(call: &Call<'_>) -> ComputeResult {
    let limit = u32::try_from(whole(call, 2)?).unwrap_or(u32::MAX);
    if let is @ (Type::Timestamp | Type::Timestamptz) = is_of(call) {
        return times::rounded(text(call, 1)?, is, limit);
    }
    fitted(text(call, 1)?, is_of(call), limit, whole(call, 3)? != 0).map(Any::Text)
}

/// Removes the zone of a moment, which is UTC.
fn zoneless(call: &Call<'_>) -> ComputeResult {
    calendar::in_utc()?;
    let moment = text(call, 0)?;
    let plain = moment.strip_suffix("+00").map(str::to_owned).or_else(|| {
        let micros = calendar::read_timestamp(moment.as_bytes(), true)?;
        calendar::timestamp_text(micros, false)
    });
    plain.map(Any::Text).ok_or_else(unfit)
}

fn compute(
    call: &Call<'_>,
    of_integers: fn(i64, i64) -> Option<i64>,
    of_floats: fn(f64, f64) -> f64,
) -> ComputeResult {
    let is = is_of(call);
    if is.is_integer() {
        let made = of_integers(whole(call, 1)?, whole(call, 2)?);
        return ranged(i128::from(made.ok_or_else(|| overflow(is))?), is);
    }
    let (left, right) = (real(call, 1)?, real(call, 2)?);
    of_float(of_floats(left, right), left.is_finite() && right.is_finite(), is)
}

fn of_float(made: f64, finite: bool, is: Type) -> ComputeResult {
    let made = if is == Type::Float4 { f64::from(made as f32) } else { made };
    if made.is_nan() {
        return Err(decode::no_nan());
    }
    if finite && made.is_infinite() {
        return Err(overflow(is));
    }
    Ok(Any::Real(made))
}

fn underflow() -> Failure {
    Failure::new(state::TOO_LARGE_NUMBER, "value out of range: underflow")
}

fn by_zero() -> Failure {
    Failure::new("22012", "division by zero")
}

fn divide(call: &Call<'_>) -> ComputeResult {
    let is = is_of(call);
    if is.is_integer() {
        let (left, right) = (whole(call, 1)?, whole(call, 2)?);
        if right == 0 {
            return Err(by_zero());
        }
        return ranged(i128::from(left) / i128::from(right), is);
    }
    let (left, right) = (real(call, 1)?, real(call, 2)?);
    if right == 0.0 {
        return Err(by_zero());
    }
    let made = left / right;
    if made == 0.0 && left != 0.0 && right.is_finite() {
        return Err(underflow());
    }
    of_float(made, left.is_finite() && right.is_finite(), is)
}

fn remainder(call: &Call<'_>) -> ComputeResult {
    let (left, right) = (whole(call, 1)?, whole(call, 2)?);
    if right == 0 {
        return Err(by_zero());
    }
    ranged(i128::from(left) % i128::from(right), is_of(call))
}

fn negate(call: &Call<'_>) -> ComputeResult {
    match is_of(call) {
        is if is.is_integer() => ranged(-i128::from(whole(call, 1)?), is),
        _ => Ok(Any::Real(-real(call, 1)?)),
    }
}

fn absolute(call: &Call<'_>) -> ComputeResult {
    match is_of(call) {
        is if is.is_integer() => ranged(i128::from(whole(call, 1)?).abs(), is),
        _ => Ok(Any::Real(real(call, 1)?.abs())),
    }
}

/// Returns a random number from 0 to 1, without 1.
fn random(_: &Call<'_>) -> ComputeResult {
    let mut bytes = [0; 8];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::new("58000", error.to_string()))?;
    let digits = u64::from_le_bytes(bytes) >> 11;
    Ok(Any::Real(digits as f64 / (1_u64 << 53) as f64))
}

fn date(call: &Call<'_>, index: usize) -> Result<i32, Failure> {
    calendar::read_date(text(call, index)?.as_bytes()).ok_or_else(unfit)
}

fn days_between(call: &Call<'_>) -> ComputeResult {
    Ok(Any::Integer(i64::from(date(call, 0)?) - i64::from(date(call, 1)?)))
}

fn add_days(call: &Call<'_>) -> ComputeResult {
    let days = i64::from(date(call, 0)?).checked_add(whole(call, 1)?);
    let made = days.and_then(|days| i32::try_from(days).ok()).and_then(calendar::date_text);
    made.map(Any::Text).ok_or_else(|| times::out_of_range("date out of range"))
}

/// Returns the average of integers as PostgreSQL prints it (`select_div_scale` in numeric.c): with
/// sixteen significant digits at least.
fn ratio(call: &Call<'_>) -> ComputeResult {
    let (sum, count) = (i128::from(whole(call, 0)?), i128::from(whole(call, 1)?));
    if count == 0 {
        return Ok(Any::Null);
    }
    // The weight and the first of the digits to the base of ten thousand.
    let weight = |number: i128| {
        let (mut rest, mut weight) = (number.unsigned_abs(), 0);
        while rest >= 10_000 {
            rest /= 10_000;
            weight += 1;
        }
        (weight, rest)
    };
    let ((above, first), (below, other)) = (weight(sum), weight(count));
    let quotient = above - below - i32::from(first <= other);
    let scale = u32::try_from((16 - quotient * 4).max(0)).unwrap_or(0);
    let power = 10_i128.checked_pow(scale);
    let scaled = power.and_then(|power| sum.unsigned_abs().checked_mul(power.unsigned_abs()));
    let scaled = scaled.ok_or_else(|| overflow(Type::Numeric))?;
    let count = count.unsigned_abs();
    let rounded = (scaled + count / 2) / count;
    let digits = format!("{rounded:0width$}", width = scale as usize + 1);
    let (head, fraction) = digits.split_at(digits.len() - scale as usize);
    let sign = if sum < 0 && rounded > 0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(Any::Text(format!("{sign}{head}{point}{fraction}")))
}

/// Returns the characters from a position on. It counts from 1, and positions before 1 count too.
fn substring(call: &Call<'_>) -> ComputeResult {
    let (text, start) = (text(call, 0)?, whole(call, 1)?);
    let end = match call.len() {
        3 => {
            let length = whole(call, 2)?;
            if length < 0 {
                return Err(Failure::new("22011", "negative substring length not allowed"));
            }
            start.saturating_add(length)
        }
        _ => i64::MAX,
    };
    let skipped = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
    let taken = usize::try_from(end.saturating_sub(start.max(1)).max(0)).unwrap_or(usize::MAX);
    Ok(Any::Text(text.chars().skip(skipped).take(taken).collect()))
}

/// Returns so many characters of a text's beginning or end; a negative number leaves out so many.
fn ends(call: &Call<'_>, first: bool) -> ComputeResult {
    let (text, wanted) = (text(call, 0)?, whole(call, 1)?);
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let taken = if wanted < 0 { (length + wanted).max(0) } else { wanted.min(length) };
    let skipped = if first { 0 } else { length - taken };
    let (skipped, taken) = (skipped.max(0) as usize, taken.max(0) as usize);
    Ok(Any::Text(text.chars().skip(skipped).take(taken).collect()))
}

/// The longest text that a function makes, in bytes.
const TEXT_MAX: usize = 64 << 20;

fn too_long() -> Failure {
    Failure::new("54000", "requested length too large")
}

fn repeat(call: &Call<'_>) -> ComputeResult {
    let (text, times) = (text(call, 0)?, whole(call, 1)?);
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    let size = text.len().checked_mul(times).filter(|size| *size <= TEXT_MAX);
    size.map(|_| Any::Text(text.repeat(times))).ok_or_else(too_long)
}

fn pad(call: &Call<'_>) -> ComputeResult {
    let (text, wanted, fill) = (text(call, 0)?, whole(call, 1)?.max(0), text(call, 2)?);
    let behind = whole(call, 3)? != 0;
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    if wanted > TEXT_MAX / 4 {
        return Err(too_long());
    }
    let length = text.chars().count();
    if length >= wanted || fill.is_empty() {
        return Ok(Any::Text(text.chars().take(wanted).collect()));
    }
    let filled: String = fill.chars().cycle().take(wanted - length).collect();
    Ok(Any::Text(if behind { format!("{text}{filled}") } else { format!("{filled}{text}") }))
}

fn step(call: &Call<'_>) -> ComputeResult {
    match whole(call, 0)? {
        0 => Err(Failure::new(state::BAD_PARAMETER_VALUE, "step size cannot equal zero")),
        step => Ok(Any::Integer(step)),
    }
}

/// Returns a number of rows. NULL means all rows, which is -1 in SQLite.
fn limit(call: &Call<'_>) -> ComputeResult {
    let word = text(call, 1)?;
    match call.get_raw(0) {
        ValueRef::Null if word == "LIMIT" => Ok(Any::Integer(-1)),
        ValueRef::Null => Ok(Any::Integer(0)),
        ValueRef::Integer(number) if number < 0 => {
            let state = if word == "LIMIT" { "2201W" } else { "2201X" };
            Err(Failure::new(state, format!("{word} must not be negative")))
        }
        ValueRef::Integer(number) => Ok(Any::Integer(number)),
        _ => Err(unfit()),
    }
}

/// Returns a key's value. NULL is an error, because SQLite would generate a number for it.
fn present(call: &Call<'_>) -> ComputeResult {
    match call.get_raw(0) {
        ValueRef::Null => Err(missing(text(call, 1)?, text(call, 2)?)),
        ValueRef::Integer(number) => Ok(Any::Integer(number)),
        _ => Err(unfit()),
    }
}

/// Returns the largest or smallest value that is not NULL.
fn extreme(call: &Call<'_>, wanted: std::cmp::Ordering) -> ComputeResult {
    let mut found = ValueRef::Null;
    for index in 0..call.len() {
        let next = call.get_raw(index);
        let better = match (&found, &next) {
            (_, ValueRef::Null) => false,
            (ValueRef::Null, _) => true,
            (ValueRef::Integer(a), ValueRef::Integer(b)) => b.cmp(a) == wanted,
            (ValueRef::Text(a), ValueRef::Text(b)) | (ValueRef::Blob(a), ValueRef::Blob(b)) => {
                b.cmp(a) == wanted
            }
            (a, b) => {
                let number = |value: &ValueRef<'_>| match value {
                    ValueRef::Integer(number) => *number as f64,
                    ValueRef::Real(number) => *number,
                    _ => 0.0,
                };
                number(b).partial_cmp(&number(a)) == Some(wanted)
            }
        };
        if better {
            found = next;
        }
    }
    Ok(match found {
        ValueRef::Null => Any::Null,
        ValueRef::Integer(number) => Any::Integer(number),
        ValueRef::Real(number) => Any::Real(number),
        ValueRef::Text(text) => Any::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Any::Blob(bytes.to_owned()),
    })
}
