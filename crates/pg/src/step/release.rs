//! The ends of what a server did for a client: cancel requests, clients that have left, and servers
//! that have broken the protocol.
//!
//! A server goes back to its pool with a [`crate::pipeline::outstanding::Quiescent`] proof or not
//! at all. If its client has left, the server is brought back to order first, or closed.

use refrain_config::PoolMode;
use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_pool::Conn;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::protocol::Fitness;

use crate::engine::Step;
use crate::pipeline::outstanding::{
    Copying, OutstandingRequest, Purpose, ReplyAction, RequestKind,
};
use crate::pipeline::purposes::OwnCancel;
use crate::relay::pipe::Pipeline;
use crate::settings::guard;
use crate::state::parts::{Client, intern_settings};
use crate::state::replication::Relay;

impl Step<'_, '_> {
    /// Cancels what a server does for its client. If the server first does something for Refrain,
    /// the cancel waits for the client's own request. If just Refrain's reading of settings is
    /// left, there is nothing to cancel.
    pub(crate) fn cancel_request_of(&mut self, client: Conn, server: Conn) {
        let Some(s) = self.step.engine.connections.server(server) else { return };
        if s.session.relay.is_some_and(Relay::is_under_way) {
            return self.step.cancel_server(server);
        }
        let Some(oldest) = s.session.outstanding.front() else { return };
        match oldest.action.own().map_or(OwnCancel::Sent, |own| own.cancel) {
            OwnCancel::Sent => self.step.cancel_server(server),
            OwnCancel::Later => {
                if let Some(client) = self.step.engine.connections.client(client) {
                    client.cancel_wanted = true;
                }
            }
            OwnCancel::Dropped => {}
        }
    }

    /// Cancels a request that has just been sent: the cancel came while its first server did
    /// something for Refrain in front of it, and the request has moved.
    #[cold]
    pub(crate) fn cancel_late(&mut self, client: Conn, server: Conn) {
        if let Some(client) = self.step.engine.connections.client(client) {
            client.cancel_wanted = false;
        }
        self.cancel_request_of(client, server);
    }
}

impl Pipeline<'_> {
    /// Takes a server from a client that has left. If requests are still outstanding, or the last
    /// segment has no Sync, the server has to finish first.
    pub(crate) fn take_back(&mut self, client: &Client) -> Fitness {
        let mode = self.core_state.pool(client.pool()).settings.options.pool_mode;
        let conn = self.server.conn();
        let s = &mut self.server.session;
        if s.relay.is_some() {
            return Fitness::Unfit;
        }
        // Requests still outstanding may change the session, and Refrain does not follow their
        // completions any more.
        let left = client.session.settings.are_to_be_read()
            || client.session.suspicion.is_due()
            || !client.session.pins.is_empty()
            || !s.outstanding.is_empty();
        if mode == PoolMode::Session || left {
            s.soil();
        }
        if client.session.read.is_some() {
            // Behind a read the server may have those of other clients.
            s.front.end();
        }
        s.settings.may_stick(!s.outstanding.is_empty());
        // Amid a COPY a server cannot be brought back to order (E75).
        if s.outstanding.copying() != Copying::No {
            return Fitness::Unfit;
        }
        if s.outstanding.is_open() {
            // The client left without a Sync: PostgreSQL would have rolled back. A Sync alone would
            // commit, so a Describe of a statement that does not exist fails first.
            let action = ReplyAction::Skip(Purpose::Rollback);
            let out = self.ports.out(conn);
            if !client.session.reading.is_skipping() {
                let name = self.core_state.shared.protocol.registry.no_statement();
                write::describe_statement(out, &name);
                s.outstanding.push(OutstandingRequest::new(RequestKind::DescribeStatement, action));
            }
            write::sync(out);
            s.outstanding.push(OutstandingRequest::new(RequestKind::Sync, action));
        }
        if s.outstanding.is_empty() { Fitness::Fit } else { Fitness::Busy }
    }

    /// Makes a server without a client fit for the next one, if nothing is outstanding: rolls an
    /// open transaction back, or resets the session if a client left anything in it.
    pub(crate) fn make_fit(&mut self) -> Fitness {
        let (core_state, s) = (&mut *self.core_state, &mut *self.server);
        s.session.front.end();
        let unfit = s.session.outstanding.status() != Status::Idle || s.session.is_dirty();
        if unfit && core_state.is_draining(s.pool(), self.now) {
            return Fitness::Unfit;
        }
        let (text, purpose) = if s.session.outstanding.status() != Status::Idle {
            s.session.statements.forget_unnamed();
            (&b"ROLLBACK"[..], Purpose::Rollback)
        } else if s.session.is_dirty() && !s.is_close_needed() {
            let pool = core_state.pool(s.pool());
            // A reset would undo what the query has set, such as a role.
            if pool.settings.server.connect_query.is_some() {
                return Fitness::Unfit;
            }
            let options = &pool.settings.options;
            let own =
                options.pool_mode == PoolMode::Session && !options.server_reset_query.is_empty();
            pool.counters.pool.resets += 1;
            let text = if own { options.server_reset_query.as_bytes() } else { b"DISCARD ALL" };
            // DISCARD ALL takes a snapshot, for which it may have to wait.
            if !own && guard::may_wait(s.session.settings.current()) {
                write::query(self.ports.out(s.conn()), guard::READ_COMMITTED_LATER);
                let action = ReplyAction::Skip(Purpose::Guard);
                s.session.outstanding.push(OutstandingRequest::new(RequestKind::Query, action));
            }
            (text, Purpose::Reset)
        } else {
            return Fitness::Fit;
        };
        write::query(self.ports.out(s.conn()), text);
        let action = ReplyAction::Skip(purpose);
        s.session.outstanding.push(OutstandingRequest::new(RequestKind::Query, action));
        Fitness::Busy
    }

    /// Takes a setting back that has PostgreSQL end an idle server: it is for the client that had
    /// the server, which has a timeout of its own.
    pub(crate) fn drop_idle_timeout(&mut self) {
        let settings = &mut self.server.session.settings;
        let text = settings.drop_idle_timeout(|edit| intern_settings(self.core_state, edit));
        self.server.session.statements.forget_unnamed();
        write::query(self.out(), &text);
        let action = ReplyAction::Skip(Purpose::SyncSettings);
        self.server.session.outstanding.push(OutstandingRequest::new(RequestKind::Query, action));
    }

    /// Asks an idle server whether it is there.
    pub(crate) fn ask_whether_there(&mut self) {
        let options = &self.core_state.pool(self.server.pool()).settings.options;
        let text = options.server_check_query.as_deref().unwrap_or_default();
        self.server.session.statements.forget_unnamed();
        write::query(self.ports.out(self.server.conn()), text.as_bytes());
        let action = ReplyAction::Skip(Purpose::Ask);
        self.server.session.outstanding.push(OutstandingRequest::new(RequestKind::Query, action));
    }
}

impl Step<'_, '_> {
    /// Makes a client wait for replies, and sends a Flush if the server may be holding them back
    /// (E28).
    pub(crate) fn await_replies(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        client.await_replies();
        let Some(s) = self.step.engine.connections.server(server) else { return };
        if s.session.outstanding.flush() {
            write::bare(self.step.ports.out(server), front::FLUSH);
        }
    }

    /// Drops a server that has broken the protocol or ends its session, and ends its client's
    /// session. A broken protocol leaves a line in the log.
    pub(crate) fn server_broken(&mut self, conn: Conn, cause: DisconnectReason) {
        let Some(server) = self.step.engine.connections.server(conn) else { return };
        if cause == DisconnectReason::ServerProtocol {
            let left = if server.client().is_some() { "" } else { "; its client had left" };
            let story = server.session.outstanding.story();
            let words = format!("process {}: {story}{left}", server.pid());
            let id = server.pool();
            self.step.engine.core_state.pool(id).counters.pool.unexpected_messages += 1;
            self.step.log().note_pool(id, Level::Error, cause, words);
        }
        self.step.end_server(conn, cause);
    }

    /// Ends a login after a server has refused its startup parameters. The client has got the
    /// error; the server is closed.
    pub(crate) fn refuse_login(&mut self, client: Conn, server: Conn) {
        self.step.part(client, server);
        self.step.remove_client(client, false);
        self.step.close_server(server);
    }

    /// Ends both sessions after a FATAL error of the server, which the client has got.
    pub(crate) fn server_told_client(&mut self, client: Conn, server: Conn) {
        self.step.part(client, server);
        self.step.log().note_client(
            client,
            Level::Warn,
            DisconnectReason::ServerGone,
            String::new(),
        );
        self.step.remove_client(client, false);
        self.server_broken(server, DisconnectReason::ServerGone);
    }
}
