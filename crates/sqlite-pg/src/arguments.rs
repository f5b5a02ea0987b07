//! The arguments of a call of a function.

use refrain_sqlite::Value;
use rusqlite::functions::Context as Call;
use rusqlite::types::ValueRef;

use crate::failure::{Failure, state};

/// Returns an argument.
pub(crate) fn value<'a>(call: &'a Call<'_>, index: usize) -> Value<'a> {
    match call.get_raw(index) {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(text),
        ValueRef::Blob(bytes) => Value::Blob(bytes),
    }
}

/// Returns an argument that is a text.
///
/// # Errors
/// [`unfit`].
pub(crate) fn text<'a>(call: &'a Call<'_>, index: usize) -> Result<&'a str, Failure> {
    match call.get_raw(index) {
        ValueRef::Text(text) => std::str::from_utf8(text).map_err(|_| unfit()),
        _ => Err(unfit()),
    }
}

/// Returns an argument that is an integer.
///
/// # Errors
/// [`unfit`].
pub(crate) fn whole(call: &Call<'_>, index: usize) -> Result<i64, Failure> {
    match call.get_raw(index) {
        ValueRef::Integer(number) => Ok(number),
        _ => Err(unfit()),
    }
}

/// Returns an argument that is a number.
///
/// # Errors
/// [`unfit`].
pub(crate) fn real(call: &Call<'_>, index: usize) -> Result<f64, Failure> {
    match call.get_raw(index) {
        ValueRef::Integer(number) => Ok(number as f64),
        ValueRef::Real(number) => Ok(number),
        _ => Err(unfit()),
    }
}

/// Returns the error for a value of another type.
pub(crate) fn unfit() -> Failure {
    Failure::new(state::BAD_TEXT, "a value in the file does not fit its column's type")
        .hint("SQLite stores any value in any column; check typeof(column)")
}
