//! The parts of the protocol of lines, for each thing that the pool has.

use std::cell::Cell;

use refrain_config::Options;
use refrain_pool::client::Phase;
use refrain_pool::settings::PoolSettings;
use refrain_pool::{Now, Parts};

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
}

impl ClientSession {
    /// Returns the phase of the session, and counts the look.
    pub fn look_at_phase(&self) -> Phase {
        self.looks.set(self.looks.get() + 1);
        self.phase
    }
}

/// A server's session.
#[derive(Debug, Default)]
pub struct ServerSession {
    /// Number of lines that the server has not sent back yet.
    pub owed: u32,
    /// Whether a transaction is open.
    pub in_transaction: bool,
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

/// The proof that a server owes nothing.
pub struct Idle(pub(crate) ());

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
    type Traveller = Phase;
    type Login = ();
    type Job = Check;
    type Idle = Idle;
    type Pool = Checks;
    type Core = ();
    type PoolShared = ();
    type Shared = ();
    type Counters = ();
    type ClientView = ();
    type ServerView = ();
    type View = ();
    type Request = ();
    type Answer = ();

    fn client((): &(), _now: Now) -> ClientSession {
        ClientSession { phase: Phase::Login, looks: Cell::new(0) }
    }
    fn server((): &(), _now: Now) -> ServerSession {
        ServerSession::default()
    }
    fn core() {}
    fn shared(_options: &Options, _entropy: &mut dyn FnMut(&mut [u8])) {}
    fn pool_shared((): &(), _settings: &PoolSettings, _database: &str) {}
}
