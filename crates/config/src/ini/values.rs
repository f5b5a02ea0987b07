//! The kinds of values in a `pgbouncer.ini`: how PgBouncer reads each, and what it is in Refrain.

use std::path::Path;
use std::time::Duration;

use crate::value::{Given, Value};

/// The meaning of the number zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// The number, as elsewhere.
    Number,
    /// The meaning of this word in Refrain.
    Is(&'static str),
    /// The key is not set.
    Unset,
}

/// A kind of value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text; an empty one is none.
    Text,
    /// A text that may be empty.
    AnyText,
    /// A path, which may be relative to the working directory; an empty one is none.
    Path,
    /// Names, with commas or spaces between them.
    Names,
    /// A word, in letters of either case.
    Word,
    /// A number of which zero means no.
    Flag,
    /// A whole number.
    Count(Zero),
    /// Seconds, which may have a fraction.
    Seconds(Zero),
    /// Milliseconds.
    Milliseconds(Zero),
    /// Permissions of a file, as a number.
    Mode,
}

/// The place in which a value stands: numbers are read in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// `[pgbouncer]`, where `0x10` and `010` are numbers of other bases.
    Program,
    /// A connection string, where a negative number stands for one that is not set.
    Connection,
}

impl Kind {
    /// Reads a value; `None` if the value means that it is not set.
    ///
    /// # Errors
    /// What was expected in place of the value.
    pub(super) fn read(
        self,
        text: &str,
        within: Within,
        directory: &Path,
    ) -> Result<Option<Given>, &'static str> {
        let whole = || integer(text, within).ok_or("expected a whole number");
        Ok(match self {
            Self::Text => (!text.is_empty()).then(|| given(text)),
            Self::AnyText => Some(given(text)),
            Self::Path => (!text.is_empty()).then(|| absolute(text, directory)),
            Self::Names => Some(list(names(text))),
            Self::Word => Some(given(&text.to_ascii_lowercase())),
            Self::Flag => Some(Given::Truth(whole()? != 0)),
            Self::Mode => Some(given(&format!("{:04o}", whole()?))),
            Self::Count(zero) => match whole()? {
                0 => zero.given(Given::Whole(0)),
                number if number < 0 && within == Within::Connection => None,
                number => Some(Given::Whole(number)),
            },
            Self::Seconds(zero) => {
                let seconds = seconds(text, within).ok_or("expected a number of seconds")?;
                time(seconds * 1000.0, zero)
            }
            Self::Milliseconds(zero) => match whole()? {
                number if number < 0 => return Err("expected a number of milliseconds"),
                number => time(number as f64, zero),
            },
        })
    }
}

impl Zero {
    fn given(self, zero: Given) -> Option<Given> {
        match self {
            Self::Number => Some(zero),
            Self::Is(word) => match word.parse() {
                Ok(number) => Some(Given::Whole(number)),
                Err(_) => Some(given(word)),
            },
            Self::Unset => None,
        }
    }
}

/// Makes a time of milliseconds. What is more than none is at least a millisecond.
fn time(milliseconds: f64, zero: Zero) -> Option<Given> {
    if milliseconds < 0.0 {
        return None;
    }
    let rounded = milliseconds.round().max(f64::from(u8::from(milliseconds > 0.0)));
    let time = given(&Duration::from_millis(rounded as u64).show());
    if rounded > 0.0 { Some(time) } else { zero.given(given("0ms")) }
}

/// Makes a value of a text.
pub(super) fn given(text: &str) -> Given {
    Given::Text(text.to_owned())
}

/// Makes a list of texts.
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Given {
    Given::List(texts.into_iter().map(given).collect())
}

/// Splits a list as PgBouncer does: at commas and white space.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c == ',' || c.is_ascii_whitespace();
    text.split(is_between).filter(|name| !name.is_empty())
}

/// Makes a path absolute.
pub(super) fn absolute(text: &str, directory: &Path) -> Given {
    given(&directory.join(text).display().to_string())
}

/// Reads a whole number, in `[pgbouncer]` as C's `strtol` does with base 0.
pub(super) fn integer(text: &str, within: Within) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let number = match (within, hexadecimal) {
        (Within::Program, Some(digits)) => i64::from_str_radix(digits, 16),
        (Within::Program, None) if digits.len() > 1 && digits.starts_with('0') => {
            i64::from_str_radix(digits, 8)
        }
        _ => digits.parse(),
    };
    number.ok().map(|number| sign * number)
}

/// Reads a number of seconds: whole ones in a connection string.
fn seconds(text: &str, within: Within) -> Option<f64> {
    match within {
        Within::Connection => integer(text, within).map(|number| number as f64),
        Within::Program => {
            let plain = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
            let number = text.parse::<f64>().ok().filter(|_| plain)?;
            (number.is_finite() && number >= 0.0).then_some(number)
        }
    }
}
