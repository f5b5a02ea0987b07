//! MySQL's engine. The model server answers each command by its first byte.

mod fake;
mod scripts;

pub use self::scripts::{MyScript, scripts};

use std::net::SocketAddr;
use std::sync::Arc;

use refrain_config::Options;
use refrain_mysql::parts::My;
use refrain_mysql_wire::handshake::{Attributes, HandshakeResponse41};
use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_mysql_wire::reply::first;
use refrain_mysql_wire::{Capabilities, packet};
use refrain_pool::event::Level;
use refrain_pool::ids::Peer;
use refrain_pool::shared::Shared;
use refrain_pool::{Action, Conn, Core, Engine, Event, Now, Output, Ports};

use crate::Facts;

use self::fake::MyServer;

/// The place of a statement's number in a command, and in the reply to a PREPARE.
const NUMBER: std::ops::Range<usize> = HEADER_BYTES + 1..HEADER_BYTES + 5;
/// Microseconds that a command takes.
const COMMAND_US: u64 = 10;

/// The capabilities of clients, which are those of most libraries.
const AGREED: Capabilities = Capabilities::from_bits(
    Capabilities::PROTOCOL_41.bits()
        | Capabilities::SECURE_CONNECTION.bits()
        | Capabilities::PLUGIN_AUTH.bits()
        | Capabilities::CONNECT_WITH_DB.bits()
        | Capabilities::MULTI_RESULTS.bits()
        | Capabilities::DEPRECATE_EOF.bits(),
);

/// An engine at work on one script.
pub struct MyWorld {
    engine: Engine<My>,
    ports: Ports<My>,
    now: Now,
    clients: Vec<Conn>,
    /// The connections to the model server.
    servers: Vec<(Conn, MyServer)>,
    reply: Vec<u8>,
    /// Bytes that clients got.
    got: usize,
    /// The number in the last reply to a PREPARE.
    latest: [u8; 4],
    /// A command with that number.
    named: Vec<u8>,
}

impl crate::Script for MyScript {
    type World = MyWorld;

    fn facts(&self) -> Facts {
        Facts { name: self.name, transactions: self.transactions, lean: self.lean }
    }

    fn begin(&self) -> MyWorld {
        MyWorld::new(self)
    }

    fn run(&self, world: &mut MyWorld) -> usize {
        world.run(self)
    }
}

impl MyWorld {
    fn new(script: &MyScript) -> Self {
        let text = format!(
            "auth = \"trust\"\n[pool]\npool_size = 1\n{}\n\
             [databases.\"*\"]\nurl = \"mysql://127.0.0.1:1/\"\n",
            script.options
        );
        let options = Options::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let shared = Shared::new(Arc::new(options), 1, &mut |bytes| bytes.fill(7));
        let mut world = Self {
            engine: Engine::new(Core(0), shared, Box::new(|bytes| bytes.fill(9))),
            ports: Ports::default(),
            now: Now(1_000_000),
            clients: Vec::new(),
            servers: Vec::new(),
            reply: Vec::with_capacity(4096),
            got: 0,
            latest: [0; 4],
            named: Vec::new(),
        };
        for collation in script.clients {
            world.log_in(*collation);
        }
        for (client, bytes) in &script.before {
            world.say(*client, bytes);
        }
        world
    }

    fn log_in(&mut self, collation: u8) {
        let conn = self.ports.open();
        let peer = Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 5000)));
        self.hears(Event::Accepted { conn, peer });
        self.clients.push(conn);
        let response = HandshakeResponse41 {
            capabilities: AGREED,
            max_packet: 1 << 24,
            collation,
            user: b"app",
            proof: b"",
            database: b"shop",
            plugin: b"mysql_native_password",
            attributes: Attributes::default(),
            zstd_level: 0,
        };
        let mut bytes = Vec::new();
        packet::message(&mut bytes, 1, |out| response.write(out));
        self.say(self.clients.len() - 1, &bytes);
    }

    fn run(&mut self, script: &MyScript) -> usize {
        let before = self.got;
        for (at, (client, bytes)) in script.steps.iter().enumerate() {
            if script.names_latest && at > 0 {
                self.say_of_latest(*client, bytes);
            } else {
                self.say(*client, bytes);
            }
        }
        self.got - before
    }

    /// Sends a command of a client that names the statement that was prepared last.
    fn say_of_latest(&mut self, client: usize, bytes: &[u8]) {
        let mut named = std::mem::take(&mut self.named);
        named.clear();
        named.extend_from_slice(bytes);
        named[NUMBER].copy_from_slice(&self.latest);
        self.say(client, &named);
        self.named = named;
    }

    /// Sends bytes of a client, and performs all outputs that follow.
    fn say(&mut self, client: usize, bytes: &[u8]) {
        self.now = Now(self.now.0 + COMMAND_US);
        let conn = self.clients[client];
        self.hears(Event::Bytes { conn, bytes });
    }

    /// Steps an event, and performs all outputs that follow.
    fn hears(&mut self, event: Event<'_, My>) {
        measured_step(&mut self.engine, self.now, event, &mut self.ports);
        while let Some(output) = measured_next(&mut self.ports) {
            match output {
                Output::Send { conn, bytes } => self.deliver(conn, bytes),
                Output::Close { conn } => self.servers.retain(|(its, _)| *its != conn),
                Output::Act(Action::Connect { conn, .. }) => {
                    self.servers.push((conn, MyServer::default()));
                    let event = Event::Connected { conn };
                    measured_step(&mut self.engine, self.now, event, &mut self.ports);
                    let greeting = MyServer::greeting();
                    let event = Event::Bytes { conn, bytes: &greeting };
                    measured_step(&mut self.engine, self.now, event, &mut self.ports);
                }
                Output::Act(Action::Note(note)) if note.level > Level::Warn => {}
                Output::Act(action) => panic!("{action:?}"),
            }
        }
    }

    fn deliver(&mut self, conn: Conn, bytes: Vec<u8>) {
        let mut reply = std::mem::take(&mut self.reply);
        match self.servers.iter_mut().find(|(its, _)| *its == conn) {
            Some((_, fake)) => fake.answer(&bytes, &mut reply),
            None => {
                self.got += bytes.len();
                if bytes.get(HEADER_BYTES..NUMBER.start) == Some(&[first::OK])
                    && let Some(number) = bytes.get(NUMBER)
                {
                    self.latest.copy_from_slice(number);
                }
            }
        }
        if measured_sent(&mut self.ports, conn, bytes) {
            let event = Event::Drained { conn };
            measured_step(&mut self.engine, self.now, event, &mut self.ports);
        }
        if !reply.is_empty() {
            let event = Event::Bytes { conn, bytes: &reply };
            measured_step(&mut self.engine, self.now, event, &mut self.ports);
            reply.clear();
        }
        self.reply = reply;
    }
}

#[inline(never)]
fn measured_step(engine: &mut Engine<My>, now: Now, event: Event<'_, My>, ports: &mut Ports<My>) {
    engine.step(now, event, ports);
}

#[inline(never)]
fn measured_next(ports: &mut Ports<My>) -> Option<Output<My>> {
    ports.next()
}

#[inline(never)]
fn measured_sent(ports: &mut Ports<My>, conn: Conn, buffer: Vec<u8>) -> bool {
    ports.sent(conn, buffer)
}
