//! A connection to the proxy that reads while it writes, so that the two sides never wait for each
//! other for ever.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::channel::Channel;

use super::canary::WORD;
use super::door::{Door, PATIENCE};

/// Time without a byte after which a session counts as quiet.
const QUIET: Duration = Duration::from_millis(15);
/// The limit of a message's length. PostgreSQL has a gibibyte, and the lying server may announce as
/// much.
const MESSAGE_BYTES_MAX: usize = 0x4000_0000;
/// The most bytes of received messages that are kept, for a report and for the check at the end.
const LAST_BYTES_MAX: usize = 256 * 1024;

/// A connection, and the bytes from it that are not yet read as messages.
#[derive(Debug)]
pub(super) struct Wire {
    channel: Channel,
    unread: Vec<u8>,
    /// The last messages, letter and body.
    pub(super) last: Vec<(u8, Vec<u8>)>,
    last_bytes: usize,
    /// Whether a single letter comes first, in reply to a request for encryption.
    pub(super) asks_first: bool,
    /// Whether a record was spoiled, so that an alert is due.
    pub(super) is_spoilt: bool,
    /// The alert that has ended the session.
    pub(super) alert: Option<String>,
    /// Whether the proxy reset the connection, so that its last messages may be lost.
    pub(super) is_reset: bool,
    /// Whether the proxy has closed the connection.
    pub(super) is_over: bool,
}

impl Wire {
    pub(super) fn open(door: Door<'_>, number: u64) -> Result<Wire> {
        let channel = door.open(number)?;
        channel.tcp().set_nonblocking(true)?;
        let (unread, last) = (Vec::new(), Vec::new());
        Ok(Wire {
            channel,
            unread,
            last,
            last_bytes: 0,
            asks_first: false,
            is_spoilt: false,
            alert: None,
            is_reset: false,
            is_over: false,
        })
    }

    /// Returns the client's port.
    pub(super) fn own_port(&self) -> u16 {
        self.channel.tcp().local_addr().map_or(0, |address| address.port())
    }

    /// Returns the proxy's port.
    pub(super) fn peer_port(&self) -> u16 {
        self.channel.tcp().peer_addr().map_or(0, |address| address.port())
    }

    /// Sends bytes, and receives meanwhile.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let begun = Instant::now();
        while !bytes.is_empty() && !self.is_over {
            match self.channel.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.take_in()? {
                        thread::sleep(Duration::from_micros(300));
                    }
                    if begun.elapsed() > PATIENCE {
                        bail!("the proxy takes no bytes and gives none");
                    }
                }
                Err(error) => self.ends(&error)?,
            }
        }
        Ok(())
    }

    /// Receives all bytes that have arrived. Returns true if there were any.
    pub(super) fn take_in(&mut self) -> Result<bool> {
        let mut any = false;
        match self.channel.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => self.ends(&error)?,
            _ => {}
        }
        let mut buffer = [0; 16 * 1024];
        while !self.is_over {
            match self.channel.read(&mut buffer) {
                Ok(0) => self.is_over = true,
                Ok(count) => {
                    any = true;
                    self.unread.extend_from_slice(&buffer[..count]);
                    self.look()?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.ends(&error)?,
            }
        }
        Ok(any)
    }

    fn ends(&mut self, error: &io::Error) -> Result<()> {
        use ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
        self.is_over = true;
        match error.kind() {
            BrokenPipe | ConnectionReset | NotConnected | UnexpectedEof => {
                self.is_reset = true;
                Ok(())
            }
            ErrorKind::Other if self.is_spoilt => {
                self.alert = Some(error.to_string());
                Ok(())
            }
            _ => bail!("{error}"),
        }
    }

    /// Seals bytes in a record, if the connection is encrypted.
    pub(super) fn seal(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        self.channel.records().map(|records| records.data(bytes)).transpose()
    }

    /// Sends a spoiled record.
    pub(super) fn write_spoilt(&mut self, record: &[u8]) -> Result<()> {
        self.is_spoilt = true;
        self.channel.write_raw(record).or_else(|error| self.ends(&error))
    }

    /// Splits the received bytes into messages. Fails if a length is impossible, or if a message is
    /// a canary's.
    fn look(&mut self) -> Result<()> {
        let mut at = 0;
        if self.asks_first && self.unread.starts_with(b"N") {
            self.asks_first = false;
            at = 1;
        }
        while let Some(head) = self.unread.get(at..).and_then(<[u8]>::first_chunk::<5>) {
            let [letter, length @ ..] = *head;
            let length = u32::from_be_bytes(length) as usize;
            if !(4..MESSAGE_BYTES_MAX).contains(&length) {
                bail!("a message {:?} of {length} bytes came", char::from(letter));
            }
            let Some(body) = self.unread.get(at + 5..at + 1 + length) else { break };
            if body.windows(WORD.len()).any(|part| part == WORD.as_bytes()) {
                bail!("the canary's: {:?} {}", char::from(letter), body.escape_ascii());
            }
            self.last_bytes += length;
            self.last.push((letter, body.to_vec()));
            at += 1 + length;
        }
        self.unread.drain(..at);
        if self.last_bytes > LAST_BYTES_MAX {
            let half = self.last.len().div_ceil(2);
            self.last.drain(..half);
            self.last_bytes = self.last.iter().map(|(_, body)| body.len() + 4).sum();
        }
        Ok(())
    }

    /// Receives until no byte comes for [`QUIET`].
    pub(super) fn until_quiet(&mut self) -> Result<()> {
        let mut heard = Instant::now();
        while !self.is_over && heard.elapsed() < QUIET {
            if self.take_in()? {
                heard = Instant::now();
            } else {
                thread::sleep(Duration::from_micros(300));
            }
        }
        Ok(())
    }

    /// Receives until `done` returns true for the last messages, or the session is over. Returns
    /// false if that takes longer than [`PATIENCE`].
    pub(super) fn until(&mut self, done: impl Fn(&[(u8, Vec<u8>)]) -> bool) -> Result<bool> {
        let begun = Instant::now();
        while !self.is_over && !done(&self.last) {
            if !self.take_in()? {
                thread::sleep(Duration::from_micros(200));
            }
            if begun.elapsed() > PATIENCE {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Closes the sending half of the connection.
    pub(super) fn shut(&mut self) {
        self.is_over |= self.channel.tcp().shutdown(Shutdown::Write).is_err();
    }

    /// Returns the last messages in a few words.
    pub(super) fn last_words(&self) -> String {
        let from = self.last.len().saturating_sub(12);
        let word = |(letter, body): &(u8, Vec<u8>)| {
            let shown = &body[..body.len().min(80)];
            format!("{}[{}]", char::from(*letter), shown.escape_ascii())
        };
        self.last[from..].iter().map(word).collect::<Vec<_>>().join(" ")
    }
}
