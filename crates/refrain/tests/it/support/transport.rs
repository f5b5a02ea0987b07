//! A client's connection, on the level of bytes: in the clear or by TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use xtask::channel::Channel;
use xtask::records::{RECORD_BYTES_MAX, Records};

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
    channel: Channel,
    sealing: Option<Sealing>,
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
        let (records, sealing) = match way {
            Way::Clear => (None, None),
            Way::Tls(config, sealing) => {
                let records = Records::connect(config, &mut stream).map_err(io::Error::other)?;
                (Some(records), Some(*sealing))
            }
        };
        Ok(Self { channel: Channel::new(stream, records), sealing })
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.sealing.is_some()
    }

    /// Sends bytes, in one write.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.sealing {
            None => self.channel.write_all(bytes),
            Some(sealing) => {
                let bytes = sealed(self.records(), sealing, bytes);
                self.write_raw(&bytes)
            }
        }
    }

    /// Sends bytes as they are, without TLS.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.channel.tcp().write_all(bytes)
    }

    /// Returns the records of a connection with TLS.
    pub(crate) fn records(&mut self) -> &mut Records {
        self.channel.records().expect("TLS")
    }

    /// Waits for bytes, and appends them to `buffer`. Returns their number, which is 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut chunk = [0; 64 * 1024];
        let count = self.channel.read(&mut chunk)?;
        buffer.extend_from_slice(&chunk[..count]);
        Ok(count)
    }

    /// Closes the connection in both directions.
    pub(crate) fn vanish(&self) {
        let _ = self.channel.tcp().shutdown(Shutdown::Both);
    }

    /// Closes the half for writing, without an end of TLS's own.
    pub(crate) fn shut(&self) {
        let _ = self.channel.tcp().shutdown(Shutdown::Write);
    }

    /// Returns another handle of a connection in the clear.
    pub(crate) fn second(&self) -> TcpStream {
        assert!(!self.is_encrypted(), "records have one writer");
        self.channel.tcp().try_clone().unwrap()
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
