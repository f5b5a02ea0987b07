//! Lending servers: which client gets one, when the server comes back, and in what state.
//!
//! A server goes back to its pool with a [`crate::pipeline::outstanding::Quiescent`] proof or not
//! at all. Before that, Refrain may have to ask it which settings the client left, or reset it. A
//! cancel request under way holds it back: it must not hit the next client (E81).
//!
//! One limit counts for all cores. A core whose client waits asks the other cores for an idle
//! server, and connects one itself if the limit allows.

use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::{Conn, Core, PoolId};
use crate::pipeline::outstanding::{
    Copying, OutstandingRequest, Purpose, Quiescent, ReplyAction, RequestKind, Span,
};
use crate::state::client::{Client, ClientState, WaitingFor};
use crate::state::connections::Connection;
use crate::state::event::Action;
use crate::state::server::ServerState;
use crate::statements::of_server::Unnamed;
use refrain_config::PoolMode;
use refrain_wire::back::Status;
use refrain_wire::write;

/// Microseconds that another core's client must have waited longer than the first client here to
/// get a free server before it. Handing a server over costs more than a transaction.
const PATIENCE_US: u64 = 5_000;

impl Step<'_> {
    /// Gives a client a server, or queues the client until there is one. True if the client has a
    /// server now.
    #[inline]
    pub(crate) fn lend(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let id = client.pool;
        let pool = self.engine.core_state.pool(id);
        if pool.waiting() == 0
            && let Some(server) = pool.take()
        {
            self.link(conn, server);
            return true;
        }
        let full = pool.settings.options.max_waiting.is_some_and(|m| pool.waiting() >= m as usize);
        if full {
            self.end_client(conn, DisconnectReason::TooManyWaiting);
            return false;
        }
        pool.wait(conn);
        client.waiting_for = WaitingFor::Server;
        client.waiting = self.now;
        self.grow(id);
        false
    }

    /// Lends an idle server to a client, and syncs the server's settings in front of the client's
    /// first message.
    #[inline]
    fn link(&mut self, conn: Conn, server: Conn) {
        let mut link = self.linked(conn, server);
        link.server.state = ServerState::Lent(conn);
        link.server.since = link.now;
        link.server.worked = false;
        link.client.link = Some(server);
        // Segments are numbered for each server: those of the last one mean nothing at this one.
        link.client.session.changed = Span::default();
        link.client.session.parsed = Span::default();
        link.client.session.unnamed_changed = 0;
        link.client.session.barrier = None;
        if !link.client.session.managed {
            link.forget_statements();
        }
        link.pool().counters.server_assignments += 1;
        link.sync_settings_if_needed();
    }

    /// Decides whether a server is free after its ReadyForQuery, and what has to happen before.
    #[inline]
    pub(crate) fn after_ready(&mut self, client: Conn, server: Conn) {
        let Some(c) = self.engine.connections.client(client) else { return };
        if std::mem::take(&mut c.cancel_wanted) {
            self.cancel_request_of(client, server);
        }
        let Some(c) = self.engine.connections.client(client) else { return };
        let (pinned, partial) = (!c.session.pins.is_empty(), c.inbox.rest > 0);
        let read_settings = c.session.read_settings || c.session.knowledge.is_hidden();
        let (looks, asked) = (c.session.suspicion.looks, c.session.suspicion.asked.is_some());
        let checking = matches!(c.session.state, ClientState::Checking(..));
        let pool = self.engine.core_state.pool(c.pool);
        let (mode, removed) = (pool.settings.options.pool_mode, pool.removed);
        let Some(s) = self.engine.connections.server(server) else { return };
        if s.session.outstanding.quiescent().is_none() {
            // A statement pool does not allow transaction blocks.
            let block =
                mode == PoolMode::Statement && s.session.outstanding.status() != Status::Idle;
            if block && s.session.outstanding.is_empty() && !checking {
                self.end_client(client, DisconnectReason::TransactionInStatementMode);
            }
            return;
        }
        self.drained_database(client);
        if removed {
            self.end_client(client, DisconnectReason::Removed);
        } else if checking {
            self.engine.runnable.push_back(client);
        } else if looks && !partial && !asked {
            // The client has called code that may have changed the session: ask before another
            // client gets the server.
            self.linked(client, server).look();
        } else if partial || pinned || mode == PoolMode::Session {
            self.count_transaction(server);
            if mode == PoolMode::Session && !partial && !pinned {
                self.lend_between(client, server);
            }
        } else if read_settings {
            // The client has changed settings that PostgreSQL does not report: ask, so as to sync
            // them at its next server.
            self.linked(client, server).read_settings();
        } else {
            self.unlink(client, server);
        }
    }

    /// Counts a transaction, and the time that it took.
    fn count_transaction(&mut self, server: Conn) {
        let Some(server) = self.engine.connections.server(server) else { return };
        let took = self.now.since(server.since);
        server.since = self.now;
        let counters = &mut self.engine.core_state.pool(server.pool).counters;
        counters.xacts += 1;
        counters.xact_time.count(took);
    }

    /// Takes a quiescent server from its client, and frees it.
    #[inline]
    pub(crate) fn unlink(&mut self, client: Conn, server: Conn) {
        self.count_transaction(server);
        let (c, s) = self.engine.connections.pair(client, server);
        c.link = None;
        c.cancel_wanted = false;
        s.state = ServerState::Resetting;
        // Either may have been paused because the other reads slowly. They have nothing to do with
        // each other any more.
        if c.paused {
            self.engine.runnable.push_back(client);
        }
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        self.free(server);
    }

    /// Takes a server from a client that has left.
    pub(crate) fn take_back(&mut self, server: Conn, client: &Client) {
        let mode = self.engine.core_state.pool(client.pool).settings.options.pool_mode;
        let Some(s) = self.engine.connections.server(server) else { return };
        // The server does a job for Refrain. It just does not go back to the client afterwards.
        if let ServerState::Job(job) = &mut s.state {
            job.back = None;
            s.session.dirty |= mode == PoolMode::Session;
            return;
        }
        s.state = ServerState::Resetting;
        s.since = self.now;
        // Requests still outstanding may change the session, and Refrain does not follow their
        // completions any more.
        let left = client.session.read_settings
            || client.session.suspicion.looks
            || !client.session.pins.is_empty()
            || !s.session.outstanding.is_empty();
        s.session.dirty |= mode == PoolMode::Session || left;
        s.session.stuck |= !s.session.outstanding.is_empty();
        let removed = self.engine.core_state.pool(client.pool).removed;
        let leaves = removed || self.engine.core_state.is_draining(client.pool, self.now);
        // A server that waits for the rest of a message, or amid a COPY, cannot be brought back to
        // order (E75).
        if client.is_half_sent() || s.session.outstanding.copying() != Copying::No || leaves {
            return self.close_server(server);
        }
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        if s.session.outstanding.is_open() {
            // The client left without a Sync: PostgreSQL would have rolled back. A Sync alone would
            // commit, so a Describe of a statement that does not exist fails first.
            let action = ReplyAction::Skip(Purpose::Rollback);
            let out = self.ports.out(server);
            if !client.session.skipping {
                let name = self.engine.core_state.shared.registry.no_statement();
                write::describe_statement(out, &name);
                s.session
                    .outstanding
                    .push(OutstandingRequest::new(RequestKind::DescribeStatement, action));
            }
            write::sync(out);
            s.session.outstanding.push(OutstandingRequest::new(RequestKind::Sync, action));
        }
        if s.session.outstanding.is_empty() {
            self.make_fit(server);
        }
    }

    /// Makes a server without a client fit for the next one, if nothing is outstanding: rolls an
    /// open transaction back, resets the session if a client left anything in it, or frees the
    /// server.
    pub(crate) fn make_fit(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.session.run = None;
        let unfit = s.session.outstanding.status() != Status::Idle || s.session.dirty;
        if unfit && self.engine.core_state.is_draining(s.pool, self.now) {
            return self.close_server(server);
        }
        if s.session.outstanding.status() != Status::Idle {
            write::query(self.ports.out(server), b"ROLLBACK");
            s.session.outstanding.push(OutstandingRequest::new(
                RequestKind::Query,
                ReplyAction::Skip(Purpose::Rollback),
            ));
            s.session.statements.unnamed = Unnamed::NONE;
        } else if s.session.dirty && !s.close_needed {
            let pool = self.engine.core_state.pool(s.pool);
            let options = &pool.settings.options;
            let own =
                options.pool_mode == PoolMode::Session && !options.server_reset_query.is_empty();
            let text = if own { options.server_reset_query.as_bytes() } else { b"DISCARD ALL" };
            pool.counters.resets += 1;
            write::query(self.ports.out(server), text);
            s.session.outstanding.push(OutstandingRequest::new(
                RequestKind::Query,
                ReplyAction::Skip(Purpose::Reset),
            ));
        } else {
            self.free(server);
        }
    }

    /// Gives a server that nobody holds to the next in line: a client here, another core, a job, or
    /// the pool. Closes it if it is not to be used again.
    #[inline]
    pub(crate) fn free(&mut self, server: Conn) {
        let now = self.now;
        let Some(s) = self.engine.connections.server(server) else { return };
        // PostgreSQL does not say which query a cancel request hits. One under way could hit the
        // next client (E81).
        if s.cancels > 0 {
            s.state = ServerState::Cancelling;
            return;
        }
        let Some(proof) = s.session.outstanding.quiescent() else {
            return self.close_server(server);
        };
        let leaves =
            self.engine.core_state.draining || self.engine.core_state.is_draining(s.pool, now);
        let pool = self.engine.core_state.pool(s.pool);
        let unwanted = pool.paused || pool.removed || leaves && !pool.is_wanted();
        if s.close_needed || s.reconnects != pool.shared.reconnects() || s.expires < now || unwanted
        {
            return self.close_server(server);
        }
        // A client that waits gets the server before it does a second job.
        let busy = leaves || s.worked && pool.is_wanted();
        if !busy && self.has_job(server) && self.begin_job(server, None) {
            return;
        }
        self.hand_out(server, proof);
    }

    /// Gives a free server to another core, to the first client that waits here, or to the pool.
    fn hand_out(&mut self, server: Conn, proof: Quiescent) {
        let now = self.now;
        let Some(s) = self.engine.connections.server(server) else { return };
        let pool = self.engine.core_state.pool(s.pool);
        s.state = ServerState::Idle;
        s.since = now;
        let first = pool.first_waiting();
        if let Some(core) = self.next_core(s_pool(&self.engine.connections, server), first)
            && self.ports.queued(server) == 0
        {
            return self.hand_over(server, core);
        }
        let pool_id = s_pool(&self.engine.connections, server);
        let pool = self.engine.core_state.pool(pool_id);
        match pool.next_waiting() {
            Some(client) => self.serve_waiting(client, server),
            None => pool.put_back(server, proof),
        }
    }

    /// Lends a server to a client that has waited, and reads the client on.
    fn serve_waiting(&mut self, client: Conn, server: Conn) {
        let now = self.now;
        if let Some(c) = self.engine.connections.client(client) {
            let waited = now.since(c.waiting);
            self.engine.core_state.pool(c.pool).counters.wait_time.count(waited);
        }
        self.link(client, server);
        self.unblock(client);
    }

    /// Returns the core that gets a free server before the first client here, if any.
    #[inline]
    pub(crate) fn next_core(&mut self, pool: PoolId, first: Option<Conn>) -> Option<Core> {
        let asking = &self.engine.core_state.pool(pool).asking;
        let (core, since) = *asking.iter().min_by_key(|(_, since)| *since)?;
        let ours = first.and_then(|client| Some(self.engine.connections.client(client)?.waiting));
        let theirs_first = ours.is_none_or(|ours| since.0 + PATIENCE_US < ours.0);
        theirs_first.then_some(core)
    }
}

/// Returns the pool of a server.
fn s_pool(connections: &crate::state::connections::Connections, server: Conn) -> PoolId {
    match connections.get(server) {
        Connection::Server(server) => server.pool,
        Connection::Client(_) | Connection::Cancel(_) | Connection::Free => PoolId::NONE,
    }
}
