//! The commands that a server has got and not answered in full, and how the packets that come
//! belong to them.
//!
//! A packet of a server does not say what it is, so whoever sends a command puts it here, and each
//! packet belongs to the first command. There is hardly ever more than one.

use std::collections::VecDeque;

use refrain_mysql_wire::packet::{Boundaries, HEADER_BYTES};
use refrain_mysql_wire::reply::{EofPacket, first};
use refrain_mysql_wire::{Capabilities, Header, Status, command};

use crate::reply::{Part, Reply, Taken, UnexpectedPacket};
use crate::table::Kind;
use crate::text::Facts;

/// Most commands that a server may owe replies to: a client that sends more waits until it has
/// these.
const COMMANDS_MAX: usize = 16 * 1024;

/// A command whose reply has not come in full.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The reply, as far as it has come.
    reply: Reply,
    kind: Kind,
    /// Where the reply goes.
    pub(crate) goes: Goes,
}

/// The destination of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Goes {
    /// The client.
    On(Sent),
    /// Nowhere: the client has left.
    Nowhere,
    /// Refrain has sent the command.
    Here(Purpose),
}

/// A client's command, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The command's byte.
    pub(crate) command: u8,
    /// The effects that its text may have.
    pub(crate) facts: Facts,
    /// The client's number of the prepared statement that it names; 0 for none.
    pub(crate) statement: u32,
    /// Whether the server's number of that was foretold.
    pub(crate) is_foretold: bool,
    /// The number under which its text is counted; 0 if it has none, or is counted with others.
    pub(crate) text: u64,
}

impl Sent {
    /// Whether the command runs a statement.
    pub(crate) fn is_statement(&self) -> bool {
        is_statement(self.command)
    }
}

/// Whether a command runs a statement.
pub(crate) fn is_statement(command: u8) -> bool {
    matches!(command, command::QUERY | command::STMT_EXECUTE)
}

/// Whether a server answers a command.
pub(crate) fn is_answered(command: u8) -> bool {
    Kind::of(command).is_some()
}

/// The purpose of a command of Refrain's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It makes the session as new.
    Reset,
    /// It asks for the values of all variables.
    Variables,
    /// It asks for the names of all collations.
    Collations,
    /// It has the server report changes.
    Tracking,
    /// It gives the session the client's settings.
    Settings,
    /// It gives the session the schema that the client names at its login.
    Schema,
    /// It asks whether a transaction is open, and what has changed that no reply has told.
    Ask,
    /// It asks the same where the settings that have changed were set back.
    AskSetBack,
    /// It asks for the collation that a statement has set without a report.
    Collation,
    /// It asks for the number that a row got.
    InsertId,
    /// It gives the session such a number.
    GiveInsertId,
    /// It clears warnings and errors.
    Clear,
    /// It asks what the client wants to be told of changes.
    Wishes,
    /// It prepares a statement of the client, which the server lacks.
    Statement,
    /// It gives the session variables for the time of that.
    Detour,
    /// It gives the session a schema for the time of that.
    DetourSchema,
    /// It asks the catalog for views and triggers.
    Catalog,
    /// It is there to be hit by KILL.
    Absorb,
}

impl Purpose {
    /// Whether an error is one of the client's, or of the client's settings.
    pub(crate) fn may_fail(self) -> bool {
        matches!(
            self,
            Self::Schema
                | Self::Statement
                | Self::DetourSchema
                | Self::Variables
                | Self::Catalog
                | Self::Absorb
        )
    }

    /// Whether the rows are looked at.
    fn has_rows(self) -> bool {
        matches!(
            self,
            Self::Variables
                | Self::Collations
                | Self::Collation
                | Self::Wishes
                | Self::InsertId
                | Self::Catalog
        )
    }
}

impl Command {
    /// Makes the record of a client's command; `None` if nothing answers it.
    pub(crate) fn of_client(sent: Sent) -> Option<Self> {
        Some(Self::new(Kind::of(sent.command)?, Goes::On(sent)))
    }

    fn new(kind: Kind, goes: Goes) -> Self {
        Self { reply: Reply::of(kind), kind, goes }
    }

    /// Whether packets of the reply are read and not only counted.
    fn is_read(&self) -> bool {
        let is_prepared = self.kind == Kind::Prepare && self.reply.is_head();
        match &self.goes {
            Goes::On(sent) => is_prepared || sent.is_foretold && self.reply.is_head(),
            Goes::Here(purpose) => is_prepared || purpose.has_rows(),
            Goes::Nowhere => false,
        }
    }
}

/// Packets of the first command's reply that came together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    /// Bytes of packets that need not be read.
    pub(crate) bytes: usize,
    /// Bytes of the last of these packets that are still to come.
    pub(crate) missing: usize,
    /// The sequence id of the last of these packets, if there is any.
    pub(crate) sequence: Option<u8>,
    /// A packet behind them that has to be read.
    pub(crate) packet: Option<ReadPacket<'a>>,
}

/// A packet that has to be read, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPacket<'a> {
    /// The packet's header.
    pub(crate) header: Header,
    /// The packet's payload.
    pub(crate) payload: &'a [u8],
    /// Its meaning.
    pub(crate) taken: Taken,
    /// Whether it is a row.
    pub(crate) is_row: bool,
}

impl ReadPacket<'_> {
    /// Whether the packet is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.payload.first() == Some(&first::ERR)
    }

    /// Whether the packet says what has changed in the session.
    pub(crate) fn has_changes(&self) -> bool {
        is_changed(self.taken) && !self.is_brief()
    }

    /// Whether the packet says that something has changed in the session, and not what. The next OK
    /// packet does.
    pub(crate) fn has_untold_changes(&self) -> bool {
        is_changed(self.taken) && self.is_brief()
    }

    /// Whether an EOF packet has flags alone.
    fn is_brief(&self) -> bool {
        self.payload.len() <= EofPacket::BYTES
    }
}

/// Whether a packet says that something has changed in the session.
fn is_changed(taken: Taken) -> bool {
    taken.status.is_some_and(|status| status.has(Status::SESSION_STATE_CHANGED))
}

/// The commands that a server owes replies to.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    queue: VecDeque<Command>,
    /// The rows of the first command's reply that have come.
    pub(crate) rows: u64,
    boundaries: Boundaries,
}

impl Commands {
    /// Adds a command that the server gets.
    pub(crate) fn push(&mut self, command: Command) {
        self.queue.push_back(command);
    }

    /// Whether the server owes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the command whose reply comes.
    pub(crate) fn first(&self) -> Option<&Command> {
        self.queue.front()
    }

    /// Whether the server owes as many replies as it may.
    pub(crate) fn are_many(&self) -> bool {
        self.queue.len() >= COMMANDS_MAX
    }

    /// Whether the server owes a client a reply.
    pub(crate) fn has_client_command(&self) -> bool {
        self.queue.iter().any(|command| matches!(command.goes, Goes::On(_)))
    }

    /// Whether KILL may hit what the server does: that is for a client, and nothing behind it is of
    /// Refrain's own and must not fail. A statement of wishes has questions behind it, which may
    /// not be there yet.
    pub(crate) fn may_be_hit(&self) -> bool {
        let may = |command: &Command| match &command.goes {
            Goes::On(sent) => !sent.facts.wishes,
            Goes::Nowhere => true,
            Goes::Here(purpose) => purpose.may_fail(),
        };
        let is_of_client = |command: &Command| matches!(command.goes, Goes::On(_));
        self.first().is_some_and(is_of_client) && self.queue.iter().all(may)
    }

    /// Whether the next packet goes on with a message.
    pub(crate) fn is_within(&self) -> bool {
        self.boundaries.is_within()
    }

    /// Takes out the first command, whose reply is over.
    pub(crate) fn pop(&mut self) -> Option<Command> {
        self.rows = 0;
        self.queue.pop_front()
    }

    /// Has the replies to the client's commands go nowhere.
    pub(crate) fn forsake(&mut self) {
        for command in &mut self.queue {
            if let Goes::On(_) = command.goes {
                command.goes = Goes::Nowhere;
            }
        }
    }

    /// Follows the first command's reply through output, up to a packet that has to be read.
    ///
    /// # Errors
    /// A packet that the reply cannot have there.
    pub(crate) fn follow<'a>(
        &mut self,
        output: &'a [u8],
        agreed: Capabilities,
    ) -> Result<Run<'a>, UnexpectedPacket> {
        let command = self.queue.front_mut().ok_or(UnexpectedPacket)?;
        let mut run = Run { bytes: 0, missing: 0, sequence: None, packet: None };
        while let Some(header) = Header::parse(&output[run.bytes..]) {
            let there = &output[run.bytes + HEADER_BYTES..];
            let payload = &there[..there.len().min(header.payload as usize)];
            if self.boundaries.is_within() {
                // A continuation may begin with any byte.
            } else if command.reply.goes_on_with(payload) && !command.is_read() {
                self.rows += 1;
            } else {
                let reads = command.is_read();
                let (mut reply, was_rows) = (command.reply, command.reply.is_rows());
                let Some(taken) = reply.take(header, payload, agreed)? else { break };
                if reads || taken.part != Part::Within || is_changed(taken) {
                    // What has to be read is never so long that it goes on in another packet.
                    if header.is_continued() {
                        return Err(UnexpectedPacket);
                    }
                    if payload.len() < header.payload as usize {
                        break;
                    }
                    command.reply = reply;
                    let is_row = was_rows && taken.part == Part::Within && reply.is_rows();
                    run.packet = Some(ReadPacket { header, payload, taken, is_row });
                    break;
                }
                command.reply = reply;
            }
            self.boundaries.begins(header);
            run.sequence = Some(header.sequence);
            run.missing = header.packet_bytes() - HEADER_BYTES - payload.len();
            run.bytes += HEADER_BYTES + payload.len();
            if run.missing > 0 {
                break;
            }
        }
        Ok(run)
    }
}

/// Appends a command of Refrain's own for a server. The body stands behind the command's byte.
/// `train::send` calls it for all others.
pub(crate) fn send(
    commands: &mut Commands,
    out: &mut Vec<u8>,
    (command, body): (u8, &[u8]),
    purpose: Purpose,
) {
    refrain_mysql_wire::packet::message(out, 0, |out| {
        out.push(command);
        out.extend_from_slice(body);
    });
    let kind = Kind::of(command).expect("a server answers what Refrain sends");
    commands.push(Command::new(kind, Goes::Here(purpose)));
}

/// Appends the command that closes a server's prepared statement. Nothing answers it.
pub(crate) fn close(out: &mut Vec<u8>, id: u32) {
    refrain_mysql_wire::packet::message(out, 0, |out| {
        out.push(command::STMT_CLOSE);
        out.extend_from_slice(&id.to_le_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_to_be_read_does_not_go_on_in_another_packet() {
        let mut commands = Commands::default();
        send(&mut commands, &mut Vec::new(), (command::PING, b""), Purpose::Ask);
        let begun = [&[0xff, 0xff, 0xff, 1, first::OK, 0, 0, 2][..], &[0; 64]].concat();
        let followed = commands.follow(&begun, Capabilities::NONE);
        assert_eq!(followed, Err(UnexpectedPacket));
    }

    #[test]
    fn a_server_owes_a_bounded_number_of_replies() {
        let mut commands = Commands::default();
        for _ in 0..COMMANDS_MAX {
            assert!(!commands.are_many());
            send(&mut commands, &mut Vec::new(), (command::PING, b""), Purpose::Ask);
        }
        assert!(commands.are_many());
    }
}
