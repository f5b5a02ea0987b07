//! Parts of JSON values: the operators `->`, `->>`, `#>`, `#>>` and `?`.
//!
//! A part is the text between its first and last character, as `json` of the server gives it. A
//! `jsonb` is kept in the server's form, so its parts are in that form as well.

use refrain_sqlite::Value;
use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::arguments::{text, unfit, value};
use crate::arrays;
use crate::failure::{Failure, state};
use crate::json::{self, Part};
use crate::types::Type;

type Found = Result<Any, Failure>;

/// Returns the type and the value of a call's first arguments.
fn subject<'a>(call: &'a Call<'_>) -> Result<(bool, &'a str), Failure> {
    let binary =
        matches!(value(call, 0), Value::Integer(oid) if oid == i64::from(Type::Jsonb.oid()));
    Ok((binary, text(call, 1)?))
}

/// Returns the key of an object that is built: a string of JSON.
pub(crate) fn key(call: &Call<'_>) -> Found {
    match value(call, 0) {
        Value::Null => {
            let failure = Failure::new(state::BAD_PARAMETER_VALUE, "a key of an object is null");
            Err(failure.hint("Object keys should be text."))
        }
        _ => Ok(Any::Text(arrays::json_string(text(call, 0)?))),
    }
}

/// Returns a part as `json`, or as a text if `as_text`.
fn given(part: Option<&str>, as_text: bool) -> Found {
    Ok(match part {
        None => Any::Null,
        Some("null") if as_text => Any::Null,
        Some(part) if as_text => Any::Text(json::plain(part)?),
        Some(part) => Any::Text(part.to_owned()),
    })
}

/// Returns the element of an object by its key, or that of an array by its number.
pub(crate) fn element(call: &Call<'_>) -> Found {
    let (binary, subject) = subject(call)?;
    let part = match (value(call, 2), json::parts(subject)) {
        (Value::Text(_), Some(parts)) => keyed(&parts, text(call, 2)?),
        (Value::Integer(number), Some(parts)) => numbered(&parts, number),
        // As in the server, a scalar of jsonb is an array of one.
        (Value::Integer(0 | -1), None) if binary => Some(subject),
        (Value::Text(_) | Value::Integer(_), None) => None,
        _ => return Err(unfit()),
    };
    given(part, value(call, 3) == Value::Integer(1))
}

/// Returns the part at the end of a path.
pub(crate) fn path(call: &Call<'_>) -> Found {
    let (_, subject) = subject(call)?;
    let steps = arrays::read(text(call, 2)?).ok_or_else(unfit)?;
    let mut part = Some(subject.trim_matches(json::BLANKS));
    for step in &steps {
        let Some(step) = step else { return Ok(Any::Null) };
        let parts = part.and_then(json::parts);
        part = parts.and_then(|parts| match (&parts[..], step.trim_start().parse()) {
            ([Part { key: None, .. }, ..], Ok(number)) => numbered(&parts, number),
            ([Part { key: Some(_), .. }, ..], _) => keyed(&parts, step),
            _ => None,
        });
    }
    given(part, value(call, 3) == Value::Integer(1))
}

/// True if a key is in an object, or a text in an array.
pub(crate) fn has_key(call: &Call<'_>) -> Found {
    let (_, subject) = subject(call)?;
    let wanted = json::quoted(text(call, 2)?);
    let found = match json::parts(subject) {
        None => subject == wanted,
        Some(parts) => parts.iter().any(|part| part.key.as_deref().unwrap_or(part.text) == wanted),
    };
    Ok(Any::Integer(i64::from(found)))
}

/// Returns the number of elements of an array.
pub(crate) fn length(call: &Call<'_>) -> Found {
    let (_, subject) = subject(call)?;
    let message = match subject.trim_start_matches(json::BLANKS).as_bytes().first() {
        Some(b'[') => {
            let count = json::parts(subject).map_or(0, |parts| parts.len());
            return Ok(Any::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
        }
        Some(b'{') => "cannot get array length of a non-array",
        _ => "cannot get array length of a scalar",
    };
    Err(Failure::new("22023", message))
}

/// Returns the word for the kind of a value.
pub(crate) fn kind(call: &Call<'_>) -> Found {
    let (_, subject) = subject(call)?;
    let word = match subject.trim_start_matches(json::BLANKS).as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    Ok(Any::Text(word.to_owned()))
}

/// Returns the value of a key: of several, the last.
fn keyed<'a>(parts: &[Part<'a>], key: &str) -> Option<&'a str> {
    let wanted = json::quoted(key);
    let mut found = parts.iter().rev();
    found.find(|part| part.key.as_deref() == Some(wanted.as_str())).map(|part| part.text)
}

/// Returns an element of an array; a number below zero counts from the end.
fn numbered<'a>(parts: &[Part<'a>], number: i64) -> Option<&'a str> {
    let count = i64::try_from(parts.len()).ok()?;
    let place = if number < 0 { count + number } else { number };
    let part = parts.get(usize::try_from(place).ok()?)?;
    part.key.is_none().then_some(part.text)
}
