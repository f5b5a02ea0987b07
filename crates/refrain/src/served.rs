//! The trait of a protocol that the program serves: what the program does for it beside the engine.
//!
//! A core has an engine of one protocol. The loop, mail and everything else of a core are generic
//! over that protocol, so that each protocol has a loop of its own, in which the compiler resolves
//! all calls. What the program does for PostgreSQL alone is in the folder `pg`.

use std::fmt::Debug;
use std::sync::Arc;

use refrain_config::{Backend, General, Host, Sqlite};
use refrain_pg::snapshot::{ClientSessionView, ServerSessionView, StatementView};
use refrain_pool::ids::Core;
use refrain_pool::shared::Shared;
use refrain_pool::{Conn, Engine, Protocol};

use crate::listen::Places;
use crate::tls::{Session, Store};

/// A protocol that the program serves.
pub(crate) trait Served: Protocol<Answer: Send> {
    /// The beginning of the names of the cores' threads.
    const THREADS: &'static str;

    /// Whether the protocol serves databases with this backend.
    fn serves(backend: Backend) -> bool;
    /// Returns the places at which clients are accepted.
    fn places(general: &General) -> Places<'_>;

    /// The way from a core to the threads that work for the protocol.
    type Helpers: Clone + Send + 'static;
    /// The servers of a core that run in this process.
    type Local: LocalServers;

    /// Returns what the console shows of a client's session.
    fn client_view_of(view: Self::ClientView) -> ClientSessionView;
    /// Returns what the console shows of a server's session.
    fn server_view_of(view: Self::ServerView) -> ServerSessionView;

    /// A core's statements and their figures.
    type Statements: Send + 'static;
    /// Looks at a core's statements.
    fn statements_of(engine: &Engine<Self>) -> Self::Statements;
    /// Returns what the console shows of the statements of these cores, with their figures.
    fn statements(shared: &Shared<Self>, cores: &[Self::Statements]) -> Vec<StatementView> {
        let _ = (shared, cores);
        Vec::new()
    }

    /// Makes a core's part of the servers in this process.
    fn local(helpers: &Self::Helpers, core: Core) -> Self::Local;
    /// Begins the work that a core's engine asks for. The answer comes by mail.
    fn ask(helpers: &Self::Helpers, core: Core, request: Self::Request);
    /// Returns what an answer is, for the message of a panic.
    fn name(answer: &Self::Answer) -> &'static str;
    /// Begins the TLS of a connection to a server; `None` if the connection stays in the clear.
    ///
    /// # Errors
    /// Why the server must not be connected to.
    fn server_tls(store: &Store, host: &Host) -> Result<Option<Session>, String>;
}

/// The session of a server in this process.
pub(crate) type LocalSession<P> = <<P as Served>::Local as LocalServers>::Session;

/// The servers of a core that run in this process: each has a connection's number, and stands in
/// the place of a socket. A protocol whose servers are all behind sockets keeps the defaults.
pub(crate) trait LocalServers {
    /// A server's session. It may move to another core.
    type Session: Debug + Send;

    /// Starts a session under a connection's number.
    ///
    /// # Errors
    /// Why the file cannot be opened.
    fn connect(&mut self, conn: Conn, file: &Arc<Sqlite>) -> Result<(), String> {
        Err(format!("{} cannot be served to {conn:?} by this protocol", file.path.display()))
    }
    /// True if a connection is a session of this core.
    fn has(&self, conn: Conn) -> bool {
        let _ = conn;
        false
    }
    /// Sets whether the core has at most one client.
    fn set_alone(&mut self, alone: bool) {
        let _ = alone;
    }
    /// Gives a session what the engine sent, and returns the session's output.
    fn send(&mut self, conn: Conn, bytes: Vec<u8>) -> Option<SessionOutput> {
        let _ = (conn, bytes);
        None
    }
    /// Ends the turn.
    fn end_turn(&mut self) {}
    /// True if a session has more output at once.
    fn is_waited_for(&self) -> bool {
        false
    }
    /// Resumes a session that was woken; in the next turn, if this turn's share of output is used
    /// up.
    fn go_on(&mut self, conn: Conn) -> Option<SessionOutput> {
        let _ = conn;
        None
    }
    /// Resumes the next session that has more output.
    fn next(&mut self) -> Option<(Conn, SessionOutput)> {
        None
    }
    /// Pauses or resumes the output of a session. Returns false if the connection is none.
    fn set_paused(&mut self, conn: Conn, paused: bool) -> bool {
        let _ = (conn, paused);
        false
    }
    /// Removes a session: it ends, or leaves for another core.
    fn remove(&mut self, conn: Conn) -> Option<Self::Session> {
        let _ = conn;
        None
    }
    /// Takes a session from another core.
    fn arrived(&mut self, conn: Conn, session: Self::Session) {
        unreachable!("no session leaves a core for {conn:?}: {session:?}")
    }
}

/// The output of one step of a session in this process.
#[derive(Debug)]
pub(crate) struct SessionOutput {
    /// The send that is done with this step.
    pub(crate) sent: Option<Vec<u8>>,
    /// Bytes for the engine.
    pub(crate) bytes: Vec<u8>,
    /// True if the session goes on once the engine has these bytes.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "SQLite alone has it"))]
    pub(crate) has_more: bool,
    /// True if the session is over.
    pub(crate) closed: bool,
}
