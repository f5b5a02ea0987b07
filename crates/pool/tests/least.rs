//! The least that a protocol has to provide, to be read first: a protocol of single bytes.
//!
//! Each byte is a request, and a server answers it with the same byte. From `(` to `)` a client
//! keeps its server. A client's first byte logs it in, a server's first byte lets Refrain in.
//! `echo` has all that a protocol may provide beside that, and the tests of the pool.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_config::Options;
use refrain_pool::client::Phase;
use refrain_pool::event::Command;
use refrain_pool::ids::Peer;
use refrain_pool::lobby::Counted;
use refrain_pool::protocol::{Activity, Background, Sides, Views};
use refrain_pool::settings::PoolSettings;
use refrain_pool::shared::Shared;
use refrain_pool::{Action, Conn, Core, Engine, Event, Now, Output, Parts, Ports, Protocol, Step};

/// The protocol.
#[derive(Debug)]
enum Bytes {}

/// A server's session.
#[derive(Debug, Default)]
struct ServerSession {
    owed: u32,
    in_transaction: bool,
}

/// The proof that a server owes nothing.
struct Idle;

impl Parts for Bytes {
    type Client = Phase;
    type Server = ServerSession;
    type Traveller = ();
    type Login = ();
    type Job = ();
    type Side = ();
    type Idle = Idle;
    type Pool = ();
    type Core = ();
    type PoolShared = ();
    type Shared = ();
    type Counters = ();
    type ClientView = ();
    type ServerView = ();
    type View = ();
    type Request = ();
    type Answer = ();

    fn client((): &(), _now: Now) -> Phase {
        Phase::Login
    }
    fn server((): &(), _now: Now) -> ServerSession {
        ServerSession::default()
    }
    fn core(_shared: &()) {}
    fn shared(_options: &Options, _entropy: &mut dyn FnMut(&mut [u8])) {}
    fn pool_shared((): &(), _settings: &PoolSettings, _database: &str, _variant: u16) {}
}

impl Background for Bytes {}
impl Sides for Bytes {}
impl Views for Bytes {}

impl Protocol for Bytes {
    fn phase(session: &Phase) -> Phase {
        *session
    }

    // A client enters a pool, which lets it in once a server has been reached.
    fn login_input(step: &mut Step<'_, Self>, client: Conn, _input: &[u8]) -> usize {
        let shared = step.engine.core_state.shared.clone();
        let pool = shared.pool("shop", "app").expect("every database has a pool here");
        step.count_as(client, Counted::Client);
        shared.admit_client(&pool, "app").expect("there is no limit here");
        step.engine.connections.client(client).expect("it is there").session = Phase::Entering;
        step.enter(client, &pool, "app");
        1
    }

    fn admit(step: &mut Step<'_, Self>, client: Conn) {
        step.engine.connections.client(client).expect("it is there").session = Phase::Ready;
        step.engine.connections.unblock(client);
    }

    // A request needs a server. If none is free, the pool keeps the input and calls again.
    fn input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        for (used, byte) in input.iter().enumerate() {
            let lent = step.server_of(client).or_else(|| step.lend(client));
            let Some(server) = lent else { return used };
            step.request_begins(server);
            step.ports.out(server).push(*byte);
            step.engine.connections.server(server).expect("it is lent").session.owed += 1;
        }
        input.len()
    }

    fn connected(step: &mut Step<'_, Self>, server: Conn) {
        step.ports.out(server).push(b'?');
    }

    // The first byte ends the login; each further one is the reply to a request.
    fn output(step: &mut Step<'_, Self>, server: Conn, output: &[u8]) -> usize {
        for byte in output {
            let Some(s) = step.engine.connections.server(server) else { break };
            if s.is_new() {
                step.logged_in(server, false);
                continue;
            }
            s.session.owed -= 1;
            s.session.in_transaction = *byte == b'(' || s.session.in_transaction && *byte != b')';
            let over = Self::idle(&s.session).is_some();
            let Some(client) = s.client() else { continue };
            step.ports.out(client).push(*byte);
            step.request_over(client, server);
            if over {
                step.transaction_over(client, server, false);
            }
        }
        output.len()
    }

    fn idle(session: &ServerSession) -> Option<Idle> {
        (session.owed == 0 && !session.in_transaction).then_some(Idle)
    }

    fn activity(session: &ServerSession) -> Activity {
        Activity { owes: session.owed > 0, in_transaction: session.in_transaction }
    }
}

/// One core, and what the far ends of its connections have got. Servers answer at once.
struct World {
    engine: Engine<Bytes>,
    ports: Ports<Bytes>,
    servers: Vec<Conn>,
    got: HashMap<Conn, String>,
}

impl World {
    fn new() -> Self {
        let text = "auth = \"trust\"\n[pool]\npool_size = 1\n\
                    [databases.\"*\"]\nurl = \"postgres://u@127.0.0.1:1\"\n";
        let options = Arc::new(Options::from_toml(text).expect("the options are right"));
        let shared = Shared::new(options, 1, &mut |bytes| bytes.fill(7));
        let engine = Engine::new(Core(0), shared, Box::new(|bytes| bytes.fill(9)));
        Self { engine, ports: Ports::default(), servers: Vec::new(), got: HashMap::new() }
    }

    /// Steps the engine, and does what it asks for until it asks for nothing more.
    fn step(&mut self, event: Event<'_, Bytes>) {
        self.engine.step(Now(1_000_000), event, &mut self.ports);
        assert_eq!(self.engine.check(), Ok(()));
        while let Some(output) = self.ports.next() {
            match output {
                Output::Act(Action::Connect { conn, .. }) => {
                    self.servers.push(conn);
                    self.step(Event::Connected { conn });
                }
                Output::Send { conn, bytes } => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    self.got.entry(conn).or_default().push_str(&text);
                    self.ports.sent(conn, bytes);
                    if self.servers.contains(&conn) {
                        self.step(Event::Bytes { conn, bytes: text.as_bytes() });
                    }
                }
                Output::Act(_) | Output::Close { .. } => {}
            }
        }
    }

    fn client(&mut self) -> Conn {
        let conn = self.ports.open();
        self.step(Event::Accepted { conn, peer: Peer::Tcp(([127, 0, 0, 1], 5000).into()) });
        self.says(conn, "!");
        conn
    }

    fn says(&mut self, conn: Conn, text: &str) {
        self.step(Event::Bytes { conn, bytes: text.as_bytes() });
    }

    fn heard(&mut self, conn: Conn) -> String {
        self.got.remove(&conn).unwrap_or_default()
    }
}

#[test]
fn two_clients_use_one_server_in_turn() {
    let mut world = World::new();
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "a");
    world.says(bob, "b");
    assert_eq!((world.heard(anna), world.heard(bob)), ("a".into(), "b".into()));
    let server = world.servers[0];
    assert_eq!((world.servers.len(), world.heard(server)), (1, "?ab".into()));
}

#[test]
fn a_client_waits_until_the_transaction_of_another_is_over() {
    let mut world = World::new();
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "(a");
    world.says(bob, "b");
    assert_eq!((world.heard(anna), world.heard(bob)), ("(a".into(), String::new()));
    world.says(anna, ")");
    assert_eq!((world.heard(anna), world.heard(bob)), (")".into(), "b".into()));
}

#[test]
fn a_drain_waits_for_the_end_of_the_transaction() {
    let mut world = World::new();
    let anna = world.client();
    world.says(anna, "(");
    world.step(Event::Command(Command::Drain));
    assert!(!world.engine.is_drained());
    world.says(anna, ")");
    assert_eq!((world.heard(anna), world.engine.is_drained()), ("()".into(), true));
}
