//! The engine of one core, and a step of it under way.
//!
//! The files of `login` and `step` handle the events, one subject each.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::{Conn, Core};
use crate::ground::time::Now;
use crate::relay::link::Link;
use crate::state::connections::Connections;
use crate::state::core_state::{self, CoreState, Entropy};
use crate::state::event::Level;
use crate::state::ports::Ports;
use crate::state::shared::Shared;

/// The engine of one core: all its connections and pools.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core_state: CoreState,
    pub(crate) connections: Connections,
    /// Clients whose input can be read on, in this step.
    pub(crate) runnable: VecDeque<Conn>,
    /// When the last tick looked through the tables.
    pub(crate) ticked: Now,
    /// Number of clients, those at their login included.
    pub(crate) clients: usize,
}

/// A step under way: the engine, the time, and where output goes.
pub(crate) struct Step<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) now: Now,
    pub(crate) ports: &'a mut Ports,
}

impl Engine {
    /// Makes an engine without connections.
    pub fn new(core: Core, shared: Arc<Shared>, entropy: Entropy) -> Self {
        Self {
            core_state: CoreState::new(core, shared, entropy),
            connections: Connections::default(),
            runnable: VecDeque::new(),
            ticked: Now(0),
            clients: 0,
        }
    }

    /// Returns the number of clients, those at their login included.
    pub fn client_count(&self) -> usize {
        self.clients
    }

    /// Whether a shutdown has begun and no client is left.
    pub fn is_drained(&self) -> bool {
        self.core_state.draining && self.clients == 0
    }
}

impl Step<'_> {
    /// Borrows a client, its server, and everything that a message between them may touch.
    #[inline]
    pub(crate) fn linked(&mut self, client: Conn, server: Conn) -> Link<'_> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let (client, server) = connections.pair(client, server);
        Link { now: self.now, client, server, core_state, ports: self.ports }
    }

    /// Logs a line about a client.
    pub(crate) fn note_client(
        &mut self,
        conn: Conn,
        level: Level,
        cause: DisconnectReason,
        detail: String,
    ) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let pool = self.engine.core_state.peek_pool(client.pool);
        core_state::note_client(self.ports, level, cause, (client, pool), detail);
    }
}
