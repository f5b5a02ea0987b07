//! A client's session, over the server's Unix socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_mysql_wire::auth::{caching_sha2, native};
use refrain_mysql_wire::column::ColumnDefinition;
use refrain_mysql_wire::handshake::{
    Attributes, AuthReply, Greeting, HandshakeResponse41, HandshakeV10, NONCE_BYTES,
};
use refrain_mysql_wire::packet::{self, Boundaries};
use refrain_mysql_wire::reply::{EofPacket, ErrPacket, Head, OkPacket, ends_rows, first};
use refrain_mysql_wire::request::{Query, Request};
use refrain_mysql_wire::track::Change;
use refrain_mysql_wire::{Capabilities, Status};
use xtask::channel::read_some;

use super::{World, encrypted};

/// The capabilities that most tests want.
pub(crate) const USUAL: Capabilities = Capabilities::from_bits(
    Capabilities::LONG_FLAG.bits()
        | Capabilities::PROTOCOL_41.bits()
        | Capabilities::TRANSACTIONS.bits()
        | Capabilities::SECURE_CONNECTION.bits()
        | Capabilities::MULTI_STATEMENTS.bits()
        | Capabilities::MULTI_RESULTS.bits()
        | Capabilities::PS_MULTI_RESULTS.bits()
        | Capabilities::PLUGIN_AUTH.bits()
        | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA.bits()
        | Capabilities::CONNECT_ATTRS.bits()
        | Capabilities::LOCAL_FILES.bits()
        | Capabilities::SESSION_TRACK.bits()
        | Capabilities::DEPRECATE_EOF.bits(),
);

/// A login that a test wants.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) database: &'a str,
    /// The plugin that the client begins with.
    pub(crate) plugin: &'static [u8],
    pub(crate) capabilities: Capabilities,
}

/// The superuser, with the usual capabilities.
pub(crate) const ROOT: Wanted<'static> = Wanted {
    user: "root",
    password: "",
    database: "",
    plugin: native::PLUGIN,
    capabilities: USUAL,
};

/// A connection.
pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A session.
pub(crate) struct Session {
    stream: Box<dyn Stream>,
    /// Whether the server takes a password as it is.
    is_secure: bool,
    received: Vec<u8>,
    /// The sequence id of the next packet, in either direction.
    sequence: u8,
    /// The capabilities that both sides have.
    pub(crate) agreed: Capabilities,
    nonce: [u8; NONCE_BYTES],
    /// The plugin's data of the login, apart from requests for another plugin.
    pub(crate) more_data: Vec<Vec<u8>>,
}

/// The end of a login: the payload of the OK or ERR packet.
pub(crate) type End = Vec<u8>;

/// One result of a reply.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The payload of the first packet.
    pub(crate) head: Vec<u8>,
    /// Payloads of column definitions.
    pub(crate) columns: Vec<Vec<u8>>,
    /// Payloads of rows.
    pub(crate) rows: Vec<Vec<u8>>,
    /// Flags at the end; none behind an error.
    pub(crate) status: Option<Status>,
    /// The payload of the ERR packet in place of the end.
    pub(crate) error: Option<Vec<u8>>,
}

impl Session {
    /// Connects and logs in. Fails if the server refuses.
    pub(crate) fn start(world: &World, wanted: Wanted<'_>) -> Session {
        let (session, end) = Self::try_start(world, wanted);
        assert_eq!(end[0], first::OK, "{:?}", ErrPacket::read(&end));
        session
    }

    /// Connects and logs in. Returns the session and the end of its login.
    pub(crate) fn try_start(world: &World, wanted: Wanted<'_>) -> (Session, End) {
        let stream = UnixStream::connect(world.server.socket()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit of time");
        Self::over(Box::new(stream), true, wanted)
    }

    /// Connects by TCP and logs in. Fails if the server refuses.
    pub(crate) fn start_by_tcp(world: &World, wanted: Wanted<'_>) -> Session {
        let stream = TcpStream::connect(("127.0.0.1", world.port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit of time");
        // CLOSE has no reply: what is sent behind it would wait for the peer's late ACK.
        stream.set_nodelay(true).expect("no delay");
        let (session, end) = Self::over(Box::new(stream), false, wanted);
        assert_eq!(end[0], first::OK, "{:?}", ErrPacket::read(&end));
        session
    }

    /// Logs in over a connection.
    fn over(stream: Box<dyn Stream>, is_secure: bool, wanted: Wanted<'_>) -> (Session, End) {
        let mut session = Session {
            stream,
            is_secure,
            received: Vec::new(),
            sequence: 0,
            agreed: Capabilities::NONE,
            nonce: [0; NONCE_BYTES],
            more_data: Vec::new(),
        };
        let payload = session.receive();
        let greeting = Greeting::read(&payload).expect("a greeting");
        let Greeting::Handshake(greeting) = greeting else { panic!("{greeting:?}") };
        assert_same(&payload, |out| greeting.write(out));
        session.respond(&greeting, wanted);
        let end = session.finish_login(wanted.password);
        (session, end)
    }

    /// Answers the greeting.
    fn respond(&mut self, greeting: &HandshakeV10<'_>, wanted: Wanted<'_>) {
        self.nonce = greeting.nonce;
        let mut capabilities = wanted.capabilities & greeting.capabilities;
        if greeting.capabilities.has(Capabilities::CLIENT_MYSQL) {
            capabilities = capabilities | Capabilities::CLIENT_MYSQL;
        }
        if !wanted.database.is_empty() {
            capabilities = capabilities | Capabilities::CONNECT_WITH_DB;
        }
        self.agreed = capabilities;
        let mut attributes = Vec::new();
        Attributes::put(&mut attributes, b"program_name", b"mysql-wire");
        let proof = proof(wanted.plugin, wanted.password, &self.nonce);
        let response = HandshakeResponse41 {
            capabilities,
            max_packet: 1 << 24,
            collation: 45, // utf8mb4_general_ci
            user: wanted.user.as_bytes(),
            proof: &proof,
            database: wanted.database.as_bytes(),
            plugin: wanted.plugin,
            attributes: Attributes(&attributes),
            zstd_level: 0,
        };
        self.send(|out| response.write(out));
    }

    /// Answers what the server asks for, up to OK or ERR.
    pub(crate) fn finish_login(&mut self, password: &str) -> End {
        loop {
            let payload = self.receive();
            let reply = AuthReply::read(&payload, self.agreed).expect("a reply to a login");
            assert_same(&payload, |out| reply.write(out, self.agreed));
            match reply {
                AuthReply::Ok(_) | AuthReply::Err(_) => return payload,
                AuthReply::Switch(switch) => {
                    self.nonce = switch.data.try_into().expect("a nonce");
                    let proof = proof(switch.plugin, password, &self.nonce);
                    self.send(|out| out.extend_from_slice(&proof));
                }
                AuthReply::MoreData(data) => {
                    self.more_data.push(data.to_vec());
                    if data == caching_sha2::PERFORM_FULL_AUTHENTICATION {
                        self.send_password(password);
                    }
                }
            }
        }
    }

    /// Sends the password itself: as it is over a Unix socket, which is as good as TLS, or
    /// encrypted with the server's key.
    fn send_password(&mut self, password: &str) {
        if self.is_secure {
            let clear = [password.as_bytes(), b"\0"].concat();
            return self.send(|out| out.extend_from_slice(&clear));
        }
        self.send(|out| out.extend_from_slice(caching_sha2::REQUEST_PUBLIC_KEY));
        let payload = self.receive();
        let reply = AuthReply::read(&payload, self.agreed);
        let Ok(AuthReply::MoreData(key)) = reply else { panic!("{reply:?}") };
        let masked = caching_sha2::masked(password.as_bytes(), &self.nonce);
        let encrypted = encrypted::with_key(key, &masked);
        self.send(|out| out.extend_from_slice(&encrypted));
    }

    /// Returns the nonce of the login.
    pub(crate) fn nonce(&self) -> &[u8; NONCE_BYTES] {
        &self.nonce
    }

    /// Sends a message that goes on with the present command.
    pub(crate) fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        self.sequence = packet::message(&mut out, self.sequence, fill);
        self.stream.write_all(&out).expect("the server takes it");
    }

    /// Sends a command.
    pub(crate) fn command(&mut self, request: &Request<'_>) {
        let mut payload = Vec::new();
        request.write(&mut payload, self.agreed);
        assert_eq!(Request::read(&payload, self.agreed).as_ref(), Ok(request));
        self.sequence = 0;
        self.send(|out| out.extend_from_slice(&payload));
    }

    /// Sends a text. Returns its results.
    pub(crate) fn query(&mut self, text: &str) -> Vec<Outcome> {
        self.command(&Request::Query(Query { attributes: b"", text: text.as_bytes() }));
        self.outcomes()
    }

    /// Sends a text that succeeds, and has one result.
    pub(crate) fn run(&mut self, text: &str) -> Outcome {
        let mut outcomes = self.query(text);
        assert_eq!(outcomes.len(), 1, "{text}");
        let outcome = outcomes.remove(0);
        assert_eq!(outcome.error.as_deref().map(ErrPacket::read), None, "{text}");
        outcome
    }

    /// Receives a message, and checks its sequence ids.
    pub(crate) fn receive(&mut self) -> Vec<u8> {
        let (mut payload, mut boundaries) = (Vec::new(), Boundaries::default());
        loop {
            while let Some(packet) = packet::split(&self.received) {
                assert_eq!(packet.header.sequence, self.sequence);
                assert_eq!(boundaries.begins(packet.header), payload.is_empty());
                self.sequence = self.sequence.wrapping_add(1);
                payload.extend_from_slice(packet.payload);
                let (rest, whole) = (packet.rest.to_vec(), !packet.header.is_continued());
                self.received = rest;
                if whole {
                    return payload;
                }
            }
            let mut buffer = vec![0; 1 << 20];
            let count = read_some(&mut self.stream, &mut buffer).expect("a packet in time");
            assert_ne!(count, 0, "the server has closed the connection");
            self.received.extend_from_slice(&buffer[..count]);
        }
    }

    /// Receives a packet with flags, which is an OK packet.
    pub(crate) fn ok(&mut self) -> Vec<u8> {
        let payload = self.receive();
        let ok = OkPacket::read(&payload, self.agreed);
        let ok = ok.unwrap_or_else(|_| panic!("{:?}", ErrPacket::read(&payload)));
        assert_same(&payload, |out| ok.write(out, payload[0], self.agreed));
        payload
    }

    /// Receives the results of a reply.
    pub(crate) fn outcomes(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        loop {
            let outcome = self.outcome();
            let more = outcome.status.is_some_and(|it| it.has(Status::MORE_RESULTS_EXISTS));
            outcomes.push(outcome);
            if !more {
                return outcomes;
            }
        }
    }

    /// Receives one result.
    fn outcome(&mut self) -> Outcome {
        let payload = self.receive();
        let head = Head::read(&payload, self.agreed).expect("the head of a reply");
        assert_same(&payload, |out| head.write(out, self.agreed));
        let mut outcome = Outcome {
            head: payload.clone(),
            columns: Vec::new(),
            rows: Vec::new(),
            status: None,
            error: None,
        };
        match head {
            Head::Ok(ok) => outcome.status = Some(ok.status),
            Head::Err(_) => outcome.error = Some(payload),
            Head::LocalInfile(_) => {}
            Head::Columns { count, defined } => {
                let count = if defined { count } else { 0 };
                outcome.columns = self.definitions(count as usize);
                let end = self.rows(&mut outcome.rows);
                match end[0] {
                    first::ERR => outcome.error = Some(end),
                    _ => outcome.status = Some(self.end(&end)),
                }
            }
        }
        outcome
    }

    /// Receives definitions, and the EOF packet behind them if there is one.
    pub(crate) fn definitions(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut columns = Vec::new();
        for _ in 0..count {
            let payload = self.receive();
            let column = ColumnDefinition::read(&payload, self.agreed).expect("a definition");
            assert_same(&payload, |out| column.write(out, self.agreed));
            columns.push(payload);
        }
        if count > 0 && !self.agreed.has(Capabilities::DEPRECATE_EOF) {
            let payload = self.receive();
            self.end(&payload);
        }
        columns
    }

    /// Receives rows. Returns the payload behind them.
    pub(crate) fn rows(&mut self, rows: &mut Vec<Vec<u8>>) -> Vec<u8> {
        loop {
            let payload = self.receive();
            let length = (payload.len() as u32).min(packet::PAYLOAD_BYTES_MAX);
            let ends = ends_rows(payload[0], length, self.agreed);
            if ends || payload[0] == first::ERR {
                return payload;
            }
            rows.push(payload);
        }
    }

    /// Returns the flags of an EOF packet.
    fn end(&self, payload: &[u8]) -> Status {
        let eof = EofPacket::read(payload, self.agreed).expect("an EOF packet");
        if self.agreed.has(Capabilities::DEPRECATE_EOF) {
            let ok = OkPacket::read(payload, self.agreed).expect("an OK packet");
            assert_same(payload, |out| ok.write(out, first::EOF, self.agreed));
        } else {
            assert_same(payload, |out| eof.write(out));
        }
        eof.status
    }
}

impl Outcome {
    /// Returns the OK packet that is the whole result.
    pub(crate) fn ok(&self, agreed: Capabilities) -> OkPacket<'_> {
        OkPacket::read(&self.head, agreed).expect("an OK packet")
    }

    /// Returns the number of the error.
    pub(crate) fn errno(&self) -> u16 {
        let error = self.error.as_deref().expect("an error");
        ErrPacket::read(error).expect("an ERR packet").number
    }
}

/// Returns the changes of an OK packet.
pub(crate) fn changes<'a>(ok: &OkPacket<'a>) -> Vec<Change<'a>> {
    let changes = ok.changes.iter().collect::<Result<_, _>>();
    changes.unwrap_or_else(|error| panic!("{error}: {}", ok.changes.0.escape_ascii()))
}

/// Fails if the bytes that are written are not those that came.
pub(crate) fn assert_same(came: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    let mut written = Vec::new();
    write(&mut written);
    assert!(came == written, "came    {}\nwritten {}", came.escape_ascii(), written.escape_ascii());
}

/// Returns the proof of a password for a plugin.
fn proof(plugin: &[u8], password: &str, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    match plugin {
        _ if password.is_empty() => Vec::new(),
        native::PLUGIN => native::Key::of(password.as_bytes()).proof(nonce).to_vec(),
        caching_sha2::PLUGIN => caching_sha2::Key::of(password.as_bytes()).proof(nonce).to_vec(),
        _ => panic!("the server asks for {}", plugin.escape_ascii()),
    }
}
