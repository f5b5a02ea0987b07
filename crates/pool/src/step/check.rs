//! Invariants between an engine's tables, which hold after every step.
//!
//! The simulator and tests check the invariants: a broken one may do no harm yet, but will. Every
//! link is checked from both ends, every list against the states that it stands for, and every
//! count against the things that it counts.

use std::collections::HashMap;
use std::time::Duration;

use crate::choice::LendOrder;
use crate::client::{Client, Phase, ProcessId, WaitingFor};
use crate::connections::{Connection, Connections};
use crate::engine::Engine;
use crate::ids::{Conn, Core, PoolId};
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::refusal::COUNTS_MAX;
use crate::server::{Holder, Server, ServerState};
use crate::step::close::is_marked;
use crate::step::tick::is_always_watched;
use crate::time::Now;

/// The counts of one pool, made anew from all connections.
#[derive(Default)]
struct Recount {
    clients: u32,
    waiting: usize,
    entering: usize,
    servers: u32,
    connecting: u32,
    asked: u32,
    idle: usize,
}

macro_rules! holds {
    ($holds:expr, $($words:tt)*) => {
        if !$holds {
            return Err(format!($($words)*));
        }
    };
}

impl<P: Protocol> Engine<P> {
    /// Checks all invariants.
    ///
    /// # Errors
    /// A description of the first invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        let mut pools: HashMap<PoolId, Recount> = HashMap::new();
        let mut cancels: HashMap<(Conn, u64), u32> = HashMap::new();
        let mut clients = 0;
        let mut home = 0;
        let mut sides = 0;
        holds!(self.connections.runnable.is_empty(), "clients are left that can be read on");
        for conn in self.connections.conns() {
            let watched = self.connections.is_watched(conn);
            let connection = self.connections.get(conn);
            holds!(watched || !is_always_watched(connection), "no tick looks at {conn:?}");
            match connection {
                Connection::Client(client) => {
                    clients += 1;
                    if let ProcessId::Home(pid) = client.pid {
                        home += 1;
                        let found = self.core_state.process_ids.find(pid);
                        holds!(found == Some(conn), "{conn:?} is not found by its process ID");
                    }
                    holds!(client.conn == conn, "{conn:?} is a client with another number");
                    check_client(&self.connections, client)?;
                    count_client(pools.entry(client.pool).or_default(), client);
                }
                Connection::Server(server) => {
                    holds!(server.conn == conn, "{conn:?} is a server with another number");
                    check_server(&self.connections, server)?;
                    count_server(pools.entry(server.pool).or_default(), server);
                }
                Connection::Side(side) => match side.holds {
                    Some(held) => *cancels.entry((held.conn, held.serial)).or_default() += 1,
                    None => sides += 1,
                },
                Connection::Free => {}
            }
        }
        let open = self.connections.servers().filter(|server| server.line.is_open()).count();
        let counted = self.lines.open as usize;
        holds!(counted == open, "{open} lines are open, {counted} are counted");
        let counted = self.client_count();
        holds!(counted == clients, "{clients} clients, {counted} are counted");
        holds!(self.sides == sides, "{sides} side connections, {} are counted", self.sides);
        let held = self.core_state.process_ids.count();
        holds!(held == home, "{home} clients have process IDs, {held} IDs are held");
        for server in self.connections.servers() {
            let under_way = cancels.remove(&(server.conn, server.serial)).unwrap_or(0);
            holds!(
                server.cancels == under_way,
                "{} cancel requests to {:?} are counted, {under_way} are under way",
                server.cancels,
                server.conn
            );
        }
        for pool in self.core_state.pools() {
            check_agenda(pool, self.core_state.core)?;
            let there = pools.remove(&pool.shared.id).unwrap_or_default();
            // A drain that has run out ends with the next tick.
            let drains = self.core_state.database_drain.concerns(pool, self.ticked);
            check_pool(&self.connections, pool, &there, self.core_state.draining || drains)?;
        }
        pools.remove(&PoolId::NONE);
        let lost = pools.keys().next();
        holds!(lost.is_none(), "{lost:?} is in use and not open");
        Ok(())
    }

    /// Counts one server too many: a planted bug of the simulator, which [`Self::check`] has to
    /// find. True if there was a server.
    #[doc(hidden)]
    pub fn miscount(&mut self) -> bool {
        let pool = self.core_state.pools_mut().find(|pool| pool.servers > 0);
        pool.map(|pool| pool.servers += 1).is_some()
    }

    /// Puts the client that came last in front of all that wait: a planted bug of the simulator.
    #[doc(hidden)]
    pub fn prefer_last(&mut self) {
        self.core_state.pools_mut().for_each(|pool| pool.waiters.prefer_last());
    }
}

fn count_client<P: Protocol>(pool: &mut Recount, client: &Client<P>) {
    pool.clients += 1;
    pool.waiting += usize::from(client.waiting_for == WaitingFor::Server);
    pool.entering += usize::from(P::phase(&client.session) == Phase::Entering);
}

fn count_server<P: Protocol>(pool: &mut Recount, server: &Server<P>) {
    pool.servers += 1;
    pool.connecting += u32::from(server.is_new());
    pool.asked += u32::from(server.is_asked);
    pool.idle += usize::from(matches!(server.state, ServerState::Idle));
}

fn check_client<P: Protocol>(
    connections: &Connections<P>,
    client: &Client<P>,
) -> Result<(), String> {
    let conn = client.conn;
    match client.link {
        Some(link) => {
            let Connection::Server(server) = connections.get(link) else {
                return Err(format!("{conn:?} has the server {link:?}, which is none"));
            };
            let (holds, lines_up) = (server.client() == Some(conn), server.line.has(conn));
            holds!(holds || lines_up, "{conn:?} has {link:?}, which is another's");
            let turn = client.waiting_for == WaitingFor::Turn;
            holds!(!lines_up || turn, "{conn:?} is in a line and does not wait for its turn");
            holds!(!turn || client.read.is_some(), "{conn:?} has sent a request that is not kept");
            // One request may run on a server of another pool. The next waits until it is answered.
            let at_home = server.pool == client.pool;
            holds!(at_home || turn, "{conn:?} has a server of another pool");
            holds!(
                client.waiting_for != WaitingFor::Server,
                "{conn:?} has a server and waits for one"
            );
        }
        None => {
            let console = P::phase(&client.session) == Phase::Console;
            let await_replies = client.waiting_for == WaitingFor::Replies && !console;
            holds!(!await_replies, "{conn:?} waits for a reply, and no server owes any");
            let turn = client.waiting_for == WaitingFor::Turn;
            holds!(!turn, "{conn:?} waits for its turn, and has no server");
        }
    }
    let phase = P::phase(&client.session);
    let entered = matches!(phase, Phase::Ready | Phase::Entering | Phase::Checking);
    holds!(entered == (client.pool != PoolId::NONE), "{conn:?} has a pool too early or too late");
    P::check_client(client)
}

fn check_server<P: Protocol>(
    connections: &Connections<P>,
    server: &Server<P>,
) -> Result<(), String> {
    let conn = server.conn;
    P::check_server(server)?;
    check_line(connections, server)?;
    match &server.state {
        ServerState::Held(Holder::Client(client)) => {
            let client = *client;
            let Connection::Client(client) = connections.get(client) else {
                return Err(format!("{conn:?} is lent to {client:?}, which is no client"));
            };
            holds!(client.link == Some(conn), "{conn:?} is lent to a client that has another");
        }
        ServerState::Idle => {
            holds!(P::idle(&server.session).is_some(), "{conn:?} is idle and not quiescent");
            holds!(server.cancels == 0, "{conn:?} is idle, and is being cancelled");
            holds!(server.inbox.rest == 0, "{conn:?} is idle amid a message");
            holds!(!server.paused, "{conn:?} is idle and not read");
        }
        ServerState::Held(Holder::Job(_, back)) => {
            let owes = P::activity(&server.session).owes;
            holds!(owes, "{conn:?} does a job, and owes nothing");
            let Some(client) = *back else { return Ok(()) };
            let Connection::Client(client) = connections.get(client) else {
                return Err(format!("{conn:?} goes back to {client:?}, which is no client"));
            };
            holds!(client.link == Some(conn), "{conn:?} goes back to a client that has another");
            holds!(
                client.waiting_for == WaitingFor::Job,
                "{:?} does not wait for its job",
                client.conn
            );
        }
        ServerState::Cancelling => {
            holds!(server.cancels > 0, "{conn:?} is held back, and no cancel is under way");
        }
        ServerState::Connecting | ServerState::Login(_) | ServerState::Resetting => {}
    }
    Ok(())
}

fn check_line<P: Protocol>(connections: &Connections<P>, server: &Server<P>) -> Result<(), String> {
    let (conn, line) = (server.conn, &server.line);
    let used = matches!(server.state, ServerState::Held(Holder::Client(_)));
    let rests = matches!(server.state, ServerState::Resetting);
    holds!(line.is_empty() || used || rests, "{conn:?} has a line and no holder");
    holds!(!line.is_open() || used || rests, "{conn:?} lets clients join and has no holder");
    for client in line.clients() {
        let Connection::Client(client) = connections.get(client) else {
            return Err(format!("{client:?} stands in a line, and is no client"));
        };
        holds!(client.link == Some(conn), "{:?} stands in the line of another", client.conn);
    }
    Ok(())
}

fn check_pool<P: Protocol>(
    connections: &Connections<P>,
    pool: &Pool<P>,
    there: &Recount,
    leaves: bool,
) -> Result<(), String> {
    let name = (&pool.shared.database, &pool.shared.user);
    let counts = [
        ("clients", pool.clients as usize, there.clients as usize),
        ("servers", pool.servers as usize, there.servers as usize),
        ("servers being connected", pool.connecting as usize, there.connecting as usize),
        ("servers that are asked", pool.asked as usize, there.asked as usize),
        ("idle servers", pool.idle().len(), there.idle),
        ("waiting clients", pool.waiting(), there.waiting),
        ("entering clients", pool.entering.len(), there.entering),
    ];
    for (what, counted, there) in counts {
        holds!(counted == there, "{name:?}: {what}: {counted} are counted, {there} are there");
    }
    let is_idle = |conn: &Conn| match connections.get(*conn) {
        Connection::Server(server) => {
            matches!(server.state, ServerState::Idle) && server.pool == pool.shared.id
        }
        Connection::Client(_) | Connection::Side(_) | Connection::Free => false,
    };
    holds!(pool.idle().iter().all(is_idle), "{name:?}: what is listed as idle is not");
    let marked = pool.choice.marked;
    let is_marked = pool.idle().iter().any(|conn| is_marked(connections, *conn));
    holds!(marked || !is_marked, "{name:?}: a marked server is idle");
    let order = LendOrder::of(&pool.settings.options);
    holds!(pool.choice.order == order, "{name:?}: servers are lent in another order");
    let lends_last = !pool.choice.paused && !marked && order == LendOrder::Last;
    holds!(pool.choice.lends_last == lends_last, "{name:?}: another server is lent than is due");
    holds!(is_unique(pool.idle()), "{name:?}: a server is idle twice");
    let waits: Vec<Conn> = pool.waiters.all_clients().collect();
    let is_waiting = |conn: &Conn| match connections.get(*conn) {
        Connection::Client(client) => {
            client.waiting_for == WaitingFor::Server && client.pool == pool.shared.id
        }
        Connection::Server(_) | Connection::Side(_) | Connection::Free => false,
    };
    holds!(waits.iter().all(is_waiting), "{name:?}: who is listed as waiting does not wait");
    holds!(is_unique(&waits), "{name:?}: a client waits twice");
    let is_open = |conn: &Conn| match connections.get(*conn) {
        Connection::Server(server) => server.line.is_open() && server.pool == pool.shared.id,
        Connection::Client(_) | Connection::Side(_) | Connection::Free => false,
    };
    holds!(pool.open_lines.iter().all(is_open), "{name:?}: a line is listed as open and is not");
    holds!(is_unique(&pool.open_lines), "{name:?}: a line is open twice");
    holds!(is_unique(&pool.entering), "{name:?}: a client enters twice");
    let idle = pool.idle().len();
    // Others wait for servers that are asked whether they are there.
    let waits_on = waits.len() > pool.asked as usize;
    let lacks_room = waits_on && idle > 0 && !pool.choice.paused;
    holds!(!lacks_room, "{name:?}: {} clients wait and {idle} servers are idle", waits.len());
    // No job begins on a server that has to leave.
    let waits_on = waits.len() + pool.waiting_jobs() > pool.asked as usize;
    let has_job = pool.waiting_jobs() > 0 && waits_on;
    let lacks_room = has_job && idle > 0 && !pool.choice.paused && !leaves;
    holds!(!lacks_room, "{name:?}: a job waits and {idle} servers are idle");
    holds!(pool.waiting_jobs() == 0 || !pool.removed, "{name:?}: a job waits for no server");
    holds!(pool.asking.len() <= usize::from(u16::MAX), "{name:?}: cores ask twice");
    Ok(())
}

/// Checks that a tick visits a pool in which there is work, and an unused one when it may be
/// forgotten.
fn check_agenda<P: Protocol>(pool: &Pool<P>, core: Core) -> Result<(), String> {
    let name = (&pool.shared.database, &pool.shared.user);
    holds!(pool.visits.is_listed() || !pool.needs_tick(core), "{name:?}: no tick does what is due");
    // A tick may come too early: another core has reached a server since, and then the pool is kept
    // for longer. It may come later than it could, while a refusal counts at most: another core has
    // met something else since than the refusal that this core has heard of.
    let is_refused = !P::is_known(&pool.shared.protocol);
    let late = if is_refused { COUNTS_MAX } else { Duration::ZERO };
    let visit = pool.visits.rests_until();
    let in_time = |due: Now| visit.is_some_and(|visit| visit <= due.after(late));
    let rests = pool.forgotten_at().is_none_or(in_time);
    holds!(pool.visits.is_listed() || rests, "{name:?}: no tick forgets it when it may");
    Ok(())
}

fn is_unique(conns: &[Conn]) -> bool {
    let mut sorted = conns.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
