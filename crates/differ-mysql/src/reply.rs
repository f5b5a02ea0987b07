//! Replies: which packets belong to one, and their readable form.

use crate::capability::{Capabilities, DEPRECATE_EOF};
use crate::command::{Brief, Due};
use crate::packet::{PAYLOAD_MAX, Packet, long_number};
use std::fmt;

/// Bit of a status: a transaction is open.
pub const IN_TRANSACTION: u16 = 1;
/// Bit of a status: another result comes.
const MORE: u16 = 8;
/// Bit of a status: rows are to be fetched.
pub const CURSOR: u16 = 0x40;
/// Bit of a status: the last row has come.
pub const LAST_ROW: u16 = 0x80;
/// Bit of a status: the session has changed.
pub const CHANGED: u16 = 0x4000;
/// Bit of a status: the definitions are others than before.
pub const METADATA_CHANGED: u16 = 0x400;

/// The next act of a reader of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read another packet.
    Read,
    /// Send a file.
    SendFile,
    /// Send the proof of a password.
    Prove,
    /// Nothing: the reply is over.
    End,
}

/// A place in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The first packet of a result, or of the reply.
    Head,
    /// Definitions: this many groups after this one, this many packets of it.
    Definitions {
        left: usize,
        then: usize,
    },
    /// The EOF packet behind definitions, and the number of those behind it.
    DefinitionsEnd {
        then: usize,
    },
    Rows,
    /// Behind the end.
    Over,
}

/// A reader of one reply.
#[derive(Debug)]
pub struct Reader {
    due: Due,
    agreed: Capabilities,
    place: Place,
    /// Whether the packet continues the one before.
    is_continuation: bool,
}

impl Reader {
    /// Starts before the first packet of a reply.
    #[must_use]
    pub fn new(due: Due, agreed: Capabilities) -> Self {
        let place = match due {
            Due::Nothing => Place::Over,
            Due::Rows | Due::Fields => Place::Rows,
            Due::Packet | Due::Results | Due::Definitions | Due::Login => Place::Head,
        };
        Self { due, agreed, place, is_continuation: false }
    }

    /// Whether no packet comes.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.place == Place::Over
    }

    /// Whether the next packet begins a result, or the reply.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.place == Place::Head && !self.is_continuation
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// If it has no place in the reply.
    pub fn take(&mut self, packet: &Packet) -> Result<Next, String> {
        let is_continued = packet.payload.len() == PAYLOAD_MAX;
        let was_continuation = std::mem::replace(&mut self.is_continuation, is_continued);
        if was_continuation {
            return Ok(Next::Read);
        }
        let next = self.step(packet)?;
        if next == Next::End {
            self.place = Place::Over;
        }
        Ok(next)
    }

    fn step(&mut self, packet: &Packet) -> Result<Next, String> {
        let first = packet.payload.first().copied();
        if packet.is_error() {
            return Ok(Next::End);
        }
        match (self.place, self.due) {
            (Place::Over, _) => Err("a packet behind the end".to_owned()),
            (Place::Head, Due::Definitions) => Ok(self.prepared(packet)),
            (Place::Head, Due::Login) if first == Some(0xFE) => Ok(Next::Prove),
            (Place::Head, Due::Results) => match first {
                None => Err("an empty packet".to_owned()),
                Some(0) => Ok(self.ended(packet)),
                Some(0xFB) => Ok(Next::SendFile),
                Some(_) => {
                    let (left, _) = long_number(&packet.payload).unwrap_or_default();
                    self.place = Place::Definitions { left, then: 0 };
                    Ok(Next::Read)
                }
            },
            (Place::Head, _) => Ok(Next::End),
            (Place::Definitions { left, then }, _) => {
                self.place = match (left, self.agreed.has(DEPRECATE_EOF)) {
                    (2.., _) => Place::Definitions { left: left - 1, then },
                    (_, false) => Place::DefinitionsEnd { then },
                    (_, true) => self.behind_definitions(then),
                };
                Ok(if self.place == Place::Over { Next::End } else { Next::Read })
            }
            (Place::DefinitionsEnd { then }, _) => {
                if status(&packet.payload).is_none_or(|status| status & CURSOR != 0) {
                    return Ok(Next::End);
                }
                self.place = self.behind_definitions(then);
                Ok(if self.place == Place::Over { Next::End } else { Next::Read })
            }
            (Place::Rows, _) => {
                let is_end = first == Some(0xFE)
                    && match self.agreed.has(DEPRECATE_EOF) {
                        true => packet.payload.len() < PAYLOAD_MAX,
                        false => packet.payload.len() < 9,
                    };
                Ok(if is_end { self.ended(packet) } else { Next::Read })
            }
        }
    }

    fn prepared(&mut self, packet: &Packet) -> Next {
        let count = |at: usize| {
            let bytes = packet.payload.get(at..at + 2).unwrap_or(&[0, 0]);
            usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
        };
        let (columns, parameters) = (count(5), count(7));
        self.place = match (parameters, columns) {
            (0, 0) => return Next::End,
            (0, left) => Place::Definitions { left, then: 0 },
            (left, then) => Place::Definitions { left, then },
        };
        Next::Read
    }

    /// Returns the place behind a group of definitions.
    fn behind_definitions(&self, then: usize) -> Place {
        match (self.due, then) {
            (Due::Definitions, 0) => Place::Over,
            (Due::Definitions, left) => Place::Definitions { left, then: 0 },
            _ => Place::Rows,
        }
    }

    /// Handles the packet that ends a result.
    fn ended(&mut self, packet: &Packet) -> Next {
        if status(&packet.payload).is_some_and(|status| status & MORE != 0) {
            self.place = Place::Head;
            return Next::Read;
        }
        Next::End
    }
}

/// Returns where the status of an OK or EOF packet stands.
#[must_use]
pub fn status_place(payload: &[u8]) -> Option<usize> {
    match payload.first()? {
        0xFE if payload.len() == 5 => Some(3),
        0 | 0xFE => {
            let (_, affected) = long_number(payload.get(1..)?)?;
            let (_, inserted) = long_number(payload.get(1 + affected..)?)?;
            Some(1 + affected + inserted)
        }
        _ => None,
    }
}

/// Returns the status of an OK or EOF packet.
#[must_use]
pub fn status(payload: &[u8]) -> Option<u16> {
    let at = status_place(payload)?;
    let bytes = payload.get(at..at + 2)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Name of the command that it answers.
    pub command: &'static str,
    /// Its form.
    pub due: Due,
    /// The packets.
    pub packets: Vec<Packet>,
}

impl Reply {
    /// Returns the session's status behind it; `None` if it does not say one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let last = self.packets.last()?;
        match self.due {
            Due::Results | Due::Rows | Due::Fields | Due::Login => status(&last.payload),
            // A string of statistics does not begin with these bytes.
            Due::Packet => status(&last.payload),
            Due::Nothing | Due::Definitions => None,
        }
    }

    /// Returns the number of the error that ends it.
    #[must_use]
    pub fn error(&self) -> Option<u16> {
        self.packets.last()?.error()
    }

    /// Returns the number of the statement that it is about.
    #[must_use]
    pub fn prepared(&self) -> Option<u32> {
        let payload = &self.packets.first().filter(|_| self.due == Due::Definitions)?.payload;
        let bytes = payload.get(1..5).filter(|_| payload[0] == 0)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = &self.payload;
        write!(f, "{:>3} ", self.sequence)?;
        if self.is_error() {
            let words = payload.get(3..).unwrap_or_default().escape_ascii();
            return write!(f, "ERR {} {words}", self.error().unwrap_or(0));
        }
        if let (Some(at), Some(status)) = (status_place(payload), status(payload))
            && payload.len() < 200
        {
            let name = if payload[0] == 0 { "OK?" } else { "END?" };
            let rest = payload.get(at + 2..).unwrap_or_default().escape_ascii();
            return write!(f, "{name} {:?} status {status:#06x} {rest}", &payload[1..at]);
        }
        write!(f, "{}", Brief(payload))
    }
}

/// Returns the kind of a packet in a few words, with the status that it has.
#[must_use]
pub fn kind(packet: &Packet, is_head: bool) -> String {
    let payload = &packet.payload;
    let status = || status(payload).unwrap_or(0);
    match (packet.error(), payload.first()) {
        (Some(number), _) => format!("ERR {number}"),
        (_, Some(0)) if is_head => format!("OK {:#06x}", status()),
        (_, Some(0xFE)) => format!("end {:#06x}", status()),
        _ if is_definition(payload) => "a definition".to_owned(),
        _ if is_head => "a number".to_owned(),
        _ => "a row".to_owned(),
    }
}

/// Whether a packet defines a column or a parameter.
#[must_use]
pub fn is_definition(payload: &[u8]) -> bool {
    payload.starts_with(b"\x03def")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Capabilities;

    fn length(due: Due, agreed: u32, payloads: &[&[u8]]) -> usize {
        let mut reader = Reader::new(due, Capabilities(agreed));
        for (at, payload) in payloads.iter().enumerate() {
            let packet = Packet { sequence: 0, payload: payload.to_vec() };
            if reader.take(&packet).expect("a packet of the reply") == Next::End {
                return at + 1;
            }
        }
        payloads.len() + 1
    }

    const OK: &[u8] = b"\0\0\0\x02\0\0\0";
    const OK_AND_MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
    const EOF: &[u8] = b"\xfe\0\0\x02\0";
    const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
    const ERR: &[u8] = b"\xff\x28\x04#42000words";

    #[test]
    fn replies_end_where_they_end() {
        assert_eq!(length(Due::Results, 0, &[OK, OK]), 1);
        assert_eq!(length(Due::Results, 0, &[OK_AND_MORE, ERR, OK]), 2);
        assert_eq!(length(Due::Results, 0, &[b"\x01", b"c", EOF, b"\x011", EOF, OK]), 5);
        assert_eq!(length(Due::Results, DEPRECATE_EOF, &[b"\x01", b"c", b"\x011", END, OK]), 4);
        assert_eq!(length(Due::Results, 0, &[b"\x01", b"c", b"\xfe\0\0\x42\0", OK]), 3);
        assert_eq!(length(Due::Results, 0, &[b"\x01", b"c", EOF, ERR, OK]), 4);
        let prepared = b"\0\x01\0\0\0\x01\0\x01\0\0\0\0";
        assert_eq!(length(Due::Definitions, 0, &[prepared, b"?", EOF, b"c", EOF, OK]), 5);
        assert_eq!(length(Due::Definitions, DEPRECATE_EOF, &[prepared, b"?", b"c", OK]), 3);
        assert_eq!(length(Due::Packet, 0, &[b"Uptime", OK]), 1);
    }
}
