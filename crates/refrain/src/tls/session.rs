//! The TLS of one connection: a state machine without a socket.
//!
//! ```text
//! client   Shaking ─► Open
//! server   Dialing ─► Asked ─► Shaking ─► Open      asked with SSLRequest, answered S
//!                       └────────────────► Clear    answered N
//!          Dialing ─► Trying ────────────► Clear    sslmode = allow
//!          Dialing ─► Shaking ─► Open               sslnegotiation = direct
//!                     Shaking ─► Open               the engine has asked by itself
//! ```
//!
//! [`Session::receive`] takes what has come from the kernel, and tells what the engine shall hear.
//! [`Session::next`] says what to give to the kernel, one buffer at a time. Bytes of the engine
//! wait here until the handshake is over; the kernel gets what came of them in chunks of at most
//! [`CHUNK`] bytes, so that a large send does not take twice its memory.
//!
//! Always true: nothing in the clear is taken for something that was encrypted. What comes behind
//! the server's answer to the SSLRequest and before the handshake ends the connection
//! (CVE-2021-23222).

use std::fmt;
use std::sync::Arc;

use refrain_config::{Host, SslMode, SslNegotiation};
use refrain_drive::Address;
use refrain_pool::secured::Secured;
use rustls::server::UnbufferedServerConnection;

use super::configs::{Acceptor, Store};
use super::handshake::{Party, Shaking, Target};
use super::records::{Progress, Records, Said};

/// A request for TLS: a packet of 8 bytes with the number 1234.5679.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// The letter with which every error of a server begins.
const ERROR: u8 = refrain_pg_wire::tag::back::ERROR_RESPONSE;
/// Most bytes that are encrypted at once for one connection.
const CHUNK: usize = 256 * 1024;

/// Something that the engine shall hear.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// The connection is encrypted from now on.
    Secured(Arc<Secured>),
    /// The server may be logged in to.
    Connected,
    /// Bytes that were decrypted; never empty.
    Bytes(&'a [u8]),
    /// The peer has ended its stream in order.
    End,
    /// The handshake has failed.
    Failed(String),
    /// The peer has broken the protocol after the handshake.
    Broken(String),
}

/// Something to do with the kernel driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Nothing for now.
    Nothing,
    /// Give these bytes to the kernel, and call [`Session::sent`] when it has sent them.
    Send(Vec<u8>),
    /// Give this buffer back to the engine: all that came of it was sent.
    Sent(Vec<u8>),
    /// Close the connection, and connect to this address again.
    Dial(Address),
    /// Forget the session: the connection stays in the clear.
    Dissolve,
    /// Tell the engine that the connection is broken.
    Break(String),
}

/// The sender of a buffer that the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The engine, before the session began.
    Engine,
    Session,
}

/// The TLS of one connection.
pub(crate) struct Session {
    phase: Phase,
    /// Bytes that have come and were not used up: the beginning of a record.
    partial: Vec<u8>,
    /// Bytes for the peer that the kernel has not got.
    outgoing: Vec<u8>,
    /// The number of bytes that the engine sends in the clear, before all else.
    clear: usize,
    /// The engine's send under way.
    queued: Option<Queued>,
    /// Whether the kernel has a buffer.
    in_kernel: bool,
    /// The sender of that buffer.
    sender: Sender,
    /// Whether the peer has ended its stream.
    has_ended: bool,
    /// The address to connect to again.
    dial: Option<Address>,
}

struct Queued {
    bytes: Vec<u8>,
    /// How many of them were given to the peer.
    at: usize,
}

enum Phase {
    /// The kernel connects to a server.
    Dialing(Box<Target>),
    /// A server has been asked for TLS.
    Asked(Box<Target>),
    /// A server has been asked for nothing: its first byte says whether it wants TLS.
    Trying(Box<Target>),
    Shaking(Box<Shaking>),
    Open(Records),
    Clear,
    Over,
}

impl Session {
    /// Begins the TLS of a client, of whose bytes the first `clear` that the engine sends go out in
    /// the clear. A client that comes without a request `is_direct`.
    ///
    /// # Errors
    /// If clients may not encrypt any more.
    pub(crate) fn of_client(store: &Store, clear: usize, is_direct: bool) -> Result<Self, String> {
        let acceptor = store.of_clients().ok_or("clients may not encrypt any more")?;
        let Acceptor { config, end_point, .. } = &*acceptor;
        let records = UnbufferedServerConnection::new(Arc::clone(config));
        let records = Records::OfClient(Box::new(records.map_err(|error| error.to_string())?));
        let with = Party::Client { end_point: end_point.clone(), is_direct };
        let phase = Phase::Shaking(Box::new(Shaking { records, with }));
        Ok(Self { clear, ..Self::new(phase) })
    }

    /// Begins the TLS of a server that the engine asks for it in the first `clear` bytes that it
    /// sends, in the words of its protocol.
    ///
    /// # Errors
    /// If the host cannot have a certificate, or its options are not in force any more.
    pub(crate) fn of_asked_server(
        store: &Store,
        host: &Host,
        clear: usize,
    ) -> Result<Self, String> {
        let Host::Tcp { host, tls, .. } = host else {
            return Err("a connection without an address is not encrypted".to_owned());
        };
        let mut config = (*store.of_server(tls).ok_or("its options have been reloaded")?).clone();
        // The name there is that of PostgreSQL's protocol.
        config.alpn_protocols.clear();
        let mut records = Records::of_server(Arc::new(config), host)?;
        let mut outgoing = Vec::new();
        let begun = records.read(&mut [], &mut outgoing, &mut |_| ());
        begun.map_err(|error| error.to_string())?;
        let with = Party::Asked(Arc::clone(tls));
        let phase = Phase::Shaking(Box::new(Shaking { records, with }));
        Ok(Self { clear, outgoing, ..Self::new(phase) })
    }

    /// Begins the TLS of a server that is being connected. `None` if it stays in the clear.
    ///
    /// # Errors
    /// If the host cannot have a certificate, or its options are not in force any more.
    pub(crate) fn of_server(store: &Store, host: &Host) -> Result<Option<Self>, String> {
        let Host::Tcp { host, tls, .. } = host else { return Ok(None) };
        if tls.mode == SslMode::Disable {
            return Ok(None);
        }
        let config = store.of_server(tls).ok_or("its options have been reloaded")?;
        let (tls, name) = (Arc::clone(tls), host.clone());
        let target = Target { tls, name, config, address: None, is_second: false };
        Ok(Some(Self::new(Phase::Dialing(Box::new(target)))))
    }

    fn new(phase: Phase) -> Self {
        Self {
            phase,
            partial: Vec::new(),
            outgoing: Vec::new(),
            clear: 0,
            queued: None,
            in_kernel: false,
            sender: Sender::Session,
            has_ended: false,
            dial: None,
        }
    }

    /// Goes on once the kernel has connected to the server at this address.
    pub(crate) fn connected(&mut self, address: Option<Address>, sink: &mut dyn FnMut(Heard<'_>)) {
        let Phase::Dialing(mut target) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return;
        };
        if address.is_some() {
            target.address = address;
        }
        if target.tls.negotiation == SslNegotiation::Direct {
            self.phase = self.begin(target, sink);
            return;
        }
        let asks_first = target.tls.mode != SslMode::Allow;
        if asks_first != target.is_second {
            self.outgoing.extend_from_slice(&SSL_REQUEST);
            self.phase = Phase::Asked(target);
        } else {
            self.phase = if target.is_second { Phase::Clear } else { Phase::Trying(target) };
            sink(Heard::Connected);
        }
    }

    /// Takes in bytes of the peer. `scratch` is a buffer whose contents do not matter.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        sink: &mut dyn FnMut(Heard<'_>),
    ) {
        scratch.clear();
        scratch.extend_from_slice(&std::mem::take(&mut self.partial));
        scratch.extend_from_slice(bytes);
        let mut rest = &mut scratch[..];
        while !rest.is_empty() && !self.has_ended {
            let (phase, used) = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Asked(target) => self.answered(target, rest, sink),
                Phase::Trying(target) => self.tried(target, rest, sink),
                Phase::Shaking(shaking) => self.shake(shaking, rest, sink),
                Phase::Open(records) => self.open(records, rest, sink),
                Phase::Clear => {
                    sink(Heard::Bytes(rest));
                    (Phase::Clear, rest.len())
                }
                phase @ (Phase::Dialing(_) | Phase::Over) => (phase, rest.len()),
            };
            self.phase = phase;
            if used == 0 {
                self.partial.extend_from_slice(rest);
                return;
            }
            rest = &mut rest[used..];
        }
    }

    /// Handles the server's answer to the SSLRequest.
    fn answered(
        &mut self,
        target: Box<Target>,
        bytes: &mut [u8],
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> (Phase, usize) {
        let all = bytes.len();
        let failed = |why: String, sink: &mut dyn FnMut(Heard<'_>)| {
            sink(Heard::Failed(why));
            (Phase::Over, all)
        };
        match bytes {
            [b'S'] => (self.begin(target, sink), 1),
            [b'S', ..] => failed("received unencrypted data after SSL response".to_owned(), sink),
            [b'N', ..] if target.tls.mode.is_required() => {
                failed("server does not support SSL, but SSL was required".to_owned(), sink)
            }
            [b'N', ..] => {
                sink(Heard::Connected);
                (Phase::Clear, 1)
            }
            [ERROR, ..] => failed("server answers the SSLRequest with an error".to_owned(), sink),
            _ => failed("received invalid response to SSL negotiation".to_owned(), sink),
        }
    }

    /// Handles the first bytes of a server that has got a startup packet in the clear: an error may
    /// mean that it wants TLS.
    fn tried(
        &mut self,
        mut target: Box<Target>,
        bytes: &mut [u8],
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> (Phase, usize) {
        if bytes.first() == Some(&ERROR) && target.address.is_some() {
            target.is_second = true;
            self.dial = target.address.clone();
            return (Phase::Dialing(target), bytes.len());
        }
        sink(Heard::Bytes(bytes));
        (Phase::Clear, bytes.len())
    }

    /// Begins a handshake with a server.
    fn begin(&mut self, target: Box<Target>, sink: &mut dyn FnMut(Heard<'_>)) -> Phase {
        match Records::of_server(Arc::clone(&target.config), &target.name) {
            Ok(records) => {
                let shaking = Box::new(Shaking { records, with: Party::Server(target) });
                self.shake(shaking, &mut [], sink).0
            }
            Err(why) => self.fail(Party::Server(target), why, sink),
        }
    }

    /// Goes on with a handshake. The bytes behind it are read as well.
    fn shake(
        &mut self,
        mut shaking: Box<Shaking>,
        bytes: &mut [u8],
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> (Phase, usize) {
        let all = bytes.len();
        let mut has_ended = false;
        let read = shaking.records.read(bytes, &mut self.outgoing, &mut |said| {
            has_ended |= matches!(said, Said::End);
        });
        let agreed = match read {
            Err(error) => Err(error.to_string()),
            Ok(_) if has_ended => Err("the peer has ended the handshake".to_owned()),
            Ok(Progress { used, is_open: false }) => return (Phase::Shaking(shaking), used),
            Ok(Progress { used, .. }) => shaking.agreed().map(|secured| (secured, used)),
        };
        match agreed {
            Err(why) => (self.fail(shaking.with, why, sink), all),
            Ok((secured, used)) => {
                sink(Heard::Secured(Arc::new(secured)));
                if matches!(shaking.with, Party::Server(_)) {
                    sink(Heard::Connected);
                }
                let (phase, more) = self.open(shaking.records, &mut bytes[used..], sink);
                (phase, used + more)
            }
        }
    }

    /// Handles records after the handshake.
    fn open(
        &mut self,
        mut records: Records,
        bytes: &mut [u8],
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> (Phase, usize) {
        let all = bytes.len();
        let has_ended = &mut self.has_ended;
        let read = records.read(bytes, &mut self.outgoing, &mut |said| match said {
            Said::Bytes(bytes) => sink(Heard::Bytes(bytes)),
            Said::End => *has_ended = true,
        });
        match read {
            Err(error) => {
                sink(Heard::Broken(error.to_string()));
                (Phase::Over, all)
            }
            Ok(_) if self.has_ended => {
                sink(Heard::End);
                (Phase::Open(records), all)
            }
            Ok(progress) => (Phase::Open(records), progress.used),
        }
    }

    /// Ends a handshake that has failed. A server that need not be encrypted is connected once
    /// more, in the clear.
    fn fail(&mut self, with: Party, why: String, sink: &mut dyn FnMut(Heard<'_>)) -> Phase {
        match with {
            Party::Server(mut target)
                if target.tls.mode == SslMode::Prefer && target.address.is_some() =>
            {
                tracing::warn!(
                    cause = "tls",
                    "server {}: {why}; Refrain goes on in the clear, as sslmode is prefer",
                    target.name
                );
                target.is_second = true;
                self.dial = target.address.clone();
                Phase::Dialing(target)
            }
            Party::Client { .. } | Party::Asked(_) | Party::Server(_) => {
                sink(Heard::Failed(why));
                Phase::Over
            }
        }
    }

    /// Takes bytes of the engine to send. They are given back by [`Task::Sent`].
    pub(crate) fn send(&mut self, bytes: Vec<u8>) {
        self.queued = Some(Queued { bytes, at: 0 });
    }

    /// Notes that the kernel still has a buffer that the engine has sent before.
    pub(crate) fn follow_a_send(&mut self) {
        (self.in_kernel, self.sender) = (true, Sender::Engine);
    }

    /// Notes that the kernel has sent the buffer that it had. Returns whose it was.
    pub(crate) fn sent(&mut self) -> Sender {
        self.in_kernel = false;
        std::mem::replace(&mut self.sender, Sender::Session)
    }

    /// Handles the end of the kernel's stream, with the system's error if it did not end in order.
    /// An end without one of TLS's own is an end as well.
    pub(crate) fn closed(&mut self, why: Option<&str>, sink: &mut dyn FnMut(Heard<'_>)) {
        // The engine has heard of it, or shall not: another connection follows.
        if self.dial.is_some() || self.has_ended && why.is_none() {
            return;
        }
        let words = why.unwrap_or("the peer has closed the connection").to_owned();
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Shaking(shaking) => self.phase = self.fail(shaking.with, words, sink),
            Phase::Dialing(_) | Phase::Asked(_) => sink(Heard::Failed(words)),
            phase => {
                self.phase = phase;
                sink(if why.is_some() { Heard::Broken(words) } else { Heard::End });
            }
        }
    }

    /// Returns the next task. `spare` is a buffer to encrypt into, if there is one.
    pub(crate) fn next(&mut self, spare: &mut Vec<Vec<u8>>) -> Task {
        if let Some(address) = self.dial.take() {
            (self.in_kernel, self.clear) = (false, 0);
            self.outgoing.clear();
            return Task::Dial(address);
        }
        if self.in_kernel {
            return Task::Nothing;
        }
        if self.clear > 0 && !self.send_clear() {
            return Task::Nothing;
        }
        if let Err(why) = self.encrypt(spare) {
            self.phase = Phase::Over;
            return Task::Break(why);
        }
        if !self.outgoing.is_empty() {
            self.in_kernel = true;
            return Task::Send(std::mem::take(&mut self.outgoing));
        }
        if let Some(queued) = self.queued.take_if(|queued| queued.at == queued.bytes.len()) {
            return Task::Sent(queued.bytes);
        }
        if matches!(self.phase, Phase::Clear) { Task::Dissolve } else { Task::Nothing }
    }

    /// Puts the engine's bytes in the clear before all others. False if the engine has not sent
    /// them yet.
    fn send_clear(&mut self) -> bool {
        let Some(queued) = &mut self.queued else { return false };
        queued.at = self.clear.min(queued.bytes.len());
        self.outgoing.splice(0..0, queued.bytes[..queued.at].iter().copied());
        self.clear = 0;
        true
    }

    /// Encrypts a chunk of what the engine sends.
    fn encrypt(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<(), String> {
        let Some(queued) = &mut self.queued else { return Ok(()) };
        let rest = &queued.bytes[queued.at..];
        match &mut self.phase {
            // Held until the handshake is over.
            Phase::Asked(_) | Phase::Shaking(_) => {}
            Phase::Open(_) if rest.is_empty() => {}
            Phase::Open(records) => {
                let chunk = &rest[..rest.len().min(CHUNK)];
                if self.outgoing.capacity() == 0 {
                    self.outgoing = spare.pop().unwrap_or_default();
                }
                queued.at += chunk.len();
                records
                    .encrypt(&mut self.partial, chunk, &mut self.outgoing)
                    .map_err(|error| error.to_string())?;
            }
            Phase::Trying(_) | Phase::Clear => {
                self.outgoing.extend_from_slice(rest);
                queued.at = queued.bytes.len();
            }
            // The peer gets no more; before a second connection, what the first one got is void.
            Phase::Dialing(_) | Phase::Over => queued.at = queued.bytes.len(),
        }
        Ok(())
    }

    /// Returns the last bytes for the peer, if the kernel can take them: what is left, and TLS's
    /// own end of the stream.
    pub(crate) fn last(mut self) -> Option<Vec<u8>> {
        if self.in_kernel || self.clear > 0 {
            return None;
        }
        if let Phase::Open(records) = &mut self.phase {
            records.close(&mut self.partial, &mut self.outgoing);
        }
        Some(self.outgoing).filter(|bytes| !bytes.is_empty())
    }
}

/// Shows no bytes and no keys.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("in_kernel", &self.in_kernel).finish_non_exhaustive()
    }
}
