//! The parts of the protocol, for each thing that the pool has.

use refrain_config::Options;
use refrain_pool::client::Phase;
use refrain_pool::settings::PoolSettings;
use refrain_pool::{Now, Parts};

/// The protocol of MySQL and MariaDB.
#[derive(Debug)]
pub enum My {}

/// A client's session.
#[derive(Debug)]
pub struct ClientSession {
    /// The phase of the session.
    pub(crate) phase: Phase,
}

/// A server's session.
#[derive(Debug, Default)]
pub struct ServerSession {
    /// Number of replies that the server owes.
    pub(crate) owed: u32,
}

/// The proof that a server owes nothing and is outside of any transaction.
#[derive(Debug)]
pub struct Quiescent(());

impl ServerSession {
    /// Proves that the server owes nothing and is outside of any transaction.
    pub(crate) fn quiescent(&self) -> Option<Quiescent> {
        (self.owed == 0).then_some(Quiescent(()))
    }
}

impl Parts for My {
    type Client = ClientSession;
    type Server = ServerSession;
    type Traveller = ClientSession;
    type Login = ();
    type Job = ();
    type Side = ();
    type Idle = Quiescent;
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

    fn client((): &(), _now: Now) -> ClientSession {
        ClientSession { phase: Phase::Login }
    }
    fn server((): &(), _now: Now) -> ServerSession {
        ServerSession::default()
    }
    fn core() {}
    fn shared(_options: &Options, _entropy: &mut dyn FnMut(&mut [u8])) {}
    fn pool_shared((): &(), _settings: &PoolSettings, _database: &str) {}
}
