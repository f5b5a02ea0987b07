//! A client's connection, on the level of bytes: in the clear or by TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use xtask::records::{CLOSE_NOTIFY, ContentType, RECORD_BYTES_MAX, Records};

/// Maximum time of a wait. Only a hang takes so long, also where all tests share two processors,
/// and where Refrain has to ask again what it believes for a minute.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The way in which a client divides what it sends into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealing {
    /// A record for each write, which has whole messages.
    Whole,
    /// A record for each byte.
    Bytes,
    /// Records of seven bytes, so that messages begin and end anywhere, each behind empty ones.
    Empty,
}

/// Number of empty records before each other one. rustls takes 32 in a row.
const EMPTY_RECORDS: usize = 3;

/// The way from a client to its peer.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// In the clear.
    Clear,
    /// By TLS.
    Tls(Arc<ClientConfig>, Sealing),
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: TcpStream,
    tls: Option<(Box<Records>, Sealing)>,
}

impl Transport {
    /// Connects, and shakes hands.
    ///
    /// # Errors
    /// If the peer ends the handshake.
    pub(crate) fn open(addr: SocketAddr, way: &Way) -> io::Result<Self> {
        let mut stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let tls = match way {
            Way::Clear => None,
            Way::Tls(config, sealing) => {
                let records = Records::connect(config, &mut stream).map_err(io::Error::other)?;
                Some((Box::new(records), *sealing))
            }
        };
        Ok(Self { stream, tls })
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Sends bytes, in one write.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some((records, sealing)) => self.stream.write_all(&sealed(records, *sealing, bytes)),
        }
    }

    /// Sends bytes as they are, without TLS.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the records of a connection with TLS.
    pub(crate) fn records(&mut self) -> &mut Records {
        &mut self.tls.as_mut().expect("TLS").0
    }

    /// Waits for bytes, and appends them to `buffer`. Returns their number, which is 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut chunk = [0; 64 * 1024];
        let before = buffer.len();
        let Some((records, _)) = &mut self.tls else {
            let count = self.stream.read(&mut chunk)?;
            buffer.extend_from_slice(&chunk[..count]);
            return Ok(count);
        };
        loop {
            while let Some(record) = records.next_record().map_err(io::Error::other)? {
                match (record.kind, &record.contents[..]) {
                    (ContentType::ApplicationData, contents) => buffer.extend_from_slice(contents),
                    (ContentType::Alert, [_, CLOSE_NOTIFY]) => return Ok(buffer.len() - before),
                    (ContentType::Alert, alert) => {
                        return Err(io::Error::other(format!("alert {alert:?}")));
                    }
                    // A ticket.
                    _ => {}
                }
            }
            if buffer.len() > before {
                return Ok(buffer.len() - before);
            }
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Ok(0);
            }
            records.take(&chunk[..count]);
        }
    }

    /// Closes the connection in both directions.
    pub(crate) fn vanish(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Closes the half for writing, without an end of TLS's own.
    pub(crate) fn shut(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the half for writing.
    pub(crate) fn end_writing(&mut self) {
        if let Some((records, _)) = &mut self.tls {
            let goodbye = records.goodbye().unwrap();
            self.stream.write_all(&goodbye).unwrap();
        }
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Returns another handle of a connection in the clear.
    pub(crate) fn second(&self) -> TcpStream {
        assert!(self.tls.is_none(), "records have one writer");
        self.stream.try_clone().unwrap()
    }
}

fn sealed(records: &mut Records, sealing: Sealing, bytes: &[u8]) -> Vec<u8> {
    let most = match sealing {
        Sealing::Whole => RECORD_BYTES_MAX,
        Sealing::Bytes => 1,
        Sealing::Empty => 7,
    };
    let mut out = Vec::new();
    for piece in bytes.chunks(most) {
        for _ in 0..if sealing == Sealing::Empty { EMPTY_RECORDS } else { 0 } {
            out.extend(records.data(b"").unwrap());
        }
        out.extend(records.data(piece).unwrap());
    }
    out
}
