//! Functions of moments and intervals that a translated statement calls.
//!
//! The first argument of most is the OID of the moment's type. One with a time zone is in UTC, so
//! another time zone of the session is an error here.

use refrain_sqlite::Value;
use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::arguments::{text, unfit, value};
use crate::calendar;
use crate::failure::{Failure, state};
use crate::intervals::Interval;
use crate::moments::{self, Part};
use crate::types::Type;

type Timed = Result<Any, Failure>;

fn is_of(call: &Call<'_>) -> Type {
    let oid = match value(call, 0) {
        Value::Integer(oid) => u32::try_from(oid).unwrap_or(0),
        _ => 0,
    };
    Type::of_oid(oid).unwrap_or(Type::Timestamp)
}

/// Returns 22008 for a moment that has no text here.
pub(crate) fn out_of_range(message: &'static str) -> Failure {
    Failure::new("22008", message).hint("years end with 9999 here")
}

/// Returns an argument that is a moment, as microseconds.
fn moment(call: &Call<'_>, index: usize, is: Type) -> Result<i64, Failure> {
    if is == Type::Timestamptz {
        calendar::in_utc()?;
    }
    calendar::read_timestamp(text(call, index)?.as_bytes(), true).ok_or_else(unfit)
}

fn interval(call: &Call<'_>, index: usize) -> Result<Interval, Failure> {
    Interval::parse(text(call, index)?)
}

fn made(micros: Option<i64>, is: Type) -> Timed {
    let written =
        micros.and_then(|micros| calendar::timestamp_text(micros, is == Type::Timestamptz));
    written.map(Any::Text).ok_or_else(|| out_of_range("timestamp out of range"))
}

fn made_interval(it: Option<Interval>) -> Timed {
    let out_of_range = || Failure::new("22008", "interval out of range");
    it.map(|it| Any::Text(it.text())).ok_or_else(out_of_range)
}

fn no_unit(word: &str, is: Type) -> Failure {
    let message = format!("unit \"{word}\" not supported for type {}", is.name());
    Failure::unsupported(message)
        .hint("units are second, minute, hour, day, week, month, year and the like")
}

fn part(call: &Call<'_>) -> Result<Part, Failure> {
    let (is, word) = (is_of(call), text(call, 1)?);
    let found = match is {
        Type::Interval => moments::part_of_interval(word, interval(call, 2)?),
        is => moments::part(word, moment(call, 2, is)?, is == Type::Date),
    };
    found.ok_or_else(|| no_unit(word, is))
}

pub(crate) fn extract(call: &Call<'_>) -> Timed {
    let part = part(call)?;
    Ok(match (part.decimal(), part) {
        (None, Part::Whole(number)) => Any::Integer(number),
        (text, _) => Any::Text(text.unwrap_or_default()),
    })
}

pub(crate) fn date_part(call: &Call<'_>) -> Timed {
    Ok(Any::Real(part(call)?.float()))
}

pub(crate) fn truncated(call: &Call<'_>) -> Timed {
    let (is, word) = (is_of(call), text(call, 1)?);
    let micros = moment(call, 2, is)?;
    made(Some(moments::truncated(word, micros).ok_or_else(|| no_unit(word, is))?), is)
}

/// Adds an interval, or subtracts it if `sign` is -1.
pub(crate) fn plus(call: &Call<'_>, sign: i64) -> Timed {
    let (is, it) = (is_of(call), interval(call, 2)?);
    let micros = moment(call, 1, is)?;
    made(it.times(sign).and_then(|it| moments::plus(micros, it)), is)
}

pub(crate) fn between(call: &Call<'_>) -> Timed {
    let (left, right) = (moment(call, 0, Type::Timestamp)?, moment(call, 1, Type::Timestamp)?);
    made_interval(Some(Interval::between(left - right)))
}

pub(crate) fn age(call: &Call<'_>) -> Timed {
    let (left, right) = (moment(call, 0, Type::Timestamp)?, moment(call, 1, Type::Timestamp)?);
    made_interval(moments::age(left, right))
}

/// Adds the second argument to an interval so many times, or multiplies it: by the first argument.
pub(crate) fn intervals(call: &Call<'_>) -> Timed {
    let (Value::Text(how), it) = (value(call, 0), interval(call, 1)?) else { return Err(unfit()) };
    made_interval(match (how, value(call, 2)) {
        (b"*", Value::Integer(factor)) => it.times(factor),
        (b"-", _) => interval(call, 2)?.times(-1).and_then(|other| it.plus(other)),
        _ => it.plus(interval(call, 2)?),
    })
}

/// Returns a number by which intervals compare.
pub(crate) fn span(call: &Call<'_>) -> Timed {
    let span = i64::try_from(interval(call, 0)?.span());
    span.map(Any::Integer).map_err(|_| {
        Failure::new(state::NOT_SUPPORTED, "comparing intervals of this length is not supported")
    })
}

/// Gives a moment the zone of the session.
pub(crate) fn zoned(call: &Call<'_>) -> Timed {
    calendar::in_utc()?;
    Ok(Any::Text(format!("{}+00", text(call, 0)?)))
}

/// Rounds a moment to a number of digits of its seconds.
pub(crate) fn rounded(moment: &str, is: Type, digits: u32) -> Timed {
    let micros = calendar::read_timestamp(moment.as_bytes(), true).ok_or_else(unfit)?;
    let unit = 10_i64.pow(6_u32.saturating_sub(digits));
    // Half a unit goes away from 2000-01-01 (`AdjustTimestampForTypmod`).
    let half = unit / 2 * micros.signum();
    made(micros.checked_add(half).map(|micros| micros / unit * unit), is)
}
