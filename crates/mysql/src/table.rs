//! The table of replies: what each packet of a server means.
//!
//! A packet does not say what it is. [`row`] says it, from the command that is answered, the phase
//! of its reply, the packet's first byte and length, and whether DEPRECATE_EOF is agreed on. A
//! packet that has no row is none that the server may send there.
//!
//! The table is for packets that begin a message: a continuation may begin with any byte.

use refrain_mysql_wire::packet::PAYLOAD_BYTES_MAX;
use refrain_mysql_wire::reply::{ends_rows, first};
use refrain_mysql_wire::{Capabilities, command};

/// Commands whose replies have one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// OK or ERR: COM_PING, COM_INIT_DB, COM_STMT_RESET, COM_RESET_CONNECTION and others.
    Ok,
    /// EOF or ERR: COM_SET_OPTION, COM_DEBUG.
    Eof,
    /// Any line: COM_STATISTICS.
    Statistics,
    /// Results with rows of text: COM_QUERY.
    Query,
    /// Results with binary rows: COM_STMT_EXECUTE, COM_STMT_BULK_EXECUTE.
    Execute,
    /// A statement's number and definitions: COM_STMT_PREPARE.
    Prepare,
    /// Binary rows: COM_STMT_FETCH.
    Fetch,
    /// Definitions up to their end, as rows are: COM_FIELD_LIST.
    FieldList,
}

impl Kind {
    /// Returns the kind of a command's reply; `None` if the command has no reply, or is none that
    /// is passed on to servers.
    pub fn of(command: u8) -> Option<Self> {
        Some(match command {
            command::QUERY => Self::Query,
            command::STMT_EXECUTE | command::STMT_BULK_EXECUTE => Self::Execute,
            command::STMT_PREPARE => Self::Prepare,
            command::STMT_FETCH => Self::Fetch,
            command::FIELD_LIST => Self::FieldList,
            command::STATISTICS => Self::Statistics,
            command::SET_OPTION | command::DEBUG => Self::Eof,
            command::PING
            | command::INIT_DB
            | command::STMT_RESET
            | command::RESET_CONNECTION
            | command::REFRESH
            | command::PROCESS_KILL => Self::Ok,
            _ => return None,
        })
    }
}

/// The place in a reply that the next packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The first packet of a reply, or of a further result.
    Head,
    /// Definitions of parameters, then their end and the columns.
    Parameters { left: u16, columns: Group },
    /// The EOF packet behind definitions of parameters, and then the columns.
    ParametersEnd { columns: Group },
    /// Definitions of columns.
    Columns { left: u16 },
    /// The EOF packet behind definitions of columns.
    ColumnsEnd,
    /// Rows.
    Rows,
    /// The end of LOAD DATA LOCAL, once the client has sent its file.
    File,
}

/// A group of definitions in COM_STMT_PREPARE's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// There is nothing to define, and no EOF packet.
    Empty,
    /// As many definitions, and their EOF packet.
    Defined(u16),
    /// No definitions, and still their EOF packet.
    LeftOut,
}

impl Group {
    /// Returns the group of as many definitions.
    pub(crate) fn of(count: u16, defined: bool) -> Self {
        match (count, defined) {
            (0, _) => Self::Empty,
            (_, true) => Self::Defined(count),
            (_, false) => Self::LeftOut,
        }
    }
}

/// Lengths of a payload that the table tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// No byte.
    Empty,
    /// Fewer than nine bytes: an EOF packet, a number of columns.
    Short,
    /// More bytes.
    Long,
    /// As many as a packet can have: the message goes on in the next one.
    Full,
}

impl Length {
    /// Returns the class of a payload's length.
    #[inline]
    pub(crate) fn of(payload: u32) -> Self {
        match payload {
            0 => Self::Empty,
            1..9 => Self::Short,
            9..PAYLOAD_BYTES_MAX => Self::Long,
            _ => Self::Full,
        }
    }

    /// Returns a length of the class.
    fn sample(self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Short => 5,
            Self::Long => 9,
            Self::Full => PAYLOAD_BYTES_MAX,
        }
    }
}

/// The place of flags in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flags {
    /// The packet has none.
    None,
    /// As in an OK packet: behind two integers of encoded length.
    Ok,
    /// As in an EOF packet: behind the number of warnings.
    Eof,
}

/// The reply behind a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Definitions of columns, whose number the packet has.
    Columns,
    /// Definitions of parameters and of columns, whose numbers the packet has.
    Prepared,
    /// One definition less.
    Definition,
    /// The definitions of columns, behind those of parameters.
    PreparedColumns,
    /// Rows; or nothing for COM_STMT_PREPARE, and if the flags say that there is a cursor.
    Rows,
    /// More rows.
    Row,
    /// The file that the server has asked for comes from the client.
    File,
    /// The end, unless the flags say that another result follows.
    Result,
    /// The end.
    Over,
}

/// The meaning of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) next: Next,
    pub(crate) flags: Flags,
}

const fn means(next: Next, flags: Flags) -> Option<Row> {
    Some(Row { next, flags })
}

/// Whether a packet may be a definition, by the first byte: the length of its catalog, `def`, in
/// the character set of results. A character has two bytes in UTF-16 and UCS-2, and four in UTF-32.
#[inline]
fn is_definition(first_byte: u8) -> bool {
    matches!(first_byte, 3 | 6 | 12)
}

/// Returns the meaning of a packet; `None` if a server may not send it there.
#[inline]
pub(crate) fn row(
    kind: Kind,
    phase: Phase,
    first_byte: u8,
    length: Length,
    capabilities: Capabilities,
) -> Option<Row> {
    // A line may begin with any byte, also with that of an error; either is all of the reply.
    if kind == Kind::Statistics {
        return if length == Length::Full { None } else { means(Next::Over, Flags::None) };
    }
    let is_row = phase == Phase::Rows && first_byte != first::ERR;
    if length == Length::Empty || (length == Length::Full && !is_row) {
        return None;
    }
    if first_byte == first::ERR {
        return means(Next::Over, Flags::None);
    }
    match phase {
        Phase::Head => head(kind, first_byte, length, capabilities),
        Phase::Parameters { .. } | Phase::Columns { .. } if is_definition(first_byte) => {
            means(Next::Definition, Flags::None)
        }
        Phase::Parameters { .. } | Phase::Columns { .. } => None,
        Phase::ParametersEnd { .. } => eof(Next::PreparedColumns, first_byte, length),
        Phase::ColumnsEnd => eof(Next::Rows, first_byte, length),
        Phase::Rows => in_rows(kind, first_byte, length, capabilities),
        Phase::File if first_byte == first::OK => means(Next::Result, Flags::Ok),
        Phase::File => None,
    }
}

/// Returns the meaning of a packet at the beginning of a reply or result.
fn head(kind: Kind, first_byte: u8, length: Length, capabilities: Capabilities) -> Option<Row> {
    match (kind, first_byte, length) {
        (Kind::Ok, first::OK, _) => means(Next::Over, Flags::Ok),
        (Kind::Eof, first::EOF, Length::Short) => means(Next::Over, end_flags(capabilities)),
        // The OK in place of an EOF packet may say more than its flags.
        (Kind::Eof, first::EOF, _) if capabilities.has(Capabilities::DEPRECATE_EOF) => {
            means(Next::Over, Flags::Ok)
        }
        (Kind::Query | Kind::Execute, first::OK, _) => means(Next::Result, Flags::Ok),
        // MariaDB prepares LOAD DATA LOCAL as well.
        (Kind::Query | Kind::Execute, first::LOCAL_INFILE, _) => means(Next::File, Flags::None),
        // A number of columns has one byte, or two behind 0xFC.
        (Kind::Query | Kind::Execute, 0x01..=0xFA | 0xFC, Length::Short) => {
            means(Next::Columns, Flags::None)
        }
        (Kind::Prepare, first::OK, Length::Long) => means(Next::Prepared, Flags::None),
        _ => None,
    }
}

/// Returns the meaning of a packet among rows, or of definitions that end as rows do.
fn in_rows(kind: Kind, first_byte: u8, length: Length, capabilities: Capabilities) -> Option<Row> {
    if ends_rows(first_byte, length.sample(), capabilities) {
        let results = matches!(kind, Kind::Query | Kind::Execute);
        let next = if results { Next::Result } else { Next::Over };
        return means(next, end_flags(capabilities));
    }
    let is_row = match kind {
        // A value whose length has eight bytes fills its first packet.
        Kind::Query if first_byte == first::EOF => length == Length::Full,
        Kind::Query => true,
        Kind::Execute | Kind::Fetch => first_byte == first::OK,
        Kind::FieldList => is_definition(first_byte),
        Kind::Ok | Kind::Eof | Kind::Statistics | Kind::Prepare => false,
    };
    if is_row { means(Next::Row, Flags::None) } else { None }
}

/// Returns the meaning of the EOF packet behind definitions.
fn eof(next: Next, first_byte: u8, length: Length) -> Option<Row> {
    if first_byte == first::EOF && length == Length::Short { means(next, Flags::Eof) } else { None }
}

/// Returns the place of the flags in a packet that ends rows.
fn end_flags(capabilities: Capabilities) -> Flags {
    let deprecated = capabilities.has(Capabilities::DEPRECATE_EOF);
    if deprecated { Flags::Ok } else { Flags::Eof }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const KINDS: [Kind; 8] = [
        Kind::Ok,
        Kind::Eof,
        Kind::Statistics,
        Kind::Query,
        Kind::Execute,
        Kind::Prepare,
        Kind::Fetch,
        Kind::FieldList,
    ];
    const LENGTHS: [Length; 4] = [Length::Empty, Length::Short, Length::Long, Length::Full];

    /// The phases that a reply of a kind can be in.
    fn phases(kind: Kind) -> Vec<(&'static str, Phase)> {
        let parameters = [
            ("Parameters", Phase::Parameters { left: 1, columns: Group::Defined(1) }),
            ("ParametersEnd", Phase::ParametersEnd { columns: Group::Defined(1) }),
        ];
        let columns = [("Columns", Phase::Columns { left: 1 }), ("ColumnsEnd", Phase::ColumnsEnd)];
        let (head, rows, file) =
            (("Head", Phase::Head), ("Rows", Phase::Rows), ("File", Phase::File));
        match kind {
            Kind::Ok | Kind::Eof | Kind::Statistics => vec![head],
            Kind::Query | Kind::Execute => [&[head][..], &columns, &[rows, file]].concat(),
            Kind::Prepare => [&[head][..], &parameters, &columns].concat(),
            Kind::Fetch | Kind::FieldList => vec![rows],
        }
    }

    /// Returns the whole table as text: runs of first bytes that mean the same.
    fn printed(kind: Kind, phase: Phase, length: Length, capabilities: Capabilities) -> String {
        let (mut text, mut from) = (String::new(), 0);
        let meaning = |byte: u8| row(kind, phase, byte, length, capabilities);
        for byte in 0..=u8::MAX {
            if byte < u8::MAX && meaning(byte) == meaning(byte + 1) {
                continue;
            }
            if let Some(row) = meaning(byte) {
                let range = if from == byte {
                    format!("{byte:02X}")
                } else {
                    format!("{from:02X}-{byte:02X}")
                };
                let flags = match row.flags {
                    Flags::None => String::new(),
                    flags => format!("({flags:?})"),
                };
                write!(text, " {range}={:?}{flags}", row.next).expect("room");
            }
            from = byte.wrapping_add(1);
        }
        text
    }

    #[test]
    fn the_table() {
        let mut lines = String::new();
        for kind in KINDS {
            for (name, phase) in phases(kind) {
                for length in LENGTHS {
                    let old = printed(kind, phase, length, Capabilities::NONE);
                    let new = printed(kind, phase, length, Capabilities::DEPRECATE_EOF);
                    if old == new && !old.is_empty() {
                        writeln!(lines, "{kind:?} {name} {length:?}:{old}").expect("room");
                    } else if old != new {
                        writeln!(lines, "{kind:?} {name} {length:?} old:{old}").expect("room");
                        writeln!(lines, "{kind:?} {name} {length:?} new:{new}").expect("room");
                    }
                }
            }
        }
        assert_eq!(lines, DUE, "{lines}");
    }

    /// Every packet that has a meaning. `old` is without DEPRECATE_EOF, `new` with it.
    const DUE: &str = "\
Ok Head Short: 00=Over(Ok) FF=Over
Ok Head Long: 00=Over(Ok) FF=Over
Eof Head Short old: FE=Over(Eof) FF=Over
Eof Head Short new: FE=Over(Ok) FF=Over
Eof Head Long old: FF=Over
Eof Head Long new: FE=Over(Ok) FF=Over
Statistics Head Empty: 00-FF=Over
Statistics Head Short: 00-FF=Over
Statistics Head Long: 00-FF=Over
Query Head Short: 00=Result(Ok) 01-FA=Columns FB=File FC=Columns FF=Over
Query Head Long: 00=Result(Ok) FB=File FF=Over
Query Columns Short: 03=Definition 06=Definition 0C=Definition FF=Over
Query Columns Long: 03=Definition 06=Definition 0C=Definition FF=Over
Query ColumnsEnd Short: FE=Rows(Eof) FF=Over
Query ColumnsEnd Long: FF=Over
Query Rows Short old: 00-FD=Row FE=Result(Eof) FF=Over
Query Rows Short new: 00-FD=Row FE=Result(Ok) FF=Over
Query Rows Long old: 00-FD=Row FF=Over
Query Rows Long new: 00-FD=Row FE=Result(Ok) FF=Over
Query Rows Full: 00-FE=Row
Query File Short: 00=Result(Ok) FF=Over
Query File Long: 00=Result(Ok) FF=Over
Execute Head Short: 00=Result(Ok) 01-FA=Columns FB=File FC=Columns FF=Over
Execute Head Long: 00=Result(Ok) FB=File FF=Over
Execute Columns Short: 03=Definition 06=Definition 0C=Definition FF=Over
Execute Columns Long: 03=Definition 06=Definition 0C=Definition FF=Over
Execute ColumnsEnd Short: FE=Rows(Eof) FF=Over
Execute ColumnsEnd Long: FF=Over
Execute Rows Short old: 00=Row FE=Result(Eof) FF=Over
Execute Rows Short new: 00=Row FE=Result(Ok) FF=Over
Execute Rows Long old: 00=Row FF=Over
Execute Rows Long new: 00=Row FE=Result(Ok) FF=Over
Execute Rows Full: 00=Row
Execute File Short: 00=Result(Ok) FF=Over
Execute File Long: 00=Result(Ok) FF=Over
Prepare Head Short: FF=Over
Prepare Head Long: 00=Prepared FF=Over
Prepare Parameters Short: 03=Definition 06=Definition 0C=Definition FF=Over
Prepare Parameters Long: 03=Definition 06=Definition 0C=Definition FF=Over
Prepare ParametersEnd Short: FE=PreparedColumns(Eof) FF=Over
Prepare ParametersEnd Long: FF=Over
Prepare Columns Short: 03=Definition 06=Definition 0C=Definition FF=Over
Prepare Columns Long: 03=Definition 06=Definition 0C=Definition FF=Over
Prepare ColumnsEnd Short: FE=Rows(Eof) FF=Over
Prepare ColumnsEnd Long: FF=Over
Fetch Rows Short old: 00=Row FE=Over(Eof) FF=Over
Fetch Rows Short new: 00=Row FE=Over(Ok) FF=Over
Fetch Rows Long old: 00=Row FF=Over
Fetch Rows Long new: 00=Row FE=Over(Ok) FF=Over
Fetch Rows Full: 00=Row
FieldList Rows Short old: 03=Row 06=Row 0C=Row FE=Over(Eof) FF=Over
FieldList Rows Short new: 03=Row 06=Row 0C=Row FE=Over(Ok) FF=Over
FieldList Rows Long old: 03=Row 06=Row 0C=Row FF=Over
FieldList Rows Long new: 03=Row 06=Row 0C=Row FE=Over(Ok) FF=Over
FieldList Rows Full: 03=Row 06=Row 0C=Row
";
}
