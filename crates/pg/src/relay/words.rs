//! An error of a server's, as far as it has come.
//!
//! An error may be as long as a row (a message that quotes a value, a context that quotes a statement), and is passed on
//! as rows are: what has not come streams. PostgreSQL writes the fields that say what happened before the long ones.

use refrain_wire::back::Fields;

/// An error as far as it has come.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// The fields that are there in whole.
    pub(crate) fields: Fields<'a>,
    /// What is there behind them: nothing, or the beginning of a field.
    rest: &'a [u8],
    /// Bytes that have not come.
    pub(crate) missing: usize,
}

impl<'a> Words<'a> {
    /// Reads the body of an error of which so many bytes have not come.
    pub(crate) fn read(body: &'a [u8], missing: usize) -> Self {
        let (fields, rest) = Fields(body).split();
        let rest = if missing > 0 { rest } else { &[] };
        Self { fields, rest, missing }
    }

    /// The same as the last that is said to a client: it does not hear more than what has come.
    pub(crate) fn cut(&self) -> Self {
        Self { rest: &[], missing: 0, ..*self }
    }

    /// Appends what follows the fields: as it came, or the end alone where more is not to come.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        match self.missing {
            0 => out.push(0),
            _ => out.extend_from_slice(self.rest),
        }
    }
}
