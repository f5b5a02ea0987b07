//! A client's oracle: the client's private session, which says what each reply has to be.
//!
//! The private session is one of the model server's that nobody else has. What a client gets has to
//! be what that session says, packet by packet, with these exceptions: numbers of prepared
//! statements; words of errors that Refrain says itself; and the error in place of an answer about
//! the statement before.

use std::collections::VecDeque;

use crate::reply::Reply;
use crate::script::Held;
use crate::session::{News, Session};
use crate::wire::{Message, com, error_number, show};

/// Errors whose words may differ: a statement's number is in them.
const LOOSE: [u16; 4] = [1047, 1243, 1421, 1835];
/// The error in place of an answer about a statement that another client's have followed.
const DIAGNOSTICS_GONE: u16 = 3566;

/// The error of a command that KILL has ended.
const INTERRUPTED: u16 = 1317;
/// The error of KILL for a client that has left.
const NOBODY: u16 = 1094;

/// The reply that is due to a command.
#[derive(Debug, Default)]
struct Due {
    packets: VecDeque<(u8, Vec<u8>)>,
    /// Whether packets of it have come.
    has_begun: bool,
    /// The number of the statement that the private session has prepared, and of its parameters.
    prepared: Option<(u32, usize)>,
    /// Whether it is about the statement before.
    asks: bool,
    /// Whether it is to KILL: it may come too late.
    kills: bool,
    /// The effects in the private session.
    news: Vec<News>,
}

/// The meaning of a packet for the client.
#[derive(Debug)]
pub enum Got {
    /// A part of a reply.
    Part,
    /// The end of a reply, and what the client's command has done.
    End(Vec<News>),
    /// The head of the reply to a preparation.
    Prepared(Held),
    /// The server asks for a file.
    File,
    /// KILL has ended the command.
    Killed,
}

/// A client's private session.
#[derive(Debug, Default)]
pub struct Oracle {
    /// The session.
    pub session: Session,
    /// Whether another client has killed a command of this one.
    pub may_be_killed: bool,
    due: VecDeque<Due>,
}

impl Oracle {
    /// Takes a message that the client has sent, with the private numbers of statements.
    pub fn hear(&mut self, message: &Message) {
        let Reply { packets, .. } = self.session.handle(message);
        let news = std::mem::take(&mut self.session.news);
        if packets.is_empty() {
            return;
        }
        let command = message.payload.first().copied().filter(|_| message.first == 0);
        let succeeds = packets[0].1.first() == Some(&0);
        let prepares = command == Some(com::PREPARE) && succeeds;
        let text = String::from_utf8_lossy(message.payload.get(1..).unwrap_or_default());
        let asks = text.contains("LAST_INSERT_ID()")
            || text.contains("ROW_COUNT()")
            || text.contains("SHOW WARNINGS");
        self.due.push_back(Due {
            packets: packets.into(),
            // What comes behind a file goes on with a reply.
            has_begun: message.first > 1,
            prepared: prepares.then_some((self.session.last_number, text.matches('?').count())),
            asks: command == Some(com::QUERY) && asks,
            kills: false,
            news,
        });
    }

    /// Takes KILL QUERY for another client, which no private session knows.
    pub fn kill(&mut self) {
        self.due.push_back(Due { kills: true, ..Due::default() });
    }

    /// Whether the client has every reply.
    pub fn is_settled(&self) -> bool {
        self.due.is_empty()
    }

    /// Returns the sequence id of the next packet.
    pub fn sequence(&self) -> u8 {
        let due = self.due.front().and_then(|due| due.packets.front());
        due.map_or(u8::from(!self.due.is_empty()), |(sequence, _)| *sequence)
    }

    /// Whether packets of a reply have come, and not all of it.
    pub fn is_within(&self) -> bool {
        self.due.front().is_some_and(|due| due.has_begun)
    }

    /// Checks a packet that the client has got.
    ///
    /// # Errors
    /// If another packet was due.
    pub fn check(&mut self, got: &Message) -> Result<Got, String> {
        let Some(due) = self.due.front_mut() else {
            return Err(format!("got {} {} and was due nothing", got.first, show(&got.payload)));
        };
        let number = error_number(&got.payload);
        let is_gone = due.asks && !due.has_begun && number == Some(DIAGNOSTICS_GONE);
        if is_gone && got.first == 1 {
            self.due.pop_front();
            return Ok(Got::End(Vec::new()));
        }
        if due.kills && got.first == 1 {
            self.due.pop_front();
            let is_answer = got.payload.first() == Some(&0) || number == Some(NOBODY);
            let unfit = || format!("got {} for KILL", show(&got.payload));
            return is_answer.then(|| Got::End(Vec::new())).ok_or_else(unfit);
        }
        if number == Some(INTERRUPTED) && self.may_be_killed {
            return Ok(Got::Killed);
        }
        let Some((sequence, payload)) = due.packets.pop_front() else {
            return Err("no packet is due".to_owned());
        };
        let mut result = Got::Part;
        let fits = match due.prepared.filter(|_| !due.has_begun) {
            Some((private, parameters)) if got.payload.len() == 12 => {
                let its = [got.payload[1], got.payload[2], got.payload[3], got.payload[4]];
                let number = u32::from_le_bytes(its);
                result = Got::Prepared(Held { private, number, parameters, has_types: false });
                got.payload[0] == 0 && got.payload[5..] == payload[5..]
            }
            _ => is_alike(&payload, &got.payload),
        };
        if !fits || sequence != got.first {
            return Err(format!(
                "got {} {}, and was due {sequence} {}",
                got.first,
                show(&got.payload),
                show(&payload)
            ));
        }
        due.has_begun = true;
        if !due.packets.is_empty() {
            return Ok(result);
        }
        let over = self.due.pop_front().unwrap_or_default();
        if payload.first() == Some(&0xFB) {
            return Ok(Got::File);
        }
        Ok(match result {
            Got::Prepared(_) => result,
            _ => Got::End(over.news),
        })
    }

    /// Returns what is due in words.
    pub fn awaits(&self) -> String {
        let next = self.due.front().and_then(|due| due.packets.front());
        let next = next.map(|(sequence, payload)| format!("{sequence} {}", show(payload)));
        format!("{} replies are due, first {next:?}", self.due.len())
    }
}

/// Whether a packet is the one that is due.
fn is_alike(due: &[u8], got: &[u8]) -> bool {
    let number = error_number(due);
    let is_loose = number.is_some_and(|number| LOOSE.contains(&number));
    due == got || is_loose && due.get(..9) == got.get(..9)
}
