//! The hot path of a step: a client's input goes to its server, the replies come back, and the
//! server is free again.

use std::ops::ControlFlow;

use refrain_config::PoolMode;
use refrain_pg_wire::back::Status;
use refrain_pool::Conn;
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;

use crate::engine::{Asking, Step};
use crate::pipeline::outstanding::Copying;
use crate::relay::learn::read_settings;
use crate::relay::link::{Link, Stop};
use crate::relay::look::look;
use crate::relay::reader::{Halt, Reader};
use crate::state::options::shares_reads;
use crate::state::parts::Engine;
use crate::step::answer::{Answered, Left, looks_at_requests};
use crate::step::local::{Need, serve_alone};
use crate::step::replication::Relayed;
use crate::step::shutdown::last_segment;
use crate::step::visit::{ask_if_due, may_visit, visit};

impl Step<'_, '_> {
    /// Serves the client's next segment from the cache, or else by a server. Returns the number of
    /// bytes handled, and whether to go on behind them.
    #[inline(never)]
    fn serve_by_rule(&mut self, conn: Conn, input: &[u8]) -> ControlFlow<usize, usize> {
        let Some(mut asking) = Asking::of(self.step, conn) else { return ControlFlow::Break(0) };
        let (answered, left) = asking.answer_by_rule(input);
        match left {
            Left::Nothing => {}
            Left::Fetch(pool) => self.queue_what_is_due(pool),
            Left::Wake(waiters) => self.wake_for_reply(waiters),
            Left::TryLogin(pool) => self.step.supply().try_login(pool),
        }
        match answered {
            Answered::Now(used) => ControlFlow::Continue(used),
            Answered::Later => ControlFlow::Break(0),
            Answered::No if may_visit(self, conn) => self.serve_away(conn, input),
            Answered::No if self.share(conn, input) => ControlFlow::Break(input.len()),
            Answered::No if self.step.lend(conn).is_some() => ControlFlow::Continue(0),
            Answered::No => ControlFlow::Break(0),
        }
    }

    /// Serves the client's next segment by a standby, or else by the primary.
    #[cold]
    fn serve_away(&mut self, conn: Conn, input: &[u8]) -> ControlFlow<usize, usize> {
        let is_sent = visit(self, conn, input) || self.share(conn, input);
        let is_lent = !is_sent && self.step.lend(conn).is_some();
        // A client that needs a server comes before the job.
        ask_if_due(self, conn);
        match (is_sent, is_lent) {
            (true, _) => ControlFlow::Break(input.len()),
            (false, true) => ControlFlow::Continue(0),
            (false, false) => ControlFlow::Break(0),
        }
    }

    /// Serves the next message of a client without a server, or has one lent to the client. Returns
    /// the number of bytes handled, and whether to go on behind them.
    #[inline(always)]
    fn serve_unlinked(&mut self, conn: Conn, input: &[u8]) -> ControlFlow<usize, usize> {
        if self.step.reads_slowly(conn) {
            return ControlFlow::Break(0);
        }
        // The client has sent no more.
        if input.is_empty() {
            self.leave_if_ended(conn);
            return ControlFlow::Break(0);
        }
        let Engine { connections, core_state, .. } = &mut *self.step.engine;
        let Some(client) = connections.client(conn) else { return ControlFlow::Break(0) };
        match serve_alone(client, core_state, self.step.ports, input) {
            Need::Used(used) => ControlFlow::Continue(used),
            Need::More => {
                self.leave_if_ended(conn);
                ControlFlow::Break(0)
            }
            Need::End(cause) => {
                self.step.end_client(conn, cause);
                ControlFlow::Continue(0)
            }
            Need::Server if looks_at_requests(client, core_state) => {
                self.serve_by_rule(conn, input)
            }
            Need::Server if self.share(conn, input) => ControlFlow::Break(input.len()),
            Need::Server if self.step.lend(conn).is_some() => ControlFlow::Continue(0),
            Need::Server => ControlFlow::Break(0),
        }
    }

    /// Handles as much of a client's input as possible. Returns the number of bytes handled.
    #[inline]
    pub(crate) fn serve_input(&mut self, conn: Conn, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(client) = self.step.engine.connections.client(conn) else {
                return input.len();
            };
            let Some(server) = client.link() else {
                match self.serve_unlinked(conn, &input[at..]) {
                    ControlFlow::Continue(used) => at += used,
                    ControlFlow::Break(used) => return at + used,
                }
                continue;
            };
            let mut rest = &input[at..];
            let mut link = self.linked(conn, server);
            if link.pipe.server.session.relay.is_some() {
                return at + Relayed { step: self.step, client: conn, server }.requests(rest);
            }
            if link.pipe.core_state.is_shutting_down() {
                let outstanding = &link.pipe.server.session.outstanding;
                let Some(last) = last_segment(link.client, outstanding, rest) else {
                    self.await_replies(conn, server);
                    return at;
                };
                rest = last;
            }
            if link.pipe.server.is_open() {
                self.step.sharing().close_line(server);
                link = self.linked(conn, server);
            }
            let quiet = link.pipe.server.session.outstanding.quiescent().is_some();
            let (used, stop) = link.requests(rest);
            at += used;
            if link.pipe.core_state.database_drain.has_news() {
                self.step.drain_everywhere();
                continue;
            }
            match stop {
                Stop::More => {
                    if link.pipe.server.session.outstanding.quiescent().is_some() {
                        // Refrain has answered all messages itself: no ReadyForQuery comes that
                        // would free the server.
                        self.after_ready(conn, server);
                    } else if link.client.cancel_wanted {
                        self.cancel_late(conn, server);
                    } else if quiet && used == rest.len() && shares_reads(link.pipe.pool()) {
                        self.open_line(conn, server, rest);
                    }
                    self.step.push_back_on_client(conn, server);
                    if used == rest.len() && at < input.len() {
                        continue;
                    }
                    self.leave_if_ended(conn);
                    return at;
                }
                Stop::Replies => {
                    self.await_replies(conn, server);
                    return at;
                }
                Stop::Job => {
                    self.lend_to_job(conn, server);
                    return at;
                }
                // The replies to the client's earlier messages come first; then the message is read
                // again.
                Stop::End(_) if link.pipe.server.session.outstanding.will_answer() => {
                    self.await_replies(conn, server);
                    return at;
                }
                Stop::End(cause) => self.step.end_client(conn, cause),
            }
        }
    }

    /// Handles replies for a client. Returns the number of bytes handled, and whether to go on with
    /// the rest.
    // Within its caller, the reader's loop has too few registers.
    #[inline(never)]
    pub(crate) fn client_replies(
        &mut self,
        client: Conn,
        server: Conn,
        input: &[u8],
    ) -> (usize, bool) {
        let mut link = self.linked(client, server);
        let oldest = link.pipe.server.session.outstanding.oldest();
        let kept = link.kept_from();
        let asked = link.client.session.suspicion.is_asked();
        let (used, halt) = link.replies(input);
        if let Some(from) = kept {
            link.note_origin();
            self.keep_reply(client, from, halt == Halt::Ready);
            link = self.linked(client, server);
        }
        let pool = link.pipe.pool();
        pool.counters.pool.bytes_sent += used as u64;
        let (pool, wakes) = (pool.shared.id, pool.protocol.has_woken());
        let outstanding = &link.pipe.server.session.outstanding;
        // Amid a COPY from the client no reply comes before its data. A client that waits has to be
        // read again: its next message is data, or ends the session.
        let copies = outstanding.copying() == Copying::In;
        let news = outstanding.oldest() != oldest || halt != Halt::More || copies;
        let waits = link.client.waiting_for() == WaitingFor::Replies && news;
        // The client's next message waits for this very server. It goes first; the server may be
        // free after that. But if it only had to wait for what the client's last call has left, it
        // gets in line: a client with one such call after the other would never let others in. In a
        // shutdown there is no next. A server that has to leave, because it became read-only for
        // example, would refuse it.
        let stays = || {
            let looked = asked && !link.client.session.suspicion.is_asked();
            let ends = link.pipe.core_state.is_shutting_down();
            !looked && !ends && !link.pipe.server.is_close_needed()
        };
        let goes_on =
            waits && link.pipe.server.session.outstanding.quiescent().is_some() && stays();
        if waits {
            link.client.cancel_wanted &= !goes_on;
            self.step.engine.connections.unblock(client);
        }
        if wakes {
            self.read_woken(pool);
        }
        match halt {
            Halt::More => {
                let link = self.linked(client, server);
                let oldest = link.pipe.server.session.outstanding.front();
                // Of a query of Refrain's own, which stands in front, the client gets nothing.
                if oldest.is_none_or(|oldest| oldest.action.is_for_client()) {
                    link.client.session.read_bytes += used as u64;
                }
                self.step.push_back_on_server(client, server);
                return (used, false);
            }
            Halt::Ready if goes_on => {}
            Halt::Ready => self.after_ready(client, server),
            Halt::Fatal => self.server_told_client(client, server),
            Halt::Lost => self.server_broken(server, DisconnectReason::ServerGone),
            Halt::Refused => self.refuse_login(client, server),
            Halt::Unused => self.leave_unused(client, server),
            Halt::Failed => self.fail_unused(client, server),
            Halt::Elsewhere => self.step.sharing().give_turn_up(client, server),
            Halt::Intruded => self.step.end_client(client, DisconnectReason::Synchronization),
            Halt::Broken => self.server_broken(server, DisconnectReason::ServerProtocol),
            Halt::TooLong => self.server_broken(server, DisconnectReason::MessageTooLong),
        }
        (used, true)
    }

    /// Keeps what a client has got of a reply that is to be kept: all of its output behind `from`.
    #[cold]
    fn keep_reply(&mut self, conn: Conn, from: usize, ready: bool) {
        let asking = Asking::of(self.step, conn);
        let waiters = asking.map(|mut asking| asking.keep_reply(from, ready));
        self.wake_for_reply(waiters.unwrap_or_default());
    }

    /// Does what was put off until the server has answered a request: cancels the client's next
    /// one, and has normalized queries verified.
    #[cold]
    fn catch_up(&mut self, client: Conn, server: Conn) {
        let link = self.linked(client, server);
        let id = link.client.pool();
        let wanted = std::mem::take(&mut link.client.cancel_wanted);
        // If others stand behind the client, its own request is over: the server has theirs now.
        if wanted && link.pipe.server.requests_behind() == 0 {
            self.cancel_request_of(client, server);
        }
        if self.step.engine.core_state.pool_in_use(id).protocol.normalized_queries.has_due() {
            self.queue_what_is_due(id);
        }
    }

    /// Decides whether a server is free after its ReadyForQuery, and what has to happen before.
    #[inline]
    pub(crate) fn after_ready(&mut self, client: Conn, server: Conn) {
        let mut link = self.linked(client, server);
        if link.client.cancel_wanted || link.pipe.pool().protocol.normalized_queries.has_due() {
            self.catch_up(client, server);
            link = self.linked(client, server);
        }
        let Link { pipe, client: c } = link;
        if pipe.server.requests_behind() > 0 {
            self.step.transaction_over(client, server, false);
            return;
        }
        let (pinned, partial) = (!c.session.pins.is_empty(), c.inbox.rest > 0);
        let (hidden, looks) = (c.session.settings.are_hidden(), c.session.suspicion.is_due());
        let checking = c.session.login.is_checking();
        let pool = pipe.core_state.pool_in_use(pipe.server.pool());
        let (mode, removed) = (pool.settings.options.pool_mode, pool.is_removed());
        let outstanding = &pipe.server.session.outstanding;
        if outstanding.quiescent().is_none() {
            // A statement pool does not allow transaction blocks.
            let block = mode == PoolMode::Statement && outstanding.status() != Status::Idle;
            if block && outstanding.is_empty() && !checking {
                self.step.end_client(client, DisconnectReason::TransactionInStatementMode);
            }
            return;
        }
        self.step.drained_database(client);
        if removed || self.step.engine.core_state.is_shutting_down() {
            // Nothing is worth asking any more: the session ends.
            self.step.transaction_over(client, server, false);
        } else if checking {
            self.step.engine.connections.read_on(client);
        } else if looks && !partial {
            // The client has called code that may have changed the session: ask before another
            // client gets the server.
            let mut link = self.linked(client, server);
            look(&mut link.pipe, &mut link.client.session);
        } else if hidden && !partial && !pinned && mode != PoolMode::Session {
            // The client has changed settings that PostgreSQL does not report: ask, so as to sync
            // them at its next server.
            let mut link = self.linked(client, server);
            read_settings(&mut link.pipe, &link.client.session.settings);
        } else if self.step.transaction_over(client, server, partial || pinned)
            && !partial
            && !pinned
        {
            self.lend_between(client, server);
        }
    }
}
