//! The records of one connection: rustls's state of it, without buffers.
//!
//! rustls keeps offsets into the bytes that it has seen and not used up. So each call gets those
//! bytes in front, also one that only encrypts.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{ClientConfig, CommonState, Error};

/// Bytes that a record may add to its contents: header, nonce, type and tag.
const RECORD_OVERHEAD: usize = 5 + 8 + 1 + 16;
/// Most bytes of contents in a record.
const RECORD_BYTES: usize = 16 * 1024;

/// A connection's records: as the server of a client, or as the client of a server.
pub(super) enum Records {
    OfClient(Box<UnbufferedServerConnection>),
    OfServer(Box<UnbufferedClientConnection>),
}

/// Something that the peer has said in its records.
pub(super) enum Said<'a> {
    /// Bytes; never empty.
    Bytes(&'a [u8]),
    /// It will say nothing more.
    End,
}

/// How far a reading came.
pub(super) struct Progress {
    /// Bytes that were used up.
    pub(super) used: usize,
    /// Whether the handshake is over.
    pub(super) is_open: bool,
}

impl Records {
    /// Makes the records of a connection to the server of this name.
    ///
    /// # Errors
    /// If no certificate can have the name.
    pub(super) fn of_server(config: Arc<ClientConfig>, name: &str) -> Result<Self, String> {
        let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        let made = UnbufferedClientConnection::new(config, name);
        Ok(Self::OfServer(Box::new(made.map_err(|error| error.to_string())?)))
    }

    /// Reads records, and decrypts them where they are. Answers to the peer are appended to `out`,
    /// also the alert in case of an error. A reading that begins in the handshake ends with it.
    ///
    /// # Errors
    /// If the peer has broken the protocol, or its certificate is refused.
    pub(super) fn read(
        &mut self,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(Said<'_>),
    ) -> Result<Progress, Error> {
        let was_open = !self.state().is_handshaking();
        let used = match self {
            Self::OfClient(side) => read(&mut **side, bytes, was_open, out, sink),
            Self::OfServer(side) => read(&mut **side, bytes, was_open, out, sink),
        }?;
        Ok(Progress { used, is_open: !self.state().is_handshaking() })
    }

    /// Encrypts bytes, and appends the records to `out`. `partial` has the bytes that were read and
    /// not used up.
    ///
    /// # Errors
    /// If the keys are worn out.
    pub(super) fn encrypt(
        &mut self,
        partial: &mut Vec<u8>,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::OfClient(side) => write(&mut **side, partial, Some(plain), out),
            Self::OfServer(side) => write(&mut **side, partial, Some(plain), out),
        }
    }

    /// Appends the end of the stream to `out`.
    pub(super) fn close(&mut self, partial: &mut Vec<u8>, out: &mut Vec<u8>) {
        // A connection that cannot say goodbye ends without.
        let _ = match self {
            Self::OfClient(side) => write(&mut **side, partial, None, out),
            Self::OfServer(side) => write(&mut **side, partial, None, out),
        };
    }

    /// Returns what both kinds of connections have.
    pub(super) fn state(&self) -> &CommonState {
        match self {
            Self::OfClient(side) => side,
            Self::OfServer(side) => side,
        }
    }
}

/// rustls has a method of the same name for each side.
trait Side {
    type Data;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn state(&self) -> &CommonState;
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }

    fn state(&self) -> &CommonState {
        self
    }
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }

    fn state(&self) -> &CommonState {
        self
    }
}

/// Reads records until one is incomplete, or until the handshake is over. Returns the number of
/// bytes used up.
fn read<S: Side>(
    side: &mut S,
    bytes: &mut [u8],
    is_open: bool,
    out: &mut Vec<u8>,
    sink: &mut dyn FnMut(Said<'_>),
) -> Result<usize, Error> {
    let mut used = 0;
    loop {
        let UnbufferedStatus { discard, state } = side.process(&mut bytes[used..]);
        match state {
            Err(error) => {
                say_last(side, out);
                return Err(error);
            }
            // The caller learns of the end of the handshake before it gets bytes.
            Ok(ConnectionState::ReadTraffic(_)) if !is_open => return Ok(used + discard),
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    used += record.discard;
                    if !record.payload.is_empty() {
                        sink(Said::Bytes(record.payload));
                    }
                }
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                append_whole(out, |room| data.encode(room))?
            }
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => sink(Said::End),
            Ok(_) => return Ok(used + discard),
        }
        used += discard;
    }
}

/// Appends the alert with which rustls answers an error. rustls does not bear another look at the
/// bytes that were wrong, so it gets none.
fn say_last<S: Side>(side: &mut S, out: &mut Vec<u8>) {
    while side.state().wants_write() {
        let UnbufferedStatus { state: Ok(ConnectionState::EncodeTlsData(mut data)), .. } =
            side.process(&mut [])
        else {
            return;
        };
        if append_whole(out, |room| data.encode(room)).is_err() {
            return;
        }
    }
}

/// Encrypts bytes, or the end of the stream.
fn write<S: Side>(
    side: &mut S,
    partial: &mut Vec<u8>,
    plain: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    loop {
        let UnbufferedStatus { discard, state } = side.process(partial);
        match state? {
            ConnectionState::EncodeTlsData(mut data) => {
                append_whole(out, |room| data.encode(room))?;
            }
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::WriteTraffic(mut traffic) => {
                let bytes = plain.map_or(0, <[u8]>::len);
                let room = bytes + (bytes / RECORD_BYTES + 1) * RECORD_OVERHEAD;
                return append(out, room, |room| match plain {
                    Some(plain) => traffic.encrypt(plain, room),
                    None => traffic.queue_close_notify(room),
                });
            }
            _ => return Err(Error::HandshakeNotComplete),
        }
        partial.drain(..discard);
    }
}

/// Appends what rustls encodes, which asks for its size first.
fn append_whole(
    out: &mut Vec<u8>,
    encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    append(out, 0, encode)
}

/// Appends what `fill` writes into a room of at least these bytes.
fn append<E: Short>(
    out: &mut Vec<u8>,
    room: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), Error> {
    let start = out.len();
    out.resize(start + room, 0);
    let mut filled = fill(&mut out[start..]);
    if let Some(room) = filled.as_ref().err().and_then(Short::required) {
        out.resize(start + room, 0);
        filled = fill(&mut out[start..]);
    }
    out.truncate(start + filled.as_ref().copied().unwrap_or(0));
    filled.map(drop).map_err(|_| Error::EncryptError)
}

/// An error that may be a lack of room.
trait Short {
    /// Returns the room that is needed; `None` for another error.
    fn required(&self) -> Option<usize>;
}

impl Short for EncodeError {
    fn required(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::AlreadyEncoded => None,
        }
    }
}

impl Short for EncryptError {
    fn required(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::EncryptExhausted => None,
        }
    }
}
