//! Readers for the messages of a server, as far as a proxy must understand them.

use crate::Malformed;
use crate::frame::split_string;

/// The transaction status of a session, as in ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Outside a transaction.
    Idle,
    /// In a transaction.
    Transaction,
    /// In a failed transaction, which accepts only its end.
    Failed,
}

impl Status {
    /// Reads the body of a ReadyForQuery.
    ///
    /// # Errors
    /// A body that is not one of the three letters.
    #[inline]
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        match body {
            b"I" => Ok(Self::Idle),
            b"T" => Ok(Self::Transaction),
            b"E" => Ok(Self::Failed),
            _ => Err(Malformed::new("ReadyForQuery")),
        }
    }

    /// Returns the letter on the wire.
    pub fn letter(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Transaction => b'T',
            Self::Failed => b'E',
        }
    }
}

/// An Authentication message: how the client is to prove its identity, or the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// The client is logged in.
    Ok,
    /// Asks for the password in clear text.
    Cleartext,
    /// Asks for the password hashed with this salt.
    Md5([u8; 4]),
    /// Offers SASL mechanisms: strings, each with its zero byte, up to an empty one.
    Sasl(&'a [u8]),
    /// The server's answer in the middle of a SASL exchange.
    SaslContinue(&'a [u8]),
    /// The server's last message in a SASL exchange.
    SaslFinal(&'a [u8]),
    /// A method that Refrain does not support (Kerberos, SSPI, …), by its number.
    Other(u32),
}

impl<'a> Authentication<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// A body that is too short for its kind.
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let bad = Malformed::new("Authentication");
        let (code, rest) = body.split_first_chunk::<4>().ok_or(bad)?;
        Ok(match u32::from_be_bytes(*code) {
            0 => Self::Ok,
            3 => Self::Cleartext,
            5 => Self::Md5(rest.try_into().map_err(|_| bad)?),
            10 => Self::Sasl(rest),
            11 => Self::SaslContinue(rest),
            12 => Self::SaslFinal(rest),
            other => Self::Other(other),
        })
    }
}

/// Reads the process ID and the secret of a BackendKeyData: 4 bytes in protocol 3.0, 4 to 256 in
/// 3.2.
///
/// # Errors
/// A body that is too short or too long.
pub fn backend_key(body: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let bad = Malformed::new("BackendKeyData");
    let (pid, key) = body.split_first_chunk::<4>().ok_or(bad)?;
    let sound = (4..=crate::startup::CANCEL_KEY_BYTES_MAX).contains(&key.len());
    if sound { Ok((u32::from_be_bytes(*pid), key)) } else { Err(bad) }
}

/// Reads the name and the value of a ParameterStatus.
///
/// # Errors
/// A body that is not two strings.
pub fn parameter_status(body: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let bad = Malformed::new("ParameterStatus");
    let (name, rest) = split_string(body).ok_or(bad)?;
    let (value, rest) = split_string(rest).ok_or(bad)?;
    if rest.is_empty() { Ok((name, value)) } else { Err(bad) }
}

/// Returns the tag of a CommandComplete, without its zero byte.
pub fn command_tag(body: &[u8]) -> &[u8] {
    body.strip_suffix(&[0]).unwrap_or(body)
}

/// Iterates over the columns of a DataRow; `None` is a null. Stops at the end of a truncated body.
pub fn columns(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or(&[]);
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            return Some(None);
        };
        let (value, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(value))
    })
}

/// The parts of a RowDescription that [`row_shape`] copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowShape {
    /// Name and type of each column.
    Types,
    /// Name, type and type modifier of each column.
    Modifiers,
}

/// Appends the parts of a RowDescription that decide how rows are read: name and type of each
/// column, and the type modifier if asked for. The table of a column and its format are left out.
/// Appends nothing for any other message.
pub fn row_shape(out: &mut Vec<u8>, body: &[u8], what: RowShape) {
    let mut rest = body.get(2..).unwrap_or(&[]);
    while let Some((name, after)) = split_string(rest) {
        // Table (4), column (2), type (4), size (2), modifier (4), format (2).
        let Some((column, after)) = after.split_first_chunk::<18>() else { return };
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(&column[6..10]);
        if what == RowShape::Modifiers {
            out.extend_from_slice(&column[12..16]);
        }
        rest = after;
    }
}

/// The fields of an ErrorResponse or NoticeResponse ("Error and Notice Message Fields").
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Iterates over code and value of each field, in order; stops at a malformed field.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (&code, after) = rest.split_first()?;
            if code == 0 {
                return None;
            }
            let (value, after) = split_string(after)?;
            rest = after;
            Some((code, value))
        })
    }

    /// Splits the body into its complete fields and the rest. If only the beginning of a message
    /// has arrived, the rest is the beginning of a field.
    pub fn split(&self) -> (Fields<'a>, &'a [u8]) {
        let whole = self.iter().map(|(_, value)| value.len() + 2).sum();
        let (whole, rest) = self.0.split_at_checked(whole).unwrap_or((self.0, &[]));
        (Fields(whole), rest)
    }

    /// Returns the value of the first field with this code.
    pub fn get(&self, code: u8) -> Option<&'a [u8]> {
        self.iter().find(|(c, _)| *c == code).map(|(_, value)| value)
    }

    /// Returns the SQLSTATE; empty if the server sent none.
    pub fn sqlstate(&self) -> &'a [u8] {
        self.get(field::SQLSTATE).unwrap_or(b"")
    }

    /// True if the session ends with this error.
    pub fn is_fatal(&self) -> bool {
        // V is S without translation; PostgreSQL sends it since 9.6.
        let severity = self.get(field::SEVERITY_PLAIN).or_else(|| self.get(field::SEVERITY));
        matches!(severity, Some(b"FATAL" | b"PANIC"))
    }
}

/// Codes of the fields that Refrain reads or writes.
pub mod field {
    /// Severity, possibly translated.
    pub const SEVERITY: u8 = b'S';
    /// Severity, never translated.
    pub const SEVERITY_PLAIN: u8 = b'V';
    /// SQLSTATE.
    pub const SQLSTATE: u8 = b'C';
    /// The message.
    pub const MESSAGE: u8 = b'M';
    /// Position of the error in the query text.
    pub const POSITION: u8 = b'P';
    /// Call stack of the error, one line for each caller.
    pub const CONTEXT: u8 = b'W';
    /// Suggestion for solving the problem.
    pub const HINT: u8 = b'H';
    /// Details of the problem.
    pub const DETAIL: u8 = b'D';
    /// The function in PostgreSQL's source that raised the error.
    pub const ROUTINE: u8 = b'R';
    /// The file in PostgreSQL's source that raised the error.
    pub const FILE: u8 = b'F';
    /// The line in that file.
    pub const LINE: u8 = b'L';
    /// The schema that the error is about.
    pub const SCHEMA: u8 = b's';
    /// The table that the error is about.
    pub const TABLE: u8 = b't';
    /// The column that the error is about.
    pub const COLUMN: u8 = b'c';
    /// The constraint that the error is about.
    pub const CONSTRAINT: u8 = b'n';
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_and_by_code() {
        let fields = Fields(b"SERROR\0VERROR\0C42601\0Msyntax\0\0");
        assert_eq!(fields.sqlstate(), b"42601");
        assert_eq!(fields.get(field::MESSAGE), Some(&b"syntax"[..]));
        assert!(!fields.is_fatal());
        assert!(Fields(b"SFATAL\0\0").is_fatal());
        assert_eq!(Fields(b"Sbroken").iter().count(), 0);
    }

    #[test]
    fn the_beginning_of_an_error_is_fields_and_a_rest() {
        let split = |body: &'static [u8]| {
            let (fields, rest) = Fields(body).split();
            (fields.0, rest)
        };
        assert_eq!(split(b"C42601\0Msyn"), (&b"C42601\0"[..], &b"Msyn"[..]));
        assert_eq!(split(b"C42601\0M\0\0"), (&b"C42601\0M\0"[..], &b"\0"[..]));
        assert_eq!(split(b"C42601\0"), (&b"C42601\0"[..], &b""[..]));
        assert_eq!(split(b"C426"), (&b""[..], &b"C426"[..]));
    }

    #[test]
    fn bodies_that_are_too_short_are_malformed() {
        assert!(Status::read(b"X").is_err());
        assert!(Authentication::read(b"\0\0\0").is_err());
        assert!(Authentication::read(b"\0\0\0\x05abc").is_err());
        assert_eq!(Authentication::read(b"\0\0\0\x05abcd"), Ok(Authentication::Md5(*b"abcd")));
        assert!(backend_key(b"\0\0\0\x01abc").is_err());
        assert_eq!(backend_key(b"\0\0\0\x01abcd"), Ok((1, &b"abcd"[..])));
        assert!(parameter_status(b"a\0b").is_err());
        assert_eq!(parameter_status(b"a\0b\0"), Ok((&b"a"[..], &b"b"[..])));
    }

    #[test]
    fn a_shape_is_that_of_the_rows_and_not_of_the_table() {
        let column = |table: u8, kind: u8, format: u8| {
            let mut body = b"\0\x01id\0".to_vec();
            body.extend_from_slice(&[
                0, 0, 0, table, 0, 1, 0, 0, 0, kind, 0, 4, 255, 255, 255, 255, 0, format,
            ]);
            let mut shape = Vec::new();
            row_shape(&mut shape, &body, RowShape::Modifiers);
            shape
        };
        assert_eq!(column(1, 23, 0), column(2, 23, 1));
        assert_ne!(column(1, 23, 0), column(1, 20, 0));
    }

    #[test]
    fn a_modifier_counts_where_it_is_asked_for() {
        let shape = |modifier: u8, what| {
            let mut body = b"\0\x01id\0".to_vec();
            body.extend_from_slice(&[0, 0, 0, 1, 0, 1, 0, 0, 4, 19, 0, 4, 0, 0, 0, modifier, 0, 0]);
            let mut shape = Vec::new();
            row_shape(&mut shape, &body, what);
            shape
        };
        assert_eq!(shape(5, RowShape::Types), shape(6, RowShape::Types));
        assert_ne!(shape(5, RowShape::Modifiers), shape(6, RowShape::Modifiers));
    }

    #[test]
    fn columns_tell_null_from_empty() {
        let row = b"\0\x03\xff\xff\xff\xff\0\0\0\0\0\0\0\x01x";
        let read: Vec<_> = columns(row).collect();
        assert_eq!(read, [None, Some(&b""[..]), Some(&b"x"[..])]);
    }
}
