//! The parts of the protocol of lines, for each thing that the pool has.

use std::cell::Cell;

use refrain_config::Options;
use refrain_pool::client::Phase;
use refrain_pool::settings::PoolSettings;
use refrain_pool::{Conn, Now, Parts};

/// Echo with transactions. Each line goes to a server, which sends it back. From `begin` to
/// `commit` the client keeps its server.
#[derive(Debug)]
pub enum Echo {}

/// A client's session.
#[derive(Debug)]
pub struct ClientSession {
    /// The phase of the session.
    pub phase: Phase,
    /// How often the pool has asked for the phase.
    pub looks: Cell<u32>,
    /// Number of lines that the client has got, if lines of Refrain's own have numbers.
    pub lines: Option<u32>,
}

impl ClientSession {
    /// Returns the phase of the session, and counts the look.
    pub fn look_at_phase(&self) -> Phase {
        self.looks.set(self.looks.get() + 1);
        self.phase
    }

    /// Counts a line that the client gets, if lines of Refrain's own have numbers. Returns the
    /// line's number.
    pub fn count_line(&mut self) -> Option<u32> {
        let number = self.lines?;
        self.lines = Some(number + 1);
        Some(number)
    }
}

/// The peculiarities of a world, and the fate of its side connections.
#[derive(Debug, Default)]
pub struct CorePart {
    /// The party that speaks first with the clients that come.
    pub greeting: Greeting,
    /// Whether a cancel request to a server that is connected from now on takes several lines.
    pub kills: bool,
    /// The ends of side connections that the protocol has not ended itself.
    pub ends: Vec<String>,
}

/// The party that speaks first with a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greeting {
    /// The client.
    #[default]
    Never,
    /// Refrain, when it has accepted the client.
    AtOnce,
    /// Refrain, when a test says so.
    Later,
    /// Refrain, when it has heard from the host.
    Probed,
}

/// A server's session.
#[derive(Debug, Default)]
pub struct ServerSession {
    /// Number of lines that the server has not sent back yet.
    pub owed: u32,
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// Whether a cancel request to the server takes several lines.
    pub kills: bool,
}

impl ServerSession {
    /// Follows a line that the server has sent back. Returns false if the server owed no line.
    pub fn follow(&mut self, line: &[u8]) -> bool {
        match line {
            b"begin\n" => self.in_transaction = true,
            b"commit\n" | b"rollback\n" => self.in_transaction = false,
            _ => {}
        }
        self.owed.checked_sub(1).map(|owed| self.owed = owed).is_some()
    }
}

/// A job of the proxy's own: a line that shows whether a server is still there.
#[derive(Debug)]
pub struct Check {
    /// Whether the check is still to be made when its turn comes.
    pub is_needed: bool,
}

/// The purpose of a side connection.
#[derive(Debug)]
pub enum SideTask {
    /// It sends a cancel request of one line, and the server closes it.
    Cancel(String),
    /// It logs in, sends such a line, and waits for the answer.
    Kill(String),
    /// It waits until the host says something, and asks once more. Then this client is greeted.
    Probe(Conn),
}

/// The proof that a server owes nothing.
pub struct Idle(pub ());

/// One core's part of a pool.
#[derive(Debug, Default)]
pub struct Checks {
    /// Number of servers that are to be checked as they come free.
    pub due: u32,
    /// Number of checks made.
    pub made: u32,
    /// Number of checks whose server was lost, or that got none.
    pub lost: u32,
    /// Number of ticks that visited the pool.
    pub ticks: u32,
}

impl Parts for Echo {
    type Client = ClientSession;
    type Server = ServerSession;
    type Traveller = ClientSession;
    type Login = ();
    type Job = Check;
    type Side = SideTask;
    type Idle = Idle;
    type Pool = Checks;
    type Core = CorePart;
    type PoolShared = ();
    type Shared = ();
    type Counters = ();
    type ClientView = ();
    type ServerView = ();
    type View = ();
    type Request = ();
    type Answer = ();

    fn client(core: &CorePart, _now: Now) -> ClientSession {
        let lines = (core.greeting != Greeting::Never).then_some(0);
        ClientSession { phase: Phase::Login, looks: Cell::new(0), lines }
    }
    fn server(core: &CorePart, _now: Now) -> ServerSession {
        ServerSession { kills: core.kills, ..ServerSession::default() }
    }
    fn core(_shared: &()) -> CorePart {
        CorePart::default()
    }
    fn shared(_options: &Options, _entropy: &mut dyn FnMut(&mut [u8])) {}
    fn pool_shared((): &(), _settings: &PoolSettings, _database: &str, _variant: u16) {}
}
