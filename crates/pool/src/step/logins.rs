//! Logins to servers that have succeeded or failed. After a failure the pool tries again later, and
//! the sessions of the clients that wait end, unless they wait on. A client that waits for a server
//! has none.

use std::borrow::Cow;
use std::sync::Arc;

use refrain_config::{Host, Unavailable};

use crate::connections::Connection;
use crate::disconnect::{ConnectFailure, DisconnectReason, FailureKind};
use crate::engine::Supply;
use crate::event::{Action, Level, News};
use crate::hosts::{Attempt, HostPlace};
use crate::ids::{Conn, Core, PoolId};
use crate::message::CoreMessage;
use crate::pool_shared::PoolShared;
use crate::protocol::Protocol;
use crate::refusal::Refusal;
use crate::server::{Server, ServerState};
use crate::step::leave::forget_client;
use crate::step::notes::ClientNote;
use crate::waiters::Waiter;

impl<P: Protocol> Supply<'_, P> {
    /// Takes in a server that has logged in, which the caller frees. `news` is true if the other
    /// cores have to know of the login, even if the pool has another server. Returns the server's
    /// pool, and the parts of pools that waited for its host.
    pub(crate) fn logged_in(
        &mut self,
        conn: Conn,
        news: bool,
    ) -> Option<(PoolId, Vec<(PoolId, Core)>)> {
        let jitter: [u8; 1] = self.core_state.random();
        let server = self.connections.server(conn)?;
        server.state = ServerState::Resetting;
        server.connected = self.now;
        let id = server.pool;
        let pool = self.core_state.pool(id);
        let options = &pool.settings.options;
        if let Some(lifetime) = options.server_lifetime {
            let shorter = options.server_lifetime_jitter.of(lifetime) * u32::from(jitter[0]) / 256;
            server.expires = self.now.after(lifetime.saturating_sub(shorter));
        }
        pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
        pool.slow -= u32::from(std::mem::take(&mut server.is_slow));
        pool.counters.pool.server_logins += 1;
        pool.shared.refusal.forget();
        self.core_state.shared.full_hosts.had_room(&server.host);
        let pool = self.core_state.pool(id);
        if pool.shared.server_lives() || news {
            for core in self.core_state.others() {
                let message = CoreMessage::ServerReached { pool: id };
                self.ports.act(Action::Tell { core, message });
            }
        }
        let (host, place, pid) = (server.host.clone(), server.place.clone(), server.pid);
        let level = self.ports.session_notes().login_level();
        if self.ports.notes(level) {
            let detail = format!("{host}, process {pid}");
            self.log().note_host(id, &host, level, News::ServerLogin.key(), detail);
        }
        self.host_answers(id, &host);
        Some((id, place.map_or_else(Vec::new, |place| self.host_found(conn, &place))))
    }

    /// Notes that a server at one of several hosts is logged in. It is not lent if the host's state
    /// is another one by now. Returns the parts of pools that waited for a host.
    fn host_found(&mut self, conn: Conn, place: &HostPlace) -> Vec<(PoolId, Core)> {
        place.succeeds().unwrap_or_else(|| {
            if let Some(server) = self.connections.server(conn) {
                server.close_needed = true;
            }
            Vec::new()
        })
    }

    /// Has the parts of pools go on that waited for a host.
    pub(crate) fn tell_of_host(&mut self, waiting: Vec<(PoolId, Core)>) {
        let own = self.core_state.core;
        for (pool, core) in waiting {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: CoreMessage::Room { pool } });
            }
        }
    }

    /// Notes that a login takes so long that another host is tried beside it.
    #[cold]
    pub(crate) fn note_slow(&mut self, conn: Conn) {
        let Some(server) = self.connections.server(conn) else { return };
        if !std::mem::replace(&mut server.is_slow, true) {
            self.core_state.pool(server.pool).slow += 1;
        }
    }

    /// Removes a server that could not be connected or logged in to, and tries again later.
    /// Returns whether the clients that wait get an error ([`Self::fail_waiting`]): not if the pool
    /// has another server, or if they wait on.
    pub fn drop_failed(&mut self, conn: Conn, failure: &ConnectFailure<'_>) -> bool {
        let Connection::Server(server) = self.connections.take(conn) else { return false };
        if failure.kind == FailureKind::Unsuited {
            P::goodbye(self.ports.out(conn));
        }
        self.ports.close(conn);
        let (now, id) = (self.now, server.pool);
        let ConnectFailure { cause, why, kind, refusal } = *failure;
        let pool = self.core_state.pool(id);
        let options = &pool.settings.options;
        let is_unsuited = kind == FailureKind::Unsuited;
        pool.counters.pool.server_login_failures += u64::from(!is_unsuited);
        let retry = options.server_login_retry;
        // Another host may serve soon.
        let others = match kind {
            FailureKind::Full => self.fill_host(&server),
            _ => server.place.is_some(),
        };
        let pool = self.core_state.pool(id);
        let options = &pool.settings.options;
        let waits = options.server_unavailable == Unavailable::Wait || others;
        let wait_on = kind != FailureKind::Lasting && waits;
        let mut is_known = false;
        match (&server.place, kind, refusal) {
            // The next host is tried at once.
            (Some(place), FailureKind::Outage, _) => {
                place.fails(Attempt::Down, now, retry);
            }
            (Some(place), FailureKind::Unsuited, _) => {
                is_known = !place.fails(Attempt::Unsuited, now, retry);
            }
            (_, _, Some(error)) => {
                let said = Refusal { why: why.to_owned(), error: error.into() };
                pool.shared.refusal.note(now, retry, said);
            }
            // The pool waits until another makes room.
            (None, FailureKind::Full, None) => {}
            (_, _, None) => pool.retry = now.after(retry),
        }
        let host = server.host.to_string();
        let none_left = pool.servers == pool.connecting;
        // The reason of a failed connect begins with the address, which need not come twice.
        let detail = if why.starts_with(&host) { why.to_owned() } else { format!("{host}: {why}") };
        // The loss of a host is told once, whatever the number of pools, cores and attempts.
        let lost = cause == DisconnectReason::ServerDown;
        is_known |= lost && !self.core_state.shared.lost_hosts.lose(&server.host, now);
        let level = match (is_known, is_unsuited) {
            (true, _) => Level::Debug,
            (false, true) => Level::Info,
            (false, false) => Level::Error,
        };
        let key = if is_unsuited { News::HostUnsuited.key() } else { cause.key() };
        self.log().note_host(id, &server.host, level, key, detail);
        if !lost {
            self.host_answers(id, &server.host);
        }
        if is_unsuited
            && !is_known
            && let Some(place) = &server.place
        {
            self.leave_host(place);
        }
        self.forget_server(&server);
        if none_left {
            // No client waits with a job: its sender does without the answer.
            self.lose_jobs(id);
        }
        none_left && !wait_on
    }

    /// Notes that the only host of a pool has no room for one more server. Returns whether servers
    /// of other pools may make room.
    fn fill_host(&mut self, server: &Server<P>) -> bool {
        let shared = self.core_state.shared.clone();
        let pool = self.core_state.pool(server.pool);
        if server.place.is_some() {
            return false;
        }
        shared.full_hosts.fill(&server.host, self.now, pool.settings.options.server_login_retry);
        let has_server = |other: &Arc<PoolShared<P>>| {
            let settings = other.settings();
            other.id != server.pool && settings.host == server.host && other.is_live()
        };
        shared.pools().iter().any(has_server)
    }

    /// Ends the sessions of all clients that wait for a server of a pool, for this cause, with its
    /// reason in words for the log. The pool's jobs are lost. `tell` writes the error for a client
    /// with this session, and returns its code.
    pub fn fail_waiting(
        &mut self,
        id: PoolId,
        (cause, why): (DisconnectReason, &str),
        tell: impl Fn(&P::Client, &mut Vec<u8>) -> Option<Cow<'static, str>>,
    ) {
        self.lose_jobs(id);
        let pool = self.core_state.pool(id);
        let mut clients = std::mem::take(&mut pool.entering);
        while let Some(Waiter::Client(client)) = pool.waiters.next_client() {
            clients.push(client);
        }
        for conn in clients {
            let Some(client) = self.connections.client(conn) else { continue };
            let code = tell(&client.session, self.ports.out(conn));
            let note = ClientNote::new(Level::Warn, cause);
            let (code, detail) = (code.as_deref(), why.to_owned());
            self.log().tell_of_client(conn, ClientNote { code, detail, ..note });
            let client =
                forget_client(self.core_state, self.connections, self.ports, (conn, false));
            let link = client.and_then(|client| client.link);
            debug_assert!(link.is_none(), "a client that waits for a server has none");
        }
    }

    /// Closes a pool whose database or user does not exist: now, or with the first tick at which
    /// the pool is unused. A pool that keeps servers before any client comes tries again: its
    /// database may be made later.
    pub fn forget_soon(&mut self, id: PoolId) {
        if self.core_state.is_kept(id) {
            return;
        }
        let now = self.now;
        let Some(pool) = self.core_state.find_pool(id) else { return };
        if pool.is_unused() {
            return self.core_state.close_pool(id);
        }
        // Another core waits for a message from this one, or a client came meanwhile. With this
        // `retry` the pool goes at the next tick, and is not kept until the next attempt to
        // connect.
        pool.retry = now;
    }

    /// Notes that a server of a pool's host has answered, and logs that the host is found again if
    /// it was lost.
    fn host_answers(&mut self, id: PoolId, host: &Host) {
        let core_state = &mut self.core_state;
        if core_state.shared.lost_hosts.is_empty() {
            return;
        }
        if let Some(span) = core_state.shared.lost_hosts.find(host, self.now) {
            let told = format!("{host}, after {} s", span.as_secs());
            self.log().note_host(id, host, Level::Info, News::ServerFound.key(), told);
        }
    }
}
