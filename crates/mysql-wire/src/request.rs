//! Commands of a client: their first byte and what follows it.

use crate::Malformed;
use crate::capability::Capabilities;
use crate::command;
use crate::fields::{Fields, put_null_terminated, put_string};
use crate::handshake::{Attributes, put_short, short_proof};
use crate::prepared;
use crate::value;

/// COM_SET_OPTION's number that allows several statements in a text.
pub const MULTI_STATEMENTS_ON: u16 = 0;
/// COM_SET_OPTION's number that forbids them.
pub const MULTI_STATEMENTS_OFF: u16 = 1;

/// A command (MySQL, "Text Protocol", "Utility Commands" and "Prepared Statements"; MariaDB, "Text
/// Protocol" and "Binary Protocol").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// COM_QUIT.
    Quit,
    /// COM_INIT_DB: the database.
    InitDb(&'a [u8]),
    /// COM_QUERY.
    Query(Query<'a>),
    /// COM_FIELD_LIST.
    FieldList {
        /// The table.
        table: &'a [u8],
        /// The pattern that names of columns have to match.
        wildcard: &'a [u8],
    },
    /// COM_STATISTICS.
    Statistics,
    /// COM_PROCESS_KILL: the session's number.
    ProcessKill(u32),
    /// COM_PING.
    Ping,
    /// COM_CHANGE_USER.
    ChangeUser(ChangeUser<'a>),
    /// COM_STMT_PREPARE: the text.
    StmtPrepare(&'a [u8]),
    /// COM_STMT_EXECUTE, for [`prepared::Execute`]: its fields depend on the statement.
    StmtExecute(&'a [u8]),
    /// COM_STMT_BULK_EXECUTE, for [`prepared::BulkExecute`]: its fields depend on the statement.
    StmtBulkExecute(&'a [u8]),
    /// COM_STMT_SEND_LONG_DATA. It has no reply, not even if it fails.
    StmtSendLongData {
        /// The statement's number.
        statement: u32,
        /// The parameter's number, from 0 on.
        parameter: u16,
        /// Bytes that are appended to the parameter's value.
        data: &'a [u8],
    },
    /// COM_STMT_CLOSE: the statement's number. It has no reply.
    StmtClose(u32),
    /// COM_STMT_RESET: the statement's number.
    StmtReset(u32),
    /// COM_STMT_FETCH.
    StmtFetch {
        /// The statement's number.
        statement: u32,
        /// The most rows to send.
        rows: u32,
    },
    /// COM_SET_OPTION: [`MULTI_STATEMENTS_ON`], [`MULTI_STATEMENTS_OFF`], or a number that the
    /// server refuses.
    SetOption(u16),
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// Another command: its byte, and what follows it.
    Other(u8, &'a [u8]),
}

impl<'a> Request<'a> {
    /// Reads the payload of a packet with the sequence id 0. As in the servers, bytes behind the
    /// fields do not matter.
    ///
    /// # Errors
    /// A payload that ends before its fields do, or an empty one. Servers reply with an error, and
    /// the session goes on.
    #[inline]
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        let (&command, body) = payload.split_first().ok_or(Malformed::new("empty command"))?;
        Self::fields(command, body, capabilities).ok_or(Malformed::new(command_name(command)))
    }

    fn fields(command: u8, body: &'a [u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields(body);
        Some(match command {
            command::QUERY => Self::Query(Query::fields(body, capabilities)?),
            command::STMT_EXECUTE => Self::StmtExecute(body),
            command::STMT_PREPARE => Self::StmtPrepare(body),
            command::STMT_CLOSE => Self::StmtClose(fields.u32()?),
            command::STMT_RESET => Self::StmtReset(fields.u32()?),
            command::STMT_FETCH => {
                Self::StmtFetch { statement: fields.u32()?, rows: fields.u32()? }
            }
            command::STMT_SEND_LONG_DATA => Self::StmtSendLongData {
                statement: fields.u32()?,
                parameter: fields.u16()?,
                data: fields.rest(),
            },
            command::STMT_BULK_EXECUTE => Self::StmtBulkExecute(body),
            command::QUIT => Self::Quit,
            command::PING => Self::Ping,
            command::INIT_DB => Self::InitDb(body),
            command::FIELD_LIST => {
                Self::FieldList { table: fields.null_terminated()?, wildcard: fields.rest() }
            }
            command::STATISTICS => Self::Statistics,
            command::PROCESS_KILL => Self::ProcessKill(fields.u32()?),
            command::CHANGE_USER => Self::ChangeUser(ChangeUser::fields(fields, capabilities)?),
            command::SET_OPTION => Self::SetOption(fields.u16()?),
            command::RESET_CONNECTION => Self::ResetConnection,
            other => Self::Other(other, body),
        })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.push(self.command());
        match *self {
            Self::InitDb(bytes)
            | Self::StmtPrepare(bytes)
            | Self::StmtExecute(bytes)
            | Self::StmtBulkExecute(bytes)
            | Self::Other(_, bytes) => out.extend_from_slice(bytes),
            Self::Query(query) => query.write(out, capabilities),
            Self::FieldList { table, wildcard } => {
                put_null_terminated(out, table);
                out.extend_from_slice(wildcard);
            }
            Self::ProcessKill(number) | Self::StmtClose(number) | Self::StmtReset(number) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::ChangeUser(change) => change.write(out, capabilities),
            Self::StmtSendLongData { statement, parameter, data } => {
                out.extend_from_slice(&statement.to_le_bytes());
                out.extend_from_slice(&parameter.to_le_bytes());
                out.extend_from_slice(data);
            }
            Self::StmtFetch { statement, rows } => {
                out.extend_from_slice(&statement.to_le_bytes());
                out.extend_from_slice(&rows.to_le_bytes());
            }
            Self::SetOption(option) => out.extend_from_slice(&option.to_le_bytes()),
            Self::Quit | Self::Statistics | Self::Ping | Self::ResetConnection => {}
        }
    }

    /// Returns the first byte of the payload.
    pub fn command(&self) -> u8 {
        match *self {
            Self::Quit => command::QUIT,
            Self::InitDb(_) => command::INIT_DB,
            Self::Query(_) => command::QUERY,
            Self::FieldList { .. } => command::FIELD_LIST,
            Self::Statistics => command::STATISTICS,
            Self::ProcessKill(_) => command::PROCESS_KILL,
            Self::Ping => command::PING,
            Self::ChangeUser(_) => command::CHANGE_USER,
            Self::StmtPrepare(_) => command::STMT_PREPARE,
            Self::StmtExecute(_) => command::STMT_EXECUTE,
            Self::StmtBulkExecute(_) => command::STMT_BULK_EXECUTE,
            Self::StmtSendLongData { .. } => command::STMT_SEND_LONG_DATA,
            Self::StmtClose(_) => command::STMT_CLOSE,
            Self::StmtReset(_) => command::STMT_RESET,
            Self::StmtFetch { .. } => command::STMT_FETCH,
            Self::SetOption(_) => command::SET_OPTION,
            Self::ResetConnection => command::RESET_CONNECTION,
            Self::Other(command, _) => command,
        }
    }
}

/// Returns the name of a command that has fields, for messages.
fn command_name(command: u8) -> &'static str {
    match command {
        command::QUERY => "COM_QUERY",
        command::FIELD_LIST => "COM_FIELD_LIST",
        command::PROCESS_KILL => "COM_PROCESS_KILL",
        command::CHANGE_USER => "COM_CHANGE_USER",
        command::STMT_SEND_LONG_DATA => "COM_STMT_SEND_LONG_DATA",
        command::STMT_CLOSE => "COM_STMT_CLOSE",
        command::STMT_RESET => "COM_STMT_RESET",
        command::STMT_FETCH => "COM_STMT_FETCH",
        command::SET_OPTION => "COM_SET_OPTION",
        _ => "command",
    }
}

/// A text to run (MySQL, "COM_QUERY"; MariaDB, "COM_QUERY").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    /// The block in front of the text, as it came: number of values, number of sets, and the
    /// values with their names. Empty without [`Capabilities::QUERY_ATTRIBUTES`].
    pub attributes: &'a [u8],
    /// The text, in the client's character set.
    pub text: &'a [u8],
}

impl<'a> Query<'a> {
    /// A block without a value.
    const NO_ATTRIBUTES: &'static [u8] = b"\x00\x01";

    fn fields(body: &'a [u8], capabilities: Capabilities) -> Option<Self> {
        if !capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            return Some(Self { attributes: &[], text: body });
        }
        let length = attributes_bytes(body)?;
        let (attributes, text) = body.split_at_checked(length)?;
        Some(Self { attributes, text })
    }

    fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        if capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            let none = self.attributes.is_empty();
            out.extend_from_slice(if none { Self::NO_ATTRIBUTES } else { self.attributes });
        }
        out.extend_from_slice(self.text);
    }
}

/// Returns the length of the block in front of a text.
fn attributes_bytes(body: &[u8]) -> Option<usize> {
    let mut fields = Fields(body);
    let count = prepared::parameters(fields.integer()?)?;
    let sets = fields.integer()?;
    if sets != 1 {
        return None;
    }
    if count > 0 {
        let nulls = fields.bytes(prepared::bitmap_bytes(count))?;
        let bound = fields.u8()?;
        if bound != 1 {
            return None; // nothing was sent before that could have bound them
        }
        let mut types = fields;
        prepared::skip_types(&mut fields, count, true)?;
        for number in 0..usize::from(count) {
            let [kind, _] = types.array()?;
            types.string()?;
            let is_null = nulls.get(number / 8)? >> (number % 8) & 1 == 1;
            if !is_null {
                fields = Fields(value::split(kind, fields.rest())?.1);
            }
        }
    }
    Some(body.len() - fields.rest().len())
}

/// A login as another user on the same connection, which begins a new session (MySQL,
/// "COM_CHANGE_USER"; MariaDB, "COM_CHANGE_USER"). Its replies are those of a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The user.
    pub user: &'a [u8],
    /// The proof of the password, for the nonce of the greeting.
    pub proof: &'a [u8],
    /// The default database; empty for none.
    pub database: &'a [u8],
    /// The id of the client's collation, if the client sends one.
    pub collation: Option<u16>,
    /// The plugin, under [`Capabilities::PLUGIN_AUTH`].
    pub plugin: &'a [u8],
    /// Attributes of the connection, under [`Capabilities::CONNECT_ATTRS`].
    pub attributes: Attributes<'a>,
}

impl<'a> ChangeUser<'a> {
    fn fields(mut fields: Fields<'a>, capabilities: Capabilities) -> Option<Self> {
        let mut change = Self {
            user: fields.null_terminated()?,
            proof: short_proof(&mut fields, capabilities)?,
            database: fields.null_terminated()?,
            ..Self::default()
        };
        // Clients before MySQL 5.1 end here.
        if fields.is_empty() {
            return Some(change);
        }
        change.collation = Some(fields.u16()?);
        if capabilities.has(Capabilities::PLUGIN_AUTH) {
            change.plugin = fields.until_null_or_end();
        }
        if capabilities.has(Capabilities::CONNECT_ATTRS) && !fields.is_empty() {
            change.attributes = Attributes(fields.string()?);
        }
        Some(change)
    }

    fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        put_null_terminated(out, self.user);
        if capabilities.has(Capabilities::SECURE_CONNECTION) {
            put_short(out, self.proof);
        } else {
            put_null_terminated(out, self.proof);
        }
        put_null_terminated(out, self.database);
        let Some(collation) = self.collation else { return };
        out.extend_from_slice(&collation.to_le_bytes());
        if capabilities.has(Capabilities::PLUGIN_AUTH) {
            put_null_terminated(out, self.plugin);
        }
        if capabilities.has(Capabilities::CONNECT_ATTRS) {
            put_string(out, self.attributes.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Capabilities = Capabilities::QUERY_ATTRIBUTES;

    fn read(payload: &[u8]) -> Result<Request<'_>, Malformed> {
        Request::read(payload, Capabilities::NONE)
    }

    #[test]
    fn commands_are_told_by_their_first_byte() {
        assert_eq!(read(b"\x0e"), Ok(Request::Ping));
        assert_eq!(read(b"\x01"), Ok(Request::Quit));
        let query = Query { attributes: b"", text: b"select 1" };
        assert_eq!(read(b"\x03select 1"), Ok(Request::Query(query)));
        assert_eq!(read(b"\x02test"), Ok(Request::InitDb(b"test")));
        assert_eq!(read(b"\x1b\x01\0"), Ok(Request::SetOption(MULTI_STATEMENTS_OFF)));
        assert_eq!(read(b"\x19\x02\0\0\0"), Ok(Request::StmtClose(2)));
        assert_eq!(read(b"\x04t\0%"), Ok(Request::FieldList { table: b"t", wildcard: b"%" }));
        assert_eq!(read(b"\x1dx"), Ok(Request::Other(0x1d, b"x")));
        let data = Request::StmtSendLongData { statement: 1, parameter: 2, data: b"ab" };
        assert_eq!(read(b"\x18\x01\0\0\0\x02\0ab"), Ok(data));
        for bad in [&b""[..], b"\x19\x02\0\0", b"\x1b\0", b"\x04t", b"\x18\x01\0\0\0\x02", b"\x11a"]
        {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_text_stands_behind_its_attributes() {
        let query = |attributes, text| Ok(Request::Query(Query { attributes, text }));
        assert_eq!(Request::read(b"\x03\x00\x01select 1", NEW), query(b"\x00\x01", b"select 1"));
        // A string `a` = 'x', a NULL, and an integer without a name.
        let block = b"\x03\x01\x02\x01\xfd\x00\x01a\x06\x00\x01n\x03\x00\x00\x01x\x07\0\0\0";
        let payload = [b"\x03", &block[..], b"select 1"].concat();
        assert_eq!(Request::read(&payload, NEW), query(block, b"select 1"));
        for cut in 1..=block.len() {
            assert!(Request::read(&payload[..cut], NEW).is_err(), "cut at {cut}");
        }
        for bad in [&b"\x03\x00\x02x"[..], b"\x03\x01\x01\x00\x00x", b"\x03\xfd\xff\xff\xff\x01"] {
            assert!(Request::read(bad, NEW).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_change_of_user_may_end_early() {
        let capabilities = Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
        let read = |payload| Request::read(payload, capabilities);
        let mut due =
            ChangeUser { user: b"ann", proof: b"xy", database: b"d", ..Default::default() };
        assert_eq!(read(b"\x11ann\0\x02xyd\0"), Ok(Request::ChangeUser(due)));
        (due.collation, due.plugin) = (Some(45), b"p");
        assert_eq!(read(b"\x11ann\0\x02xyd\0\x2d\0p\0"), Ok(Request::ChangeUser(due)));
    }
}
