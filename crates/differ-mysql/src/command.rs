//! Commands of clients: their bytes, and their readable form.

use crate::packet::put;
use crate::side::Side;
use std::fmt;

/// A value for a parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The type, with the bit of numbers without a sign.
    pub kind: u16,
    /// The bytes as they stand in the command; `None` for NULL.
    pub bytes: Option<Vec<u8>>,
    /// Whether the value came ahead of the command, in parts.
    pub is_ahead: bool,
}

/// A command.
///
/// A prepared statement has a handle, which names it on both sides: its numbers there differ.
/// Texts have `{d}` for the side's prefix of names of schemas and of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// COM_QUERY, with the file that the server may ask for.
    Query(String, Vec<u8>),
    /// COM_QUERY with a literal of this many bytes in place of `{long}`.
    Long(String, usize),
    /// COM_INIT_DB.
    InitDb(String),
    /// COM_FIELD_LIST.
    FieldList(String),
    /// COM_STATISTICS.
    Statistics,
    /// COM_PING.
    Ping,
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_SET_OPTION.
    SetOption(u16),
    /// COM_CHANGE_USER, to the same user and this schema.
    ChangeUser(String),
    /// COM_STMT_PREPARE.
    Prepare(u32, String),
    /// COM_STMT_EXECUTE.
    Execute(Execute),
    /// COM_STMT_SEND_LONG_DATA: handle, parameter, data.
    LongData(u32, u16, Vec<u8>),
    /// COM_STMT_FETCH: handle, number of rows.
    Fetch(u32, u32),
    /// COM_STMT_RESET.
    Reset(u32),
    /// COM_STMT_CLOSE.
    Close(u32),
    /// Bytes as they are. The server answers with one packet.
    Raw(Vec<u8>),
}

/// COM_STMT_EXECUTE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// The statement.
    pub handle: u32,
    /// The kind of cursor; 0 for none.
    pub cursor: u8,
    /// Whether the types are sent.
    pub has_types: bool,
    /// The values.
    pub values: Vec<Value>,
    /// The bytes that are left out at the end, so that it is malformed.
    pub cut: usize,
}

/// The form of the reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// None comes.
    Nothing,
    /// One packet.
    Packet,
    /// Results, one after another.
    Results,
    /// The numbers and definitions of a statement.
    Definitions,
    /// Rows without definitions.
    Rows,
    /// Definitions without rows.
    Fields,
    /// The rest of a login.
    Login,
}

impl Command {
    /// Returns the form of its reply.
    #[must_use]
    pub fn due(&self) -> Due {
        match self {
            Self::Query(..) | Self::Long(..) | Self::Execute(_) => Due::Results,
            Self::FieldList(_) => Due::Fields,
            Self::ChangeUser(_) => Due::Login,
            Self::Prepare(..) => Due::Definitions,
            Self::Fetch(..) => Due::Rows,
            Self::LongData(..) | Self::Close(_) => Due::Nothing,
            Self::InitDb(_)
            | Self::Statistics
            | Self::Ping
            | Self::ResetConnection
            | Self::SetOption(_)
            | Self::Reset(_)
            | Self::Raw(_) => Due::Packet,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Query(..) => "Query",
            Self::Long(..) => "Long",
            Self::InitDb(_) => "InitDb",
            Self::FieldList(_) => "FieldList",
            Self::Statistics => "Statistics",
            Self::Ping => "Ping",
            Self::ResetConnection => "ResetConnection",
            Self::SetOption(_) => "SetOption",
            Self::ChangeUser(_) => "ChangeUser",
            Self::Prepare(..) => "Prepare",
            Self::Execute(_) => "Execute",
            Self::LongData(..) => "LongData",
            Self::Fetch(..) => "Fetch",
            Self::Reset(_) => "Reset",
            Self::Close(_) => "Close",
            // With more behind it, it is one all the same.
            Self::Raw(bytes) if bytes.first() == Some(&0x0E) => "Ping",
            Self::Raw(_) => "Raw",
        }
    }

    /// Returns the text that it runs or prepares.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Query(text, _) | Self::Long(text, _) | Self::Prepare(_, text) => Some(text),
            _ => None,
        }
    }

    /// Returns the file that a server may ask for.
    #[must_use]
    pub fn file(&self) -> &[u8] {
        match self {
            Self::Query(_, file) => file,
            _ => b"",
        }
    }

    /// Appends its packets.
    pub fn encode(&self, side: &Side, out: &mut Vec<u8>) {
        put(out, 0, &self.payload(side));
    }

    fn payload(&self, side: &Side) -> Vec<u8> {
        let text = |command: u8, text: &str| [&[command][..], side.fill(text).as_bytes()].concat();
        let named = |command: u8, handle: u32, rest: &[u8]| {
            [&[command][..], &side.number(handle).to_le_bytes(), rest].concat()
        };
        match self {
            Self::Query(sql, _) => text(3, sql),
            Self::Long(sql, length) => text(3, &sql.replace("{long}", &"x".repeat(*length))),
            Self::InitDb(schema) => text(2, schema),
            Self::FieldList(table) => [&text(4, table)[..], b"\0"].concat(),
            Self::Statistics => vec![9],
            Self::Ping => vec![14],
            Self::ResetConnection => vec![31],
            Self::SetOption(option) => [&[27][..], &option.to_le_bytes()].concat(),
            Self::ChangeUser(schema) => side.change_user(&side.fill(schema)),
            Self::Prepare(_, sql) => text(22, sql),
            Self::Execute(execute) => execute.payload(side.number(execute.handle)),
            Self::LongData(handle, parameter, data) => {
                named(24, *handle, &[&parameter.to_le_bytes()[..], data].concat())
            }
            Self::Fetch(handle, rows) => named(28, *handle, &rows.to_le_bytes()),
            Self::Reset(handle) => named(26, *handle, b""),
            Self::Close(handle) => named(25, *handle, b""),
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}

impl Execute {
    fn payload(&self, number: u32) -> Vec<u8> {
        let mut out = vec![23];
        out.extend_from_slice(&number.to_le_bytes());
        out.push(self.cursor);
        out.extend_from_slice(&1u32.to_le_bytes());
        if !self.values.is_empty() {
            let mut nulls = vec![0; self.values.len().div_ceil(8)];
            for (at, value) in self.values.iter().enumerate() {
                nulls[at / 8] |= u8::from(value.bytes.is_none() && !value.is_ahead) << (at % 8);
            }
            out.extend_from_slice(&nulls);
            out.push(u8::from(self.has_types));
            if self.has_types {
                self.values.iter().for_each(|value| out.extend(value.kind.to_le_bytes()));
            }
            let sent = self.values.iter().filter(|value| !value.is_ahead);
            sent.filter_map(|value| value.bytes.as_ref()).for_each(|bytes| out.extend(bytes));
        }
        out.truncate(out.len().saturating_sub(self.cut).max(1));
        out
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match self {
            Self::Query(text, file) if file.is_empty() => write!(f, " {text}"),
            Self::Query(text, file) => write!(f, " {text} with {}", file.escape_ascii()),
            Self::Long(text, length) => write!(f, " {text} of {length}"),
            Self::InitDb(text) | Self::FieldList(text) | Self::ChangeUser(text) => {
                write!(f, " {text}")
            }
            Self::SetOption(option) => write!(f, " {option}"),
            Self::Prepare(handle, text) => write!(f, " #{handle} {text}"),
            Self::Execute(execute) => write!(f, " {execute}"),
            Self::LongData(handle, parameter, data) => {
                write!(f, " #{handle} parameter {parameter}, {}", Brief(data))
            }
            Self::Fetch(handle, rows) => write!(f, " #{handle} {rows} rows"),
            Self::Reset(handle) | Self::Close(handle) => write!(f, " #{handle}"),
            Self::Raw(bytes) => write!(f, " {}", bytes.escape_ascii()),
            Self::Statistics | Self::Ping | Self::ResetConnection => Ok(()),
        }
    }
}

impl fmt::Display for Execute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.handle)?;
        if self.cursor != 0 {
            write!(f, " with cursor {}", self.cursor)?;
        }
        if !self.has_types {
            write!(f, " without types")?;
        }
        for value in &self.values {
            match &value.bytes {
                _ if value.is_ahead => write!(f, ", {:#x} ahead", value.kind)?,
                None => write!(f, ", {:#x} NULL", value.kind)?,
                Some(bytes) => write!(f, ", {:#x} {}", value.kind, Brief(bytes))?,
            }
        }
        if self.cut > 0 {
            write!(f, ", cut by {}", self.cut)?;
        }
        Ok(())
    }
}

/// Bytes, as they are printed.
pub struct Brief<'a>(pub &'a [u8]);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, rest) = self.0.split_at(self.0.len().min(160));
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if rest.is_empty() { Ok(()) } else { write!(f, " and {} bytes more", rest.len()) }
    }
}
