//! A blocking connection to a server or a proxy.

use crate::msg;
use crate::reply::{Frame, frame_end};
use crate::rng::Rng;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Why no frame could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// No byte within the time limit.
    Hang,
    /// The peer has ended the connection.
    Closed,
    /// Bytes that are not a message, or an error of the operating system.
    Other(String),
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Hang,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                Self::Closed
            }
            _ => Self::Other(error.to_string()),
        }
    }
}

/// A connection, with a buffer of the bytes that are not yet read as frames.
#[derive(Debug)]
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
}

impl Conn {
    /// Connects and sends the start-up packet with `params`. It does not read the replies.
    ///
    /// # Errors
    /// If the peer cannot be reached.
    pub fn open(addr: &str, params: &[(String, String)], limit: Duration) -> Result<Self, Broken> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        let mut conn = Self { stream, buffer: Vec::with_capacity(16 * 1024), start: 0 };
        conn.write(&msg::startup(params))?;
        Ok(conn)
    }

    /// Sends these bytes.
    ///
    /// # Errors
    /// If the peer takes no byte within the time limit, or has closed the connection.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Sends these bytes cut into pieces at random places, at most 12 pieces.
    ///
    /// # Errors
    /// As [`Conn::write`].
    pub fn write_pieces(&mut self, bytes: &[u8], rng: &mut Rng) -> Result<(), Broken> {
        in_pieces(bytes, rng, |piece| self.write(piece))
    }

    /// Returns the next frame.
    ///
    /// # Errors
    /// If no whole frame comes.
    pub fn read(&mut self) -> Result<Frame, Broken> {
        loop {
            let bytes = &self.buffer[self.start..];
            if let Some(end) = frame_end(bytes).map_err(Broken::Other)? {
                let frame = Frame::new(bytes[0], &bytes[5..end]);
                self.start += end;
                return Ok(frame);
            }
            self.fill()?;
        }
    }

    /// Reads frames until none comes, and returns them with the reason.
    pub fn drain(&mut self) -> (Vec<Frame>, Broken) {
        let mut frames = Vec::new();
        loop {
            match self.read() {
                Ok(frame) => frames.push(frame),
                Err(broken) => return (frames, broken),
            }
        }
    }

    /// Sets another time limit for reading.
    pub fn shorten(&self, limit: Duration) {
        self.stream.set_read_timeout(Some(limit)).ok();
    }

    /// Sends `last` and ends the session: by Terminate in the same write if `polite`, else by
    /// closing the sending half of the connection.
    pub fn end(&mut self, last: &[msg::Msg], polite: bool) {
        let mut bytes = Vec::new();
        last.iter().for_each(|msg| msg.encode(&mut bytes));
        if polite {
            bytes.extend_from_slice(b"X\0\0\0\x04");
        }
        self.stream.write_all(&bytes).ok();
        if !polite {
            self.stream.shutdown(Shutdown::Write).ok();
        }
    }

    fn fill(&mut self) -> Result<(), Broken> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let have = self.buffer.len();
        self.buffer.resize(have + 16 * 1024, 0);
        let got = loop {
            match self.stream.read(&mut self.buffer[have..]) {
                // A signal, behind which the system begins no read with a limit of time again.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        self.buffer.truncate(have + got.as_ref().map_or(0, |got| *got));
        if got? == 0 { Err(Broken::Closed) } else { Ok(()) }
    }
}

/// Sends bytes cut into pieces at random places, at most 12 pieces.
///
/// # Errors
/// The first that `write` returns.
pub fn in_pieces(
    mut bytes: &[u8],
    rng: &mut Rng,
    mut write: impl FnMut(&[u8]) -> Result<(), Broken>,
) -> Result<(), Broken> {
    for _ in 0..rng.below(12) {
        let reach = if rng.chance(50) { 12 } else { bytes.len() };
        let (piece, rest) = bytes.split_at(rng.below(reach).min(bytes.len()));
        write(piece)?;
        bytes = rest;
        if rng.chance(20) {
            std::thread::yield_now();
        }
    }
    write(bytes)
}
