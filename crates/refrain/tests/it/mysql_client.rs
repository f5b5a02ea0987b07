//! A client of MySQL's protocol that prepares statements, which the command line does not.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use refrain_mysql::{Kind, Part, Reply};
use refrain_mysql_wire::handshake::{Attributes, AuthReply, Greeting, HandshakeResponse41};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::prepared::{Execute, PrepareOk};
use refrain_mysql_wire::reply::{ErrPacket, first};
use refrain_mysql_wire::request::{ChangeUser, Query, Request};
use refrain_mysql_wire::{Capabilities, Header};
use xtask::channel::read_some;

const WANTED: [Capabilities; 8] = [
    Capabilities::PROTOCOL_41,
    Capabilities::TRANSACTIONS,
    Capabilities::SECURE_CONNECTION,
    Capabilities::MULTI_RESULTS,
    Capabilities::PS_MULTI_RESULTS,
    Capabilities::PLUGIN_AUTH,
    Capabilities::CONNECT_WITH_DB,
    Capabilities::DEPRECATE_EOF,
];

/// A session. Clients are trusted.
pub(crate) struct Session {
    stream: TcpStream,
    received: Vec<u8>,
    agreed: Capabilities,
    /// The number of the greeting.
    number: u32,
}

/// Rows of strings; or the number of an error.
pub(crate) type Answer = Result<Vec<Vec<String>>, u16>;

impl Session {
    /// Logs in.
    pub(crate) fn start(port: &str, schema: &str) -> Self {
        Self::log_in("app", Capabilities::NONE, (port, schema))
    }

    /// Logs in as a user without some of the capabilities.
    pub(crate) fn log_in(user: &str, less: Capabilities, (port, schema): (&str, &str)) -> Self {
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit of time");
        // CLOSE has no reply: what is sent behind it would wait for the peer's late ACK.
        stream.set_nodelay(true).expect("no delay");
        let agreed = Capabilities::NONE;
        let mut session = Self { stream, received: Vec::new(), agreed, number: 0 };
        let (_, payload) = session.packet();
        let Ok(Greeting::Handshake(greeting)) = Greeting::read(&payload) else {
            panic!("{payload:?}")
        };
        let wanted = WANTED.iter().fold(Capabilities::CLIENT_MYSQL, |all, &one| all | one);
        session.agreed = (wanted - less) & greeting.capabilities;
        session.number = greeting.connection_id;
        let response = HandshakeResponse41 {
            capabilities: session.agreed,
            max_packet: 1 << 24,
            collation: 45, // utf8mb4_general_ci
            user: user.as_bytes(),
            proof: b"",
            database: schema.as_bytes(),
            plugin: b"mysql_native_password",
            attributes: Attributes::default(),
            zstd_level: 0,
        };
        session.send(1, |out| response.write(out));
        loop {
            let (header, payload) = session.packet();
            match AuthReply::read(&payload, session.agreed).expect("a reply to a login") {
                AuthReply::Ok(_) => return session,
                // No password has an empty proof by every plugin.
                AuthReply::Switch(_) => session.send(header.sequence + 1, |_| {}),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the number that the greeting has named.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Runs a text, and reads only the first packet of the reply.
    pub(crate) fn begin(&mut self, text: &str) {
        self.command(&Request::Query(Query { attributes: b"", text: text.as_bytes() }));
        self.packet();
    }

    /// Runs a text.
    pub(crate) fn query(&mut self, text: &str) -> Answer {
        self.ask(&Request::Query(Query { attributes: b"", text: text.as_bytes() }))
    }

    /// Returns what the session is told without having asked.
    pub(crate) fn told(&mut self) -> Answer {
        let (_, payload) = self.packet();
        Err(ErrPacket::read(&payload).expect("an error").number)
    }

    /// Prepares a text. Returns the statement's number.
    pub(crate) fn prepare(&mut self, text: &str) -> u32 {
        self.prepared(text).statement
    }

    /// Prepares a text, which is right.
    pub(crate) fn prepared(&mut self, text: &str) -> PrepareOk {
        self.try_to_prepare(text).expect("a statement")
    }

    /// Prepares a text, or gets the number of an error.
    pub(crate) fn try_to_prepare(&mut self, text: &str) -> Result<PrepareOk, u16> {
        self.command(&Request::StmtPrepare(text.as_bytes()));
        let (head, _) = self.reply(Kind::Prepare);
        match ErrPacket::read(&head) {
            Ok(err) => Err(err.number),
            Err(_) => Ok(PrepareOk::read(&head, self.agreed).expect("a statement")),
        }
    }

    /// Executes a statement with one parameter, or none. The type is that of the execution before
    /// if none is given.
    pub(crate) fn execute(&mut self, statement: u32, kind: Option<u16>, value: &[u8]) -> Answer {
        let parameters = u16::from(!value.is_empty());
        let kind = kind.map(u16::to_le_bytes);
        let types = kind.as_ref().map(<[u8; 2]>::as_slice);
        let nulls = &[0][..usize::from(parameters)];
        let head = Execute { statement, flags: 0, parameters, nulls, types, values: value };
        let mut body = Vec::new();
        head.write(&mut body, self.agreed);
        self.ask(&Request::StmtExecute(&body))
    }

    /// Logs in again, to a schema.
    pub(crate) fn change_user(&mut self, schema: &str) -> Result<(), u16> {
        self.command(&Request::ChangeUser(ChangeUser {
            user: b"app",
            proof: b"",
            database: schema.as_bytes(),
            collation: Some(45), // utf8mb4_general_ci
            plugin: b"mysql_native_password",
            attributes: Attributes::default(),
        }));
        loop {
            let (header, payload) = self.packet();
            match AuthReply::read(&payload, self.agreed).expect("a reply to a login") {
                AuthReply::Ok(_) => return Ok(()),
                AuthReply::Err(err) => return Err(err.number),
                AuthReply::Switch(_) => self.send(header.sequence + 1, |_| {}),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Closes a statement.
    pub(crate) fn close(&mut self, statement: u32) {
        self.command(&Request::StmtClose(statement));
    }

    fn ask(&mut self, request: &Request<'_>) -> Answer {
        self.command(request);
        let (head, rows) = self.reply(Kind::of(request.command()).expect("one with a reply"));
        match ErrPacket::read(&head) {
            Ok(err) => Err(err.number),
            Err(_) => Ok(rows),
        }
    }

    fn command(&mut self, request: &Request<'_>) {
        let agreed = self.agreed;
        self.send(0, |out| request.write(out, agreed));
    }

    /// Takes a reply: its last packet if that is an error, else its first, and the rows.
    fn reply(&mut self, kind: Kind) -> (Vec<u8>, Vec<Vec<String>>) {
        let (mut reply, mut head, mut rows) = (Reply::of(kind), Vec::new(), Vec::new());
        let (mut expected, mut columns, mut met) = (1, 0, 0);
        loop {
            let (header, payload) = self.packet();
            assert_eq!(header.sequence, expected, "{payload:?}");
            expected = expected.wrapping_add(1);
            let taken = reply.take(header, &payload, self.agreed);
            let taken = taken.expect("a packet of the reply").expect("all of it");
            if head.is_empty() {
                head.clone_from(&payload);
                columns = usize::from(payload[0]);
            } else if taken.part == Part::Within {
                met += 1;
                match kind {
                    Kind::Execute if payload[0] == first::OK => {
                        rows.push(strings(&payload[1 + (columns + 9) / 8..]));
                    }
                    // The names of the columns stand before them.
                    Kind::Query if met > columns && payload[0] != first::EOF => {
                        rows.push(strings(&payload));
                    }
                    _ => {}
                }
            }
            if taken.part == Part::End {
                let is_error = payload[0] == first::ERR;
                return (if is_error { payload } else { head }, rows);
            }
        }
    }

    fn send(&mut self, sequence: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        packet::message(&mut out, sequence, fill);
        self.stream.write_all(&out).expect("the server takes it");
    }

    fn packet(&mut self) -> (Header, Vec<u8>) {
        loop {
            if let Some(packet) = packet::split(&self.received) {
                let (header, payload) = (packet.header, packet.payload.to_vec());
                self.received.drain(..header.packet_bytes());
                return (header, payload);
            }
            let mut buffer = [0; 4096];
            let count = read_some(&mut self.stream, &mut buffer).expect("a packet in time");
            assert_ne!(count, 0, "the connection is closed");
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

/// Reads short strings, each behind its length.
fn strings(mut rest: &[u8]) -> Vec<String> {
    let mut strings = Vec::new();
    while let Some((&length, behind)) = rest.split_first() {
        let (value, behind) = behind.split_at(usize::from(length));
        strings.push(String::from_utf8_lossy(value).into_owned());
        rest = behind;
    }
    strings
}
