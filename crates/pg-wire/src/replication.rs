//! Logical replication: what the CopyData messages of a walsender hold, and the messages of the
//! output plug-in `pgoutput` in them, as far as they say which relations a transaction has changed.
//!
//! No row is decoded: of a change only the relation is read, which stands in front. So a reader
//! needs but the beginning of a message, however long the row is.
//!
//! Sources: "Streaming Replication Protocol" and "Logical Replication Message Formats" of the
//! PostgreSQL manual, protocol versions 1 and 2.

use crate::Malformed;
use crate::frame::split_string;
use crate::tag::front::COPY_DATA;
use crate::tag::{pgoutput, replication};
use crate::write;

/// A position in the write-ahead log (LSN).
pub type Lsn = u64;

/// The content of a CopyData message of a walsender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streamed<'a> {
    /// A message of the output plug-in.
    Data(&'a [u8]),
    /// How far the walsender is.
    Keepalive {
        /// All that was committed up to here has been sent.
        end: Lsn,
        /// Whether the walsender wants a status update at once.
        wants_reply: bool,
    },
}

impl<'a> Streamed<'a> {
    /// Reads the body of a CopyData message, or the beginning of one.
    ///
    /// # Errors
    /// A body of another kind, or one that is too short.
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let bad = Malformed::new("message of a walsender");
        let (&kind, rest) = body.split_first().ok_or(bad)?;
        match kind {
            // The begin of the piece, the end of the WAL, the server's time.
            replication::DATA => Ok(Self::Data(rest.get(24..).ok_or(bad)?)),
            replication::KEEPALIVE => {
                let (end, rest) = long(rest).ok_or(bad)?;
                // The server's time, and the wish.
                let wish = rest.get(8).ok_or(bad)?;
                Ok(Self::Keepalive { end, wants_reply: *wish != 0 })
            }
            _ => Err(bad),
        }
    }
}

/// Appends a standby status update: all up to `received` has come and needs not be sent again. With
/// `asks` the walsender answers with a keepalive. `time` is in microseconds since 2000.
pub fn status_update(out: &mut Vec<u8>, received: Lsn, time: u64, asks: bool) {
    write::message(out, COPY_DATA, |out| {
        out.push(replication::STATUS);
        // Written, flushed and applied.
        out.extend_from_slice([received.to_be_bytes(); 3].as_flattened());
        out.extend_from_slice(&time.to_be_bytes());
        out.push(u8::from(asks));
    });
}

/// A message of `pgoutput`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The changes of a transaction that has been committed follow.
    Begin {
        /// The transaction.
        xid: u32,
    },
    /// The changes of that transaction are over.
    Commit {
        /// The position behind its commit.
        end: Lsn,
    },
    /// A relation, before the first of its changes, and again when it has changed itself.
    Relation {
        /// Its OID.
        oid: u32,
        /// Its schema; empty for that of the system's own.
        schema: &'a [u8],
        /// Its name.
        name: &'a [u8],
    },
    /// A row of this relation was inserted, updated or deleted.
    Row(u32),
    /// These relations were truncated.
    Truncate(Oids<'a>),
    /// Changes of a transaction follow that may still be under way.
    StreamStart {
        /// The transaction.
        xid: u32,
    },
    /// The changes are over, for now.
    StreamStop,
    /// A transaction whose changes came in parts has been committed.
    StreamCommit {
        /// The transaction.
        xid: u32,
        /// The position behind its commit.
        end: Lsn,
    },
    /// A transaction whose changes came in parts, or a part of it, has been rolled back.
    StreamAbort {
        /// The transaction.
        xid: u32,
        /// The subtransaction that was rolled back, or the transaction itself.
        subxid: u32,
    },
    /// A message that a session has written into the log (`pg_logical_emit_message`).
    Message {
        /// Whether it belongs to the transaction whose changes come.
        is_transactional: bool,
        /// Its prefix.
        prefix: &'a [u8],
    },
    /// A message that says nothing of rows: of a type, of an origin, or of a later version.
    Other,
}

/// OIDs in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oids<'a>(&'a [[u8; 4]]);

impl Oids<'_> {
    /// Iterates over them.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|oid| u32::from_be_bytes(*oid))
    }
}

impl<'a> Change<'a> {
    /// Reads a message, or the beginning of one that is about a row. `in_stream` says whether it
    /// stands between the begin and the end of a part of a transaction: there it has the number of
    /// a transaction in front.
    ///
    /// # Errors
    /// A message that is too short for its kind.
    pub fn read(message: &'a [u8], in_stream: bool) -> Result<Self, Malformed> {
        let (&tag, body) = message.split_first().ok_or(Malformed::new("message of pgoutput"))?;
        // The number there may be that of a subtransaction, so it is of no use.
        let of_change = || if in_stream { body.get(4..) } else { Some(body) };
        let read = match tag {
            // The position of the commit, its time.
            pgoutput::BEGIN => body.get(16..).and_then(int).map(|(xid, _)| Self::Begin { xid }),
            // Flags, the position of the commit.
            pgoutput::COMMIT => body.get(9..).and_then(long).map(|(end, _)| Self::Commit { end }),
            pgoutput::RELATION => of_change().and_then(relation),
            pgoutput::INSERT | pgoutput::UPDATE | pgoutput::DELETE => {
                of_change().and_then(int).map(|(oid, _)| Self::Row(oid))
            }
            pgoutput::TRUNCATE => of_change().and_then(truncate),
            pgoutput::MESSAGE => of_change().and_then(emitted),
            pgoutput::STREAM_START => int(body).map(|(xid, _)| Self::StreamStart { xid }),
            pgoutput::STREAM_STOP => Some(Self::StreamStop),
            pgoutput::STREAM_COMMIT => stream_commit(body),
            pgoutput::STREAM_ABORT => stream_abort(body),
            _ => Some(Self::Other),
        };
        read.ok_or(Malformed::new("message of pgoutput"))
    }
}

fn relation(body: &[u8]) -> Option<Change<'_>> {
    let (oid, rest) = int(body)?;
    let (schema, rest) = split_string(rest)?;
    let (name, _) = split_string(rest)?;
    Some(Change::Relation { oid, schema, name })
}

fn truncate(body: &[u8]) -> Option<Change<'_>> {
    let (count, rest) = int(body)?;
    // Options: CASCADE, RESTART IDENTITY.
    let (_, oids) = rest.split_first()?;
    let (oids, rest) = oids.as_chunks();
    let is_whole = oids.len() == count as usize && rest.is_empty();
    is_whole.then_some(Change::Truncate(Oids(oids)))
}

fn emitted(body: &[u8]) -> Option<Change<'_>> {
    let (flags, rest) = body.split_first()?;
    // Its position.
    let (prefix, _) = split_string(rest.get(8..)?)?;
    Some(Change::Message { is_transactional: flags & 1 != 0, prefix })
}

fn stream_commit(body: &[u8]) -> Option<Change<'_>> {
    let (xid, rest) = int(body)?;
    // Flags, the position of the commit.
    let (end, _) = long(rest.get(9..)?)?;
    Some(Change::StreamCommit { xid, end })
}

fn stream_abort(body: &[u8]) -> Option<Change<'_>> {
    let (xid, rest) = int(body)?;
    let (subxid, _) = int(rest)?;
    Some(Change::StreamAbort { xid, subxid })
}

fn int(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u32::from_be_bytes(*number), rest))
}

fn long(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as PostgreSQL 15 sends them, and what they say, outside of a stream.
    fn whole() -> Vec<(Vec<u8>, Change<'static>)> {
        let message = |parts: &[&[u8]]| parts.concat();
        let (long, xid) = ([0, 0, 0, 0, 1, 0x50, 0x60, 0x70], [0, 0, 3, 1]);
        let end = 0x0150_6070;
        let columns = b"d\0\x01\x01id\0\0\0\0\x17\xff\xff\xff\xff";
        vec![
            (message(&[b"B", &long, &long, &xid]), Change::Begin { xid: 769 }),
            (message(&[b"C\0", &[9; 8], &long, &[0; 8]]), Change::Commit { end }),
            (
                message(&[b"R\0\0\x40\x01public\0items\0", columns]),
                Change::Relation { oid: 16385, schema: b"public", name: b"items" },
            ),
            (message(&[b"I\0\0\x40\x01N\0\x01t\0\0\0\x011"]), Change::Row(16385)),
            (message(&[b"U\0\0\x40\x02N\0\x01n"]), Change::Row(16386)),
            (message(&[b"D\0\0\x40\x03K\0\x01n"]), Change::Row(16387)),
            (
                message(&[b"T\0\0\0\x02\0\0\0\0\x07\0\0\0\x09"]),
                Change::Truncate(Oids(&[[0, 0, 0, 7], [0, 0, 0, 9]])),
            ),
            (
                message(&[b"M\x01", &long, b"refrain\0\0\0\0\x03ddl"]),
                Change::Message { is_transactional: true, prefix: b"refrain" },
            ),
            (message(&[b"S", &xid, b"\x01"]), Change::StreamStart { xid: 769 }),
            (message(&[b"c", &xid, b"\0", &[9; 8], &long, &[0; 8]]), {
                Change::StreamCommit { xid: 769, end }
            }),
            (message(&[b"A", &xid, b"\0\0\x03\x02"]), {
                Change::StreamAbort { xid: 769, subxid: 770 }
            }),
        ]
    }

    #[test]
    fn messages_say_which_relations_have_changed() {
        for (message, due) in whole() {
            assert_eq!(Change::read(&message, false), Ok(due), "{message:?}");
        }
        assert_eq!(Change::read(b"E", true), Ok(Change::StreamStop));
        for other in [&b"Y\0\0\x40\x01public\0t\0"[..], b"O", b"m", b"~"] {
            assert_eq!(Change::read(other, false), Ok(Change::Other));
        }
    }

    #[test]
    fn within_a_part_of_a_transaction_changes_have_a_number_in_front() {
        for (message, due) in whole() {
            let is_change = matches!(
                due,
                Change::Relation { .. }
                    | Change::Row(_)
                    | Change::Truncate(_)
                    | Change::Message { .. }
            );
            if is_change {
                let numbered = [&message[..1], &[0, 0, 3, 2], &message[1..]].concat();
                assert_eq!(Change::read(&numbered, true), Ok(due));
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_malformed_or_says_the_same() {
        for (message, due) in whole() {
            for cut in 0..message.len() {
                let read = Change::read(&message[..cut], false);
                assert!(read.is_err() || read == Ok(due), "{message:?} cut at {cut}: {read:?}");
            }
        }
        let (truncate, _) = &whole()[6];
        assert!(Change::read(&[truncate, &[0][..]].concat(), false).is_err());
    }

    #[test]
    fn no_bytes_make_a_reader_panic() {
        // A generator of its own: numbers that differ, and the same in each run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let messages = whole();
        for _ in 0..200_000 {
            let (message, _) = &messages[next() as usize % messages.len()];
            let mut message = message.clone();
            for _ in 0..next() % 4 {
                let place = next() as usize % message.len();
                message[place] = next() as u8;
            }
            message.truncate(next() as usize % (message.len() + 1));
            for in_stream in [false, true] {
                if let Ok(Change::Truncate(oids)) = Change::read(&message, in_stream) {
                    assert!(oids.iter().count() <= message.len() / 4);
                }
            }
            let _ = Streamed::read(&message);
        }
    }

    #[test]
    fn a_walsender_sends_pieces_and_tells_how_far_it_is() {
        let piece = [&b"w"[..], &[1; 24], b"E"].concat();
        assert_eq!(Streamed::read(&piece), Ok(Streamed::Data(b"E")));
        let keepalive = [&b"k"[..], &[0, 0, 0, 1, 0, 0, 0, 2], &[7; 8], &[1]].concat();
        let end = 0x0000_0001_0000_0002;
        assert_eq!(Streamed::read(&keepalive), Ok(Streamed::Keepalive { end, wants_reply: true }));
        for bad in [&b""[..], b"w", b"k\0", &keepalive[..17], b"x0000000000000000000000000"] {
            assert!(Streamed::read(bad).is_err());
        }
    }

    #[test]
    fn a_status_update_says_how_far_the_client_is() {
        let mut out = Vec::new();
        status_update(&mut out, 0x0000_0001_0000_0002, 3, true);
        let lsn = [0, 0, 0, 1, 0, 0, 0, 2];
        let due = [&b"d\0\0\0\x26r"[..], &lsn, &lsn, &lsn, &[0, 0, 0, 0, 0, 0, 0, 3, 1]].concat();
        assert_eq!(out, due);
    }
}
