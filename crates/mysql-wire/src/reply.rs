//! The packets that end or begin a reply: OK, ERR, EOF, and the head of a result set.

use crate::capability::Capabilities;
use crate::error_code::ErrorCode;
use crate::fields::{Fields, put_integer, put_string};
use crate::packet::PAYLOAD_BYTES_MAX;
use crate::track::Changes;
use crate::{Malformed, Status};

/// First bytes of the packets of a server. No other file spells them.
pub mod first {
    /// OK, also the OK of COM_STMT_PREPARE; a row of a prepared statement.
    pub const OK: u8 = 0x00;
    /// In a login: data of the authentication plugin.
    pub const AUTH_MORE_DATA: u8 = 0x01;
    /// As the head of a reply: the server asks for a file. In a row of text: a NULL.
    pub const LOCAL_INFILE: u8 = 0xFB;
    /// EOF, or the OK in place of it. In a row of text: a value of more than 16 MiB.
    pub const EOF: u8 = 0xFE;
    /// In a login: the server asks for another authentication plugin.
    pub const AUTH_SWITCH: u8 = 0xFE;
    /// ERR. No row begins with it.
    pub const ERR: u8 = 0xFF;
}

/// The success of a command (MySQL, "OK_Packet"; MariaDB, "OK_Packet").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows that the statement changed, or found under [`Capabilities::FOUND_ROWS`].
    pub affected_rows: u64,
    /// The last value of an AUTO_INCREMENT column. It is not always what LAST_INSERT_ID() returns.
    pub last_insert_id: u64,
    /// Flags of the session.
    pub status: Status,
    /// Number of warnings.
    pub warnings: u16,
    /// A line for people.
    pub info: &'a [u8],
    /// Changes of the session's state, if [`Status::SESSION_STATE_CHANGED`] says that there are
    /// any.
    pub changes: Changes<'a>,
}

impl<'a> OkPacket<'a> {
    /// Reads a payload that begins with [`first::OK`], or with [`first::EOF`] behind rows.
    ///
    /// The manual has the info as the rest of the packet where SESSION_TRACK is not agreed on. Both
    /// servers send it with a length there too.
    ///
    /// # Errors
    /// A payload that ends before its fields do, or that has bytes behind them.
    #[inline]
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        Self::fields(payload, capabilities).ok_or(Malformed::new("OK_Packet"))
    }

    /// Returns the number of rows that a packet says were changed; 0 if it is none that ends a
    /// reply without rows.
    #[inline]
    pub fn rows_changed(payload: &[u8]) -> u64 {
        match *payload {
            [first::OK, rows @ 0..=250, ..] => rows.into(),
            [first::OK, ..] => Fields(&payload[1..]).integer().unwrap_or(0),
            _ => 0,
        }
    }

    fn fields(payload: &'a [u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields(payload);
        if !matches!(fields.u8()?, first::OK | first::EOF) {
            return None;
        }
        let mut ok = Self {
            affected_rows: fields.integer()?,
            last_insert_id: fields.integer()?,
            status: Status(fields.u16()?),
            warnings: fields.u16()?,
            ..Self::default()
        };
        if !fields.is_empty() {
            ok.info = fields.string()?;
            let tracks = capabilities.has(Capabilities::SESSION_TRACK);
            if tracks && ok.status.has(Status::SESSION_STATE_CHANGED) {
                ok.changes = Changes(changes(&mut fields)?);
            }
        }
        fields.is_empty().then_some(ok)
    }

    /// Appends the payload. `first` is [`first::OK`], or [`first::EOF`] behind rows.
    ///
    /// The changes are left out without SESSION_TRACK, and so is the flag that says that there are
    /// any.
    pub fn write(&self, out: &mut Vec<u8>, first: u8, capabilities: Capabilities) {
        let tracks = capabilities.has(Capabilities::SESSION_TRACK);
        let status =
            if tracks { self.status } else { self.status.without(Status::SESSION_STATE_CHANGED) };
        let changed = status.has(Status::SESSION_STATE_CHANGED);
        out.push(first);
        put_integer(out, self.affected_rows);
        put_integer(out, self.last_insert_id);
        out.extend_from_slice(&status.0.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if changed || !self.info.is_empty() {
            put_string(out, self.info);
        }
        if changed {
            put_string(out, self.changes.0);
        }
    }
}

/// The byte in front of a length of two bytes.
const TWO_BYTES: u8 = 0xFC;
/// The length of changes of which MySQL writes that byte alone. A server that writes all of it has
/// no such byte in front of so few.
const LENGTH_CUT: usize = 251;
/// The most bytes that MariaDB puts in front of the changes.
const PADDING_MAX: usize = 3;

/// Takes the changes. MariaDB takes them for text in the character set of the schema, and fills the
/// first character up with zeros: one in `ucs2` and `utf16`, three in `utf32`. (10.11,
/// `Protocol::net_send_ok`: `store.set_charset(thd->variables.collation_database)`.)
///
/// MySQL 8.0.15 leaves one byte for the length 251, which needs three, and writes the changes over
/// the other two.
fn changes<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    if let [TWO_BYTES, block @ ..] = fields.rest()
        && block.len() == LENGTH_CUT
    {
        *fields = Fields(b"");
        return Some(block);
    }
    let mut padding = 0;
    loop {
        let block = fields.string()?;
        if !block.is_empty() || fields.is_empty() || padding == PADDING_MAX {
            return Some(block);
        }
        padding += 1;
    }
}

/// The failure of a command (MySQL, "ERR_Packet"; MariaDB, "ERR_Packet"). It has no flags: the
/// session's state after it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The error's number.
    pub number: u16,
    /// The SQLSTATE. A server that refuses a connection before its greeting may send none.
    pub sqlstate: Option<[u8; 5]>,
    /// The message.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// The number of a packet that reports progress, and is no error (MariaDB). It comes in the
    /// middle of replies under [`Capabilities::PROGRESS`].
    pub const PROGRESS: u16 = 0xFFFF;

    /// Makes an error of this code.
    pub const fn new(code: ErrorCode, message: &'a [u8]) -> Self {
        Self { number: code.number, sqlstate: Some(code.sqlstate), message }
    }

    /// Reads a payload that begins with [`first::ERR`].
    ///
    /// # Errors
    /// A payload without a number, or with the mark of an SQLSTATE and without the SQLSTATE.
    pub fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        Self::fields(payload).ok_or(Malformed::new("ERR_Packet"))
    }

    fn fields(payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        if fields.u8()? != first::ERR {
            return None;
        }
        let number = fields.u16()?;
        let marked = fields.rest().first() == Some(&b'#') && number != Self::PROGRESS;
        let sqlstate = if marked {
            fields.u8()?;
            Some(fields.array()?)
        } else {
            None
        };
        Some(Self { number, sqlstate, message: fields.rest() })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(first::ERR);
        out.extend_from_slice(&self.number.to_le_bytes());
        if let Some(sqlstate) = self.sqlstate {
            out.push(b'#');
            out.extend_from_slice(&sqlstate);
        }
        out.extend_from_slice(self.message);
    }
}

/// The end of column definitions or rows, without [`Capabilities::DEPRECATE_EOF`] (MySQL,
/// "EOF_Packet"; MariaDB, "EOF_Packet").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EofPacket {
    /// Number of warnings.
    pub warnings: u16,
    /// Flags of the session.
    pub status: Status,
}

impl EofPacket {
    /// The length of the payload, unless it is an OK packet under DEPRECATE_EOF.
    pub const BYTES: usize = 5;

    /// Reads a payload that begins with [`first::EOF`], in either form: five bytes, or an OK packet
    /// under DEPRECATE_EOF.
    ///
    /// # Errors
    /// A payload of another form.
    #[inline]
    pub fn read(payload: &[u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        if capabilities.has(Capabilities::DEPRECATE_EOF) {
            let ok = OkPacket::read(payload, capabilities)?;
            return Ok(Self { warnings: ok.warnings, status: ok.status });
        }
        match *payload {
            [first::EOF, a, b, c, d] => Ok(Self {
                warnings: u16::from_le_bytes([a, b]),
                status: Status(u16::from_le_bytes([c, d])),
            }),
            _ => Err(Malformed::new("EOF_Packet")),
        }
    }

    /// Appends the payload of five bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(first::EOF);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend_from_slice(&self.status.0.to_le_bytes());
    }
}

/// Flags at the beginning of packets that end a reply, read without the rest.
pub mod status {
    use super::{EofPacket, Fields, Status};
    use crate::Capabilities;

    /// Returns the flags of an OK packet of which the beginning is there; `None` if it ends before
    /// them.
    #[inline]
    pub fn in_ok(prefix: &[u8]) -> Option<Status> {
        let mut fields = Fields(prefix);
        fields.u8()?;
        fields.integer()?;
        fields.integer()?;
        fields.u16().map(Status)
    }

    /// Returns the flags of an EOF packet of five bytes; `None` if it has another form.
    #[inline]
    pub fn in_eof(payload: &[u8]) -> Option<Status> {
        EofPacket::read(payload, Capabilities::NONE).ok().map(|eof| eof.status)
    }
}

/// True if a packet among rows or definitions is their end, not one of them: it begins with
/// [`first::EOF`] and is too short for a row that does.
///
/// A row begins so if its first value has more than 16 MiB; then its first packet is full. Ask only
/// of packets that begin a message: a continuation may begin with any byte and be short. (MySQL,
/// "Text Resultset"; MariaDB, "Result Set Packets".)
#[inline]
pub fn ends_rows(first: u8, payload: u32, capabilities: Capabilities) -> bool {
    let deprecated = capabilities.has(Capabilities::DEPRECATE_EOF);
    first == first::EOF && payload < if deprecated { PAYLOAD_BYTES_MAX } else { 9 }
}

/// The first packet of a reply to COM_QUERY or COM_STMT_EXECUTE, and of each further result of
/// such a reply (MySQL, "COM_QUERY Response"; MariaDB, "Result Set Packets").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// The statement has run and has no rows.
    Ok(OkPacket<'a>),
    /// The statement has failed.
    Err(ErrPacket<'a>),
    /// The server asks for a file of this name. The client sends its content, and an empty packet
    /// (MySQL, "LOCAL INFILE Request").
    LocalInfile(&'a [u8]),
    /// Definitions of columns and then rows follow.
    Columns {
        /// Number of columns.
        count: u64,
        /// Whether the definitions follow. They may be left out under
        /// [`Capabilities::OPTIONAL_RESULTSET_METADATA`] and [`Capabilities::CACHE_METADATA`]. The
        /// EOF packet behind them comes as well, without [`Capabilities::DEPRECATE_EOF`].
        defined: bool,
    },
}

impl<'a> Head<'a> {
    /// Reads a payload.
    ///
    /// The byte that says whether definitions follow stands behind the number of columns. MySQL's
    /// page has it in front; its server sends it behind.
    ///
    /// # Errors
    /// A payload that no reply begins with.
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        match payload {
            [first::OK, ..] => OkPacket::read(payload, capabilities).map(Self::Ok),
            [first::ERR, ..] => ErrPacket::read(payload).map(Self::Err),
            [first::LOCAL_INFILE, name @ ..] => Ok(Self::LocalInfile(name)),
            _ => Self::columns(payload, capabilities).ok_or(Malformed::new("column count")),
        }
    }

    fn columns(payload: &'a [u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields(payload);
        let count = fields.integer()?;
        let optional = has_metadata_byte(capabilities);
        let defined = if optional { fields.u8()? != 0 } else { true };
        fields.is_empty().then_some(Self::Columns { count, defined })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        match self {
            Self::Ok(ok) => ok.write(out, first::OK, capabilities),
            Self::Err(err) => err.write(out),
            Self::LocalInfile(name) => {
                out.push(first::LOCAL_INFILE);
                out.extend_from_slice(name);
            }
            Self::Columns { count, defined } => {
                put_integer(out, *count);
                if has_metadata_byte(capabilities) {
                    out.push(u8::from(*defined));
                }
            }
        }
    }
}

/// True if a byte behind the number of columns says whether definitions follow.
fn has_metadata_byte(capabilities: Capabilities) -> bool {
    capabilities.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
        || capabilities.has(Capabilities::CACHE_METADATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code;

    const OLD: Capabilities = Capabilities::PROTOCOL_41;
    const TRACKS: Capabilities = Capabilities::SESSION_TRACK;

    #[test]
    fn an_ok_as_in_the_manual() {
        let payload = b"\x00\x00\x00\x02\x00\x00\x00";
        let ok = OkPacket::read(payload, OLD).expect("an OK packet");
        assert_eq!(ok, OkPacket { status: Status::AUTOCOMMIT, ..OkPacket::default() });
        let mut out = Vec::new();
        ok.write(&mut out, first::OK, OLD);
        assert_eq!(out, payload);
        assert!(OkPacket::read(b"\x01\x00\x00\x02\x00\x00\x00", OLD).is_err());
    }

    #[test]
    fn changes_are_there_under_the_capability_and_the_flag() {
        // `SET autocommit=OFF` in the manual's page of session state information.
        let payload = b"\x00\x00\x00\x02\x40\x00\x00\x00\x11\x00\x0f\x0aautocommit\x03OFF";
        let ok = OkPacket::read(payload, TRACKS).expect("an OK packet");
        assert_eq!(ok.changes.0, b"\x00\x0f\x0aautocommit\x03OFF");
        let mut out = Vec::new();
        ok.write(&mut out, first::OK, TRACKS);
        assert_eq!(out, payload);
        out.clear();
        ok.write(&mut out, first::OK, OLD);
        assert_eq!(out, b"\x00\x00\x00\x02\x00\x00\x00");
        assert!(OkPacket::read(payload, OLD).is_err(), "bytes behind the info");
    }

    #[test]
    fn zeros_in_front_of_the_changes_are_none_of_them() {
        // MariaDB 10.11, `USE` of schemas in latin1, utf16 and utf32.
        for padding in [&b""[..], b"\x00", b"\x00\x00\x00"] {
            let head = &b"\x00\x00\x00\x02\x40\x00\x00\x00"[..];
            let payload = [head, padding, b"\x08\x01\x03\x02d1\x02\x011"].concat();
            let ok = OkPacket::read(&payload, TRACKS).expect("an OK packet");
            assert_eq!(ok.changes.0, b"\x01\x03\x02d1\x02\x011");
        }
        assert!(OkPacket::read(b"\x00\x00\x00\x02\x40\x00\x00\x00\x00", TRACKS).is_ok());
        let more = b"\x00\x00\x00\x02\x40\x00\x00\x00\x00\x00\x00\x00\x00\x01a";
        assert!(OkPacket::read(more, TRACKS).is_err());
    }

    #[test]
    fn changes_may_lack_a_part_of_their_length() {
        for length in 250..254 {
            let block = vec![b'x'; length];
            let head = b"\x00\x00\x00\x02\x40\x00\x00\x00\xfc";
            let whole = [&head[..], &[length as u8, 0], &block].concat();
            let read = OkPacket::read(&whole, TRACKS).map(|ok| ok.changes.0);
            assert_eq!(read, Ok(&*block));
            let cut = [&head[..], &block].concat();
            let read = OkPacket::read(&cut, TRACKS).map(|ok| ok.changes.0);
            assert_eq!(read.ok(), (length == 251).then_some(&*block), "{length}");
        }
    }

    #[test]
    fn an_error_has_its_state_behind_a_mark() {
        let payload = b"\xff\x48\x04#HY000No tables used";
        let err = ErrPacket::read(payload).expect("an ERR packet");
        assert_eq!((err.number, err.sqlstate), (1096, Some(*b"HY000")));
        assert_eq!(err.message, b"No tables used");
        let refused = ErrPacket::read(b"\xff\x6a\x04Host 'x' is not allowed").expect("ERR");
        assert_eq!((refused.number, refused.sqlstate), (1130, None));
        assert!(ErrPacket::read(b"\xff\x48\x04#HY0").is_err());
        assert!(ErrPacket::read(b"\xff\x48").is_err());
        let mut out = Vec::new();
        ErrPacket::new(error_code::UNKNOWN_COM, b"Unknown command").write(&mut out);
        assert_eq!(out, b"\xff\x17\x04#08S01Unknown command");
    }

    #[test]
    fn progress_is_told_from_an_error() {
        let progress = ErrPacket::read(b"\xff\xff\xff#\x02\x01\x00\x00\x04copy").expect("progress");
        assert_eq!((progress.number, progress.sqlstate), (ErrPacket::PROGRESS, None));
    }

    #[test]
    fn an_eof_has_two_forms() {
        let eof = EofPacket { warnings: 1, status: Status::AUTOCOMMIT };
        assert_eq!(EofPacket::read(b"\xfe\x01\x00\x02\x00", OLD), Ok(eof));
        let new = Capabilities::DEPRECATE_EOF;
        assert_eq!(EofPacket::read(b"\xfe\x00\x00\x02\x00\x01\x00", new), Ok(eof));
        assert!(EofPacket::read(b"\xfe\x00\x00\x02\x00\x01\x00", OLD).is_err());
        assert!(EofPacket::read(b"\xfe\x01\x00\x02\x00", new).is_err());
    }

    #[test]
    fn rows_end_by_length() {
        let new = Capabilities::DEPRECATE_EOF;
        let cases = [(5, true, true), (8, true, true), (9, false, true), (0xFF_FFFF, false, false)];
        for (length, old_ends, new_ends) in cases {
            assert_eq!(ends_rows(0xFE, length, OLD), old_ends, "{length}");
            assert_eq!(ends_rows(0xFE, length, new), new_ends, "{length}");
            assert!(!ends_rows(0x00, length, new) && !ends_rows(0xFB, length, OLD));
        }
    }

    #[test]
    fn a_head_is_told_by_its_first_byte() {
        assert_eq!(Head::read(b"\xfb/tmp/f", OLD), Ok(Head::LocalInfile(b"/tmp/f")));
        let columns = |count, defined| Ok(Head::Columns { count, defined });
        assert_eq!(Head::read(b"\x02", OLD), columns(2, true));
        assert_eq!(Head::read(b"\xfc\x2c\x01", OLD), columns(300, true));
        assert_eq!(Head::read(b"\x02\x00", Capabilities::CACHE_METADATA), columns(2, false));
        for bad in [&b""[..], b"\x02\x00", b"\xfe", b"\xfc\x2c"] {
            assert!(Head::read(bad, OLD).is_err(), "{bad:?}");
        }
        assert!(Head::read(b"\x02", Capabilities::CACHE_METADATA).is_err());
    }
}
