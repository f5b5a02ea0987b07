//! The words of a server about a statement's parameters and columns, kept so that the next PREPARE
//! of the same text needs no server.
//!
//! Each execution repeats the definitions of the columns, so those here are a promise that the next
//! execution may correct, as it does where a table is altered between the two. They are used while
//! no table is known to have changed, and not longer than `definition_max_age`.

use refrain_mysql_wire::packet::{self, HEADER_BYTES};
use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::{EofPacket, first};
use refrain_mysql_wire::{Capabilities, Header, Status};
use refrain_pool::Now;

/// The longest definitions that are kept, in bytes.
const BYTES_MAX: usize = 64 * 1024;

/// The bytes of an EOF packet's payload that stand before its flags: 0xFE, and the number of
/// warnings.
const BEFORE_FLAGS: usize = 3;

/// The moment of a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// How many changes of tables were known.
    pub(crate) tables: u64,
    /// The time.
    pub(crate) at: Now,
}

/// The definitions of a statement's parameters and columns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definitions {
    pub(crate) parameters: u16,
    columns: u16,
    /// The packets behind the head of the reply, with their headers.
    packets: Box<[u8]>,
    /// Where in these the flags of the session stand.
    flags: Vec<usize>,
    since: Moment,
}

impl Definitions {
    /// Returns the length of the packets.
    pub(crate) fn bytes(&self) -> usize {
        self.packets.len()
    }

    /// Whether nothing that is known has changed since, for as long as definitions may be used.
    pub(crate) fn hold(&self, now: Moment, age_max: u64) -> bool {
        self.since.tables == now.tables && now.at.since(self.since.at) < age_max
    }

    /// Appends the reply to a PREPARE: the number and the flags are those of the client.
    pub(crate) fn write(&self, out: &mut Vec<u8>, number: u32, status: Status) {
        let head = PrepareOk {
            statement: number,
            columns: self.columns,
            parameters: self.parameters,
            warnings: 0,
            defined: true,
        };
        packet::message(out, 1, |out| head.write(out, Capabilities::NONE));
        let at = out.len();
        out.extend_from_slice(&self.packets);
        let flags = status.0.to_le_bytes();
        for place in &self.flags {
            out[at + place..at + place + flags.len()].copy_from_slice(&flags);
        }
    }
}

/// Definitions that are on their way from a server.
#[derive(Debug)]
pub(crate) struct Coming {
    head: PrepareOk,
    packets: Vec<u8>,
    since: Moment,
}

impl Coming {
    /// Begins with the head of a reply. `None` if what follows cannot be used again: a warning
    /// belongs to one PREPARE.
    pub(crate) fn new(head: PrepareOk, since: Moment) -> Option<Self> {
        let is_plain = head.warnings == 0 && head.defined;
        is_plain.then_some(Self { head, packets: Vec::new(), since })
    }

    /// Takes in packets, or parts of them. Returns false if they are too long to be kept.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> bool {
        let fits = self.packets.len() + bytes.len() <= BYTES_MAX;
        if fits {
            self.packets.extend_from_slice(bytes);
        }
        fits
    }

    /// Ends. The last packet is there.
    pub(crate) fn finish(self) -> Definitions {
        let Self { head, packets, since } = self;
        let flags = flags(&packets);
        let PrepareOk { parameters, columns, .. } = head;
        Definitions { parameters, columns, packets: packets.into(), flags, since }
    }
}

/// Returns where flags of the session stand in the packets: behind each group of definitions may
/// come an EOF packet. No definition begins with its first byte.
fn flags(packets: &[u8]) -> Vec<usize> {
    let (mut at, mut flags) = (0, Vec::new());
    while let Some(header) = Header::parse(&packets[at..]) {
        let payload = at + HEADER_BYTES;
        if header.payload as usize == EofPacket::BYTES && packets.get(payload) == Some(&first::EOF)
        {
            flags.push(payload + BEFORE_FLAGS);
        }
        at += header.packet_bytes();
        if at >= packets.len() {
            break;
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: PrepareOk =
        PrepareOk { statement: 9, columns: 1, parameters: 1, warnings: 0, defined: true };

    fn defined() -> Definitions {
        let mut packets = Vec::new();
        for sequence in [2, 4] {
            packet::message(&mut packets, sequence, |out| out.extend_from_slice(b"\x03def..."));
            let eof = EofPacket { warnings: 0, status: Status::IN_TRANS };
            packet::message(&mut packets, sequence + 1, |out| eof.write(out));
        }
        let since = Moment { tables: 1, at: Now(100) };
        let mut coming = Coming::new(HEAD, since).expect("nothing speaks against it");
        let (one, two) = packets.split_at(7);
        assert!(coming.add(one) && coming.add(two));
        coming.finish()
    }

    #[test]
    fn the_flags_are_those_of_the_client_that_prepares() {
        let definitions = defined();
        let mut out = Vec::new();
        definitions.write(&mut out, 3, Status::AUTOCOMMIT);
        let (head, rest) = out.split_at(HEADER_BYTES + 12);
        let head = PrepareOk::read(&head[HEADER_BYTES..], Capabilities::NONE);
        assert_eq!(head, Ok(PrepareOk { statement: 3, ..HEAD }));
        let flags: Vec<_> = definitions.flags.iter().map(|&at| &rest[at..at + 2]).collect();
        assert_eq!(flags, [&[2, 0], &[2, 0]]);
        assert_eq!(rest.len(), definitions.bytes());
    }

    #[test]
    fn definitions_hold_until_a_table_changes_or_they_are_old() {
        let definitions = defined();
        assert!(definitions.hold(Moment { tables: 1, at: Now(149) }, 50));
        assert!(!definitions.hold(Moment { tables: 1, at: Now(150) }, 50));
        assert!(!definitions.hold(Moment { tables: 2, at: Now(101) }, 50));
        assert!(!definitions.hold(Moment { tables: 1, at: Now(100) }, 0), "they are switched off");
    }

    #[test]
    fn what_cannot_be_used_again_is_not_kept() {
        assert!(Coming::new(PrepareOk { warnings: 1, ..HEAD }, Moment::default()).is_none());
        let mut coming = Coming::new(HEAD, Moment::default()).expect("it has no warnings");
        assert!(coming.add(&[0; BYTES_MAX]) && !coming.add(&[0]));
    }
}
