//! Prepared statements: the head of COM_STMT_PREPARE's reply, and the head of an execution.
//!
//! The values of an execution are not read. Their types may be left out, and then those of the
//! execution before count; so a proxy has to know where the types stand.

use crate::Malformed;
use crate::capability::Capabilities;
use crate::fields::{Fields, put_integer};
use crate::reply::first;

/// The number with which a MariaDB client names the statement that it prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;

/// Returns a number of parameters; `None` if no statement can have as many.
pub(crate) fn parameters(count: u64) -> Option<u16> {
    u16::try_from(count).ok()
}

/// Returns the length of a bitmap with a bit for each parameter, in bytes.
pub(crate) fn bitmap_bytes(parameters: u16) -> usize {
    usize::from(parameters).div_ceil(8)
}

/// Skips the type of each parameter, and its name if there are names.
pub(crate) fn skip_types(fields: &mut Fields<'_>, parameters: u16, named: bool) -> Option<()> {
    if !named {
        return fields.bytes(2 * usize::from(parameters)).map(drop);
    }
    for _ in 0..parameters {
        fields.u16()?;
        fields.string()?;
    }
    Some(())
}

/// The head of COM_STMT_PREPARE's reply (MySQL, "COM_STMT_PREPARE Response"; MariaDB,
/// "COM_STMT_PREPARE"). It begins as an OK packet does, and is none: it has no flags.
///
/// The definitions of the parameters follow, and then those of the columns. Behind each of the two
/// groups comes an EOF packet, unless there is nothing to define or DEPRECATE_EOF is agreed on. It
/// comes as well where the definitions are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    /// The statement's number.
    pub statement: u32,
    /// Number of columns.
    pub columns: u16,
    /// Number of parameters.
    pub parameters: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// Whether definitions follow. They may be left out under
    /// [`Capabilities::OPTIONAL_RESULTSET_METADATA`].
    pub defined: bool,
}

impl PrepareOk {
    /// Reads a payload.
    ///
    /// # Errors
    /// A payload that does not begin with [`first::OK`], or has another length.
    pub fn read(payload: &[u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        Self::fields(payload, capabilities).ok_or(Malformed::new("COM_STMT_PREPARE_OK"))
    }

    fn fields(payload: &[u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields(payload);
        if fields.u8()? != first::OK {
            return None;
        }
        let statement = fields.u32()?;
        let (columns, parameters) = (fields.u16()?, fields.u16()?);
        fields.u8()?;
        let warnings = fields.u16()?;
        let optional = capabilities.has(Capabilities::OPTIONAL_RESULTSET_METADATA);
        let defined = if optional { fields.u8()? != 0 } else { true };
        let whole = fields.is_empty();
        whole.then_some(Self { statement, columns, parameters, warnings, defined })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.push(first::OK);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if capabilities.has(Capabilities::OPTIONAL_RESULTSET_METADATA) {
            out.push(u8::from(self.defined));
        }
    }
}

/// Returns the number of the statement that a command of prepared statements names, and the rest of
/// its body; `None` if it is incomplete. The number stands at the same place in all of them.
#[inline]
pub fn statement(body: &[u8]) -> Option<(u32, &[u8])> {
    let mut fields = Fields(body);
    Some((fields.u32()?, fields.rest()))
}

/// The head of an execution (MySQL, "COM_STMT_EXECUTE"; MariaDB, "COM_STMT_EXECUTE").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The statement's number.
    pub statement: u32,
    /// The kind of cursor to open, and [`Execute::PARAMETER_COUNT_AVAILABLE`].
    pub flags: u8,
    /// Number of values: the statement's parameters, and attributes of the query behind them.
    pub parameters: u16,
    /// A bit for each value that is NULL, from the lowest bit of the first byte on. Empty if there
    /// are no values.
    pub nulls: &'a [u8],
    /// Types of the values, as they came: two bytes for each, and a name with its length under
    /// [`Capabilities::QUERY_ATTRIBUTES`]. `None` if they are those of the execution before.
    pub types: Option<&'a [u8]>,
    /// The values, as far as they are there. A value that came by COM_STMT_SEND_LONG_DATA is not
    /// among them.
    pub values: &'a [u8],
}

impl<'a> Execute<'a> {
    /// A cursor for reading, whose rows come by COM_STMT_FETCH.
    pub const CURSOR_READ_ONLY: u8 = 1;
    /// The number of values stands in front of them.
    pub const PARAMETER_COUNT_AVAILABLE: u8 = 8;

    /// Reads the body of a command for a statement with as many parameters. The body may have
    /// begun to arrive: then `None` says that the head is incomplete.
    ///
    /// Any byte but zero in front of the types says that there are types. The number of iterations
    /// is not read, as the servers do not read it.
    ///
    /// # Errors
    /// A complete body that ends before its head does, or a number of values below that of the
    /// parameters.
    #[inline]
    pub fn read(
        body: &'a [u8],
        parameters: u16,
        capabilities: Capabilities,
        complete: bool,
    ) -> Result<Option<Self>, Malformed> {
        let bad = Malformed::new("COM_STMT_EXECUTE");
        let attributes = capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        match Self::fields(body, parameters, attributes) {
            Some(head) if head.parameters < parameters => Err(bad),
            Some(head) => Ok(Some(head)),
            None if complete => Err(bad),
            None => Ok(None),
        }
    }

    fn fields(body: &'a [u8], mut parameters: u16, attributes: bool) -> Option<Self> {
        let mut fields = Fields(body);
        let (statement, flags) = (fields.u32()?, fields.u8()?);
        fields.u32()?;
        if attributes && flags & Self::PARAMETER_COUNT_AVAILABLE != 0 {
            parameters = self::parameters(fields.integer()?)?;
        }
        let mut head =
            Self { statement, flags, parameters, nulls: &[], types: None, values: fields.rest() };
        if parameters == 0 {
            return Some(head);
        }
        head.nulls = fields.bytes(bitmap_bytes(parameters))?;
        let has_types = fields.u8()? != 0;
        if has_types {
            let start = fields.rest();
            skip_types(&mut fields, parameters, attributes)?;
            head.types = start.get(..start.len() - fields.rest().len());
        }
        head.values = fields.rest();
        Some(head)
    }

    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.push(self.flags);
        out.extend_from_slice(&1u32.to_le_bytes());
        let attributes = capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        if attributes && self.flags & Self::PARAMETER_COUNT_AVAILABLE != 0 {
            put_integer(out, u64::from(self.parameters));
        }
        if self.parameters > 0 {
            out.extend_from_slice(self.nulls);
            out.push(u8::from(self.types.is_some()));
            out.extend_from_slice(self.types.unwrap_or(&[]));
        }
        out.extend_from_slice(self.values);
    }
}

/// The head of an execution with several sets of values (MariaDB, "COM_STMT_BULK_EXECUTE").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkExecute<'a> {
    /// The statement's number.
    pub statement: u32,
    /// Flags, such as [`BulkExecute::SEND_TYPES_TO_SERVER`].
    pub flags: u16,
    /// Types of the values: two bytes for each. `None` if they are those of the execution before.
    pub types: Option<&'a [u8]>,
    /// The sets of values, as far as they are there.
    pub values: &'a [u8],
}

impl<'a> BulkExecute<'a> {
    /// The client wants the AUTO_INCREMENT value of each set.
    pub const SEND_UNIT_RESULTS: u16 = 64;
    /// Types stand in front of the values.
    pub const SEND_TYPES_TO_SERVER: u16 = 128;

    /// Reads the body of a command for a statement with as many parameters. The body may have
    /// begun to arrive: then `None` says that the head is incomplete.
    ///
    /// # Errors
    /// A complete body that ends before its head does.
    pub fn read(
        body: &'a [u8],
        parameters: u16,
        complete: bool,
    ) -> Result<Option<Self>, Malformed> {
        let head = Self::fields(body, parameters);
        if head.is_none() && complete {
            return Err(Malformed::new("COM_STMT_BULK_EXECUTE"));
        }
        Ok(head)
    }

    fn fields(body: &'a [u8], parameters: u16) -> Option<Self> {
        let mut fields = Fields(body);
        let (statement, flags) = (fields.u32()?, fields.u16()?);
        let types = if flags & Self::SEND_TYPES_TO_SERVER == 0 {
            None
        } else {
            Some(fields.bytes(2 * usize::from(parameters))?)
        };
        Some(Self { statement, flags, types, values: fields.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Capabilities = Capabilities::QUERY_ATTRIBUTES;

    #[test]
    fn a_prepared_statement_as_in_the_manual() {
        let payload = b"\x00\x01\x00\x00\x00\x01\x00\x02\x00\x00\x00\x00";
        let due = PrepareOk { statement: 1, columns: 1, parameters: 2, warnings: 0, defined: true };
        assert_eq!(PrepareOk::read(payload, Capabilities::NONE), Ok(due));
        assert!(PrepareOk::read(payload, Capabilities::OPTIONAL_RESULTSET_METADATA).is_err());
        for cut in 0..payload.len() {
            assert!(PrepareOk::read(&payload[..cut], Capabilities::NONE).is_err());
        }
        assert!(PrepareOk::read(b"\xff\x48\x04#HY000No tab", Capabilities::NONE).is_err());
    }

    #[test]
    fn an_execution_as_in_the_manual() {
        let body = b"\x01\0\0\0\x00\x01\0\0\0\x00\x01\x0f\x00\x03foo";
        let due = Execute {
            statement: 1,
            flags: 0,
            parameters: 1,
            nulls: b"\0",
            types: Some(b"\x0f\0"),
            values: b"\x03foo",
        };
        let read = |body, complete| Execute::read(body, 1, Capabilities::NONE, complete);
        assert_eq!(read(body, true), Ok(Some(due)));
        for cut in 0..13 {
            assert_eq!(read(&body[..cut], false), Ok(None), "cut at {cut}");
            assert!(read(&body[..cut], true).is_err(), "cut at {cut}");
        }
        assert_eq!(read(&body[..14], false), Ok(Some(Execute { values: b"\x03", ..due })));
        assert_eq!(statement(body).map(|(number, _)| number), Some(1));
    }

    #[test]
    fn types_may_be_left_out() {
        let body = b"\x01\0\0\0\x00\x01\0\0\0\x04\x01\x00\x03foo";
        let head = Execute::read(body, 9, Capabilities::NONE, true).expect("a head");
        let head = head.expect("all of it");
        assert_eq!(
            (head.nulls, head.types, head.values),
            (&b"\x04\x01"[..], None, &b"\x03foo"[..])
        );
    }

    #[test]
    fn attributes_stand_behind_the_parameters() {
        // As mysql2 of Node sends it: the number of values, and a name behind each type.
        let body = b"\x04\0\0\0\x08\x01\0\0\0\x01\x00\x01\xfd\x00\x00\x05admin";
        let head = Execute::read(body, 1, NEW, true).expect("a head").expect("all of it");
        assert_eq!((head.parameters, head.types), (1, Some(&b"\xfd\0\0"[..])));
        assert_eq!(head.values, b"\x05admin");
        let none = b"\x04\0\0\0\x08\x01\0\0\0\x00";
        assert!(Execute::read(none, 1, NEW, true).is_err(), "fewer values than parameters");
        let head = Execute::read(none, 0, NEW, true).expect("a head").expect("all of it");
        assert_eq!((head.parameters, head.values), (0, &b""[..]));
    }

    #[test]
    fn a_bulk_execution_has_its_types_if_a_flag_says_so() {
        let head = BulkExecute::read(b"\x01\0\0\0\x80\x00\x03\x00\x00\x07\0\0\0", 1, true);
        let head = head.expect("a head").expect("all of it");
        assert_eq!((head.types, head.values), (Some(&b"\x03\0"[..]), &b"\x00\x07\0\0\0"[..]));
        let head = BulkExecute::read(b"\x01\0\0\0\x00\x00", 1, true).expect("a head");
        assert_eq!(head.expect("all of it").types, None);
        assert_eq!(BulkExecute::read(b"\x01\0\0\0\x80\x00\x03", 1, false), Ok(None));
        assert!(BulkExecute::read(b"\x01\0\0\0\x80\x00\x03", 1, true).is_err());
    }
}
