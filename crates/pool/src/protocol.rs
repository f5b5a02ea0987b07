//! The trait that a protocol implements, so that the pool can serve its clients and servers.
//!
//! The pool calls the protocol once an event, or once for each time that a server changes hands,
//! and never for a single message: the protocol reads and writes the bytes of its messages by
//! itself. The compiler resolves the calls.
//!
//! A protocol calls the pool in turn, by the methods of [`Step`]: [`Step::lend`] when a message
//! needs a server, [`Step::transaction_over`] when a server may go back, [`Step::end_client`] when
//! a session has to end. `tests/least.rs` has a protocol with the least that it needs, the crate
//! `echo` one with nearly all.
//!
//! [`Protocol`] is what a protocol has to provide. [`Background`], [`Sides`] and [`Views`] are what
//! it may.

use std::borrow::Cow;
use std::time::Duration;

use crate::client::{Client, Phase};
use crate::core_state::CoreState;
use crate::disconnect::{ConnectFailure, DisconnectReason, FailureKind};
use crate::engine::{Engine, Linked, Step, Supply};
use crate::ids::{Conn, PoolId};
use crate::parts::Parts;
use crate::pool::Pool;
use crate::refusal::Refusal;
use crate::server::Server;
use crate::settings::PoolSettings;
use crate::shared::Shared;
use crate::side::SideEnd;
use crate::snapshot::Extent;

/// The fitness of a server without a holder for the next client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// The server is as it was when it was new, and owes nothing.
    Fit,
    /// The server still owes replies, perhaps to a request that makes it fit. The protocol calls
    /// [`Step::make_fit`] once the server has answered.
    Busy,
    /// The server cannot be used again.
    Unfit,
}

/// The activity of a server that a client holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Whether the server owes replies.
    pub owes: bool,
    /// Whether a transaction is open.
    pub in_transaction: bool,
}

/// The work that a protocol has beside its clients' requests. A protocol need not have any.
pub trait Background: Parts {
    // Jobs of Refrain's own.

    /// Begins a job whose turn in line has come ([`Step::queue_job`]), on a server that owes
    /// nothing: sends the job's first messages, and calls [`Step::start_job`]. Returns false if
    /// nothing is left to do.
    fn begin_job(step: &mut Step<'_, Self>, server: Conn, job: Self::Job) -> bool {
        let _ = (step, server, job);
        false
    }
    /// Begins a job that no other server could do, if there is one, on a server that has come
    /// free. The server does it before the next in line gets the server, so a protocol has at most
    /// one such job for each client that had the server.
    fn begin_own_job(step: &mut Step<'_, Self>, server: Conn) -> bool {
        let _ = (step, server);
        false
    }
    /// Forgets a job whose server has gone, or that gets none.
    fn lose_job(pool: &mut Pool<Self>, job: &Self::Job) {
        let _ = (pool, job);
    }
    /// Notes that a client has left whose server does a job.
    fn abandon_job(step: &mut Step<'_, Self>, server: Conn) {
        let _ = (step, server);
    }
    /// Handles the answer of the program.
    fn answered(step: &mut Step<'_, Self>, answer: Self::Answer) {
        let _ = (step, answer);
    }

    // Time and the operator.

    /// Does the work that is due in a pool.
    fn tick_pool(step: &mut Step<'_, Self>, pool: PoolId) {
        let _ = (step, pool);
    }
    /// Whether a server that has been idle for this long is about to end its session by itself.
    fn ends_soon(session: &Self::Server, idle: Duration) -> bool {
        let _ = (session, idle);
        false
    }
    /// Begins to keep such a server. The protocol calls [`Step::make_fit`] once the server has
    /// answered.
    fn keep(step: &mut Step<'_, Self>, server: Conn) {
        let _ = (step, server);
    }
    /// Whether the protocol has a question for servers that were idle.
    const ASKS: bool = false;
    /// Asks an idle server whether it is there. The protocol calls [`Step::make_fit`] once the
    /// server has answered.
    fn ask_server(supply: &mut Supply<'_, Self>, server: Conn) {
        let _ = (supply, server);
    }
    /// Does the work that is due on this core. `sweep` is true every ten seconds.
    fn tick(step: &mut Step<'_, Self>, sweep: bool) {
        let _ = (step, sweep);
    }
    /// Handles the new settings of a pool, which had others before.
    fn reloaded(supply: &mut Supply<'_, Self>, pool: PoolId, before: &PoolSettings) {
        let _ = (supply, pool, before);
    }
    /// Forgets everything that the protocol has learned of a pool's queries.
    fn flush(pool: &mut Pool<Self>) {
        let _ = pool;
    }
}

/// The side connections of a protocol ([`crate::side`]). A protocol need not have any.
pub trait Sides: Parts {
    /// Returns what a side connection is for that cancels what this server does. `None` if nothing
    /// can.
    fn cancel_side(server: &Server<Self>) -> Option<Self::Side> {
        let _ = server;
        None
    }
    /// Begins with a side connection that is connected.
    fn side_connected(step: &mut Step<'_, Self>, side: Conn) {
        let _ = (step, side);
    }
    /// Goes on with a side connection that is encrypted from now on
    /// ([`crate::Ports::start_tls`]).
    fn side_secured(step: &mut Step<'_, Self>, side: Conn) {
        let _ = (step, side);
    }
    /// Reads what has come on a side connection, as far as it can. Returns the number of bytes that
    /// it has handled.
    fn side_output(step: &mut Step<'_, Self>, side: Conn, output: &[u8]) -> usize {
        let _ = (step, side);
        output.len()
    }
    /// Handles the end of a side connection that the protocol has not ended itself
    /// ([`Step::end_side`]). The server that it held, if that is still there, is freed afterwards.
    fn side_over(
        step: &mut Step<'_, Self>,
        side: Self::Side,
        server: Option<Conn>,
        end: SideEnd<'_>,
    ) {
        let _ = (step, side, server, end);
    }
    /// Goes on with a server that side connections have held and that has been busy all the time,
    /// or whose client has it still.
    fn let_go(step: &mut Step<'_, Self>, server: Conn) {
        let _ = (step, server);
    }
}

/// The views of a protocol, and its invariants. A protocol need not have any.
pub trait Views: Parts {
    /// Returns the database and the user that a client of the console asked for.
    fn console_names(session: &Self::Client) -> Option<(&str, &str)> {
        let _ = session;
        None
    }
    /// Returns a client's session, to look at.
    fn client_view(session: &Self::Client) -> Self::ClientView {
        let _ = session;
        Self::ClientView::default()
    }
    /// Returns a server's session, to look at.
    fn server_view(session: &Self::Server) -> Self::ServerView {
        let _ = session;
        Self::ServerView::default()
    }
    /// True if a client keeps its server beyond a transaction.
    fn keeps_server(session: &Self::Client) -> bool {
        let _ = session;
        false
    }
    /// Returns a core's part, to look at, as far as the extent has it.
    fn view(engine: &Engine<Self>, extent: Extent) -> Self::View {
        let _ = (engine, extent);
        Self::View::default()
    }
    /// Returns how many commands took how long
    /// ([`crate::figures::StatementFigures::calls_by_time`]).
    fn commands(core: &Self::Core) -> Vec<u64> {
        let _ = core;
        Vec::new()
    }
    /// Checks a client's session.
    ///
    /// # Errors
    /// A description of the first invariant that is broken.
    fn check_client(client: &Client<Self>) -> Result<(), String> {
        let _ = client;
        Ok(())
    }
    /// Checks a server's session.
    ///
    /// # Errors
    /// A description of the first invariant that is broken.
    fn check_server(server: &Server<Self>) -> Result<(), String> {
        let _ = server;
        Ok(())
    }
}

/// A protocol that is spoken with clients and with servers.
pub trait Protocol: Background + Sides + Views {
    // Clients.

    /// Greets a client that has just connected, if the protocol speaks first. A protocol that
    /// cannot greet the client yet may do so later.
    fn greet(step: &mut Step<'_, Self>, client: Conn) {
        let _ = (step, client);
    }
    /// Goes on with a client whose connection is encrypted from now on
    /// ([`crate::Ports::start_tls`]).
    fn client_secured(step: &mut Step<'_, Self>, client: Conn) {
        let _ = (step, client);
    }
    /// Returns the phase of a client's session.
    fn phase(session: &Self::Client) -> Phase;
    /// Whether a client has sent nothing yet that shows that it speaks the protocol.
    fn is_silent(session: &Self::Client) -> bool {
        let _ = session;
        false
    }
    /// Reads a client's input before it has logged in, as far as it can. Returns the number of
    /// bytes that it has handled.
    fn login_input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize;
    /// Lets a client in that has entered its pool ([`Step::enter`]). A server of the pool has been
    /// reached, unless the pool is paused.
    fn admit(step: &mut Step<'_, Self>, client: Conn);
    /// Goes on with a client in [`Phase::Checking`], which has a server now.
    fn checked(step: &mut Step<'_, Self>, client: Conn) {
        let _ = (step, client);
    }
    /// Reads the input of a client that is logged in, as far as it can. Returns the number of bytes
    /// that it has handled.
    fn input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize;
    /// Reads the input of a client of the console.
    fn console_input(step: &mut Step<'_, Self>, client: Conn, bytes: &[u8]) {
        let _ = (step, client, bytes);
    }
    /// Ends the session of a client of the console that the options do not allow any more.
    fn dismiss_from_console(step: &mut Step<'_, Self>, client: Conn) {
        let _ = (step, client);
    }
    /// Returns the database and the user as a client names them that is in no pool yet.
    fn claimed(session: &Self::Client) -> Option<(&str, &str)> {
        let _ = session;
        None
    }
    /// Returns the code, for the log, of the error that tells a client why its session ends.
    fn code(cause: DisconnectReason) -> Option<&'static str> {
        let _ = cause;
        None
    }
    /// Writes the error that tells a client why its session ends, if the client gets one. The error
    /// is the last that the client gets, and the first if the client has not been greeted yet.
    fn tell(
        shared: &Shared<Self>,
        client: &Self::Client,
        out: &mut Vec<u8>,
        cause: DisconnectReason,
    ) {
        let _ = (shared, client, out, cause);
    }
    /// Writes a notice for a client that it waits for a server.
    fn tell_wait(client: &Self::Client, out: &mut Vec<u8>) {
        let _ = (client, out);
    }
    /// Answers the next request of a client without a server as a cancelled one. `input` is all
    /// that the client has sent and that is not handled. Returns the number of bytes that it has
    /// handled, `None` to have the client wait on.
    fn cancel_waiting(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> Option<usize> {
        let _ = (step, client, input);
        None
    }
    /// Cancels the client's request that the server is working on, if there is one.
    fn cancel(step: &mut Step<'_, Self>, client: Conn, server: Conn) {
        let _ = client;
        step.cancel_server(server);
    }

    // Servers.

    /// Begins the login to a server that is connected.
    fn connected(step: &mut Step<'_, Self>, server: Conn);
    /// Goes on with a server whose connection is encrypted from now on: because the protocol has
    /// asked for it ([`Step::start_tls`]), or before [`Protocol::connected`].
    fn secured(step: &mut Step<'_, Self>, server: Conn) {
        let _ = (step, server);
    }
    /// Handles a server that could not be connected or logged in to. If the pool has no other
    /// server, the clients that wait for one get an error, unless they wait on
    /// (`server_unavailable`).
    fn connect_failed(step: &mut Step<'_, Self>, server: Conn, why: &str) {
        let Some(pool) = step.engine.connections.server(server).map(|server| server.pool) else {
            return;
        };
        let (cause, kind) = (DisconnectReason::ServerDown, FailureKind::Outage);
        let failure = ConnectFailure { cause, why, kind, refusal: None };
        let mut supply = step.supply();
        if supply.drop_failed(server, &failure) {
            let shared = supply.core_state.shared.clone();
            supply.fail_waiting(pool, (cause, why), |client, out| {
                Self::tell(&shared, client, out, cause);
                Self::code(cause).map(Cow::Borrowed)
            });
        }
    }
    /// Ends the sessions of the clients that wait for a server of a pool whose login is refused.
    fn refuse_waiting(supply: &mut Supply<'_, Self>, pool: PoolId, refusal: &Refusal) {
        let cause = DisconnectReason::ServerLogin;
        let shared = supply.core_state.shared.clone();
        supply.fail_waiting(pool, (cause, &refusal.why), |client, out| {
            Self::tell(&shared, client, out, cause);
            Self::code(cause).map(Cow::Borrowed)
        });
    }
    /// Reads a server's output, as far as it can. Returns the number of bytes that it has handled.
    fn output(step: &mut Step<'_, Self>, server: Conn, output: &[u8]) -> usize;
    /// Whether a server has traces of a client that nothing removes, and that others may meet. The
    /// protocol calls [`Pool::mark`] when a server gets the first.
    fn is_marked(server: &Self::Server) -> bool {
        let _ = server;
        false
    }
    /// Returns how well an idle server suits a client, 0 for the best; `None` if the client may
    /// meet traces of others there. Asked only while a server is marked.
    fn suits(client: &Self::Client, server: &Self::Server) -> Option<usize> {
        let _ = (client, server);
        Some(0)
    }
    /// Begins to use a server for a client that it is lent to from now on.
    fn lent(linked: Linked<'_, Self>) {
        let _ = linked;
    }
    /// Sends the input of a client that waits for a server to one that works for others, if all of
    /// it is one request that may share a server ([`crate::Sharing::join`]).
    fn share(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> bool {
        let _ = (step, client, input);
        false
    }
    /// Begins to use a server for a client that joins others there. The server fits the client.
    fn joined(client: &mut Self::Client, server: &mut Self::Server) {
        let _ = (client, server);
    }
    /// Begins the turn of a client that has joined others: the server's next replies are to the
    /// client's request.
    fn turn_begins(linked: Linked<'_, Self>) {
        let _ = linked;
    }
    /// Begins the turn of a request whose replies nobody gets.
    fn turn_of_nobody_begins(server: &mut Self::Server) {
        let _ = server;
    }
    /// Whether a client that holds a server, and has sent one request, has got nothing of the reply
    /// but what [`Client::drop_from_request`] knows of.
    fn is_unanswered(client: &Self::Client, server: &Self::Server) -> bool {
        let _ = (client, server);
        false
    }
    /// Takes back a client's request, which the client sends again to another server. No reply has
    /// reached the client but those that [`Client::drop_from_request`] knows of.
    fn take_request_back(session: &mut Self::Client) {
        let _ = session;
    }
    /// Notes in the counters of a server's pool that the server gives no reply to the request of
    /// the client that holds it. The client sends that again to another server.
    fn turn_given_up(counters: &mut Self::Counters, client: &Self::Client) {
        let _ = (counters, client);
    }
    /// Proves that a server owes nothing and is outside of any transaction.
    fn idle(session: &Self::Server) -> Option<Self::Idle>;
    /// Returns the time for which the settings of a client's session let it be idle.
    fn idle_timeout(session: &Self::Client) -> Option<Duration> {
        let _ = session;
        None
    }
    /// Returns a time that is no longer than that of any client on a core.
    fn shortest_idle_timeout(core: &Self::Core) -> Option<Duration> {
        let _ = core;
        None
    }
    /// Returns the activity of a server.
    fn activity(session: &Self::Server) -> Activity;
    /// Takes a server from a client that has left, and begins to make it fit. A server that owes
    /// replies finishes first.
    fn take_back(step: &mut Step<'_, Self>, server: Conn, left: &Client<Self>) -> Fitness {
        let _ = left;
        let server = step.engine.connections.server(server);
        let owes = server.is_some_and(|server| Self::activity(&server.session).owes);
        if owes { Fitness::Busy } else { Fitness::Fit }
    }
    /// Goes on to make a server fit that owes nothing. If a client left something behind that the
    /// protocol cannot undo, the server is unfit.
    fn make_fit(step: &mut Step<'_, Self>, server: Conn) -> Fitness {
        let server = step.engine.connections.server(server);
        let idle = server.is_some_and(|server| Self::idle(&server.session).is_some());
        if idle { Fitness::Fit } else { Fitness::Unfit }
    }
    /// Writes the message that ends a server's session.
    fn goodbye(out: &mut Vec<u8>) {
        let _ = out;
    }
    /// Prepares an idle server for another core.
    fn depart(session: &mut Self::Server) {
        let _ = session;
    }
    /// Takes a server in from another core.
    fn arrive(step: &mut Step<'_, Self>, session: &mut Self::Server) {
        let _ = (step, session);
    }

    // Clients that move between cores: all three methods, or none.

    /// Whether a client that waits for nothing and has no server may move to another core.
    fn may_travel(session: &Self::Client) -> bool {
        let _ = session;
        false
    }
    /// Packs the session of a client that may move to another core.
    fn pack(session: Self::Client) -> Self::Traveller {
        unreachable!("this client may not move: {session:?}")
    }
    /// Unpacks a client's session on the core to which the client has moved.
    fn unpack(core_state: &mut CoreState<Self>, traveller: Self::Traveller) -> Self::Client {
        unreachable!("to {core_state:?}, no client moves: {traveller:?}")
    }
}
