//! Cores without I/O: engines, the clients and servers at their connections, and one clock.
//!
//! After each step, all invariants of the engine have to hold. Servers answer at once, unless a
//! test holds the answers back.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Options;
use refrain_pool::client::Client;
use refrain_pool::connections::Connection;
use refrain_pool::event::{Command, Note, SessionNotes, TlsPeer};
use refrain_pool::ids::{Peer, PoolId};
use refrain_pool::message::CoreMessage;
use refrain_pool::pool::Pool;
use refrain_pool::secured::Secured;
use refrain_pool::server::Server;
use refrain_pool::shared::Shared;
use refrain_pool::stats::PoolCounters;
use refrain_pool::{Action, Conn, Core, Engine, Event, Now, Output, Ports, Step, Transfer};

use refrain_echo::parts::{Checks, Echo, Greeting};

/// The peer of a connection.
#[derive(Debug)]
pub(crate) struct End {
    core: usize,
    conn: Conn,
    /// The host that a server is at.
    host: String,
    /// Bytes that the peer has received, and not answered or not looked at.
    got: String,
    /// Bytes that the peer has received since the test looked.
    log: String,
    /// Buffers that the peer has not read, so that the engine does not know of their end.
    unread: Vec<Vec<u8>>,
    reads: bool,
    is_open: bool,
    is_paused: bool,
}

/// A client, by its number in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(usize);

/// A connection of Refrain's to a server, by its number in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerId(pub(crate) usize);

/// The result of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connects {
    /// The attempt succeeds at once.
    AtOnce,
    /// The attempt fails at once.
    Never,
    /// The attempt stays under way until the test ends it.
    Later,
}

struct Worker {
    engine: Engine<Echo>,
    ports: Ports<Echo>,
}

/// The place of an end in the lists: whether it is a client, and its number.
type Place = (bool, usize);

/// All cores, and the peers at their connections.
pub(crate) struct World {
    workers: Vec<Worker>,
    clients: Vec<End>,
    servers: Vec<End>,
    ends: HashMap<(usize, Conn), Place>,
    mail: Vec<(usize, CoreMessage)>,
    transfers: Vec<(usize, Place, Box<Transfer<Echo>>)>,
    pub(crate) shared: Arc<Shared<Echo>>,
    pub(crate) now: Now,
    pub(crate) notes: Vec<Note>,
    /// Connections that the loop is to encrypt, each with its peer, the number of bytes that go out
    /// in the clear, and the beginning of the handshake.
    handshakes: Vec<(Place, TlsPeer, usize, Vec<u8>)>,
    /// Whether servers answer at once.
    pub(crate) servers_answer: bool,
    pub(crate) connects: Connects,
    /// The hosts to which no connection can be made.
    pub(crate) dead: Vec<String>,
    /// The hosts of which no connection ever gets an answer.
    pub(crate) silent: Vec<String>,
    /// The hosts whose servers are not in the state that their pool wants.
    pub(crate) unsuited: Vec<String>,
    /// Number of sessions for which servers have room, over all hosts.
    pub(crate) room: usize,
    /// Whether the invariants are checked after each step.
    pub(crate) checks: bool,
}

/// Returns options in which all users are let in.
pub(crate) fn options(pool: &str) -> Arc<Options> {
    let mut text = match pool.contains('[') {
        true => format!("auth = \"trust\"\n{pool}"),
        false => format!("auth = \"trust\"\n[pool]\n{pool}\n"),
    };
    if !text.contains("[databases.") {
        text.push_str("\n[databases.\"*\"]\nurl = \"postgres://127.0.0.1:1\"\n");
    }
    Arc::new(Options::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

impl World {
    /// Makes one core, with these options of its pools. If `pool` has tables, they are options of
    /// the whole configuration.
    pub(crate) fn new(pool: &str) -> Self {
        Self::of_cores(1, pool)
    }

    /// Makes several cores.
    pub(crate) fn of_cores(cores: u16, pool: &str) -> Self {
        let shared = Shared::new(options(pool), cores, &mut |bytes| bytes.fill(7));
        let worker = |core| Worker {
            engine: Engine::new(Core(core), shared.clone(), Box::new(|bytes| bytes.fill(9))),
            ports: Ports::default(),
        };
        Self {
            workers: (0..cores).map(worker).collect(),
            clients: Vec::new(),
            servers: Vec::new(),
            ends: HashMap::new(),
            mail: Vec::new(),
            transfers: Vec::new(),
            shared,
            now: Now(1_000_000),
            notes: Vec::new(),
            handshakes: Vec::new(),
            servers_answer: true,
            connects: Connects::AtOnce,
            dead: Vec::new(),
            silent: Vec::new(),
            unsuited: Vec::new(),
            room: usize::MAX,
            checks: true,
        }
    }

    /// Has the operator see each login and each end of a session.
    pub(crate) fn notes_sessions(&mut self) {
        let wanted = SessionNotes { logins: true, ends: true };
        self.workers.iter_mut().for_each(|worker| worker.ports.note_sessions(wanted));
    }

    // Clients.

    /// Has Refrain speak first to the clients that connect from now on.
    pub(crate) fn greets(&mut self, greeting: Greeting) {
        for worker in &mut self.workers {
            worker.engine.core_state.protocol.greeting = greeting;
        }
    }

    /// Connects a client to a core. The client sends nothing.
    pub(crate) fn silent_client(&mut self, core: usize) -> ClientId {
        let conn = self.workers[core].ports.open();
        self.clients.push(End::new(core, conn));
        self.ends.insert((core, conn), (true, self.clients.len() - 1));
        let peer = Peer::Tcp(([127, 0, 0, 1], 5000).into());
        self.step(core, Event::Accepted { conn, peer });
        self.settle();
        ClientId(self.clients.len() - 1)
    }

    /// Connects a client of the database and the user that most tests use to the first core.
    pub(crate) fn client(&mut self) -> ClientId {
        self.client_at(0)
    }

    /// Connects such a client to a core.
    pub(crate) fn client_at(&mut self, core: usize) -> ClientId {
        let client = self.silent_client(core);
        self.says(client, "shop app");
        if self.heard_so_far(client).starts_with("welcome") {
            self.heard(client);
        }
        client
    }

    /// Connects a client of any database and user to the first core.
    pub(crate) fn client_of(&mut self, names: &str) -> ClientId {
        let client = self.silent_client(0);
        self.says(client, names);
        if self.heard_so_far(client).starts_with("welcome") {
            self.heard(client);
        }
        client
    }

    /// Has a client send a line.
    pub(crate) fn says(&mut self, client: ClientId, line: &str) {
        self.sends(client, &format!("{line}\n"));
    }

    /// Has a client send bytes.
    pub(crate) fn sends(&mut self, client: ClientId, text: &str) {
        let End { core, conn, .. } = self.clients[client.0];
        self.step(core, Event::Bytes { conn, bytes: text.as_bytes() });
        self.settle();
    }

    /// Returns the text that a client has received since the last look.
    pub(crate) fn heard(&mut self, client: ClientId) -> String {
        std::mem::take(&mut self.clients[client.0].got)
    }

    /// Returns the text that a client has received. The next look returns it again.
    pub(crate) fn heard_so_far(&self, client: ClientId) -> &str {
        &self.clients[client.0].got
    }

    /// Has a client say a line and returns the answer.
    pub(crate) fn asks(&mut self, client: ClientId, line: &str) -> String {
        self.says(client, line);
        self.heard(client)
    }

    /// Has a client end its stream.
    pub(crate) fn ends_stream(&mut self, client: ClientId) {
        let End { core, conn, .. } = self.clients[client.0];
        self.step(core, Event::Closed { conn, why: None });
        self.settle();
    }

    /// Breaks a client's connection.
    pub(crate) fn breaks(&mut self, client: ClientId) {
        let End { core, conn, .. } = self.clients[client.0];
        self.step(core, Event::Closed { conn, why: Some("reset by peer") });
        self.settle();
    }

    /// Whether a client is connected.
    pub(crate) fn is_there(&self, client: ClientId) -> bool {
        self.clients[client.0].is_open
    }

    /// Whether a client's connection is not read.
    pub(crate) fn is_held_back(&self, client: ClientId) -> bool {
        self.clients[client.0].is_paused
    }

    /// Has a client stop reading.
    pub(crate) fn stops_reading(&mut self, client: ClientId) {
        self.clients[client.0].reads = false;
    }

    /// Has a client read all bytes that it was sent.
    pub(crate) fn reads_on(&mut self, client: ClientId) {
        self.clients[client.0].reads = true;
        self.read_on(true, client.0);
        self.settle();
    }

    /// Returns the pool's part of a client that is connected.
    pub(crate) fn client_part(&mut self, client: ClientId) -> &mut Client<Echo> {
        let End { core, conn, .. } = self.clients[client.0];
        self.workers[core].engine.connections.client(conn).expect("the client is there")
    }

    /// Returns the server that is lent to a client.
    pub(crate) fn server_of(&self, client: ClientId) -> Option<ServerId> {
        let End { core, conn, .. } = self.clients[client.0];
        let Connection::Client(client) = self.workers[core].engine.connections.get(conn) else {
            return None;
        };
        Some(ServerId(self.ends[&(core, client.link()?)].1))
    }

    // Servers.

    /// Returns the servers whose connections are open, side connections included.
    pub(crate) fn servers(&self) -> Vec<ServerId> {
        (0..self.servers.len()).filter(|&at| self.servers[at].is_open).map(ServerId).collect()
    }

    /// Returns the connection that was opened last.
    pub(crate) fn last_server(&self) -> ServerId {
        ServerId(self.servers.len() - 1)
    }

    /// Returns how often Refrain has connected to a server.
    pub(crate) fn connects(&self) -> usize {
        self.servers.len()
    }

    /// Returns the core at which a server is.
    pub(crate) fn core_of(&self, server: ServerId) -> usize {
        self.servers[server.0].core
    }

    /// Returns the hosts to which Refrain has connected since so many connections.
    pub(crate) fn hosts_since(&self, connects: usize) -> Vec<&str> {
        self.servers[connects..].iter().map(|end| end.host.as_str()).collect()
    }

    /// Returns the hosts of the servers that are connected.
    pub(crate) fn hosts(&self) -> Vec<&str> {
        self.servers.iter().filter(|end| end.is_open).map(|end| end.host.as_str()).collect()
    }

    /// Has a host die: its servers are lost, and no other can be connected.
    pub(crate) fn host_dies(&mut self, host: &str) {
        self.dead.push(host.to_owned());
        for server in self.servers() {
            if self.servers[server.0].host == host {
                self.server_leaves(server);
            }
        }
    }

    /// Whether a server is connected.
    pub(crate) fn is_up(&self, server: ServerId) -> bool {
        self.servers[server.0].is_open
    }

    /// Whether a server's connection is not read.
    pub(crate) fn is_server_held_back(&self, server: ServerId) -> bool {
        self.servers[server.0].is_paused
    }

    /// Returns the text that a server was sent since the last look.
    pub(crate) fn server_heard(&mut self, server: ServerId) -> String {
        std::mem::take(&mut self.servers[server.0].log)
    }

    /// Has a server send bytes.
    pub(crate) fn server_says(&mut self, server: ServerId, text: &str) {
        let End { core, conn, .. } = self.servers[server.0];
        self.step(core, Event::Bytes { conn, bytes: text.as_bytes() });
        self.settle();
    }

    /// Has all servers answer the lines that they were sent, and answer at once from now on.
    pub(crate) fn all_answer(&mut self) {
        self.servers_answer = true;
        self.settle();
    }

    /// Tells the engine to which address a server was connected.
    pub(crate) fn is_at(&mut self, server: ServerId, address: IpAddr) {
        let End { core, conn, .. } = self.servers[server.0];
        self.workers[core].engine.note_address(conn, address);
    }

    /// Ends an attempt to connect that was left under way.
    pub(crate) fn connects_now(&mut self, server: ServerId) {
        let End { core, conn, .. } = self.servers[server.0];
        self.step(core, Event::Connected { conn });
        self.settle();
    }

    /// Fails an attempt to connect that was left under way.
    pub(crate) fn connect_fails(&mut self, server: ServerId) {
        let End { core, conn, .. } = self.servers[server.0];
        self.step(core, Event::Failed { conn, why: "refused" });
        self.settle();
    }

    /// Ends a server's stream.
    pub(crate) fn server_leaves(&mut self, server: ServerId) {
        let End { core, conn, .. } = self.servers[server.0];
        self.step(core, Event::Closed { conn, why: None });
        self.settle();
    }

    /// Has a server stop reading.
    pub(crate) fn server_stops_reading(&mut self, server: ServerId) {
        self.servers[server.0].reads = false;
    }

    /// Has a server read all bytes that it was sent.
    pub(crate) fn server_reads_on(&mut self, server: ServerId) {
        self.servers[server.0].reads = true;
        self.read_on(false, server.0);
        self.settle();
    }

    /// Takes the only handshake that was begun since the last look: the connection is encrypted.
    /// Returns the peer, the number of bytes before it, and what has come of it.
    pub(crate) fn secures(&mut self) -> (TlsPeer, usize, String) {
        let [((is_client, at), with, clear, early)] = &mut self.handshakes[..] else {
            panic!("it is one: {:?}", self.handshakes)
        };
        let (is_client, at) = (*is_client, *at);
        let handshake = (with.clone(), *clear, String::from_utf8_lossy(early).into_owned());
        self.handshakes.clear();
        let End { core, conn, .. } = self.list(is_client)[at];
        let cipher = "TLS_AES_128_GCM_SHA256".into();
        let secured = Secured { version: "TLSv1.3", cipher, end_point: None, certificate: None };
        self.step(core, Event::Secured { conn, secured: Arc::new(secured) });
        self.settle();
        handshake
    }

    /// Returns the pool's part of a server that is connected.
    pub(crate) fn server_part(&mut self, server: ServerId) -> &mut Server<Echo> {
        let End { core, conn, .. } = self.servers[server.0];
        self.workers[core].engine.connections.server(conn).expect("the server is there")
    }

    // The operator and the clock.

    /// Gives all cores a command.
    pub(crate) fn command(&mut self, command: &Command) {
        for core in 0..self.workers.len() {
            self.step(core, Event::Command(command.clone()));
        }
        self.settle();
    }

    /// Puts other options in force.
    pub(crate) fn reload(&mut self, pool: &str) {
        let options = options(pool);
        self.shared.reload(options.clone());
        self.command(&Command::Reload(options));
    }

    /// Lets time pass, with all ticks that are due.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.now = end.min(self.now.after(Duration::from_millis(100)));
            for core in 0..self.workers.len() {
                let Worker { engine, ports } = &self.workers[core];
                if engine.next_tick(ports).is_some_and(|due| due <= self.now) {
                    self.step(core, Event::Tick);
                }
            }
            self.settle();
        }
    }

    // Views of the engines.

    /// Returns the engine of a core.
    pub(crate) fn engine(&mut self, core: usize) -> &mut Engine<Echo> {
        &mut self.workers[core].engine
    }

    /// Returns the number of the pool that most tests use.
    pub(crate) fn pool_id(&self) -> PoolId {
        self.shared.find_pool("shop", "app").expect("the pool is there").id
    }

    /// Returns a core's part of that pool.
    pub(crate) fn pool(&mut self, core: usize) -> &mut Pool<Echo> {
        let id = self.pool_id();
        self.workers[core].engine.core_state.pool(id)
    }

    /// Returns the counters of a core's part of that pool.
    pub(crate) fn counters(&mut self, core: usize) -> PoolCounters {
        self.pool(core).counters.pool.clone()
    }

    /// Returns the checks of a core's part of that pool.
    pub(crate) fn checks(&mut self, core: usize) -> &mut Checks {
        &mut self.pool(core).protocol
    }

    /// Returns how side connections of a core have ended, but for those that ended themselves.
    pub(crate) fn side_ends(&mut self, core: usize) -> Vec<String> {
        std::mem::take(&mut self.engine(core).core_state.protocol.ends)
    }

    /// Returns the causes of the log's lines since the last look.
    pub(crate) fn logged(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.notes).iter().map(|note| note.cause).collect()
    }

    // The loop.

    /// Changes an engine directly, without an event.
    pub(crate) fn in_step(&mut self, core: usize, act: impl FnOnce(&mut Step<'_, Echo>)) {
        let Worker { engine, ports } = &mut self.workers[core];
        act(&mut Step { engine, now: self.now, ports });
        self.settle();
    }

    /// Has an engine handle an event. What it asks for is done by [`Self::settle`].
    pub(crate) fn event(&mut self, core: usize, event: Event<'_, Echo>) {
        self.step(core, event);
    }

    fn step(&mut self, core: usize, event: Event<'_, Echo>) {
        let Worker { engine, ports } = &mut self.workers[core];
        engine.step(self.now, event, ports);
        if self.checks {
            assert_eq!(engine.check(), Ok(()), "after a step of core {core}");
        }
    }

    /// Does the engines' tasks, until none is left.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut busy = false;
            for core in 0..self.workers.len() {
                while let Some(output) = self.workers[core].ports.next() {
                    busy = true;
                    self.perform(core, output);
                }
            }
            for (core, message) in std::mem::take(&mut self.mail) {
                busy = true;
                self.step(core, Event::Message(message));
            }
            for (core, end, transfer) in std::mem::take(&mut self.transfers) {
                busy = true;
                let conn = self.workers[core].ports.open();
                let (is_client, at) = end;
                let moved = &mut self.list(is_client)[at];
                (moved.core, moved.conn) = (core, conn);
                self.ends.insert((core, conn), end);
                self.step(core, Event::Arrived { conn, transfer });
            }
            for server in 0..self.servers.len() {
                busy |= self.servers_answer && self.answer(server);
            }
            if !busy {
                return;
            }
        }
    }

    fn perform(&mut self, core: usize, output: Output<Echo>) {
        match output {
            Output::Send { conn, bytes } => {
                let (is_client, at) = self.ends[&(core, conn)];
                self.list(is_client)[at].unread.push(bytes);
                if self.list(is_client)[at].reads {
                    self.read_on(is_client, at);
                }
            }
            Output::Close { conn } => {
                let (is_client, at) = self.ends.remove(&(core, conn)).expect("it was open");
                self.list(is_client)[at].is_open = false;
            }
            Output::Act(action) => self.act(core, action),
        }
    }

    fn act(&mut self, core: usize, action: Action<Echo>) {
        match action {
            Action::Connect { conn, host } => {
                let host = host.to_string();
                let connects = match () {
                    () if self.dead.contains(&host) => Connects::Never,
                    () if self.silent.contains(&host) => Connects::Later,
                    () => self.connects,
                };
                self.servers.push(End { host, ..End::new(core, conn) });
                self.ends.insert((core, conn), (false, self.servers.len() - 1));
                match connects {
                    Connects::AtOnce => self.step(core, Event::Connected { conn }),
                    Connects::Never => self.step(core, Event::Failed { conn, why: "refused" }),
                    Connects::Later => {}
                }
            }
            Action::Pause { conn } | Action::Resume { conn } => {
                // The connection may have been closed since.
                if let Some(&(is_client, at)) = self.ends.get(&(core, conn)) {
                    self.list(is_client)[at].is_paused = matches!(action, Action::Pause { .. });
                }
            }
            Action::HandOver { conn, to, transfer } => {
                self.workers[core].ports.release(conn);
                let end = self.ends.remove(&(core, conn)).expect("it was open");
                self.transfers.push((to.0.into(), end, transfer));
            }
            Action::Tell { core, message } => self.mail.push((core.0.into(), message)),
            Action::StartTls { conn, with, clear, early } => {
                self.handshakes.push((self.ends[&(core, conn)], with, clear, early));
            }
            Action::Ask(()) => {}
            Action::Note(note) => self.notes.push(*note),
        }
    }

    fn list(&mut self, is_client: bool) -> &mut [End] {
        if is_client { &mut self.clients } else { &mut self.servers }
    }

    /// Tells the engine that a peer has read the bytes that it was sent.
    fn read_on(&mut self, is_client: bool, at: usize) {
        let End { core, conn, .. } = self.list(is_client)[at];
        for bytes in std::mem::take(&mut self.list(is_client)[at].unread) {
            let text = String::from_utf8_lossy(&bytes);
            self.list(is_client)[at].got.push_str(&text);
            self.list(is_client)[at].log.push_str(&text);
            if self.workers[core].ports.sent(conn, bytes) {
                self.step(core, Event::Drained { conn });
            }
        }
    }

    /// Has a server answer the lines that it was sent: `welcome` to a greeting, else the same line.
    fn answer(&mut self, server: usize) -> bool {
        let end = &self.servers[server];
        let (core, conn) = (end.core, end.conn);
        if !end.is_open || end.is_paused || !self.ends.contains_key(&(core, conn)) {
            return false;
        }
        let got = std::mem::take(&mut self.servers[server].got);
        if got.is_empty() {
            return false;
        }
        let is_full = self.servers().len() > self.room;
        let is_unsuited = self.unsuited.contains(&self.servers[server].host);
        let reply: String = got
            .lines()
            .filter(|line| !matches!(*line, "quit" | "tls") && !line.starts_with("cancel "))
            .map(|line| match line.starts_with("hello ") {
                true if is_full => "full\n".to_owned(),
                true if is_unsuited => "unsuited\n".to_owned(),
                true => format!("welcome {} secret\n", server + 100),
                false => format!("{line}\n"),
            })
            .collect();
        if !reply.is_empty() {
            self.step(core, Event::Bytes { conn, bytes: reply.as_bytes() });
        }
        !reply.is_empty()
    }
}

impl End {
    fn new(core: usize, conn: Conn) -> Self {
        Self {
            core,
            conn,
            host: String::new(),
            got: String::new(),
            log: String::new(),
            unread: Vec::new(),
            reads: true,
            is_open: true,
            is_paused: false,
        }
    }
}
