//! One core's engine, and a step of it under way.
//!
//! What a step does with an event stands in the files of `login` and `step`, by subject.

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

/// One core's engine.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core_state: CoreState,
    pub(crate) connections: Connections,
    /// Clients whose input can be read on.
    pub(crate) runnable: VecDeque<Conn>,
    /// When the tables were last looked through for what is due.
    pub(crate) ticked: Now,
    /// Logged-in clients and those at their login.
    pub(crate) clients: usize,
}

/// A step under way: the engine, the time, and where output goes.
pub(crate) struct Step<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) now: Now,
    pub(crate) ports: &'a mut Ports,
}

impl Engine {
    /// An engine without connections.
    pub fn new(core: Core, shared: Arc<Shared>, entropy: Entropy) -> Self {
        Self {
            core_state: CoreState::new(core, shared, entropy),
            connections: Connections::default(),
            runnable: VecDeque::new(),
            ticked: Now(0),
            clients: 0,
        }
    }

    /// How many clients there are.
    pub fn client_count(&self) -> usize {
        self.clients
    }

    /// Whether nobody is left to wait for after a drain.
    pub fn is_drained(&self) -> bool {
        self.core_state.draining && self.clients == 0
    }
}

impl Step<'_> {
    /// A client, its server and all that a message between them may touch.
    #[inline]
    pub(crate) fn linked(&mut self, client: Conn, server: Conn) -> Link<'_> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let (client, server) = connections.pair(client, server);
        Link { now: self.now, client, server, core_state, ports: self.ports }
    }

    /// Puts a line about a client into the log.
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
