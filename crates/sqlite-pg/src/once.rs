//! Keys that may occur once in a statement.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::Context as Call;
use rusqlite::types::{Value as Any, ValueRef};

use crate::failure::Failure;

/// Returns 1 for a key's first occurrence in the statement, and for NULL. A second occurrence is an
/// error.
pub(crate) fn once(call: &Call<'_>) -> Result<Any, Failure> {
    let known = call.get_or_create_aux(0, |_| Ok::<_, Infallible>(Mutex::new(HashSet::new())));
    let known: Arc<Mutex<HashSet<Vec<u8>>>> =
        known.map_err(|error| Failure::new("XX000", error.to_string()))?;
    let mut key = Vec::new();
    for index in 1..call.len() {
        let value = call.get_raw(index);
        if value == ValueRef::Null {
            return Ok(Any::Integer(1));
        }
        add_key(&mut key, value);
    }
    if known.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
        return Ok(Any::Integer(1));
    }
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    Err(Failure::new("21000", message).hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    ))
}

/// Appends a value so that equal ones are equal: a float that is whole is an integer to SQLite.
fn add_key(key: &mut Vec<u8>, value: ValueRef<'_>) {
    let (kind, bytes) = match value {
        ValueRef::Integer(number) => (b'i', number.to_be_bytes().to_vec()),
        ValueRef::Real(number) if number == (number as i64) as f64 => {
            (b'i', (number as i64).to_be_bytes().to_vec())
        }
        ValueRef::Real(number) => (b'r', number.to_be_bytes().to_vec()),
        ValueRef::Text(bytes) => (b't', bytes.to_vec()),
        ValueRef::Blob(bytes) => (b'b', bytes.to_vec()),
        ValueRef::Null => (b'n', Vec::new()),
    };
    key.push(kind);
    key.extend_from_slice(&bytes.len().to_be_bytes());
    key.extend_from_slice(&bytes);
}
