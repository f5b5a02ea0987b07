//! Servers: who gets one, when it comes back, and in what state.
//!
//! A server goes back to its pool with a [`crate::ledger::Quiescent`] proof or not at all. On the way it may have to
//! be asked what settings the client left, or be reset; a cancel request under way holds it back.
//!
//! One limit counts for all cores. A core whose client waits asks the others for an idle server, and tries to
//! connect one itself where there is room.

use crate::client::{Blocked, Client, Phase};
use crate::engine::Step;
use crate::event::{Action, Level};
use crate::fault::Cause;
use crate::hub::note;
use crate::ids::{Conn, Core, PoolId};
use crate::ledger::{Copying, Entry, Fate, Owed, Purpose, Quiescent, Span};
use crate::roles::Role;
use crate::server::{Custody, Parcel, Server};
use crate::shared::{Admission, Message};
use crate::slots::Unnamed;
use crate::time::Now;
use refrain_config::PoolMode;
use refrain_wire::back::Status;
use refrain_wire::write;

/// How much longer than our own first client another core's must have waited to get a server before it, in
/// microseconds: handing a server over costs more than a transaction.
const PATIENCE_US: u64 = 5_000;
/// Servers that one core connects to for one pool at the same time.
const CONNECTING_MAX: u32 = 8;

impl Step<'_> {
    /// Gives a client a server, or has it wait for one.
    #[inline]
    pub(crate) fn lend(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.roles.client(conn) else { return false };
        let id = client.pool;
        let pool = self.engine.hub.pool(id);
        if pool.waiting() == 0
            && let Some(server) = pool.take()
        {
            self.link(conn, server);
            return true;
        }
        let full = pool.settings.options.max_waiting.is_some_and(|m| pool.waiting() >= m as usize);
        if full {
            self.end_client(conn, Cause::TooManyWaiting);
            return false;
        }
        pool.wait(conn);
        client.blocked = Blocked::Waiting;
        client.waiting = self.now;
        self.grow(id);
        false
    }

    /// Joins a client and an idle server; puts the server's settings right in front of what the client says.
    #[inline]
    fn link(&mut self, conn: Conn, server: Conn) {
        let mut talk = self.talk(conn, server);
        talk.server.custody = Custody::Lent(conn);
        talk.server.since = talk.now;
        talk.server.worked = false;
        talk.client.link = Some(server);
        talk.client.changed = Span::default();
        talk.client.parsed = Span::default();
        talk.client.unnamed_changed = 0;
        talk.client.barrier = None;
        if !talk.client.managed {
            talk.forget_statements();
        }
        talk.pool().counters.server_assignments += 1;
        talk.put_right_if_need_be();
    }

    /// The server has answered all of a request: it may be free now.
    #[inline]
    pub(crate) fn after_ready(&mut self, client: Conn, server: Conn) {
        let Some(c) = self.engine.roles.client(client) else { return };
        if std::mem::take(&mut c.cancel_wanted) {
            self.cancel_request_of(client, server);
        }
        let Some(c) = self.engine.roles.client(client) else { return };
        let (pinned, partial) = (!c.pins.is_empty(), c.inbox.rest > 0);
        let probe = c.probe || c.standing.is_hidden();
        let (looks, asked) = (c.suspicion.looks, c.suspicion.asked.is_some());
        let checking = matches!(c.phase, Phase::Checking(..));
        let pool = self.engine.hub.pool(c.pool);
        let (mode, removed) = (pool.settings.options.pool_mode, pool.removed);
        let Some(s) = self.engine.roles.server(server) else { return };
        if s.ledger.quiescent().is_none() {
            let block = mode == PoolMode::Statement && s.ledger.status() != Status::Idle;
            if block && s.ledger.is_empty() && !checking {
                self.end_client(client, Cause::TransactionInStatementMode);
            }
            return;
        }
        self.vacated(client);
        if removed {
            self.end_client(client, Cause::Removed);
        } else if checking {
            self.engine.runnable.push_back(client);
        } else if looks && !partial && !asked {
            self.talk(client, server).look();
        } else if partial || pinned || mode == PoolMode::Session {
            self.count_transaction(server);
            if mode == PoolMode::Session && !partial && !pinned {
                self.lend_between(client, server);
            }
        } else if probe {
            self.talk(client, server).probe();
        } else {
            self.unlink(client, server);
        }
    }

    fn count_transaction(&mut self, server: Conn) {
        let Some(server) = self.engine.roles.server(server) else { return };
        let took = self.now.since(server.since);
        server.since = self.now;
        let counters = &mut self.engine.hub.pool(server.pool).counters;
        counters.xacts += 1;
        counters.xact_time.count(took);
    }

    /// Takes a server that is quiescent from its client.
    #[inline]
    pub(crate) fn unlink(&mut self, client: Conn, server: Conn) {
        self.count_transaction(server);
        let (c, s) = self.engine.roles.pair(client, server);
        c.link = None;
        c.cancel_wanted = false;
        s.custody = Custody::Resetting;
        // Whom either waited for to read, it does not feed any more.
        if c.paused {
            self.engine.runnable.push_back(client);
        }
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        self.free(server);
    }

    /// A client with this server has left.
    pub(crate) fn take_back(&mut self, server: Conn, client: &Client) {
        let mode = self.engine.hub.pool(client.pool).settings.options.pool_mode;
        let Some(s) = self.engine.roles.server(server) else { return };
        if let Custody::Job(job) = &mut s.custody {
            job.back = None;
            s.dirty |= mode == PoolMode::Session;
            return;
        }
        s.custody = Custody::Resetting;
        s.since = self.now;
        // What is still owed may leave something behind whose completion nobody looks at.
        let left = client.probe
            || client.suspicion.looks
            || !client.pins.is_empty()
            || !s.ledger.is_empty();
        s.dirty |= mode == PoolMode::Session || left;
        s.stuck |= !s.ledger.is_empty();
        let removed = self.engine.hub.pool(client.pool).removed;
        let leaves = removed || self.engine.hub.vacates(client.pool, self.now);
        if client.is_half_sent() || s.ledger.copying() != Copying::No || leaves {
            return self.close_server(server);
        }
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        if s.ledger.is_open() {
            // Without a Sync PostgreSQL would have rolled back when the client left.
            let fate = Fate::Swallow(Purpose::Rollback);
            let out = self.ports.out(server);
            if !client.skipping {
                let name = self.engine.hub.shared.registry.no_statement();
                write::describe_statement(out, &name);
                s.ledger.push(Entry::new(Owed::DescribeStatement, fate));
            }
            write::sync(out);
            s.ledger.push(Entry::new(Owed::Sync, fate));
        }
        if s.ledger.is_empty() {
            self.make_fit(server);
        }
    }

    /// A server without a client owes nothing: ends what was left open, removes what was left behind, or frees it.
    pub(crate) fn make_fit(&mut self, server: Conn) {
        let Some(s) = self.engine.roles.server(server) else { return };
        s.run = None;
        let unfit = s.ledger.status() != Status::Idle || s.dirty;
        if unfit && self.engine.hub.vacates(s.pool, self.now) {
            return self.close_server(server);
        }
        if s.ledger.status() != Status::Idle {
            write::query(self.ports.out(server), b"ROLLBACK");
            s.ledger.push(Entry::new(Owed::Query, Fate::Swallow(Purpose::Rollback)));
            s.slots.unnamed = Unnamed::NONE;
        } else if s.dirty && !s.close_needed {
            let pool = self.engine.hub.pool(s.pool);
            let options = &pool.settings.options;
            let own =
                options.pool_mode == PoolMode::Session && !options.server_reset_query.is_empty();
            let text = if own { options.server_reset_query.as_bytes() } else { b"DISCARD ALL" };
            pool.counters.resets += 1;
            write::query(self.ports.out(server), text);
            s.ledger.push(Entry::new(Owed::Query, Fate::Swallow(Purpose::Reset)));
        } else {
            self.free(server);
        }
    }

    /// Gives a server that nobody has to whoever is next: a client here, another core, or the pool.
    #[inline]
    pub(crate) fn free(&mut self, server: Conn) {
        let now = self.now;
        let Some(s) = self.engine.roles.server(server) else { return };
        if s.cancels > 0 {
            s.custody = Custody::Cancelling;
            return;
        }
        let Some(proof) = s.ledger.quiescent() else { return self.close_server(server) };
        let leaves = self.engine.hub.draining || self.engine.hub.vacates(s.pool, now);
        let pool = self.engine.hub.pool(s.pool);
        let unwanted = pool.paused || pool.removed || leaves && !pool.is_wanted();
        if s.close_needed || s.era != pool.shared.era() || s.expires < now || unwanted {
            return self.close_server(server);
        }
        // Whoever waits has it before a second job.
        let busy = leaves || s.worked && pool.is_wanted();
        if !busy && self.has_job(server) && self.begin_job(server, None) {
            return;
        }
        self.hand_out(server, proof);
    }

    fn hand_out(&mut self, server: Conn, proof: Quiescent) {
        let now = self.now;
        let Some(s) = self.engine.roles.server(server) else { return };
        let pool = self.engine.hub.pool(s.pool);
        s.custody = Custody::Idle;
        s.since = now;
        let first = pool.first_waiting();
        if let Some(core) = self.next_core(s_pool(&self.engine.roles, server), first)
            && self.ports.queued(server) == 0
        {
            return self.hand_over(server, core);
        }
        let pool_id = s_pool(&self.engine.roles, server);
        let pool = self.engine.hub.pool(pool_id);
        match pool.next_waiting() {
            Some(client) => self.serve_waiting(client, server),
            None => pool.put_back(server, proof),
        }
    }

    fn serve_waiting(&mut self, client: Conn, server: Conn) {
        let now = self.now;
        if let Some(c) = self.engine.roles.client(client) {
            let waited = now.since(c.waiting);
            self.engine.hub.pool(c.pool).counters.wait_time.count(waited);
        }
        self.link(client, server);
        self.unblock(client);
    }

    /// The other core that is to have a free server before the first client here, if any.
    #[inline]
    fn next_core(&mut self, pool: PoolId, first: Option<Conn>) -> Option<Core> {
        let asking = &self.engine.hub.pool(pool).asking;
        let (core, since) = *asking.iter().min_by_key(|(_, since)| *since)?;
        let ours = first.and_then(|client| Some(self.engine.roles.client(client)?.waiting));
        let theirs_first = ours.is_none_or(|ours| since.0 + PATIENCE_US < ours.0);
        theirs_first.then_some(core)
    }

    /// An idle server has sent what was queued on it: another core may have asked for it meanwhile.
    pub(crate) fn offer(&mut self, server: Conn) {
        let Some(s) = self.engine.roles.server(server) else { return };
        if !matches!(s.custody, Custody::Idle) || self.ports.queued(server) > 0 {
            return;
        }
        let id = s.pool;
        let first = self.engine.hub.pool(id).first_waiting();
        if let Some(core) = self.next_core(id, first) {
            self.hand_over(server, core);
        }
    }

    /// Moves an idle server, on which nothing is queued, to another core.
    pub(crate) fn hand_over(&mut self, conn: Conn, to: Core) {
        let Role::Server(mut server) = self.engine.roles.take(conn) else { return };
        let pool = self.engine.hub.pool(server.pool);
        pool.remove_idle(conn);
        pool.asking.retain(|(core, _)| *core != to);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        pool.counters.handovers += 1;
        server.custody = Custody::Resetting;
        server.wishes.clear();
        self.ports.act(Action::HandOver { conn, to, parcel: Box::new(Parcel(*server)) });
    }

    /// A server from another core.
    pub(crate) fn arrived(&mut self, conn: Conn, parcel: Parcel) {
        let mut server = parcel.0;
        server.conn = conn;
        let hub = &mut self.engine.hub;
        server.profile = hub.profile(server.profile.edit());
        server.defaults.profile = hub.profile(server.defaults.profile.edit());
        let id = server.pool;
        // Nobody may be here for it any more.
        let shared = hub.shared.pool_of(id).expect("a pool that has a server is not forgotten");
        let pool = hub.open_pool(&shared, self.now);
        pool.servers += 1;
        pool.ask_due = true;
        server.close_needed |= server.era != pool.shared.era();
        self.engine.roles.set(conn, Role::Server(Box::new(server)));
        // What came from it on the way.
        self.server_bytes(conn, &[]);
        self.free(conn);
        self.grow(id);
    }

    /// Sees that waiting clients get a server: asks the other cores, connects to one more.
    pub(crate) fn grow(&mut self, id: PoolId) {
        let (now, core) = (self.now, self.engine.hub.core);
        let shared = self.engine.hub.shared.clone();
        let Some(pool) = self.engine.hub.find_pool(id) else { return };
        let wanted = pool.waiting() + usize::from(!pool.entering.is_empty());
        if wanted == 0 || pool.paused || pool.removed {
            return;
        }
        let elsewhere = shared.servers(id) > pool.servers;
        if elsewhere && (pool.ask_due || !pool.hungry) {
            pool.ask_due = false;
            pool.hungry = true;
            for other in self.engine.hub.others() {
                let message = Message::Hungry { pool: id, core, since: now };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
        loop {
            let pool = self.engine.hub.pool(id);
            let most = wanted.min(CONNECTING_MAX as usize);
            if pool.connecting as usize >= most || now < pool.retry {
                return;
            }
            let reserve = self.may_use_reserve(id);
            let pool = self.engine.hub.pool(id).shared.clone();
            if shared.admit_server(&pool, core, reserve) == Admission::Refused {
                return;
            }
            self.connect(id);
        }
    }

    /// Whether the first client has waited long enough for the reserve.
    fn may_use_reserve(&mut self, id: PoolId) -> bool {
        let pool = self.engine.hub.pool(id);
        let timeout = pool.settings.options.reserve_pool_timeout;
        let Some(first) = pool.first_waiting() else { return false };
        let waiting = self.engine.roles.client(first).map_or(self.now, |client| client.waiting);
        waiting.after(timeout) <= self.now
    }

    /// Connects to one more server, which has been admitted.
    pub(crate) fn connect(&mut self, id: PoolId) {
        let conn = self.ports.open();
        let serial = self.engine.hub.shared.serial();
        let nothing = self.engine.hub.nothing.clone();
        let pool = self.engine.hub.pool(id);
        pool.servers += 1;
        pool.connecting += 1;
        let host = pool.settings.host.clone();
        let mut server = Server::new(serial, conn, id, &nothing, self.now);
        server.era = pool.shared.era();
        self.engine.roles.set(conn, Role::Server(Box::new(server)));
        self.ports.act(Action::Connect { conn, host });
    }

    /// Closes a server that no client has, saying goodbye.
    pub(crate) fn close_server(&mut self, conn: Conn) {
        if let Role::Server(server) = self.engine.roles.take(conn) {
            let logged_in = !matches!(server.custody, Custody::Connecting | Custody::Login(_));
            if logged_in {
                write::terminate(self.ports.out(conn));
            }
            self.ports.close(conn);
            self.forget_server(&server);
        }
    }

    /// A server's connection is gone: its place is free.
    pub(crate) fn forget_server(&mut self, server: &Server) {
        let pool = self.engine.hub.pool(server.pool);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        if matches!(server.custody, Custody::Connecting | Custody::Login(_)) {
            pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
        } else {
            pool.shared.server_dies();
        }
        pool.remove_idle(server.conn);
        if let Custody::Job(job) = &server.custody {
            crate::jobs::lost(pool, job);
        }
        let (shared, own) = (pool.shared.clone(), self.engine.hub.core);
        for (pool, core) in self.engine.hub.shared.server_gone(&shared) {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: Message::Room { pool } });
            }
        }
        self.grow(server.pool);
    }

    /// The server went away by itself.
    pub(crate) fn server_gone(&mut self, conn: Conn, why: &str) {
        let Some(server) = self.engine.roles.server(conn) else { return };
        let pool = self.engine.hub.pool(server.pool);
        let detail = format!("{}, process {}: {why}", pool.settings.host, server.pid);
        note(self.ports, Level::Info, Cause::ServerGone.key(), pool, detail);
        if matches!(server.custody, Custody::Connecting | Custody::Login(_)) {
            return self.connect_failed(conn, why);
        }
        let client = server.client();
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, true);
        if let Some(client) = client {
            self.server_failed_client(client, Cause::ServerGone, cut);
        }
    }

    /// The server broke the protocol or is going away: nobody may get it, and its client leaves.
    pub(crate) fn server_broken(&mut self, conn: Conn, cause: Cause) {
        let client = self.engine.roles.server(conn).and_then(|server| server.client());
        if let Some(server) = self.engine.roles.server(conn)
            && cause == Cause::ServerProtocol
        {
            let left = if client.is_some() { "" } else { "; its client had left" };
            let words = format!("process {}: {}{left}", server.pid, server.ledger.story());
            let pool = self.engine.hub.pool(server.pool);
            pool.counters.server_surprises += 1;
            note(self.ports, Level::Error, cause.key(), pool, words);
        }
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, false);
        if let Some(client) = client {
            self.server_failed_client(client, cause, cut);
        }
    }

    /// Forgets a server, and closes its connection without a word.
    fn drop_server(&mut self, conn: Conn, gone: bool) {
        if let Role::Server(server) = self.engine.roles.take(conn) {
            if gone {
                self.ports.abandon(conn)
            } else {
                self.ports.close(conn)
            }
            self.forget_server(&server);
        }
    }

    fn server_failed_client(&mut self, client: Conn, cause: Cause, cut: bool) {
        if let Some(c) = self.engine.roles.client(client) {
            c.link = None;
            self.end_client_saying(client, cause, !cut);
        }
    }

    /// Another core has clients that wait.
    pub(crate) fn core_asks(&mut self, id: PoolId, core: Core, since: Now) {
        let Some(pool) = self.engine.hub.find_pool(id) else { return };
        match pool.take_coldest(|server| self.ports.queued(server) == 0) {
            Some(server) => self.hand_over(server, core),
            None => {
                pool.asking.retain(|(other, _)| *other != core);
                pool.asking.push((core, since));
            }
        }
    }
}

fn s_pool(roles: &crate::roles::Roles, server: Conn) -> PoolId {
    match roles.get(server) {
        Role::Server(server) => server.pool,
        Role::Client(_) | Role::Cancel(_) | Role::Free => PoolId::NONE,
    }
}
