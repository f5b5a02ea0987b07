//! A connection of tests, in the clear or by TLS, as bytes that are read and written.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::records::{CLOSE_NOTIFY, ContentType, RECORD_BYTES_MAX, Records};

/// Reads as [`Read::read`] does, and again if a signal has interrupted the read: with a limit of
/// time, the system does not begin a read again by itself (`signal(7)`).
///
/// # Errors
/// Those of the stream.
pub fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A connection. It blocks as its stream does.
#[derive(Debug)]
pub struct Channel {
    stream: TcpStream,
    records: Option<Box<Records>>,
    /// Bytes of the peer that were decrypted and not read.
    unread: Vec<u8>,
    /// Records that the stream has not taken.
    unsent: Vec<u8>,
}

impl Channel {
    /// Makes a connection of a stream, encrypted if there are records.
    pub fn new(stream: TcpStream, records: Option<Records>) -> Self {
        let records = records.map(Box::new);
        Self { stream, records, unread: Vec::new(), unsent: Vec::new() }
    }

    /// Returns the stream.
    pub fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    /// Gives the stream back.
    pub fn into_tcp(self) -> TcpStream {
        self.stream
    }

    /// Returns the records of an encrypted connection.
    pub fn records(&mut self) -> Option<&mut Records> {
        self.records.as_deref_mut()
    }

    /// Sends bytes as they are, behind all others.
    ///
    /// # Errors
    /// If the connection is broken. A stream that takes no more for now is no error.
    pub fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(bytes);
        match self.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            done => done,
        }
    }

    /// Takes in the next record. False at the end of the stream.
    fn take_record(&mut self) -> io::Result<bool> {
        let Some(records) = &mut self.records else { return Ok(false) };
        loop {
            while let Some(record) = records.next_record().map_err(io::Error::other)? {
                match (record.kind, &record.contents[..]) {
                    (ContentType::ApplicationData, []) => {}
                    (ContentType::ApplicationData, contents) => {
                        self.unread.extend_from_slice(contents);
                        return Ok(true);
                    }
                    (ContentType::Alert, [_, CLOSE_NOTIFY]) => return Ok(false),
                    (ContentType::Alert, alert) => {
                        return Err(io::Error::other(format!("alert {alert:?}")));
                    }
                    // A ticket.
                    _ => {}
                }
            }
            let mut chunk = [0; RECORD_BYTES_MAX];
            let count = read_some(&mut self.stream, &mut chunk)?;
            if count == 0 {
                return Ok(false);
            }
            records.take(&chunk[..count]);
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.records.is_none() {
            return read_some(&mut self.stream, buffer);
        }
        if self.unread.is_empty() && !self.take_record()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.unread.len());
        buffer[..count].copy_from_slice(&self.unread[..count]);
        self.unread.drain(..count);
        Ok(count)
    }
}

impl Write for Channel {
    /// Sends a record of these bytes, or of as many as fit. The stream may take it later:
    /// [`Channel::flush`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let Some(records) = &mut self.records else { return self.stream.write(bytes) };
        let piece = &bytes[..bytes.len().min(RECORD_BYTES_MAX)];
        let record = records.data(piece).map_err(io::Error::other)?;
        self.write_raw(&record)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let count = self.stream.write(&self.unsent)?;
            self.unsent.drain(..count);
        }
        Ok(())
    }
}
