//! A connection to a server for a thread that may wait, as commands of the command line do. It is
//! encrypted as the host's options say, by the same state machine as the connections of a core.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;
use refrain_drive::Address;
use refrain_pool::secured::Secured;

use super::configs::Store;
use super::session::{Heard, Session, Task};

/// Maximum time of an attempt to connect, and of each read.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of a read.
const READ_BYTES_MAX: usize = 16 * 1024;

/// A connection to a server. Reads and writes are of bytes in the clear.
pub(crate) struct BlockingStream {
    socket: TcpStream,
    /// The TLS of the connection; `None` if it stays in the clear.
    session: Option<Session>,
    /// The first bytes for the server.
    opening: Vec<u8>,
    inbox: Inbox,
    scratch: Vec<u8>,
}

impl BlockingStream {
    /// Connects to a host, and sends `opening`. A second connection, as `sslmode` may want it,
    /// begins with `opening` again.
    ///
    /// # Errors
    /// If the host has no address of TCP, or cannot be reached.
    pub(crate) fn open(store: &Store, host: &Host, opening: Vec<u8>) -> io::Result<Self> {
        let Host::Tcp { host: name, port, .. } = host else {
            return Err(io::Error::other("expected the name or address of a host"));
        };
        let mut session = Session::of_server(store, host).map_err(io::Error::other)?;
        let socket = reach((name.as_str(), *port).to_socket_addrs()?)?;
        let address = Address::Tcp(socket.peer_addr()?);
        let mut inbox = Inbox::default();
        match &mut session {
            Some(session) => session.connected(Some(address), &mut |heard| inbox.hear(heard)),
            None => inbox.is_connected = true,
        }
        let mut stream = Self { socket, session, opening, inbox, scratch: Vec::new() };
        stream.settle()?;
        Ok(stream)
    }

    /// Returns what the handshake has agreed on; `None` in the clear. It is settled once the server
    /// has answered the opening.
    pub(crate) fn secured(&self) -> Option<&Secured> {
        self.inbox.secured.as_deref()
    }

    /// Waits for bytes of the server.
    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES_MAX];
        let got = self.socket.read(&mut buffer);
        let inbox = &mut self.inbox;
        match (got, &mut self.session) {
            (Ok(0), None) => inbox.has_ended = true,
            (Ok(0), Some(session)) => session.closed(None, &mut |heard| inbox.hear(heard)),
            (Ok(length), None) => inbox.bytes.extend(&buffer[..length]),
            (Ok(length), Some(session)) => {
                let (bytes, scratch) = (&buffer[..length], &mut self.scratch);
                session.receive(bytes, scratch, &mut |heard| inbox.hear(heard));
            }
            // The session decides whether another connection follows. An end that came with an
            // error is one as well: some servers reset connections with a handshake.
            (Err(error), Some(session)) if error.kind() == ErrorKind::ConnectionReset => {
                session.closed(Some(&error.to_string()), &mut |heard| inbox.hear(heard));
            }
            (Err(error), _) => return Err(error),
        }
        self.settle()
    }

    /// Does what the session wants. A failure that the session has told of comes first: that of a
    /// send may be its consequence.
    fn settle(&mut self) -> io::Result<()> {
        let done = self.do_tasks();
        self.inbox.failure.take().map_or(done, |why| Err(io::Error::other(why)))
    }

    fn do_tasks(&mut self) -> io::Result<()> {
        loop {
            let is_connected = std::mem::take(&mut self.inbox.is_connected);
            let Some(session) = &mut self.session else {
                return if is_connected { self.socket.write_all(&self.opening) } else { Ok(()) };
            };
            if is_connected {
                session.send(self.opening.clone());
            }
            match session.next(&mut Vec::new()) {
                Task::Nothing => return Ok(()),
                Task::Send(bytes) => {
                    self.socket.write_all(&bytes)?;
                    session.sent();
                }
                Task::Sent(_) => {}
                Task::Dial(address) => {
                    let inbox = &mut self.inbox;
                    let Address::Tcp(tcp) = address else { return Ok(()) };
                    self.socket = reach([tcp].into_iter())?;
                    session.connected(Some(address), &mut |heard| inbox.hear(heard));
                }
                Task::Dissolve => self.session = None,
                Task::Break(why) => return Err(io::Error::other(why)),
            }
        }
    }
}

impl Read for BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.inbox.bytes.is_empty() && !self.inbox.has_ended {
            self.receive()?;
        }
        self.inbox.bytes.read(buffer)
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.write_all(bytes)?,
            Some(session) => {
                session.send(bytes.to_vec());
                self.settle()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The news of a session, until they are handled.
#[derive(Default)]
struct Inbox {
    bytes: VecDeque<u8>,
    secured: Option<Arc<Secured>>,
    is_connected: bool,
    has_ended: bool,
    failure: Option<String>,
}

impl Inbox {
    /// Keeps what a session tells.
    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Secured(secured) => self.secured = Some(secured),
            Heard::Connected => self.is_connected = true,
            Heard::Bytes(bytes) => self.bytes.extend(bytes),
            Heard::End => self.has_ended = true,
            Heard::Failed(why) | Heard::Broken(why) => self.failure = Some(why),
        }
    }
}

/// Connects to the first of these addresses that can be reached.
fn reach(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(socket) => {
                socket.set_read_timeout(Some(TIMEOUT))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
