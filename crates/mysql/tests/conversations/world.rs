//! One core without I/O, its clients, and the servers that it connects to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Options;
use refrain_mysql::console::reply::ConsoleReply;
use refrain_mysql::console::{Answer, Request};
use refrain_mysql::parts::My;
use refrain_mysql_wire::handshake::{Greeting, HandshakeResponse41, HandshakeV10};
use refrain_mysql_wire::{Capabilities, command as commands, packet};
use refrain_pool::event::{Command, Note};
use refrain_pool::ids::{ClientSerial, Peer};
use refrain_pool::shared::Shared;
use refrain_pool::{Action, Conn, Core, Engine, Event, Now, Output, Ports};

use crate::model::Model;
use crate::packets::{self, command, split};

/// The capabilities that a client of most libraries agrees on.
pub(crate) const USUAL: Capabilities = Capabilities::from_bits(
    Capabilities::PROTOCOL_41.bits()
        | Capabilities::SECURE_CONNECTION.bits()
        | Capabilities::PLUGIN_AUTH.bits()
        | Capabilities::CONNECT_WITH_DB.bits()
        | Capabilities::MULTI_RESULTS.bits()
        | Capabilities::MULTI_STATEMENTS.bits()
        | Capabilities::LOCAL_FILES.bits()
        | Capabilities::DEPRECATE_EOF.bits()
        | Capabilities::SESSION_TRACK.bits(),
);

/// A client, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(usize);

#[derive(Debug)]
struct ClientEnd {
    conn: Conn,
    got: Vec<u8>,
    agreed: Capabilities,
    /// The number of its greeting.
    number: u32,
    is_open: bool,
}

#[derive(Debug)]
struct ServerEnd {
    conn: Conn,
    model: Model,
    is_open: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Client(usize),
    Server(usize),
}

/// The core and its peers.
pub(crate) struct World {
    engine: Engine<My>,
    ports: Ports<My>,
    clients: Vec<ClientEnd>,
    servers: Vec<ServerEnd>,
    ends: HashMap<Conn, End>,
    now: Now,
    /// Bytes of a piece of input.
    piece: usize,
    pub(crate) notes: Vec<Note>,
    /// Whether servers can be connected to.
    pub(crate) connects: bool,
    /// Whether new servers are MariaDB's.
    pub(crate) is_mariadb: bool,
    /// The version of new servers of MySQL.
    pub(crate) version: &'static str,
    /// Whether new servers answer nothing for now.
    pub(crate) mutes: bool,
    /// Whether servers leave in place of an answer to KILL.
    pub(crate) leaves: bool,
    /// The rows of the catalogs of new servers.
    pub(crate) catalog: &'static [&'static [&'static str]],
    /// The host that cannot, as it is printed.
    pub(crate) down: &'static str,
    /// The commands that the program is asked to carry out.
    pub(crate) asked: Vec<Request>,
}

/// Holds a conversation with input in pieces of several lengths.
pub(crate) fn talk(pool: &str, conversation: impl Fn(&mut World)) {
    for piece in [usize::MAX, 1, 2, 3, 5, 7, 16] {
        conversation(&mut World::new(pool, piece));
    }
}

impl World {
    /// Makes a world whose input comes in pieces of this length.
    pub(crate) fn new(pool: &str, piece: usize) -> Self {
        let text = format!(
            "auth = \"trust\"\n[pool]\n{pool}\n[databases.\"*\"]\nurl = \"mysql://127.0.0.1:1/\"\n"
        );
        let options = Options::from_toml(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let shared = Shared::new(Arc::new(options), 1, &mut |bytes| bytes.fill(7));
        Self {
            engine: Engine::new(Core(0), shared, Box::new(|bytes| bytes.fill(9))),
            ports: Ports::default(),
            clients: Vec::new(),
            servers: Vec::new(),
            ends: HashMap::new(),
            now: Now(1_000_000),
            piece,
            notes: Vec::new(),
            connects: true,
            is_mariadb: false,
            version: "8",
            mutes: false,
            leaves: false,
            catalog: &[],
            down: "",
            asked: Vec::new(),
        }
    }

    /// Connects a client, which says nothing.
    pub(crate) fn connect(&mut self) -> ClientId {
        let conn = self.ports.open();
        let agreed = Capabilities::NONE;
        self.clients.push(ClientEnd { conn, got: Vec::new(), agreed, number: 0, is_open: true });
        self.ends.insert(conn, End::Client(self.clients.len() - 1));
        let peer = Peer::Tcp(([127, 0, 0, 1], 5000).into());
        self.step(Event::Accepted { conn, peer });
        self.settle();
        ClientId(self.clients.len() - 1)
    }

    /// Logs a client in, which must succeed.
    pub(crate) fn client(&mut self, agreed: Capabilities, schema: &str) -> ClientId {
        let client = self.connect();
        let told = self.log_in(client, agreed, schema);
        assert!(told.starts_with("ok"), "{told}");
        client
    }

    /// Logs in a client that has been greeted. Returns the answer in words.
    pub(crate) fn log_in(
        &mut self,
        client: ClientId,
        agreed: Capabilities,
        schema: &str,
    ) -> String {
        let greeting = split(&self.got(client));
        assert!(matches!(&greeting[..], [(0, payload)] if payload[0] == 10), "{greeting:?}");
        if let Ok(Greeting::Handshake(greeting)) = Greeting::read(&greeting[0].1) {
            self.clients[client.0].number = greeting.connection_id;
        }
        let mut capabilities = agreed;
        if schema.is_empty() {
            capabilities = capabilities - Capabilities::CONNECT_WITH_DB;
        }
        let response = HandshakeResponse41 {
            capabilities,
            max_packet: 1 << 24,
            collation: 45,
            user: b"app",
            proof: b"",
            database: schema.as_bytes(),
            plugin: b"mysql_native_password",
            attributes: refrain_mysql_wire::handshake::Attributes::default(),
            zstd_level: 0,
        };
        let mut bytes = Vec::new();
        packet::message(&mut bytes, 1, |out| response.write(out));
        self.clients[client.0].agreed = capabilities;
        self.send(client, &bytes);
        let got = self.got(client);
        packets::printed(&got, 2, capabilities)
    }

    /// Has a client send bytes.
    pub(crate) fn send(&mut self, client: ClientId, bytes: &[u8]) {
        let conn = self.clients[client.0].conn;
        for piece in bytes.chunks(self.piece.min(bytes.len().max(1))) {
            if self.clients[client.0].is_open {
                self.step(Event::Bytes { conn, bytes: piece });
                self.settle();
            }
        }
    }

    /// Has a client send a text, and returns the reply in words.
    pub(crate) fn query(&mut self, client: ClientId, text: &str) -> String {
        self.ask(client, commands::QUERY, text.as_bytes())
    }

    /// Has a client send a command, and returns the reply in words.
    pub(crate) fn ask(&mut self, client: ClientId, byte: u8, body: &[u8]) -> String {
        self.send(client, &command(byte, body));
        self.heard(client)
    }

    /// Returns what a client has got, in words.
    pub(crate) fn heard(&mut self, client: ClientId) -> String {
        self.heard_from(client, 1)
    }

    /// Returns what a client has got, in words. The first packet has this sequence id.
    pub(crate) fn heard_from(&mut self, client: ClientId, sequence: u8) -> String {
        let agreed = self.clients[client.0].agreed;
        packets::printed(&self.got(client), sequence, agreed)
    }

    /// Returns the bytes that a client has got.
    pub(crate) fn got(&mut self, client: ClientId) -> Vec<u8> {
        std::mem::take(&mut self.clients[client.0].got)
    }

    /// Whether a client's connection is open.
    pub(crate) fn is_open(&self, client: ClientId) -> bool {
        self.clients[client.0].is_open
    }

    /// Has a client's connection end.
    pub(crate) fn leave(&mut self, client: ClientId) {
        let conn = self.clients[client.0].conn;
        self.step(Event::Closed { conn, why: Some("reset") });
        self.settle();
    }

    /// Has a client end its stream. It goes on reading.
    pub(crate) fn end_stream(&mut self, client: ClientId) {
        let conn = self.clients[client.0].conn;
        self.step(Event::Closed { conn, why: None });
        self.settle();
    }

    /// Returns the number of connections to servers that are open and no probe.
    pub(crate) fn servers(&self) -> usize {
        self.servers.iter().filter(|server| server.is_open).count()
    }

    /// Returns the commands that the servers have got, of all of them.
    pub(crate) fn log(&mut self) -> Vec<String> {
        self.servers.iter_mut().flat_map(|server| std::mem::take(&mut server.model.log)).collect()
    }

    /// Has all servers answer nothing for now, or answer again.
    pub(crate) fn silence(&mut self, is_silent: bool) {
        for at in 0..self.servers.len() {
            self.servers[at].model.is_silent = is_silent;
            let (bytes, closes) = self.servers[at].model.go_on();
            self.serve(at, &bytes, closes);
        }
        self.settle();
    }

    /// Has the server of a connection answer nothing for now, or answer again.
    pub(crate) fn silence_one(&mut self, at: usize, is_silent: bool) {
        self.servers[at].model.is_silent = is_silent;
        let (bytes, closes) = self.servers[at].model.go_on();
        self.serve(at, &bytes, closes);
        self.settle();
    }

    /// Returns the number that a client's greeting has named.
    pub(crate) fn number(&self, client: ClientId) -> u32 {
        self.clients[client.0].number
    }

    /// Gives all servers another catalog.
    pub(crate) fn change_catalog(&mut self, catalog: &'static [&'static [&'static str]]) {
        self.catalog = catalog;
        self.servers.iter_mut().for_each(|server| server.model.catalog = catalog);
    }

    /// Has KILL come late on the server of a connection, behind so many statements.
    pub(crate) fn strike(&mut self, at: usize, behind: u32) {
        self.servers[at].model.struck_behind = Some(behind);
    }

    /// Has no server prepare anything.
    pub(crate) fn refuse_statements(&mut self) {
        self.servers.iter_mut().for_each(|server| server.model.refuses = true);
    }

    /// Has all servers leave out numbers between statements.
    pub(crate) fn skip_numbers(&mut self, count: u32) {
        self.servers.iter_mut().for_each(|server| server.model.skips = count);
    }

    /// Returns how many packets the servers have not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.servers.iter().map(|server| server.model.unanswered()).sum()
    }

    /// Has a server say something unasked.
    pub(crate) fn servers_say(&mut self, bytes: &[u8]) {
        for at in 0..self.servers.len() {
            if self.servers[at].is_open {
                self.serve(at, bytes, false);
            }
        }
        self.settle();
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.now = end.min(self.now.after(Duration::from_millis(100)));
            self.step(Event::Tick);
            self.settle();
        }
    }

    /// Gives the core a command.
    pub(crate) fn command(&mut self, command: Command) {
        self.step(Event::Command(command));
        self.settle();
    }

    /// Gives the core the program's reply to a command of a client.
    pub(crate) fn answer(&mut self, client: ClientSerial, reply: ConsoleReply) {
        self.step(Event::Answered(Answer { client, reply }));
        self.settle();
    }

    fn step(&mut self, event: Event<'_, My>) {
        self.engine.step(self.now, event, &mut self.ports);
        assert_eq!(self.engine.check(), Ok(()));
    }

    fn settle(&mut self) {
        while let Some(output) = self.ports.next() {
            match output {
                Output::Send { conn, bytes } => self.sent(conn, bytes),
                Output::Close { conn } => match self.ends.remove(&conn).expect("it was open") {
                    End::Client(at) => self.clients[at].is_open = false,
                    End::Server(at) => self.servers[at].is_open = false,
                },
                Output::Act(action) => self.act(action),
            }
        }
    }

    fn sent(&mut self, conn: Conn, bytes: Vec<u8>) {
        let end = self.ends[&conn];
        let copy = bytes.clone();
        if self.ports.sent(conn, bytes) {
            self.step(Event::Drained { conn });
        }
        match end {
            End::Client(at) => self.clients[at].got.extend_from_slice(&copy),
            End::Server(at) => {
                let (answer, closes) = self.servers[at].model.take(&copy);
                match self.leaves && copy.windows(4).any(|bytes| bytes == b"KILL") {
                    true => self.serve(at, b"", true),
                    false => self.serve(at, &answer, closes),
                }
            }
        }
    }

    /// Hands a server's bytes over.
    fn serve(&mut self, at: usize, bytes: &[u8], closes: bool) {
        let conn = self.servers[at].conn;
        for piece in bytes.chunks(self.piece.min(bytes.len().max(1))) {
            if self.ends.contains_key(&conn) && self.servers[at].is_open {
                self.step(Event::Bytes { conn, bytes: piece });
            }
        }
        if closes && self.ends.contains_key(&conn) && self.servers[at].is_open {
            self.step(Event::Closed { conn, why: None });
        }
    }

    fn act(&mut self, action: Action<My>) {
        match action {
            Action::Connect { conn, host } => {
                self.servers.push(ServerEnd {
                    conn,
                    model: Model::of(self.is_mariadb),
                    is_open: true,
                });
                let at = self.servers.len() - 1;
                self.servers[at].model.is_silent = self.mutes;
                self.servers[at].model.catalog = self.catalog;
                self.servers[at].model.version = self.version;
                self.ends.insert(conn, End::Server(at));
                if !self.connects || host.to_string() == self.down {
                    return self.step(Event::Failed { conn, why: "refused" });
                }
                self.step(Event::Connected { conn });
                let greeting = self.servers[at].model.greeting();
                self.serve(at, &greeting, false);
            }
            Action::Note(note) => self.notes.push(*note),
            Action::Ask(request) => self.asked.push(request),
            _ => {}
        }
    }
}

/// Reads the greeting of a client.
pub(crate) fn version(bytes: &[u8]) -> String {
    let greeting = split(bytes);
    let payload = &greeting.first().expect("a greeting").1;
    match Greeting::read(payload) {
        Ok(Greeting::Handshake(HandshakeV10 { version, .. })) => packets::lossy(version),
        _ => packets::printed(bytes, 0, Capabilities::NONE),
    }
}
