//! Functions of texts and floats that SQLite does not have, or has with another meaning.
//!
//! As those of [`compute`](crate::compute) they get no NULL, and raise PostgreSQL's errors. Letters
//! are those of ASCII where their case matters.

use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::arguments::{real, text, whole};
use crate::failure::{Failure, state};

type Made = Result<Any, Failure>;

/// The code of a function.
type MadeFunction = fn(&Call<'_>) -> Made;

/// The functions, with their numbers of arguments; all give the same for the same.
pub(crate) const MORE: &[(&str, i32, MadeFunction, bool)] = &[
    ("refrain_initcap", 1, initcap, true),
    ("refrain_translate", 3, translate, true),
    ("refrain_split_part", 3, split_part, true),
    ("refrain_ascii", 1, ascii, true),
    ("refrain_chr", 1, chr, true),
    ("refrain_hex", 2, hex, true),
    ("refrain_sign", 1, |call| Ok(Any::Real(sign(real(call, 0)?))), true),
    ("refrain_sqrt", 1, sqrt, true),
    ("refrain_power", 2, power, true),
    ("refrain_exp", 1, exp, true),
    ("refrain_ln", 1, |call| logarithm(call, f64::ln), true),
    ("refrain_log", 1, |call| logarithm(call, f64::log10), true),
];

/// Writes each word with a capital. A word is a run of letters and digits.
fn initcap(call: &Call<'_>) -> Made {
    let mut inside = false;
    let letter = |letter: char| {
        let made = match inside {
            true => letter.to_ascii_lowercase(),
            false => letter.to_ascii_uppercase(),
        };
        inside = letter.is_alphanumeric();
        made
    };
    Ok(Any::Text(text(call, 0)?.chars().map(letter).collect()))
}

/// Replaces each letter of a set by that at its place in another one, or by none.
fn translate(call: &Call<'_>) -> Made {
    let (given, from, to) = (text(call, 0)?, text(call, 1)?, text(call, 2)?);
    let letter = |letter: char| match from.chars().position(|known| known == letter) {
        Some(place) => to.chars().nth(place),
        None => Some(letter),
    };
    Ok(Any::Text(given.chars().filter_map(letter).collect()))
}

/// Returns a part of a text, counted from 1, or from the end by a negative number.
fn split_part(call: &Call<'_>) -> Made {
    let (given, between, wanted) = (text(call, 0)?, text(call, 1)?, whole(call, 2)?);
    if wanted == 0 {
        return Err(Failure::new("22023", "field position must not be zero"));
    }
    let parts: Vec<&str> = match between {
        "" => vec![given],
        between => given.split(between).collect(),
    };
    let place = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
    let found = match wanted > 0 {
        true => parts.get(place - 1),
        false => parts.len().checked_sub(place).and_then(|place| parts.get(place)),
    };
    Ok(Any::Text(found.copied().unwrap_or_default().to_owned()))
}

/// Returns the number of the first character; 0 for an empty text.
fn ascii(call: &Call<'_>) -> Made {
    let first = text(call, 0)?.chars().next();
    Ok(Any::Integer(first.map_or(0, |letter| i64::from(u32::from(letter)))))
}

fn chr(call: &Call<'_>) -> Made {
    let number = whole(call, 0)?;
    let refused = |message: String| Err(Failure::new("54000", message));
    if number < 0 {
        return Err(Failure::new("22023", "character number must be positive"));
    }
    if number == 0 {
        return refused("null character not permitted".to_owned());
    }
    match u32::try_from(number).ok().and_then(char::from_u32) {
        Some(letter) => Ok(Any::Text(letter.to_string())),
        None if number > 0x0010_FFFF => {
            refused(format!("requested character too large for encoding: {number}"))
        }
        None => refused(format!("requested character not valid for encoding: {number}")),
    }
}

/// Writes an integer to the base of sixteen. The first argument is the number of its bytes.
fn hex(call: &Call<'_>) -> Made {
    let (bytes, number) = (whole(call, 0)?, whole(call, 1)?);
    Ok(Any::Text(match bytes {
        4 => format!("{:x}", number as i32),
        _ => format!("{number:x}"),
    }))
}

fn sign(number: f64) -> f64 {
    match number {
        number if number > 0.0 => 1.0,
        number if number < 0.0 => -1.0,
        _ => 0.0,
    }
}

fn sqrt(call: &Call<'_>) -> Made {
    let number = real(call, 0)?;
    if number < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(Failure::new("2201F", message));
    }
    Ok(Any::Real(number.sqrt()))
}

/// Returns a power, with the errors of `dpow` in the server's float.c.
fn power(call: &Call<'_>) -> Made {
    let (base, exponent) = (real(call, 0)?, real(call, 1)?);
    if base == 0.0 && exponent < 0.0 {
        return Err(Failure::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(Failure::new("2201F", message));
    }
    let finite = base.is_finite() && exponent.is_finite();
    in_range(base.powf(exponent), finite, base == 0.0)
}

fn exp(call: &Call<'_>) -> Made {
    let number = real(call, 0)?;
    in_range(number.exp(), number.is_finite(), false)
}

/// Checks the result of finite numbers; `may_be_zero` is true if zero is exact.
fn in_range(made: f64, finite: bool, may_be_zero: bool) -> Made {
    let word = match made {
        made if finite && made.is_infinite() => "overflow",
        made if finite && made == 0.0 && !may_be_zero => "underflow",
        _ => return Ok(Any::Real(made)),
    };
    Err(Failure::new(state::TOO_LARGE_NUMBER, format!("value out of range: {word}")))
}

fn logarithm(call: &Call<'_>, of: fn(f64) -> f64) -> Made {
    let number = real(call, 0)?;
    let refused =
        |what: &str| Err(Failure::new("2201E", format!("cannot take logarithm of {what}")));
    match number {
        0.0 => refused("zero"),
        number if number < 0.0 => refused("a negative number"),
        number => Ok(Any::Real(of(number))),
    }
}
