//! A step of the pool's engine, as PostgreSQL's side sees it.
//!
//! The files of `login` and `step` handle the events, one subject each.

use refrain_cache::Waiter;
use refrain_pool::client::WaitingFor;
use refrain_pool::ids::{ClientSerial, Core, PoolId};
use refrain_pool::{Conn, Now, Step as PoolStep};

use crate::relay::follow::sync_settings_if_needed;
use crate::relay::link::Link;
use crate::relay::pipe::Pipeline;
use crate::state::parts::{Client, CoreState, Engine, Pg, Ports, conn_of};

/// A step under way.
pub(crate) struct Step<'s, 'a> {
    /// The pool's step.
    pub(crate) step: &'s mut PoolStep<'a, Pg>,
}

impl Step<'_, '_> {
    /// Borrows a client, its server, and everything that a message between them may touch.
    #[inline]
    pub(crate) fn linked(&mut self, client: Conn, server: Conn) -> Link<'_> {
        self.step.linked(client, server).into()
    }

    /// Borrows a server with everything that a request to it may touch.
    #[inline]
    pub(crate) fn pipe(&mut self, server: Conn) -> Option<Pipeline<'_>> {
        let Engine { core_state, connections, .. } = &mut *self.step.engine;
        let server = connections.server(server)?;
        Some(Pipeline { now: self.step.now, server, core_state, ports: self.step.ports })
    }

    /// Gives a client's server the client's settings, unless the server has them.
    pub(crate) fn sync_settings(&mut self, client: Conn, server: Conn) {
        let mut link = self.linked(client, server);
        sync_settings_if_needed(client, &mut link.pipe, &mut link.client.session);
    }

    /// Tells clients that the reply for which they wait is there, or will not come.
    pub(crate) fn wake_for_reply(&mut self, waiters: Vec<Waiter>) {
        for waiter in waiters {
            let Waiter { core, request, .. } = waiter;
            self.step.flow().tell_fetched(Core(core), conn_of(&waiter), ClientSerial(request));
        }
    }

    /// Reads a pool's clients again that have waited for news of their normalized queries.
    #[cold]
    pub(crate) fn read_woken(&mut self, pool: PoolId) {
        let Some(pool) = self.step.engine.core_state.find_pool(pool) else { return };
        for conn in pool.protocol.take_woken() {
            let await_replies = self
                .step
                .engine
                .connections
                .client(conn)
                .is_some_and(|c| c.waiting_for() == WaitingFor::Replies);
            if await_replies {
                self.step.engine.connections.unblock(conn);
            }
        }
    }

    /// Reads the clients of a pool again that wait for news of their normalized queries, since the
    /// job or the analysis that was to wake them may have been lost.
    pub(crate) fn wake_clients(&mut self, pool: PoolId) {
        self.step.engine.core_state.pool(pool).protocol.wake();
        self.read_woken(pool);
    }
}

/// A client that logs in, within a step of the pool's engine.
pub(crate) struct ClientLogin<'s, 'a> {
    pub(crate) step: &'s mut PoolStep<'a, Pg>,
    pub(crate) conn: Conn,
}

/// A client, with everything that its requests may touch while it has no server.
pub(crate) struct Asking<'a> {
    pub(crate) now: Now,
    pub(crate) client: &'a mut Client,
    pub(crate) core_state: &'a mut CoreState,
    pub(crate) ports: &'a mut Ports,
}

impl<'a> Asking<'a> {
    /// Borrows a client; `None` if the client is gone.
    #[inline]
    pub(crate) fn of(step: &'a mut PoolStep<'_, Pg>, conn: Conn) -> Option<Self> {
        let Engine { connections, core_state, .. } = &mut *step.engine;
        let client = connections.client(conn)?;
        Some(Self { now: step.now, client, core_state, ports: step.ports })
    }
}
