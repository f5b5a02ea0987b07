//! Replication connections: the bytes of a client and of its server pass on as they are, in both
//! directions at once.
//!
//! Of a message its tag is read, so that each end of a session falls between two messages, and the
//! memory stays small. An error is awaited in full: it may be the last message.

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::{Header, Malformed, frame};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::inbox::{Inbox, Rest};
use refrain_pool::{Conn, Linked, Step as PoolStep};

use crate::engine::Step;
use crate::relay::reader::LOOKED_INTO_MAX;
use crate::state::parts::Pg;

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Onward {
    /// It passes on, and the next is read.
    Passes,
    /// It passes on as the last.
    IsLast,
    /// It does not pass on, and nothing behind it is read.
    Ends,
    /// It is judged again when all of it is there.
    Waits,
}

/// Passes messages on. `judge` gets the header of each, and as much of its body as is there.
/// Returns the number of bytes taken.
///
/// # Errors
/// If a message has a length that none can have.
fn pass(
    inbox: &mut Inbox,
    out: &mut Vec<u8>,
    input: &[u8],
    mut judge: impl FnMut(Header, &[u8]) -> Onward,
) -> Result<usize, Malformed> {
    let mut at = inbox.take_rest(input);
    out.extend_from_slice(&input[..at]);
    while let Some(header) = Header::parse(&input[at..])? {
        let message = &input[at..];
        let there = header.message_bytes().min(message.len());
        let onward = judge(header, &message[frame::HEADER_BYTES..there]);
        if matches!(onward, Onward::Ends | Onward::Waits) {
            break;
        }
        out.extend_from_slice(&message[..there]);
        inbox.expect(header.message_bytes() - there, Rest::On);
        at += there;
        if onward == Onward::IsLast || at == input.len() {
            break;
        }
    }
    Ok(at)
}

/// A client with a replication connection, and its server, within a step of the pool's engine.
pub(crate) struct Relayed<'s, 'a> {
    pub(crate) step: &'s mut PoolStep<'a, Pg>,
    pub(crate) client: Conn,
    pub(crate) server: Conn,
}

impl Relayed<'_, '_> {
    /// Passes the client's input on to the server. Returns the number of bytes taken.
    #[cold]
    pub(crate) fn requests(&mut self, input: &[u8]) -> usize {
        let Linked { client, server, ports, .. } = self.step.linked(self.client, self.server);
        let Some(relay) = &mut server.session.relay else { return 0 };
        let mut ends = false;
        let passed = pass(&mut client.inbox, ports.out(self.server), input, |header, _| {
            ends = header.tag == front::TERMINATE;
            if ends {
                return Onward::Ends;
            }
            relay.note_request();
            Onward::Passes
        });
        match passed {
            Err(_) => self.step.end_client(self.client, DisconnectReason::ClientProtocol),
            Ok(_) if ends => self.step.end_client(self.client, DisconnectReason::Terminated),
            Ok(used) => {
                self.step.push_back_on_client(self.client, self.server);
                self.step.leave_if_ended(self.client);
                return used;
            }
        }
        input.len()
    }

    /// Passes the server's output on to the client. Returns the number of bytes taken, and whether
    /// to go on with the rest.
    #[cold]
    pub(crate) fn replies(&mut self, input: &[u8]) -> (usize, bool) {
        let Linked { server, core_state, ports, now, .. } =
            self.step.linked(self.client, self.server);
        let Some(relay) = &mut server.session.relay else { return (0, false) };
        let mut fatal = false;
        let passed = pass(&mut server.inbox, ports.out(self.client), input, |header, body| {
            let length = header.message_bytes();
            let missing = length - frame::HEADER_BYTES - body.len();
            match header.tag {
                back::READY_FOR_QUERY => relay.note_ready(),
                back::COPY_BOTH_RESPONSE => relay.note_stream(),
                // A longer one than Refrain reads passes on like any message.
                back::ERROR_RESPONSE if missing > 0 && length <= LOOKED_INTO_MAX => {
                    return Onward::Waits;
                }
                back::ERROR_RESPONSE if missing == 0 && Fields(body).is_fatal() => {
                    fatal = true;
                    return Onward::IsLast;
                }
                _ => {}
            }
            Onward::Passes
        });
        server.note_progress(now);
        let Ok(used) = passed else {
            self.lose_server(DisconnectReason::ServerProtocol);
            return (0, true);
        };
        core_state.pool_in_use(server.pool()).counters.pool.bytes_sent += used as u64;
        if fatal {
            let (level, cause) = (Level::Warn, DisconnectReason::ServerGone);
            self.step.part(self.client, self.server);
            self.step.log().note_client(self.client, level, cause, String::new());
            self.step.remove_client(self.client, false);
            self.lose_server(cause);
            return (used, true);
        }
        self.step.push_back_on_server(self.client, self.server);
        self.step.leave_if_ended(self.client);
        (used, false)
    }

    fn lose_server(&mut self, cause: DisconnectReason) {
        Step { step: self.step }.server_broken(self.server, cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes a stream on in pieces, and returns what came out and the tags.
    fn in_pieces(stream: &[u8], size: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut inbox, mut out, mut tags) = (Inbox::default(), Vec::new(), Vec::new());
        let mut held = Vec::new();
        for piece in stream.chunks(size) {
            held.extend_from_slice(piece);
            let used = pass(&mut inbox, &mut out, &held, |header, _| {
                tags.push(header.tag);
                Onward::Passes
            });
            held.drain(..used.unwrap());
        }
        assert!(held.is_empty());
        (out, tags)
    }

    #[test]
    fn messages_pass_on_whole_whatever_pieces_they_come_in() {
        let stream = b"W\0\0\0\x07\0\0\0d\0\0\0\x0aabcdefd\0\0\0\x04c\0\0\0\x04Z\0\0\0\x05I";
        for size in 1..=stream.len() {
            let (out, tags) = in_pieces(stream, size);
            assert_eq!((out.as_slice(), tags.as_slice()), (&stream[..], &b"WddcZ"[..]), "{size}");
        }
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        let input = b"Q\0\0\0\x05\0X\0\0\0\x04Q";
        let judge = |header: Header, _: &[u8]| match header.tag {
            b'X' => Onward::Ends,
            _ => Onward::Passes,
        };
        assert_eq!(pass(&mut inbox, &mut out, input, judge).unwrap(), 6);
        assert_eq!(out, b"Q\0\0\0\x05\0");
        assert!(pass(&mut inbox, &mut out, b"Q\0\0\0\x03", judge).is_err());
    }
}
