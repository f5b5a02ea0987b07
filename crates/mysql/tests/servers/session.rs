//! A session that follows each reply with the table.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_mysql::{Kind, Part, Reply};
use refrain_mysql_wire::handshake::{Attributes, AuthReply, Greeting, HandshakeResponse41};
use refrain_mysql_wire::packet::{self, Boundaries};
use refrain_mysql_wire::reply::first;
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Capabilities, Header, Status};
use xtask::channel::read_some;
use xtask::mysql::Server;

/// Capabilities of every session.
const ALWAYS: [Capabilities; 10] = [
    Capabilities::LONG_FLAG,
    Capabilities::PROTOCOL_41,
    Capabilities::TRANSACTIONS,
    Capabilities::SECURE_CONNECTION,
    Capabilities::MULTI_STATEMENTS,
    Capabilities::MULTI_RESULTS,
    Capabilities::PS_MULTI_RESULTS,
    Capabilities::PLUGIN_AUTH,
    Capabilities::LOCAL_FILES,
    Capabilities::SESSION_TRACK,
];

/// A session.
pub(crate) struct Session {
    stream: UnixStream,
    received: Vec<u8>,
    agreed: Capabilities,
}

/// A whole reply, as the table sees it.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The payload of the first packet.
    pub(crate) first: Vec<u8>,
    /// The ERR packet, if the reply ends with one.
    pub(crate) failed: Option<Vec<u8>>,
    /// The flags of the last packet.
    pub(crate) status: Option<Status>,
    /// Number of results.
    pub(crate) results: usize,
    /// Number of files that the server has asked for.
    pub(crate) files: usize,
    /// The place of the last packet.
    pub(crate) part: Part,
}

impl Session {
    /// Logs in as a superuser without a password.
    pub(crate) fn start(server: &Server, wanted: Capabilities) -> Session {
        let stream = UnixStream::connect(server.socket()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit of time");
        let mut session = Session { stream, received: Vec::new(), agreed: Capabilities::NONE };
        let (_, payload) = session.message();
        let greeting = Greeting::read(&payload).expect("a greeting");
        let Greeting::Handshake(greeting) = greeting else { panic!("{greeting:?}") };
        let wanted = ALWAYS.iter().fold(wanted, |all, &one| all | one);
        let mysql = greeting.capabilities & Capabilities::CLIENT_MYSQL;
        session.agreed = (wanted & greeting.capabilities) | mysql;
        let response = HandshakeResponse41 {
            capabilities: session.agreed,
            max_packet: 1 << 24,
            collation: 45, // utf8mb4_general_ci
            user: b"root",
            proof: b"",
            database: b"",
            plugin: b"mysql_native_password",
            attributes: Attributes::default(),
            zstd_level: 0,
        };
        session.send(1, |out| response.write(out));
        loop {
            let (header, payload) = session.message();
            match AuthReply::read(&payload, session.agreed).expect("a reply to a login") {
                AuthReply::Ok(_) => return session,
                // No password has an empty proof by every plugin.
                AuthReply::Switch(_) => session.send(header.sequence + 1, |_| {}),
                AuthReply::MoreData(_) => {}
                AuthReply::Err(err) => panic!("{err:?}"),
            }
        }
    }

    /// Returns the capabilities that both sides have.
    pub(crate) fn agreed(&self) -> Capabilities {
        self.agreed
    }

    /// Sends a command, and a COM_PING behind it unless the server asks for a file. Takes both
    /// replies.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Answer {
        let agreed = self.agreed;
        let asks_for_file =
            matches!(request, Request::Query(query) if query.text.starts_with(b"LOAD"));
        self.send(0, |out| request.write(out, agreed));
        if !asks_for_file {
            self.send(0, |out| Request::Ping.write(out, agreed));
        }
        let kind = Kind::of(request.command()).expect("a command with a reply");
        let answer = self.reply(kind);
        if asks_for_file {
            self.send(0, |out| Request::Ping.write(out, agreed));
        }
        let ping = self.reply(Kind::Ok);
        assert!(ping.failed.is_none(), "{request:?}: {ping:?}");
        answer
    }

    /// Sends commands in one write. Takes the replies of those that have one.
    pub(crate) fn ask_all(&mut self, requests: &[Request<'_>]) -> Vec<Answer> {
        let mut out = Vec::new();
        for request in requests {
            packet::message(&mut out, 0, |out| request.write(out, self.agreed));
        }
        self.stream.write_all(&out).expect("the server takes it");
        let kinds = requests.iter().filter_map(|request| Kind::of(request.command()));
        kinds.map(|kind| self.reply(kind)).collect()
    }

    /// Takes a reply.
    fn reply(&mut self, kind: Kind) -> Answer {
        let mut reply = Reply::of(kind);
        let mut answer = Answer {
            first: Vec::new(),
            failed: None,
            status: None,
            results: 0,
            files: 0,
            part: Part::Within,
        };
        while answer.part != Part::End {
            let (header, payload) = self.message();
            let before = reply;
            let whole = reply.take(header, &payload, self.agreed);
            let taken = whole.unwrap_or_else(|error| {
                panic!("{error} of {before:?} behind {answer:?}, {:?}: {payload:?}", self.agreed)
            });
            let taken = taken.expect("all of the packet is there");
            if answer.first.is_empty() {
                answer.first = payload.clone();
            }
            if taken.part == Part::File {
                answer.files += 1;
                self.send(header.sequence.wrapping_add(1), |out| out.extend_from_slice(b"1\n"));
                self.send(header.sequence.wrapping_add(2), |_| {});
            }
            let more = taken.status.is_some_and(|it| it.has(Status::MORE_RESULTS_EXISTS));
            let ends_columns = payload.len() == 5 && !reply.is_head();
            if taken.part == Part::End || (more && !ends_columns) {
                answer.results += 1;
            }
            answer.part = taken.part;
            answer.status = taken.status;
            if taken.part == Part::End && payload[0] == first::ERR && kind != Kind::Statistics {
                answer.failed = Some(payload);
            }
        }
        answer
    }

    fn send(&mut self, sequence: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        packet::message(&mut out, sequence, fill);
        self.stream.write_all(&out).expect("the server takes it");
    }

    /// Receives a message: the header and the payload of its first packet.
    fn message(&mut self) -> (Header, Vec<u8>) {
        let (mut boundaries, mut first) = (Boundaries::default(), None);
        loop {
            let Some(packet) = packet::split(&self.received) else {
                let mut buffer = vec![0; 1 << 20];
                let count = read_some(&mut self.stream, &mut buffer).expect("a packet in time");
                assert_ne!(count, 0, "the server has closed the connection");
                self.received.extend_from_slice(&buffer[..count]);
                continue;
            };
            if boundaries.begins(packet.header) {
                first = Some((packet.header, packet.payload.to_vec()));
            }
            self.received.drain(..packet.header.packet_bytes());
            if !boundaries.is_within() {
                return first.expect("a packet that begins the message");
            }
        }
    }
}
