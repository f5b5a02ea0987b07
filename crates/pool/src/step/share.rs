//! Shared servers: a server gets the requests of several clients, one behind the other, and each
//! client gets the replies to its own.
//!
//! A server that gets one request at a time sleeps and wakes up for each. It answers several at
//! once for less work, often for half. The protocol says which requests may share a server: they
//! may change nothing, and may run twice. So whatever happens to the server, the pool can send a
//! request again elsewhere: it keeps the bytes ([`crate::client::Client::read`]) until the request
//! is answered.
//!
//! The first client holds the server ([`crate::server::Holder::Client`]), and the others stand in
//! the server's [`crate::line::Line`]. A client that shares a server has one request under way at a
//! time.
//!
//! Nobody pays for a neighbour: when the holder's request takes too long, when the holder reads
//! slowly or cancels, or when the server has gone, the pool parts the server from those behind the
//! holder ([`Sharing::leave_holder`]).

use std::time::Duration;

use crate::client::{Client, WaitingFor};
use crate::connections::Connection;
use crate::engine::{Engine, Sharing};
use crate::ids::{Conn, PoolId};
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::server::{Server, ServerState};
use crate::stats::PoolCounters;
use crate::time::Now;

/// Bytes of a request at most that shares a server, or runs on one of another pool: the pool keeps
/// a copy of each. With
/// `share_depth` this bounds the memory of a line.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024;

impl<P: Protocol> Sharing<'_, P> {
    /// Whether enough servers of a client's pool run reads, so that the client had better share
    /// one for its `request`. Not while anybody waits for a server, here or at another core: they
    /// came first, and a server that others keep joining is never free.
    #[inline]
    pub fn had_better_share(&mut self, client: Conn, request: &[u8]) -> bool {
        let Some(pool) = self.pool_for_read(client) else { return false };
        if pool.open_lines.len() < pool.width() {
            return false;
        }
        if pool.is_wanted() || pool.waiting_jobs() > 0 {
            pool.counters.pool.requests_alone_wait += 1;
            return false;
        }
        let fits = request.len() <= REQUEST_BYTES_MAX;
        pool.counters.pool.requests_alone_large += u64::from(!fits);
        fits
    }

    /// Whether others may join at the server that a client gets for its `request`, a read. Not
    /// where the pool has no other client, nor while so few servers are at work that nobody would
    /// join.
    #[inline]
    pub fn may_open_line(&mut self, client: Conn, request: &[u8]) -> bool {
        let joined = |pool: &mut Pool<P>| pool.clients > 1 && pool.at_work() >= pool.width();
        request.len() <= REQUEST_BYTES_MAX && self.pool_for_read(client).is_some_and(joined)
    }

    /// Returns a client's pool, if the client's read may share a server there. Not where servers
    /// have to leave: a server that others join is free later. A request that was sent to another
    /// server before has its second server to itself.
    #[inline]
    fn pool_for_read(&mut self, client: Conn) -> Option<&mut Pool<P>> {
        let client = self.connections.client(client).filter(|client| !client.resent)?;
        let leaves = self.core_state.leaves(client.pool, self.now);
        let pool = self.core_state.pool_in_use(client.pool);
        (!leaves && !pool.choice.paused && !pool.removed).then_some(pool)
    }

    /// Lets clients join at the server of a client, whose `request` is all that the server owes,
    /// and all that the client has sent so far, and is known to take so many microseconds. Returns
    /// the pool if clients wait there for a server.
    pub(crate) fn open_line(
        &mut self,
        client: Conn,
        server: Conn,
        request: &[u8],
        takes_us: u32,
    ) -> Option<PoolId> {
        let (c, s) = self.connections.pair(client, server);
        if s.close_needed || s.cancels > 0 || s.paused || s.inbox.rest > 0 {
            return None;
        }
        c.read = Some(request.to_vec());
        s.line.open(takes_us);
        let id = s.pool;
        let pool = self.core_state.pool_in_use(id);
        pool.open_lines.push(server);
        pool.load.open(pool.open_lines.len());
        self.lines.open += 1;
        (pool.waiting() > 0).then_some(id)
    }

    /// Lets no further client join at a server.
    pub fn close_line(&mut self, server: Conn) {
        let Self { core_state, connections, .. } = self;
        let Some(s) = connections.server(server).filter(|s| s.line.is_open()) else { return };
        s.line.close();
        core_state.pool_in_use(s.pool).open_lines.retain(|open| *open != server);
        let open_lines = self.lines.open.checked_sub(1);
        self.lines.open = open_lines.expect("a line that closes was opened");
    }

    /// Puts a client without a server into the shortest line of its pool in which there is room,
    /// and whose server `fits`. Lines beyond the width get no more clients, unless the others are
    /// full, so that they end. The caller sends the client's request ([`Self::await_turn`]), which
    /// is known to take so many microseconds.
    pub fn join(
        &mut self,
        client: Conn,
        takes_us: u32,
        fits: impl Fn(&P::Client, &P::Server) -> bool,
    ) -> Option<Conn> {
        let pool = self.connections.client(client)?.pool;
        let server = self.shortest_line(client, pool, takes_us, fits)?;
        let (c, s) = self.connections.pair(client, server);
        c.link = Some(server);
        s.line.join(client, self.now, takes_us);
        let holder = s.client();
        let pool = self.core_state.pool(pool);
        pool.counters.pool.server_assignments += 1;
        pool.counters.pool.requests_shared += 1;
        pool.load.join();
        P::joined(&mut c.session, &mut s.session);
        // The holder's next request would come behind those of the others.
        if let Some(holder) = holder.and_then(|holder| self.connections.client(holder))
            && holder.waiting_for == WaitingFor::Nothing
        {
            holder.waiting_for = WaitingFor::Turn;
        }
        if !self.lines.servers.contains(&server) {
            self.lines.servers.push(server);
        }
        Some(server)
    }

    /// Returns the server of the shortest line in which there is room, and that `fits` the client.
    /// A line is full too if its requests take `share_statement_time` together: the last
    /// is to wait no longer for all of them than for one.
    fn shortest_line(
        &mut self,
        client: Conn,
        pool: PoolId,
        takes_us: u32,
        fits: impl Fn(&P::Client, &P::Server) -> bool,
    ) -> Option<Conn> {
        let now = self.now;
        let Self { core_state, connections, .. } = self;
        let pool = core_state.pool_in_use(pool);
        let reconnects = pool.shared.reconnects();
        let depth = pool.settings.options.share_depth as usize;
        let most = pool.settings.options.share_statement_time.as_micros();
        let width = pool.width();
        let (mut best, mut has_room): (Option<(usize, Conn)>, _) = (None, false);
        for (at, &server) in pool.open_lines.iter().enumerate() {
            if at >= width && best.is_some() {
                break;
            }
            let (c, s) = connections.pair(client, server);
            let length = s.line.len() + 1;
            let takes = u128::from(s.line.takes_us() + u64::from(takes_us));
            if length >= depth || takes > most || s.has_to_leave(reconnects, now) {
                continue;
            }
            has_room = true;
            let shorter = best.is_none_or(|(shortest, _)| length < shortest);
            let is_free = pool.choice.lends_last || P::suits(&c.session, &s.session).is_some();
            if shorter && is_free && fits(&c.session, &s.session) {
                best = Some((length, server));
            }
        }
        if best.is_none() {
            let counters = &mut pool.counters.pool;
            match has_room {
                true => counters.requests_alone_unfit += 1,
                false => counters.requests_alone_full += 1,
            }
        }
        best.map(|(_, server)| server)
    }

    /// Keeps the request that a client in a line has sent. The client is read on when the request
    /// is answered.
    pub fn await_turn(&mut self, client: Conn, request: &[u8]) {
        let Some(c) = self.connections.client(client) else { return };
        c.read = Some(request.to_vec());
        c.waiting_for = WaitingFor::Turn;
    }

    /// Takes a client out of a server's line that has sent less than its request. Nobody gets the
    /// replies to what it has sent, which the caller has made a whole request.
    pub fn leave_line(&mut self, client: Conn, server: Conn) {
        let (c, s) = self.connections.pair(client, server);
        P::take_request_back(&mut c.session);
        c.link = None;
        s.line.forsake(client);
    }

    /// Parts a server, which is late or goes, from the clients behind its holder, and counts
    /// their requests as sent again.
    pub(crate) fn disperse(&mut self, server: Conn) {
        let parted = self.part_line(server);
        if parted > 0 {
            self.count_parted(server, |counters| counters.requests_resent += parted);
        }
    }

    /// Parts a server from the clients behind its holder, which is cancelled or reads slowly, and
    /// counts their requests as moved.
    pub(crate) fn leave_holder(&mut self, server: Conn) {
        let parted = self.part_line(server);
        self.count_parted(server, |counters| counters.requests_moved += parted);
    }

    fn count_parted(&mut self, server: Conn, count: impl FnOnce(&mut PoolCounters)) {
        let Some(pool) = self.connections.server(server).map(|server| server.pool) else {
            return;
        };
        count(&mut self.core_state.pool(pool).counters.pool);
    }

    /// Parts a server from the clients behind its holder. They send their requests again to other
    /// servers, and nobody gets the replies of this one. Returns the number of the clients.
    fn part_line(&mut self, server: Conn) -> u64 {
        self.close_line(server);
        let Some(s) = self.connections.server(server) else { return 0 };
        let clients: Vec<Conn> = s.line.clients().collect();
        for &client in &clients {
            if let Some(s) = self.connections.server(server) {
                s.line.forsake(client);
            }
            self.send_again(client);
        }
        clients.len() as u64
    }

    /// Ends the turn of the client that holds a server, before the client has got a reply to its
    /// request. The client sends the request again to another server.
    pub fn give_turn_up(&mut self, client: Conn, server: Conn) {
        self.close_line(server);
        let Some(s) = self.connections.server(server) else { return };
        s.state = ServerState::Resetting;
        s.since = self.now;
        let counters = &mut self.core_state.pool(s.pool).counters;
        counters.pool.requests_resent += 1;
        if let Some(c) = self.connections.client(client) {
            P::turn_given_up(&mut counters.protocol, &c.session);
        }
        self.send_again(client);
    }

    /// Has a client send its request again. The request is not shared a second time.
    pub(crate) fn send_again(&mut self, client: Conn) {
        let Some(c) = self.connections.client(client) else { return };
        let Some(request) = c.read.take() else { return };
        P::take_request_back(&mut c.session);
        c.link = None;
        c.resent = true;
        c.waiting_for = WaitingFor::Nothing;
        c.inbox.unread(request);
        self.connections.read_on(client);
    }

    /// Parts the servers whose holders take too long from those behind the holders. Forgets the
    /// servers in whose lines nobody waits.
    pub(crate) fn disperse_late_lines(&mut self) {
        let mut late = Vec::new();
        let now = self.now;
        let Self { core_state, connections, lines, .. } = self;
        lines.servers.retain(|&conn| {
            let Some(server) = connections.server(conn) else { return false };
            let waits = server.line.clients().next().is_some();
            if waits && patience(core_state.pool(server.pool), server) <= now {
                late.push(conn);
            }
            waits
        });
        for server in late {
            self.disperse(server);
        }
    }
}

/// Returns the time until which those in a server's line wait for the holder's replies.
fn patience<P: Protocol>(pool: &Pool<P>, server: &Server<P>) -> Now {
    let most: Duration = pool.settings.options.share_statement_time;
    server.asked.after(most)
}

impl<P: Protocol> Client<P> {
    /// Whether the request of a client that holds a server can run on another server: it may share
    /// one, the client has sent nothing behind it and has got no reply to it, no other server has
    /// got it, and nobody wants it cancelled.
    pub fn may_go_elsewhere(&self, server: &Server<P>) -> bool {
        self.may_ask_again(server) && P::is_unanswered(&self.session, &server.session)
    }

    /// Whether the request of a client that holds a server can run on another server, if the client
    /// is to get no reply to it from this one.
    pub fn may_ask_again(&self, server: &Server<P>) -> bool {
        let alone = server.line.is_open() || self.waiting_for == WaitingFor::Turn;
        self.read.is_some() && alone && !self.resent && server.cancels == 0
    }
}

impl<P: Protocol> Engine<P> {
    /// Returns the earliest time at which a client in a line has waited long enough for the holder
    /// of its server.
    pub(crate) fn patience_ends(&self) -> Option<Now> {
        let ends = self.lines.servers.iter().filter_map(|&conn| {
            let Connection::Server(server) = self.connections.get(conn) else { return None };
            let pool = self.core_state.peek_pool(server.pool)?;
            (!server.line.is_empty()).then(|| patience(pool, server))
        });
        ends.min()
    }
}
