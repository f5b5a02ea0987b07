//! The engine of one core, the step that handles one event, and the parts of a step.
//!
//! A [`Step`] can run the protocol, and so touch anything. Work that needs less gets a part: what
//! is said between a client and its server ([`Linked`]), the servers that a pool has and connects
//! ([`Supply`]), servers that several clients share ([`Sharing`]), flow control ([`Flow`]), and the
//! log ([`Log`]).

use std::net::IpAddr;
use std::sync::Arc;

use crate::client::Client;
use crate::connections::Connections;
use crate::core_state::{CoreState, Entropy};
use crate::ids::{Conn, Core};
use crate::parts::Parts;
use crate::ports::Ports;
use crate::server::Server;
use crate::shared::Shared;
use crate::time::Now;

/// The engine of one core: all its connections and pools.
#[derive(Debug)]
pub struct Engine<P: Parts> {
    /// The core's state beside its connections.
    pub core_state: CoreState<P>,
    /// The core's connections.
    pub connections: Connections<P>,
    /// The lines at servers that clients share.
    pub(crate) lines: OpenLines,
    /// The number of the connection at which the search for clients that may move goes on.
    pub(crate) looked_at: usize,
    /// The time of the last tick.
    pub(crate) ticked: Now,
    /// Number of side connections that hold no server.
    pub(crate) sides: u32,
}

/// The lines at a core's servers that clients share.
#[derive(Debug, Default)]
pub(crate) struct OpenLines {
    /// Number of servers at which further clients may join.
    pub(crate) open: u32,
    /// Servers in whose lines clients stand, and perhaps some whose lines have become empty.
    pub(crate) servers: Vec<Conn>,
}

/// A step under way: the engine, the time, and the buffers for output.
#[derive(Debug)]
pub struct Step<'a, P: Parts> {
    /// The engine.
    pub engine: &'a mut Engine<P>,
    /// The time.
    pub now: Now,
    /// The buffers for output.
    pub ports: &'a mut Ports<P>,
}

impl<P: Parts> Engine<P> {
    /// Makes an engine without connections. The first ticks connect the servers that pools keep
    /// before any client comes.
    pub fn new(core: Core, shared: Arc<Shared<P>>, entropy: Entropy) -> Self {
        let mut core_state = CoreState::new(core, shared, entropy);
        core_state.open_kept_pools(Now(0));
        Self {
            core_state,
            connections: Connections::default(),
            lines: OpenLines::default(),
            looked_at: 0,
            ticked: Now(0),
            sides: 0,
        }
    }

    /// Returns the number of clients, including those at their login.
    pub fn client_count(&self) -> usize {
        self.connections.client_count()
    }

    /// Notes the address to which a server was connected.
    pub fn note_address(&mut self, conn: Conn, address: IpAddr) {
        if let Some(server) = self.connections.server(conn) {
            server.address = Some(address);
        }
    }

    /// Gives the client at a connection a process ID and the key that a cancel request must show.
    /// Returns the ID.
    pub fn set_cancel_key(&mut self, conn: Conn, key: &[u8]) -> u32 {
        let Some(client) = self.connections.client(conn) else { return 0 };
        let CoreState { shared, process_ids, .. } = &mut self.core_state;
        let pid = process_ids.give(conn, || shared.moved.pids());
        client.set_cancel_key(pid, key);
        pid
    }
}

/// A client and the server lent to it, with everything that a message between them may touch.
#[derive(Debug)]
pub struct Linked<'a, P: Parts> {
    /// The time.
    pub now: Now,
    /// The client.
    pub client: &'a mut Client<P>,
    /// The client's server.
    pub server: &'a mut Server<P>,
    /// The state of the core.
    pub core_state: &'a mut CoreState<P>,
    /// The buffers for output.
    pub ports: &'a mut Ports<P>,
}

/// The servers of a core's pools: they are connected, asked whether they are there, and closed.
/// Nothing here lends one, or reads what a client or a server has sent.
#[derive(Debug)]
pub struct Supply<'a, P: Parts> {
    /// The time.
    pub now: Now,
    /// The state of the core.
    pub core_state: &'a mut CoreState<P>,
    /// The core's connections.
    pub connections: &'a mut Connections<P>,
    /// The buffers for output.
    pub ports: &'a mut Ports<P>,
}

/// The servers that clients share. Nothing here sends anything.
#[derive(Debug)]
pub struct Sharing<'a, P: Parts> {
    pub(crate) now: Now,
    pub(crate) core_state: &'a mut CoreState<P>,
    pub(crate) connections: &'a mut Connections<P>,
    pub(crate) lines: &'a mut OpenLines,
}

/// Flow control: the connections that are read or not, by what is queued to them. Nothing here
/// changes a pool.
#[derive(Debug)]
pub struct Flow<'a, P: Parts> {
    pub(crate) core_state: &'a CoreState<P>,
    pub(crate) connections: &'a mut Connections<P>,
    pub(crate) ports: &'a mut Ports<P>,
}

/// The log, and the connections and pools that lines are about.
#[derive(Debug)]
pub struct Log<'a, P: Parts> {
    pub(crate) now: Now,
    pub(crate) core_state: &'a CoreState<P>,
    pub(crate) connections: &'a Connections<P>,
    pub(crate) ports: &'a mut Ports<P>,
}

impl<P: Parts> Step<'_, P> {
    /// Borrows a client, its server, and everything that a message between them may touch.
    ///
    /// # Panics
    /// If the connections are not a client's and a server's.
    #[inline]
    pub fn linked(&mut self, client: Conn, server: Conn) -> Linked<'_, P> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let (client, server) = connections.pair(client, server);
        Linked { now: self.now, client, server, core_state, ports: self.ports }
    }

    /// Borrows the servers of the core's pools.
    #[inline]
    pub fn supply(&mut self) -> Supply<'_, P> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        Supply { now: self.now, core_state, connections, ports: self.ports }
    }

    /// Borrows the servers that clients share.
    #[inline]
    pub fn sharing(&mut self) -> Sharing<'_, P> {
        let Engine { core_state, connections, lines, .. } = &mut *self.engine;
        Sharing { now: self.now, core_state, connections, lines }
    }

    /// Borrows what flow control needs.
    #[inline]
    pub fn flow(&mut self) -> Flow<'_, P> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        Flow { core_state, connections, ports: self.ports }
    }

    /// Borrows the log.
    pub fn log(&mut self) -> Log<'_, P> {
        let Engine { core_state, connections, .. } = &*self.engine;
        Log { now: self.now, core_state, connections, ports: self.ports }
    }
}

impl<P: Parts> Supply<'_, P> {
    /// Borrows the log.
    pub fn log(&mut self) -> Log<'_, P> {
        let Self { core_state, connections, ports, .. } = self;
        Log { now: self.now, core_state, connections, ports }
    }
}
