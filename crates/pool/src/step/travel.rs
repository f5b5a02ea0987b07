//! Clients that move between cores: a client that does nothing at this moment leaves a core that
//! has too much to do, or joins those of another core that has little.
//!
//! The program decides when and how many ([`crate::Event::GiveClients`]), since it knows how busy
//! the cores are. A client may move while nothing of it is under way: it has no server, waits for
//! nothing, has sent no part of a message, and has got all replies. The protocol packs and unpacks
//! what it knows of the client ([`Protocol::pack`], [`Protocol::unpack`]).

use crate::client::{Client, Phase, ProcessId, WaitingFor};
use crate::connections::Connection;
use crate::core_state::CoreState;
use crate::disconnect::DisconnectReason;
use crate::engine::Engine;
use crate::event::Action;
use crate::ids::{Conn, Core};
use crate::ports::Ports;
use crate::protocol::Protocol;
use crate::time::Now;
use crate::transfer::{Moving, Transfer, Traveller};

/// Microseconds within which a client has got a reply that takes part in the core's load.
const LATELY_US: u64 = 1_000_000;
/// Most connections that one step looks at to find clients that may move.
const LOOKS_MAX: usize = 1024;

impl<P: Protocol> Engine<P> {
    /// Returns the number of clients that take part in the load of the core: they use a server or
    /// wait, or have got a reply within the last second. Looks at all clients.
    pub fn active_clients(&self, now: Now) -> usize {
        let active = |client: &&Client<P>| {
            client.link.is_some()
                || client.waiting_for != WaitingFor::Nothing
                || now.since(client.requested) < LATELY_US
        };
        self.connections.clients().filter(active).count()
    }
}

/// Gives clients that may move to another core, at most so many. The next call looks on where this
/// one stops.
pub(crate) fn give_clients<P: Protocol>(
    engine: &mut Engine<P>,
    ports: &mut Ports<P>,
    now: Now,
    to: Core,
    most: usize,
) {
    let Engine { core_state, connections, looked_at, .. } = engine;
    if core_state.draining {
        return;
    }
    let count = connections.len();
    let mut given = 0;
    for _ in 0..count.min(LOOKS_MAX) {
        if given == most {
            return;
        }
        let conn = Conn(u32::try_from(*looked_at).unwrap_or(0));
        *looked_at = (*looked_at + 1) % count;
        let queued = ports.queued(conn) > 0;
        let client = connections.peek_client(conn);
        if queued || !client.is_some_and(|client| may_travel(client, now)) {
            continue;
        }
        if let Connection::Client(client) = connections.take(conn) {
            let transfer = Box::new(Transfer(Moving::Client(pack(core_state, *client))));
            ports.act(Action::HandOver { conn, to, transfer });
            given += 1;
        }
    }
}

/// Whether a client to which nothing is queued may move to another core.
fn may_travel<P: Protocol>(client: &Client<P>, now: Now) -> bool {
    let quiet = client.link.is_none()
        && client.waiting_for == WaitingFor::Nothing
        && client.read.is_none()
        && client.ended.is_none()
        && client.inbox.held() == 0
        && client.inbox.rest == 0
        && !client.paused;
    quiet
        && now.since(client.requested) < LATELY_US
        && P::phase(&client.session) == Phase::Ready
        && P::may_travel(&client.session)
}

/// Packs a client that leaves for another core, and takes it out of the counts of this one.
fn pack<P: Protocol>(core_state: &mut CoreState<P>, client: Client<P>) -> Traveller<P> {
    let pool = core_state.pool(client.pool);
    pool.clients = pool.clients.checked_sub(1).expect("no more clients leave than came");
    pool.counters.pool.client_moves += 1;
    if let ProcessId::Home(_) = client.pid {
        core_state.process_ids.free(client.conn);
    }
    let traveller = Traveller {
        pid: client.pid(),
        serial: client.serial,
        peer: client.peer,
        secured: client.secured,
        counted: client.counted,
        pool: core_state.pool(client.pool).shared.clone(),
        user: client.user,
        inbox: client.inbox,
        key: client.key,
        connected: client.connected,
        requested: client.requested,
        session: P::pack(client.session),
    };
    core_state.shared.moved.departs(traveller.pid, traveller.serial);
    traveller
}

/// Takes in a client of another core. Returns why its session has to end, if it has to: a command
/// that ends clients may have come to this core before the client.
pub(crate) fn unpack<P: Protocol>(
    engine: &mut Engine<P>,
    now: Now,
    conn: Conn,
    traveller: Traveller<P>,
) -> Option<DisconnectReason> {
    let Engine { core_state, connections, .. } = engine;
    let (shared, core) = (core_state.shared.clone(), core_state.core);
    let pool = core_state.open_pool(&traveller.pool, now);
    pool.clients += 1;
    let removed = pool.removed || !shared.admits(&traveller.pool, &traveller.user);
    let session = P::unpack(core_state, traveller.session);
    let mut client = Client::new(traveller.serial, conn, traveller.peer, now, session);
    client.counted = traveller.counted;
    client.secured = traveller.secured;
    client.pool = traveller.pool.id;
    client.user = traveller.user;
    client.inbox = traveller.inbox;
    client.pid = ProcessId::Moved(traveller.pid);
    client.key = traveller.key;
    client.connected = traveller.connected;
    client.requested = traveller.requested;
    let killed = !shared.moved.arrives(traveller.pid, client.serial, (core, conn))
        || traveller.pool.has_killed(client.serial);
    connections.set(conn, Connection::Client(Box::new(client)));
    if core_state.draining {
        Some(DisconnectReason::Shutdown)
    } else if killed {
        Some(DisconnectReason::Killed)
    } else {
        removed.then_some(DisconnectReason::Removed)
    }
}
