//! Clients that move between cores: a client that does nothing at this moment leaves a core that
//! has too much to do, or joins those of another core that has little.
//!
//! The program decides when and how many ([`crate::Event::GiveClients`]), since it knows how busy
//! the cores are. A client may move while nothing of it is under way: it has no server, waits for
//! nothing, has sent no part of a message, and has got all replies. The protocol packs and unpacks
//! what it knows of the client ([`Protocol::pack`], [`Protocol::unpack`]).

use crate::client::{Client, Phase, ProcessId, WaitingFor};
use crate::connections::Connection;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::{Conn, Core};
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

impl<P: Protocol> Step<'_, P> {
    /// Gives clients that may move to another core, at most so many. The next call looks on where
    /// this one stops.
    pub(crate) fn give_clients(&mut self, to: Core, most: usize) {
        if self.engine.core_state.draining {
            return;
        }
        let count = self.engine.connections.len();
        let mut given = 0;
        for _ in 0..count.min(LOOKS_MAX) {
            if given == most {
                return;
            }
            let conn = Conn(u32::try_from(self.engine.looked_at).unwrap_or(0));
            self.engine.looked_at = (self.engine.looked_at + 1) % count;
            given += usize::from(self.may_travel(conn) && self.give_client(conn, to));
        }
    }

    fn may_travel(&mut self, conn: Conn) -> bool {
        let queued = self.ports.queued(conn) > 0;
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let quiet = client.link.is_none()
            && client.waiting_for == WaitingFor::Nothing
            && client.read.is_none()
            && client.ended.is_none()
            && client.inbox.held() == 0
            && client.inbox.rest == 0
            && !client.paused
            && !queued;
        quiet
            && self.now.since(client.requested) < LATELY_US
            && P::phase(&client.session) == Phase::Ready
            && P::may_travel(&client.session)
    }

    fn give_client(&mut self, conn: Conn, to: Core) -> bool {
        let Connection::Client(client) = self.engine.connections.take(conn) else { return false };
        self.engine.clients =
            self.engine.clients.checked_sub(1).expect("no more clients leave than came");
        let pool = self.engine.core_state.pool(client.pool);
        pool.clients = pool.clients.checked_sub(1).expect("no more clients leave than came");
        pool.counters.pool.client_moves += 1;
        if let ProcessId::Home(_) = client.pid {
            self.engine.process_ids.free(conn);
        }
        let traveller = Traveller {
            pid: client.pid(),
            serial: client.serial,
            peer: client.peer,
            secured: client.secured,
            counted: client.counted,
            pool: pool.shared.clone(),
            user: client.user,
            inbox: client.inbox,
            key: client.key,
            connected: client.connected,
            requested: client.requested,
            session: P::pack(client.session),
        };
        self.engine.core_state.shared.moved.departs(traveller.pid, traveller.serial);
        let transfer = Box::new(Transfer(Moving::Client(traveller)));
        self.ports.act(Action::HandOver { conn, to, transfer });
        true
    }

    /// Takes in a server or a client of another core.
    pub(crate) fn arrived(&mut self, conn: Conn, transfer: Transfer<P>) {
        match transfer.0 {
            Moving::Server(server) => self.server_arrives(conn, server),
            Moving::Client(traveller) => self.client_arrives(conn, traveller),
        }
    }

    fn client_arrives(&mut self, conn: Conn, traveller: Traveller<P>) {
        let core_state = &mut self.engine.core_state;
        let (shared, core) = (core_state.shared.clone(), core_state.core);
        let pool = core_state.open_pool(&traveller.pool, self.now);
        pool.clients += 1;
        let removed = pool.removed || !shared.admits(&traveller.pool, &traveller.user);
        let session = P::unpack(core_state, traveller.session);
        let mut client = Client::new(traveller.serial, conn, traveller.peer, self.now, session);
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
        self.engine.connections.set(conn, Connection::Client(Box::new(client)));
        self.engine.clients += 1;
        // A command that ends clients may have come to this core first.
        if self.engine.core_state.draining {
            return self.end_client(conn, DisconnectReason::Shutdown);
        }
        if killed {
            return self.end_client(conn, DisconnectReason::Killed);
        }
        if removed {
            return self.end_client(conn, DisconnectReason::Removed);
        }
        self.read_on(conn);
    }
}
