//! A connection to the proxy that keeps reading while it writes, so that neither side waits for the other for good.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::canary::{PATIENCE, SONG};

/// Time without a byte after which a session has nothing more to say, as far as one cares.
const QUIET: Duration = Duration::from_millis(15);
/// A message of this length or more is none: PostgreSQL has at most a gibibyte, and a false server may announce that.
const MESSAGE_BYTES_MAX: usize = 0x4000_0000;
/// The last messages received that are kept, for a report and for what is asked at the end.
const LAST_BYTES_MAX: usize = 256 * 1024;

/// A connection, and what came from it that has not been looked at.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
    /// What came last, letter and body.
    pub(super) last: Vec<(u8, Vec<u8>)>,
    last_bytes: usize,
    /// Whether a letter alone comes first, in answer to a request for encryption.
    pub(super) asks_first: bool,
    /// Whether the proxy closed it amid what was sent: what it said last may be lost.
    pub(super) is_reset: bool,
    /// Whether the proxy has closed it.
    pub(super) is_over: bool,
}

impl Wire {
    pub(super) fn open(port: u16) -> Result<Wire> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (unread, last) = (Vec::new(), Vec::new());
        Ok(Wire {
            stream,
            unread,
            last,
            last_bytes: 0,
            asks_first: false,
            is_reset: false,
            is_over: false,
        })
    }

    /// Its port on our side.
    pub(super) fn own_port(&self) -> u16 {
        self.stream.local_addr().map_or(0, |address| address.port())
    }

    /// The proxy's port.
    pub(super) fn peer_port(&self) -> u16 {
        self.stream.peer_addr().map_or(0, |address| address.port())
    }

    /// Sends bytes; what comes meanwhile is taken in.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let begun = Instant::now();
        while !bytes.is_empty() && !self.is_over {
            match self.stream.write(bytes) {
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

    /// Takes in what has come; whether there was anything.
    pub(super) fn take_in(&mut self) -> Result<bool> {
        let mut any = false;
        let mut buffer = [0; 16 * 1024];
        while !self.is_over {
            match self.stream.read(&mut buffer) {
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
            _ => bail!("{error}"),
        }
    }

    /// Splits what came into messages: the proxy's own are always whole.
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
            if body.windows(SONG.len()).any(|part| part == SONG.as_bytes()) {
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

    /// Takes in what comes until nothing has come for a moment.
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

    /// Takes in what comes until `done` says so of what came, or the session is over. False if that takes too long.
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

    /// Says that nothing more will be sent.
    pub(super) fn shut(&mut self) {
        self.is_over |= self.stream.shutdown(Shutdown::Write).is_err();
    }

    /// What came last, in a few words.
    pub(super) fn last_words(&self) -> String {
        let from = self.last.len().saturating_sub(12);
        let word = |(letter, body): &(u8, Vec<u8>)| {
            let shown = &body[..body.len().min(80)];
            format!("{}[{}]", char::from(*letter), shown.escape_ascii())
        };
        self.last[from..].iter().map(word).collect::<Vec<_>>().join(" ")
    }
}
