//! Packets over a connection, and the logins that tests want.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_mysql::errors::Brand;
use refrain_mysql::login::{
    Failure, Flavour, LoggedIn, ServerLogin, ServerSecret, ServerStep, Tls, Wanted,
};
use refrain_mysql_wire::{Capabilities, Header, Status, command, packet};
use xtask::channel::read_some;

use super::encrypted;

/// The longest that a peer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A place where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A port on 127.0.0.1.
    Port(u16),
    /// A Unix socket.
    Socket(std::path::PathBuf),
}

impl Place {
    /// Connects.
    pub(crate) fn connect(&self) -> Box<dyn Stream> {
        match self {
            Self::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a limit of time");
                // CLOSE has no reply: what is sent behind it would wait for the peer's late ACK.
                stream.set_nodelay(true).expect("no delay");
                Box::new(stream)
            }
            Self::Socket(path) => {
                let stream = UnixStream::connect(path).expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a limit of time");
                Box::new(stream)
            }
        }
    }
}

/// Returns a login as this user with this password; an empty one is none.
pub(crate) fn wanted(user: &str, password: &str) -> Wanted {
    Wanted {
        user: user.as_bytes().into(),
        secret: ServerSecret::of_password(password.as_bytes()),
        schema: Box::default(),
        tls: Tls::Never,
        is_local: false,
        capabilities: Capabilities::DEPRECATE_EOF,
        collation: None,
        program_name: b"refrain"[..].into(),
    }
}

/// Returns the flavour of a server that does not run.
pub(crate) fn flavour(brand: Brand, plugin: &str) -> Flavour {
    let (version, lacking) = match brand {
        Brand::MySql => ("8.0.15", Capabilities::NONE),
        Brand::MariaDb => ("5.5.5-10.11.19-MariaDB-log", Capabilities::CLIENT_MYSQL),
    };
    Flavour {
        version: version.as_bytes().into(),
        capabilities: Capabilities::LOW - lacking,
        collation: 45,
        status: Status::AUTOCOMMIT,
        plugin: plugin.as_bytes().into(),
    }
}

/// A session.
pub(crate) struct Session {
    pub(crate) stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl Session {
    /// Begins with a stream.
    pub(crate) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// Receives a packet: its sequence id and its payload. `None` at the end of the stream.
    pub(crate) fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(packet) = packet::split(&self.received) {
                let taken = (packet.header.sequence, packet.payload.to_vec());
                self.received.drain(..packet.header.packet_bytes());
                return Some(taken);
            }
            // Few bytes at a time, so that packets come in pieces; and none behind a packet, since
            // a record of TLS may follow.
            let header = Header::parse(&self.received).map(Header::packet_bytes);
            let missing = header.unwrap_or(packet::HEADER_BYTES) - self.received.len();
            let mut buffer = vec![0; missing.min(7)];
            match read_some(&mut self.stream, &mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Sends bytes. A peer that has closed does not take them.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
        let _ = self.stream.flush();
    }

    /// Runs a statement. Returns the first packet of the reply.
    pub(crate) fn query(&mut self, text: &str) -> Vec<u8> {
        self.try_query(text).expect("a reply")
    }

    /// Runs a statement. `None` if the server has closed.
    pub(crate) fn try_query(&mut self, text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        packet::message(&mut out, 0, |out| {
            out.push(command::QUERY);
            out.extend_from_slice(text.as_bytes());
        });
        self.send(&out);
        self.packet().map(|(_, payload)| payload)
    }
}

/// A session that has begun.
pub(crate) type Entered = (LoggedIn, Session);

/// Logs in to a server, and reports the exchange: the payloads of the server's packets.
pub(crate) fn log_in(place: &Place, wanted: Wanted) -> (Result<Entered, Failure>, Vec<Vec<u8>>) {
    let mut session = Session::new(place.connect());
    let mut login = ServerLogin::new(wanted, [9; 20]);
    let mut payloads = Vec::new();
    loop {
        let (sequence, payload) = session.packet().expect("a packet of the server");
        let mut out = Vec::new();
        let mut step = login.input(&payload, sequence, &mut out);
        payloads.push(payload);
        session.send(&out);
        if let ServerStep::StartTls = step {
            let Session { stream, received } = session;
            assert!(received.is_empty(), "a server speaks in the middle of its client's login");
            session = Session::new(encrypted::client(stream));
            out.clear();
            step = login.secured(&mut out);
            session.send(&out);
        }
        match step {
            ServerStep::More => {}
            ServerStep::StartTls => panic!("TLS within TLS"),
            ServerStep::LoggedIn(logged_in) => return (Ok((*logged_in, session)), payloads),
            ServerStep::Failed(failure) => return (Err(failure), payloads),
        }
    }
}
