//! What holds between an engine's tables whenever a step is over.
//!
//! For the simulator and for tests: what is broken here is not wrong yet for anybody outside, and will be. Every link is
//! looked at from both ends, every list against the states it stands for, every count against what it counts.

use std::collections::HashMap;

use crate::client::{Blocked, Client, Phase};
use crate::engine::Engine;
use crate::ids::{Conn, PoolId};
use crate::pool::Pool;
use crate::roles::{Role, Roles};
use crate::server::{Custody, Server};

/// What one pool should have, by looking at all connections.
#[derive(Default)]
struct Census {
    clients: u32,
    waiting: usize,
    entering: usize,
    servers: u32,
    connecting: u32,
    idle: usize,
}

macro_rules! holds {
    ($holds:expr, $($words:tt)*) => {
        if !$holds {
            return Err(format!($($words)*));
        }
    };
}

impl Engine {
    /// Looks whether all holds that should between two steps.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), String> {
        let mut pools: HashMap<PoolId, Census> = HashMap::new();
        let mut cancels: HashMap<(Conn, u64), u32> = HashMap::new();
        let mut clients = 0;
        holds!(self.runnable.is_empty(), "clients are left that can be read on");
        for conn in self.roles.conns() {
            match self.roles.get(conn) {
                Role::Client(client) => {
                    clients += 1;
                    holds!(client.conn == conn, "{conn:?} is a client with another number");
                    check_client(&self.roles, client)?;
                    count_client(pools.entry(client.pool).or_default(), client);
                }
                Role::Server(server) => {
                    holds!(server.conn == conn, "{conn:?} is a server with another number");
                    check_server(&self.roles, server)?;
                    count_server(pools.entry(server.pool).or_default(), server);
                }
                Role::Cancel(run) => *cancels.entry((run.server, run.serial)).or_default() += 1,
                Role::Free => {}
            }
        }
        holds!(self.clients == clients, "{clients} clients, {} are counted", self.clients);
        for server in self.roles.servers() {
            let under_way = cancels.remove(&(server.conn, server.serial)).unwrap_or(0);
            holds!(
                server.cancels == under_way,
                "{} cancel requests to {:?} are counted, {under_way} are under way",
                server.cancels,
                server.conn
            );
        }
        for pool in self.hub.pools() {
            check_pool(&self.roles, pool, &pools.remove(&pool.shared.id).unwrap_or_default())?;
        }
        pools.remove(&PoolId::NONE);
        let lost = pools.keys().next();
        holds!(lost.is_none(), "{lost:?} is in use and not open");
        Ok(())
    }

    /// Counts one server more than there is, for the simulator: a bug that [`Self::check`] has to find. Says whether there
    /// was a server.
    #[doc(hidden)]
    pub fn miscount(&mut self) -> bool {
        let pool = self.hub.pools_mut().find(|pool| pool.servers > 0);
        pool.map(|pool| pool.servers += 1).is_some()
    }
}

fn count_client(pool: &mut Census, client: &Client) {
    pool.clients += 1;
    pool.waiting += usize::from(client.blocked == Blocked::Waiting);
    pool.entering += usize::from(matches!(client.phase, Phase::Entering(..)));
}

fn count_server(pool: &mut Census, server: &Server) {
    pool.servers += 1;
    pool.connecting += u32::from(matches!(server.custody, Custody::Connecting | Custody::Login(_)));
    pool.idle += usize::from(matches!(server.custody, Custody::Idle));
}

fn check_client(roles: &Roles, client: &Client) -> Result<(), String> {
    let conn = client.conn;
    match client.link {
        Some(link) => {
            let Role::Server(server) = roles.get(link) else {
                return Err(format!("{conn:?} has the server {link:?}, which is none"));
            };
            holds!(server.client() == Some(conn), "{conn:?} has {link:?}, which is another's");
            holds!(server.pool == client.pool, "{conn:?} has a server of another pool");
            holds!(client.blocked != Blocked::Waiting, "{conn:?} has a server and waits for one");
        }
        None => {
            holds!(client.pins.is_empty(), "{conn:?} is pinned to no server");
            holds!(
                client.undos.iter().next().is_none(),
                "{conn:?} may take back what nobody is asked"
            );
            let console = matches!(client.phase, Phase::Console(..));
            let gate = client.blocked == Blocked::Gate && !console;
            holds!(!gate, "{conn:?} waits for a reply, and no server owes any");
        }
    }
    let entered =
        matches!(client.phase, Phase::Ready(_) | Phase::Entering(..) | Phase::Checking(..));
    holds!(entered == (client.pool != PoolId::NONE), "{conn:?} has a pool too early or too late");
    holds!(client.names.adds_up(), "{conn:?}: bytes of its statements");
    holds!(client.portals.adds_up(), "{conn:?}: bytes of its portals");
    Ok(())
}

fn check_server(roles: &Roles, server: &Server) -> Result<(), String> {
    let conn = server.conn;
    holds!(server.told.is_none(), "{conn:?}: settings that no profile has");
    holds!(server.slots.adds_up(), "{conn:?}: bytes of its statements");
    match &server.custody {
        Custody::Lent(client) => {
            let client = *client;
            let Role::Client(client) = roles.get(client) else {
                return Err(format!("{conn:?} is lent to {client:?}, which is no client"));
            };
            holds!(client.link == Some(conn), "{conn:?} is lent to a client that has another");
        }
        Custody::Idle => {
            holds!(server.ledger.quiescent().is_some(), "{conn:?} is idle and not quiescent");
            holds!(server.cancels == 0, "{conn:?} is idle, and is being cancelled");
            holds!(
                server.undos.iter().next().is_none(),
                "{conn:?} is idle, and may take something back"
            );
            holds!(server.inbox.rest == 0, "{conn:?} is idle amid a message");
            holds!(!server.paused, "{conn:?} is idle and not read");
        }
        Custody::Job(job) => {
            holds!(!server.ledger.is_empty(), "{conn:?} does a job, and owes nothing");
            let Some(client) = job.back else { return Ok(()) };
            let Role::Client(client) = roles.get(client) else {
                return Err(format!("{conn:?} goes back to {client:?}, which is no client"));
            };
            holds!(client.link == Some(conn), "{conn:?} goes back to a client that has another");
            holds!(client.blocked == Blocked::Job, "{:?} does not wait for its job", client.conn);
        }
        Custody::Cancelling => {
            holds!(server.cancels > 0, "{conn:?} is held back, and no cancel is under way");
        }
        Custody::Connecting | Custody::Login(_) | Custody::Resetting => {}
    }
    Ok(())
}

fn check_pool(roles: &Roles, pool: &Pool, there: &Census) -> Result<(), String> {
    let name = (&pool.shared.database, &pool.shared.user);
    let counts = [
        ("clients", pool.clients as usize, there.clients as usize),
        ("servers", pool.servers as usize, there.servers as usize),
        ("servers being connected", pool.connecting as usize, there.connecting as usize),
        ("idle servers", pool.idle().len(), there.idle),
        ("waiting clients", pool.waiting(), there.waiting),
        ("entering clients", pool.entering.len(), there.entering),
    ];
    for (what, counted, there) in counts {
        holds!(counted == there, "{name:?}: {what}: {counted} are counted, {there} are there");
    }
    let is_idle = |conn: &Conn| match roles.get(*conn) {
        Role::Server(server) => {
            matches!(server.custody, Custody::Idle) && server.pool == pool.shared.id
        }
        Role::Client(_) | Role::Cancel(_) | Role::Free => false,
    };
    holds!(pool.idle().iter().all(is_idle), "{name:?}: what is listed as idle is not");
    holds!(is_unique(pool.idle()), "{name:?}: a server is idle twice");
    let waits: Vec<Conn> = pool.all_waiting().collect();
    let is_waiting = |conn: &Conn| match roles.get(*conn) {
        Role::Client(client) => client.blocked == Blocked::Waiting && client.pool == pool.shared.id,
        Role::Server(_) | Role::Cancel(_) | Role::Free => false,
    };
    holds!(waits.iter().all(is_waiting), "{name:?}: who is listed as waiting does not wait");
    holds!(is_unique(&waits), "{name:?}: a client waits twice");
    holds!(is_unique(&pool.entering), "{name:?}: a client enters twice");
    let idle = pool.idle().len();
    let starves = !waits.is_empty() && idle > 0 && !pool.paused;
    holds!(!starves, "{name:?}: {} clients wait and {idle} servers are idle", waits.len());
    holds!(pool.asking.len() <= usize::from(u16::MAX), "{name:?}: cores ask twice");
    Ok(())
}

fn is_unique(conns: &[Conn]) -> bool {
    let mut sorted = conns.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
