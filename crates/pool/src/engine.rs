//! The engine of one core, and the step that handles one event.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use crate::client::Client;
use crate::connections::Connections;
use crate::core_state::{CoreState, Entropy};
use crate::ids::{Conn, Core};
use crate::parts::Parts;
use crate::ports::Ports;
use crate::process_ids::ProcessIds;
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
    /// The process IDs that the core gives.
    pub(crate) process_ids: ProcessIds,
    /// Clients whose input is to be read on before the step ends.
    pub(crate) runnable: VecDeque<Conn>,
    /// Number of servers of this core at which further clients may join.
    pub(crate) open_lines: u32,
    /// Servers in whose lines clients stand, and perhaps some whose lines have become empty.
    pub(crate) lines: Vec<Conn>,
    /// The number of the connection at which the search for clients that may move goes on.
    pub(crate) looked_at: usize,
    /// The time of the last tick.
    pub(crate) ticked: Now,
    /// Number of clients, including those at their login.
    pub(crate) clients: usize,
    /// Number of side connections that hold no server.
    pub(crate) sides: u32,
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
        let process_ids = ProcessIds::new(core, shared.cores);
        let mut core_state = CoreState::new(core, shared, entropy);
        core_state.open_kept_pools(Now(0));
        Self {
            process_ids,
            core_state,
            connections: Connections::default(),
            runnable: VecDeque::new(),
            open_lines: 0,
            lines: Vec::new(),
            looked_at: 0,
            ticked: Now(0),
            clients: 0,
            sides: 0,
        }
    }

    /// Returns the number of clients, including those at their login.
    pub fn client_count(&self) -> usize {
        self.clients
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
        let moved = || self.core_state.shared.moved.pids();
        let pid = self.process_ids.give(conn, moved);
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
}
