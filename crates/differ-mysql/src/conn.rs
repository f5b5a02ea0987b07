//! A blocking connection to a server or a proxy.

use crate::packet::{Packet, first, put};
use crate::reply::{Next, Reader};
use refrain_differ::conn::{Broken, in_pieces};
use refrain_differ::rng::Rng;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection, with a buffer of the bytes that are not yet read as packets.
#[derive(Debug)]
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
}

impl Conn {
    /// Connects. The server speaks first.
    ///
    /// # Errors
    /// If the peer cannot be reached.
    pub fn open(addr: &str, limit: Duration) -> Result<Self, Broken> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024), start: 0 })
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

    /// Returns the next packet.
    ///
    /// # Errors
    /// If no whole packet comes.
    pub fn read(&mut self) -> Result<Packet, Broken> {
        loop {
            if let Some((packet, end)) = first(&self.buffer[self.start..]) {
                self.start += end;
                return Ok(packet);
            }
            self.fill()?;
        }
    }

    /// Reads a reply to its end, and appends its packets.
    ///
    /// # Errors
    /// If it does not come, or is none.
    pub fn reply(
        &mut self,
        reader: &mut Reader,
        file: &[u8],
        packets: &mut Vec<Packet>,
    ) -> Result<(), Broken> {
        while !reader.is_over() {
            let packet = self.read()?;
            let sequence = packet.sequence.wrapping_add(1);
            packets.push(packet);
            let next = packets.last().map(|packet| reader.take(packet));
            match next.unwrap_or(Ok(Next::End)).map_err(Broken::Other)? {
                Next::Read | Next::End => {}
                Next::SendFile => self.write(&file_packets(sequence, file))?,
                Next::Prove => {
                    let mut out = Vec::new();
                    put(&mut out, sequence, b"");
                    self.write(&out)?;
                }
            }
        }
        Ok(())
    }

    /// Sets another time limit for reading.
    pub fn shorten(&self, limit: Duration) {
        self.stream.set_read_timeout(Some(limit)).ok();
    }

    fn fill(&mut self) -> Result<(), Broken> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let have = self.buffer.len();
        self.buffer.resize(have + have.max(16 * 1024), 0);
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

/// Returns a file in packets of 1,000 bytes, with the empty one that ends it.
fn file_packets(mut sequence: u8, file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in file.chunks(1000) {
        sequence = put(&mut out, sequence, part);
    }
    put(&mut out, sequence, b"");
    out
}
