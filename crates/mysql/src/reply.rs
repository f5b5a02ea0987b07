//! One reply of a server: which packet of it is the last.

use std::fmt;

use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::{Head, status};
use refrain_mysql_wire::{Capabilities, Header, Status};

use crate::table::{Flags, Group, Kind, Length, Next, Phase, row};

/// Bytes of a payload that are enough to know its meaning: those of an OK packet up to its flags.
pub const PREFIX_BYTES: usize = 1 + 9 + 9 + 2;

/// A reply that a server owes, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    kind: Kind,
    phase: Phase,
}

/// A packet that a server may not send at this place. The connection is out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedPacket;

impl fmt::Display for UnexpectedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unexpected packet")
    }
}

impl std::error::Error for UnexpectedPacket {}

/// The meaning of a packet for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Flags of the session, if the packet has any. An error has none.
    pub status: Option<Status>,
    /// The packet's place.
    pub part: Part,
}

/// The place of a packet in its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// More packets follow.
    Within,
    /// The server waits for a file of the client.
    File,
    /// The last one.
    End,
}

impl Reply {
    /// Makes a reply of which nothing has come.
    pub fn of(kind: Kind) -> Self {
        let has_head = !matches!(kind, Kind::Fetch | Kind::FieldList);
        Self { kind, phase: if has_head { Phase::Head } else { Phase::Rows } }
    }

    /// True if the next packet begins a reply or a result.
    pub fn is_head(&self) -> bool {
        self.phase == Phase::Head
    }

    /// True if the server waits for a file, or has the file and owes the end of the command.
    pub fn is_file(&self) -> bool {
        self.phase == Phase::File
    }

    /// True if the next packet is a row or the end of the rows.
    pub(crate) fn is_rows(&self) -> bool {
        self.phase == Phase::Rows
    }

    /// Whether the next packet, of which this much has arrived, is a row, after which the reply is
    /// as it was. Most packets are, and the first byte of most says so.
    #[inline]
    pub(crate) fn goes_on_with(&self, prefix: &[u8]) -> bool {
        let begins_row = |first: u8| match self.kind {
            Kind::Query => first < 0xFB,
            Kind::Execute | Kind::Fetch => first == 0,
            _ => false,
        };
        self.is_rows() && prefix.first().is_some_and(|first| begins_row(*first))
    }

    /// Takes the next packet that begins a message. `prefix` is the payload, as far as it has
    /// arrived; `None` says that more of it is needed, at most [`PREFIX_BYTES`].
    ///
    /// # Errors
    /// A packet that no row of the table allows here, or whose numbers are not what the row says.
    #[inline]
    pub fn take(
        &mut self,
        header: Header,
        prefix: &[u8],
        capabilities: Capabilities,
    ) -> Result<Option<Taken>, UnexpectedPacket> {
        let payload = header.payload as usize;
        let needed = payload.min(PREFIX_BYTES);
        // Most packets are rows, whose first byte is enough.
        let hasty = self.phase == Phase::Rows && prefix.first().is_some_and(|&byte| byte < 0xFB);
        if prefix.len() < needed && !hasty {
            return Ok(None);
        }
        let prefix = prefix.get(..payload).unwrap_or(prefix);
        let first_byte = prefix.first().copied().unwrap_or_default();
        let length = Length::of(header.payload);
        let row = row(self.kind, self.phase, first_byte, length, capabilities);
        let row = row.ok_or(UnexpectedPacket)?;
        let status = match row.flags {
            Flags::None => None,
            Flags::Ok => Some(status::in_ok(prefix).ok_or(UnexpectedPacket)?),
            Flags::Eof => Some(status::in_eof(prefix).ok_or(UnexpectedPacket)?),
        };
        let next = self.after(row.next, prefix, status.unwrap_or_default(), capabilities)?;
        self.phase = next.unwrap_or(self.phase);
        let part = match next {
            None => Part::End,
            Some(Phase::File) => Part::File,
            Some(_) => Part::Within,
        };
        Ok(Some(Taken { status, part }))
    }

    /// Returns the phase behind a packet; `None` if the reply is over.
    fn after(
        &self,
        next: Next,
        prefix: &[u8],
        status: Status,
        capabilities: Capabilities,
    ) -> Result<Option<Phase>, UnexpectedPacket> {
        let deprecated = capabilities.has(Capabilities::DEPRECATE_EOF);
        Ok(match next {
            Next::Columns => Some(columns_of_result(prefix, capabilities)?),
            Next::Prepared => prepared(prefix, capabilities)?,
            Next::Definition => match self.phase {
                Phase::Parameters { left: 2.., columns } => {
                    self.left().map(|left| Phase::Parameters { left, columns })
                }
                Phase::Parameters { columns, .. } if deprecated => statement_columns(columns, true),
                Phase::Parameters { columns, .. } => Some(Phase::ParametersEnd { columns }),
                Phase::Columns { left: 2.. } => self.left().map(|left| Phase::Columns { left }),
                Phase::Columns { .. } if deprecated => self.rows(status),
                _ => Some(Phase::ColumnsEnd),
            },
            Next::PreparedColumns => match self.phase {
                Phase::ParametersEnd { columns } => statement_columns(columns, deprecated),
                _ => None,
            },
            Next::Rows => self.rows(status),
            Next::Row => Some(Phase::Rows),
            Next::File => Some(Phase::File),
            Next::Result if status.has(Status::MORE_RESULTS_EXISTS) => Some(Phase::Head),
            Next::Result | Next::Over => None,
        })
    }

    /// Returns the number of definitions behind this one.
    fn left(&self) -> Option<u16> {
        match self.phase {
            Phase::Parameters { left, .. } | Phase::Columns { left } => left.checked_sub(1),
            _ => None,
        }
    }

    /// Returns the phase behind definitions of columns.
    fn rows(&self, status: Status) -> Option<Phase> {
        // Without DEPRECATE_EOF the packet behind the definitions says that there is a cursor, and
        // no other packet follows. With it, the packet behind no rows says so. A result of a
        // procedure that has a cursor of its own open has the flag, too, and rows; it is never the
        // last one.
        let has_cursor = self.kind == Kind::Execute
            && status.has(Status::CURSOR_EXISTS)
            && !status.has(Status::MORE_RESULTS_EXISTS);
        let over = self.kind == Kind::Prepare || has_cursor;
        if over { None } else { Some(Phase::Rows) }
    }
}

/// Returns the phase behind the head of COM_STMT_PREPARE's reply; `None` if that is all.
fn prepared(prefix: &[u8], capabilities: Capabilities) -> Result<Option<Phase>, UnexpectedPacket> {
    let head = PrepareOk::read(prefix, capabilities).map_err(|_| UnexpectedPacket)?;
    let deprecated = capabilities.has(Capabilities::DEPRECATE_EOF);
    let columns = Group::of(head.columns, head.defined);
    Ok(match Group::of(head.parameters, head.defined) {
        Group::Defined(left) => Some(Phase::Parameters { left, columns }),
        Group::LeftOut if !deprecated => Some(Phase::ParametersEnd { columns }),
        Group::LeftOut | Group::Empty => statement_columns(columns, deprecated),
    })
}

/// Returns the phase behind the number of columns of a result.
fn columns_of_result(prefix: &[u8], capabilities: Capabilities) -> Result<Phase, UnexpectedPacket> {
    let Ok(Head::Columns { count, defined }) = Head::read(prefix, capabilities) else {
        return Err(UnexpectedPacket);
    };
    let left = u16::try_from(count).map_err(|_| UnexpectedPacket)?;
    Ok(match defined {
        _ if left == 0 => return Err(UnexpectedPacket),
        true => Phase::Columns { left },
        false if capabilities.has(Capabilities::DEPRECATE_EOF) => Phase::Rows,
        // The EOF packet behind the definitions comes without them, too.
        false => Phase::ColumnsEnd,
    })
}

/// Returns the phase of a prepared statement's columns; `None` if nothing more comes.
fn statement_columns(columns: Group, deprecated: bool) -> Option<Phase> {
    match columns {
        Group::Defined(left) => Some(Phase::Columns { left }),
        Group::LeftOut if !deprecated => Some(Phase::ColumnsEnd),
        Group::LeftOut | Group::Empty => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Capabilities = Capabilities::PROTOCOL_41;
    const NEW: Capabilities = Capabilities::DEPRECATE_EOF;
    /// An OK packet, one that says that another result follows, and both as ends of rows.
    const OK: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00";
    const MORE: &[u8] = b"\x00\x00\x00\x0a\x00\x00\x00";
    const END: &[u8] = b"\xfe\x00\x00\x02\x00\x00\x00";
    const END_MORE: &[u8] = b"\xfe\x00\x00\x0a\x00\x00\x00";
    const EOF: &[u8] = b"\xfe\x00\x00\x02\x00";
    const EOF_MORE: &[u8] = b"\xfe\x00\x00\x0a\x00";
    const EOF_CURSOR: &[u8] = b"\xfe\x00\x00\x42\x00";
    const END_CURSOR: &[u8] = b"\xfe\x00\x00\x42\x00\x00\x00";
    const ERR: &[u8] = b"\xff\x48\x04#HY000No tables used";
    /// A definition, as far as it matters.
    const COLUMN: &[u8] = b"\x03def\x00\x00\x00\x01?";

    fn header(payload: &[u8]) -> Header {
        Header { payload: payload.len() as u32, sequence: 0 }
    }

    /// Takes packets up to the end of a reply, which is the last one.
    fn whole(kind: Kind, agreed: Capabilities, packets: &[&[u8]]) -> Option<Status> {
        let mut reply = Reply::of(kind);
        for (number, packet) in packets.iter().enumerate() {
            let before = reply;
            let needed = packet.len().min(PREFIX_BYTES);
            let taken = (0..=needed).find_map(|length| {
                reply = before;
                reply.take(header(packet), &packet[..length], agreed).transpose()
            });
            let taken = taken.expect("enough bytes").expect("a packet of the reply");
            // All of it says the same as the least of it.
            reply = before;
            assert_eq!(reply.take(header(packet), packet, agreed), Ok(Some(taken)));
            let last = number + 1 == packets.len();
            assert_eq!(taken.part == Part::End, last, "packet {number} of {kind:?}");
            if last {
                return taken.status;
            }
        }
        None
    }

    /// Takes the first packets of a reply, and then one that may not come.
    fn refused(kind: Kind, agreed: Capabilities, packets: &[&[u8]]) {
        let mut reply = Reply::of(kind);
        let (last, first) = packets.split_last().expect("a packet");
        for packet in first {
            reply.take(header(packet), packet, agreed).expect("a packet of the reply");
        }
        assert_eq!(reply.take(header(last), last, agreed), Err(UnexpectedPacket));
    }

    #[test]
    fn replies_of_a_packet() {
        let auto = Some(Status::AUTOCOMMIT);
        for agreed in [OLD, NEW] {
            assert_eq!(whole(Kind::Ok, agreed, &[OK]), auto);
            assert_eq!(whole(Kind::Query, agreed, &[OK]), auto);
            assert_eq!(whole(Kind::Statistics, agreed, &[b"Uptime: 1"]), None);
            for kind in [Kind::Ok, Kind::Eof, Kind::Query, Kind::Execute, Kind::Prepare] {
                assert_eq!(whole(kind, agreed, &[ERR]), None);
            }
        }
        assert_eq!(whole(Kind::Eof, OLD, &[EOF]), auto);
        assert_eq!(whole(Kind::Eof, NEW, &[END]), auto);
        refused(Kind::Ok, NEW, &[EOF]);
        refused(Kind::Ok, NEW, &[b""]);
        refused(Kind::Ok, NEW, &[b"\x00\x00\x00\x02"]);
    }

    #[test]
    fn results_with_rows() {
        let auto = Some(Status::AUTOCOMMIT);
        let new = [b"\x02", COLUMN, COLUMN, b"\x011\xfb", b"\xfb\x012", END];
        assert_eq!(whole(Kind::Query, NEW, &new), auto);
        let old = [b"\x02", COLUMN, COLUMN, EOF, b"\x011\xfb", EOF];
        assert_eq!(whole(Kind::Query, OLD, &old), auto);
        assert_eq!(whole(Kind::Execute, NEW, &[b"\x01", COLUMN, b"\x00\x00\x01a", END]), auto);
        assert_eq!(whole(Kind::Query, NEW, &[b"\x01", COLUMN, ERR]), None);
        assert_eq!(whole(Kind::Query, NEW, &[b"\x01", COLUMN, b"\x011", ERR]), None);
        refused(Kind::Execute, NEW, &[b"\x01", COLUMN, b"\x011"]);
        refused(Kind::Query, OLD, &[b"\x01", COLUMN, b"\x011"]);
        refused(Kind::Query, NEW, &[b"\x01", b"\x011"]);
        refused(Kind::Query, NEW, &[b"\x00"]);
    }

    #[test]
    fn most_rows_are_told_by_their_first_byte() {
        for kind in [Kind::Query, Kind::Execute, Kind::Fetch, Kind::FieldList, Kind::Prepare] {
            for (first, length) in (0..=255).flat_map(|first| [1, 8, 9, 70].map(|it| (first, it))) {
                let payload = [vec![first], vec![0; length - 1]].concat();
                let before = Reply { kind, phase: Phase::Rows };
                for agreed in [OLD, NEW] {
                    let mut reply = before;
                    let taken = reply.take(header(&payload), &payload, agreed);
                    let within = Ok(Some(Taken { status: None, part: Part::Within }));
                    let is_row = taken == within && reply.is_rows();
                    assert!(!before.goes_on_with(&payload) || is_row, "{kind:?} {payload:?}");
                }
            }
            assert!(!Reply::of(kind).goes_on_with(&[0]) || kind == Kind::Fetch);
        }
    }

    #[test]
    fn several_results() {
        let auto = Some(Status::AUTOCOMMIT);
        let new = [b"\x01", COLUMN, b"\x011", END_MORE, MORE, b"\x01", COLUMN, END];
        assert_eq!(whole(Kind::Query, NEW, &new), auto);
        let old = [b"\x01", COLUMN, EOF, b"\x011", EOF_MORE, MORE, OK];
        assert_eq!(whole(Kind::Query, OLD, &old), auto);
        assert_eq!(whole(Kind::Query, NEW, &[MORE, ERR]), None);
        // A procedure's results, and its end.
        assert_eq!(whole(Kind::Execute, NEW, &[b"\x01", COLUMN, END_MORE, OK]), auto);
    }

    #[test]
    fn prepared_statements() {
        let head = |columns, parameters| [0, 7, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
        assert_eq!(whole(Kind::Prepare, NEW, &[&head(0, 0)]), None);
        let new: [&[u8]; 4] = [&head(1, 2), COLUMN, COLUMN, COLUMN];
        assert_eq!(whole(Kind::Prepare, NEW, &new), None);
        let auto = Some(Status::AUTOCOMMIT);
        let old: [&[u8]; 6] = [&head(1, 2), COLUMN, COLUMN, EOF, COLUMN, EOF];
        assert_eq!(whole(Kind::Prepare, OLD, &old), auto);
        assert_eq!(whole(Kind::Prepare, OLD, &[&head(0, 1), COLUMN, EOF]), auto);
        assert_eq!(whole(Kind::Prepare, OLD, &[&head(1, 0), COLUMN, EOF]), auto);
        refused(Kind::Prepare, NEW, &[OK]);
        let left_out = [0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
        let optional = NEW | Capabilities::OPTIONAL_RESULTSET_METADATA;
        assert_eq!(whole(Kind::Prepare, optional, &[&left_out]), None);
        let optional = OLD | Capabilities::OPTIONAL_RESULTSET_METADATA;
        assert_eq!(whole(Kind::Prepare, optional, &[&left_out, EOF, EOF]), auto);
    }

    #[test]
    fn cursors() {
        let opened = Some(Status::AUTOCOMMIT.with(Status::CURSOR_EXISTS));
        assert_eq!(whole(Kind::Execute, OLD, &[b"\x01", COLUMN, EOF_CURSOR]), opened);
        assert_eq!(whole(Kind::Execute, NEW, &[b"\x01", COLUMN, END_CURSOR]), opened);
        assert_eq!(whole(Kind::Fetch, NEW, &[b"\x00\x00\x01a", END_CURSOR]), opened);
        assert_eq!(whole(Kind::Fetch, OLD, &[EOF_CURSOR]), opened);
        assert_eq!(whole(Kind::Fetch, OLD, &[ERR]), None);
    }

    #[test]
    fn a_procedures_own_cursors_are_none_of_the_client() {
        let auto = Some(Status::AUTOCOMMIT);
        let eof: &[u8] = b"\xfe\x00\x00\x4a\x00";
        let end: &[u8] = b"\xfe\x00\x00\x4a\x00\x00\x00";
        for kind in [Kind::Query, Kind::Execute] {
            let row: &[u8] = if kind == Kind::Query { b"\x01a" } else { b"\x00\x00\x01a" };
            assert_eq!(whole(kind, OLD, &[b"\x01", COLUMN, eof, row, eof, OK]), auto);
            assert_eq!(whole(kind, NEW, &[b"\x01", COLUMN, row, end, OK]), auto);
        }
    }

    #[test]
    fn lists_of_columns() {
        let auto = Some(Status::AUTOCOMMIT);
        assert_eq!(whole(Kind::FieldList, NEW, &[COLUMN, COLUMN, END]), auto);
        assert_eq!(whole(Kind::FieldList, OLD, &[COLUMN, EOF]), auto);
        assert_eq!(whole(Kind::FieldList, OLD, &[ERR]), None);
    }

    #[test]
    fn files_of_the_client() {
        let mut reply = Reply::of(Kind::Query);
        let asked = reply.take(header(b"\xfbname"), b"\xfbname", NEW);
        assert_eq!(asked, Ok(Some(Taken { status: None, part: Part::File })));
        assert!(reply.is_file());
        let auto = Some(Status::AUTOCOMMIT);
        assert_eq!(whole(Kind::Query, NEW, &[b"\xfbname", OK]), auto);
        assert_eq!(whole(Kind::Query, NEW, &[b"\xfbname", ERR]), None);
        assert_eq!(whole(Kind::Query, NEW, &[b"\xfbname", MORE, OK]), auto);
        refused(Kind::Query, NEW, &[b"\xfbname", b"\x01"]);
    }

    #[test]
    fn a_long_value_is_no_end() {
        let mut reply = Reply::of(Kind::Query);
        for packet in [&b"\x01"[..], COLUMN] {
            reply.take(header(packet), packet, NEW).expect("a packet of the reply");
        }
        let full = Header { payload: 0xFF_FFFF, sequence: 3 };
        let start = [0xFE; PREFIX_BYTES];
        let within = Some(Taken { status: None, part: Part::Within });
        assert_eq!(reply.take(full, &start, NEW), Ok(within));
        assert_eq!(
            reply.take(header(END), END, NEW).expect("an end").expect("all").part,
            Part::End
        );
    }
}
