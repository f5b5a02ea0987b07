//! The reader of a Bind as a whole: the console has nobody to forward it to.

use refrain_pg_wire::{Malformed, front};

use super::reply::Format;

/// A Bind.
pub(super) struct Bound<'a> {
    pub(super) portal: &'a [u8],
    pub(super) statement: &'a [u8],
    /// Number of parameters.
    pub(super) parameters: u16,
    /// Codes of the formats of the rows.
    codes: Vec<u16>,
}

impl<'a> Bound<'a> {
    /// Reads a whole body.
    ///
    /// # Errors
    /// A body that does not hold what a Bind has.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let bad = Malformed::new("Bind");
        let names = front::Bind::read(body, true)?.ok_or(bad)?;
        let mut rest = body.get(names.names_bytes()..).ok_or(bad)?;
        // The formats of the parameters: the console has none, so no format counts.
        numbers(&mut rest).ok_or(bad)?;
        let parameters = number(&mut rest).ok_or(bad)?;
        for _ in 0..parameters {
            let (length, values) = rest.split_first_chunk::<4>().ok_or(bad)?;
            // -1 stands for null, which has no bytes.
            let bytes = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            rest = values.get(bytes..).ok_or(bad)?;
        }
        let codes = numbers(&mut rest).ok_or(bad)?;
        let front::Bind { portal, statement } = names;
        if rest.is_empty() { Ok(Self { portal, statement, parameters, codes }) } else { Err(bad) }
    }

    /// Returns the format of each of this many columns.
    ///
    /// # Errors
    /// With the SQLSTATE and the message, if there are neither none, one nor as many codes, or a
    /// code is unknown.
    pub(super) fn formats(&self, columns: usize) -> Result<Vec<Format>, (&'static str, String)> {
        let format = |code: &u16| {
            let unknown = || ("22023", format!("unsupported format code: {code}"));
            Format::of(*code).ok_or_else(unknown)
        };
        match &self.codes[..] {
            [] => Ok(vec![Format::Text; columns]),
            [all] => Ok(vec![format(all)?; columns]),
            each if each.len() == columns => each.iter().map(format).collect(),
            each => Err((
                "08P01",
                format!(
                    "bind message has {} result formats but query has {columns} columns",
                    each.len()
                ),
            )),
        }
    }
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    let (number, after) = rest.split_first_chunk::<2>()?;
    *rest = after;
    Some(u16::from_be_bytes(*number))
}

/// Reads a number and as many numbers.
fn numbers(rest: &mut &[u8]) -> Option<Vec<u16>> {
    let count = number(rest)?;
    (0..count).map(|_| number(rest)).collect()
}
