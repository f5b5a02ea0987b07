//! PostgreSQL's engine. The model server answers each message by its tag.
//!
//! Time stands still but for a few microseconds a transaction. Ticks are only stepped in worlds
//! that learn which statements are reads, and in front of all that is measured.

mod fake;
mod scripts;

pub use self::scripts::{PgScript, scripts};

use std::net::SocketAddr;
use std::sync::Arc;

use refrain_config::Options;
use refrain_pg::requests::{Answer, ReadCase, Request};
use refrain_pg::{Action, Engine, Event, Output, Ports, Shared};
use refrain_pg_wire::write;
use refrain_pool::event::Level;
use refrain_pool::ids::Peer;
use refrain_pool::{Conn, Core, Now};
use refrain_sql::reads::Mentioned;

use crate::Facts;

use self::fake::PgServer;
use self::scripts::written;

/// Uses of a statement after which the engine asks about it.
const USES: u32 = 8;
/// Microseconds that a message takes.
const MESSAGE_US: u64 = 10;

/// An engine at work on one script.
pub struct PgWorld {
    engine: Engine,
    ports: Ports,
    now: Now,
    clients: Vec<Conn>,
    server: Option<Conn>,
    /// A client that leaves.
    leaving: Option<Conn>,
    fake: PgServer,
    reply: Vec<u8>,
    /// Statements about which the engine asks the parser thread.
    cases: Vec<ReadCase>,
    /// Bytes that clients got, and the last six of them.
    got: usize,
    tail: [u8; 6],
}

/// The environment variable with further options of the program, for one who wants to know what
/// they cost.
const MORE_OPTIONS: &str = "SCRIPT_OPTIONS";

impl crate::Script for PgScript {
    type World = PgWorld;

    fn facts(&self) -> Facts {
        Facts { name: self.name, transactions: self.transactions, lean: self.lean }
    }

    fn begin(&self) -> PgWorld {
        PgWorld::new(self)
    }

    fn run(&self, world: &mut PgWorld) -> usize {
        world.run(self)
    }
}

impl PgWorld {
    fn new(script: &PgScript) -> Self {
        let more = std::env::var(MORE_OPTIONS).unwrap_or_default();
        let text = format!(
            "auth = \"trust\"\n{more}\n[pool]\npool_size = 1\n{}\n\
             [databases.\"*\"]\nurl = \"postgres://u@127.0.0.1:1\"\n",
            script.options
        );
        let options = Options::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let shared = Shared::new(Arc::new(options), 1, &mut |bytes| bytes.fill(7));
        let mut world = Self {
            engine: Engine::new(Core(0), shared, Box::new(|bytes| bytes.fill(9))),
            ports: Ports::default(),
            now: Now(1_000_000),
            clients: Vec::new(),
            server: None,
            leaving: None,
            fake: PgServer::default(),
            reply: Vec::with_capacity(4096),
            cases: Vec::new(),
            got: 0,
            tail: [0; 6],
        };
        for settings in script.clients {
            world.log_in(settings);
        }
        for (client, bytes) in &script.before {
            world.say(*client, bytes);
        }
        if script.learns {
            world.learn(script);
        }
        world
    }

    /// Has the engine find out that the script's statements are reads: it asks about those that are
    /// used often, first the parser thread and then the server.
    fn learn(&mut self, script: &PgScript) {
        for _ in 0..USES {
            self.run(script);
        }
        self.hears(Event::Tick);
        for case in std::mem::take(&mut self.cases) {
            let found = Box::new(Ok(Mentioned::default()).into());
            self.hears(Event::Answered(Answer::Read { case: Box::new(case), found }));
        }
        self.hears(Event::Tick);
    }

    fn log_in(&mut self, settings: &[(&str, &str)]) {
        let conn = self.ports.open();
        let peer = Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 5000)));
        measured_step(&mut self.engine, self.now, Event::Accepted { conn, peer }, &mut self.ports);
        self.clients.push(conn);
        let parameters = [("user", "u"), ("database", "d")];
        let parameters = parameters.iter().chain(settings);
        let mut startup = Vec::new();
        let parameters = parameters.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        refrain_pg_wire::startup::write(&mut startup, 0, parameters);
        self.say(self.clients.len() - 1, &startup);
    }

    fn run(&mut self, script: &PgScript) -> usize {
        let before = self.got;
        if script.visits {
            self.log_in(&[("application_name", "visitor")]);
        }
        for (client, bytes) in &script.steps {
            self.say(*client, bytes);
        }
        let ready = self.tail[..5] == *b"Z\0\0\0\x05";
        assert!(ready, "a run ends with ReadyForQuery: {:?}", self.tail);
        if script.visits {
            self.leaving = self.clients.last().copied();
            self.say(self.clients.len() - 1, &written(write::terminate));
            assert_eq!(self.leaving, None, "the engine closes the connection");
            self.clients.pop();
        }
        self.got - before
    }

    /// Sends bytes of a client, and performs all outputs that follow.
    fn say(&mut self, client: usize, bytes: &[u8]) {
        self.now = Now(self.now.0 + MESSAGE_US);
        let conn = self.clients[client];
        self.tail = [0; 6];
        self.hears(Event::Bytes { conn, bytes });
    }

    /// Steps an event, and performs all outputs that follow.
    fn hears(&mut self, event: Event<'_>) {
        measured_step(&mut self.engine, self.now, event, &mut self.ports);
        while let Some(output) = measured_next(&mut self.ports) {
            match output {
                Output::Send { conn, bytes } => self.deliver(conn, bytes),
                Output::Close { conn } => {
                    assert_eq!(self.leaving.take(), Some(conn), "it was closed");
                }
                Output::Act(Action::Connect { conn, .. }) => {
                    self.server = Some(conn);
                    let event = Event::Connected { conn };
                    measured_step(&mut self.engine, self.now, event, &mut self.ports);
                }
                Output::Act(Action::Ask(Request::Read(case))) => self.cases.push(*case),
                Output::Act(Action::Note(note)) if note.level > Level::Warn => {}
                Output::Act(action) => panic!("{action:?}"),
            }
        }
    }

    fn deliver(&mut self, conn: Conn, bytes: Vec<u8>) {
        let mut reply = std::mem::take(&mut self.reply);
        if self.server == Some(conn) {
            self.fake.answer(&bytes, &mut reply);
        } else {
            self.got += bytes.len();
            if let Some(tail) = bytes.last_chunk::<6>() {
                self.tail = *tail;
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
fn measured_step(engine: &mut Engine, now: Now, event: Event<'_>, ports: &mut Ports) {
    engine.step(now, event, ports);
}

#[inline(never)]
fn measured_next(ports: &mut Ports) -> Option<Output> {
    ports.next()
}

#[inline(never)]
fn measured_sent(ports: &mut Ports, conn: Conn, buffer: Vec<u8>) -> bool {
    ports.sent(conn, buffer)
}
