//! Messages from other cores, and commands from the operator: PAUSE, RELOAD, KILL, shutdown.

use std::sync::Arc;

use crate::client::Phase;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::event::{Action, Command};
use crate::ids::{ClientSerial, Conn, PoolId};
use crate::message::CoreMessage;
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::side::SideEnd;
use crate::step::orders::{concerns, find_pools, servers_of};
use crate::time::Now;

impl<P: Protocol> Step<'_, P> {
    /// Handles a message from another core.
    pub(crate) fn message(&mut self, message: CoreMessage) {
        match message {
            CoreMessage::WantsServer { pool, core, since } => self.core_asks(pool, core, since),
            CoreMessage::GotServer { pool, core } => {
                if let Some(pool) = self.engine.core_state.find_pool(pool) {
                    pool.asking.retain(|(other, _)| *other != core);
                }
            }
            CoreMessage::Room { pool } => self.supply().grow(pool),
            CoreMessage::WantsRoom { wish } => self.supply().look_for_room(wish),
            CoreMessage::RoomFor { pool, is_counted } => self.supply().room_made(pool, is_counted),
            CoreMessage::Cancel { pid, key } => self.cancel_here(pid, &key),
            CoreMessage::Kill { serial } => {
                self.kill_client(serial);
            }
            CoreMessage::MakeWay { conn, serial } => self.make_way(conn, serial),
            CoreMessage::Fetched { conn, serial } => self.flow().fetched(conn, serial),
            CoreMessage::ServerReached { pool } => self.let_in(pool),
            CoreMessage::HostUnsuited { place, shown_by } => {
                self.supply().host_is_unsuited(&place, shown_by)
            }
            CoreMessage::HostDoubted { pool } => self.supply().try_login(pool),
            CoreMessage::DrainDatabase { database } => self.drain_database(database),
            CoreMessage::DatabaseDrained { database } => self.end_database_drain(&database),
        }
    }

    /// Handles a command of the operator.
    pub(crate) fn command(&mut self, command: Command) {
        match command {
            Command::Pause(database) => self.supply().pause(database.as_ref()),
            Command::Resume(database) => self.supply().resume(database.as_ref()),
            Command::Reconnect(database) => self.supply().reconnect(database.as_ref()),
            Command::LeaveAddresses(name, gone) => {
                self.supply().leave_servers(|server| server.is_at(&name, &gone));
            }
            Command::Kill(database) => {
                self.supply().pause(database.as_ref());
                self.kill(|pool| concerns(database.as_ref(), pool), DisconnectReason::Killed);
            }
            Command::KillClient(serial) => {
                self.kill_client(serial);
            }
            Command::Flush => self.engine.core_state.pools_mut().for_each(P::flush),
            Command::Reload(_) => self.reload(),
            Command::Drain => {
                self.drain();
                self.supply().close_idle(|_| true);
            }
            Command::Stop => {
                self.engine.core_state.draining = true;
                self.kill(|_| true, DisconnectReason::Shutdown);
                for client in self.clients(|_| true) {
                    self.end_client(client, DisconnectReason::Shutdown);
                }
                for conn in self.engine.connections.conns() {
                    self.side_over(conn, SideEnd::Stopped);
                }
            }
        }
    }

    /// Puts new options into force. Clients that they do not allow leave, and so do the servers of
    /// removed pools.
    fn reload(&mut self) {
        self.supply().reload();
        // The next tick reads the timeouts.
        self.engine.core_state.idle_due = Now(0);
        for client in self.clients(|_| true) {
            self.dismiss(client);
        }
        let removed = find_pools(&self.engine.core_state, |pool| pool.removed);
        for conn in servers_of(&self.engine.connections, &removed) {
            let server = self.engine.connections.server(conn);
            if server.is_some_and(|server| server.client().is_none()) {
                self.close_server(conn);
            }
        }
    }

    /// Ends the sessions of clients that are not allowed any more in a pool that users share, and
    /// that were in a transaction when that was found.
    pub(crate) fn dismiss_unwelcome(&mut self) {
        for (conn, serial) in std::mem::take(&mut self.engine.core_state.unwelcome) {
            let client = self.engine.connections.client(conn);
            if client.is_some_and(|client| client.serial == serial) {
                self.dismiss(conn);
            }
        }
    }

    /// Ends the session of a client that is not allowed any more. A client in a transaction may end
    /// the transaction first. Then [`Step::transaction_over`] ends the session, or the next tick
    /// does if its pool stays.
    fn dismiss(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let (id, link) = (client.pool, client.link);
        if P::phase(&client.session) == Phase::Console {
            return P::dismiss_from_console(self, conn);
        }
        let (user, serial) = (client.user.clone(), client.serial);
        let shared = self.engine.core_state.shared.clone();
        let pool = self.engine.core_state.find_pool(id);
        let removed = pool.as_ref().is_some_and(|pool| pool.removed);
        let unwelcome = pool.is_some_and(|pool| !shared.admits(&pool.shared, &user));
        let server = link.and_then(|server| self.engine.connections.server(server));
        let is_quiet = server.is_none_or(|server| P::idle(&server.session).is_some());
        if (removed || unwelcome) && is_quiet {
            self.end_client(conn, DisconnectReason::Removed);
        } else if unwelcome && !removed {
            self.engine.core_state.unwelcome.push((conn, serial));
        }
    }

    /// Drains the databases that clients of this core ask for, here and at the other cores.
    pub fn drain_everywhere(&mut self) {
        for database in self.engine.core_state.database_drain.take_news() {
            self.close_drained();
            self.tell_all(&CoreMessage::DrainDatabase { database });
        }
    }

    /// Drains a database that a client of another core asks for.
    fn drain_database(&mut self, database: Arc<[u8]>) {
        self.engine.core_state.database_drain.begin(database, None, self.now);
        self.close_drained();
    }

    /// Ends the draining of databases that a client asked for: the client's command has been
    /// answered.
    #[inline]
    pub fn drained_database(&mut self, client: Conn) {
        for database in self.engine.core_state.database_drain.wanted_by(client) {
            self.end_database_drain(&database);
            self.tell_all(&CoreMessage::DatabaseDrained { database });
        }
    }

    /// Ends the draining of a database. Servers may do jobs there again.
    fn end_database_drain(&mut self, database: &[u8]) {
        self.engine.core_state.database_drain.end(database);
        let of_database = |pool: &Pool<P>| pool.server_database().as_bytes() == database;
        for id in find_pools(&self.engine.core_state, of_database) {
            self.serve_jobs(id);
        }
    }

    fn clients(&self, which: impl Fn(PoolId) -> bool) -> Vec<Conn> {
        let clients = self.engine.connections.clients();
        clients.filter(|client| which(client.pool)).map(|client| client.conn).collect()
    }

    fn tell_all(&mut self, message: &CoreMessage) {
        for core in self.engine.core_state.others() {
            self.ports.act(Action::Tell { core, message: message.clone() });
        }
    }

    /// Closes the servers of databases that are drained, except those that a client holds or that
    /// go back to one.
    fn close_drained(&mut self) {
        let Engine { core_state, connections, .. } = &*self.engine;
        let drains = |pool: &Pool<P>| core_state.database_drain.concerns(pool, self.now);
        for conn in servers_of(connections, &find_pools(core_state, drains)) {
            let server = self.engine.connections.server(conn);
            if server.is_some_and(|server| server.is_ownerless()) {
                self.close_server(conn);
            }
        }
    }

    fn kill(&mut self, which: impl Fn(&Pool<P>) -> bool, cause: DisconnectReason) {
        let pools = find_pools(&self.engine.core_state, which);
        for client in self.clients(|pool| pools.contains(&pool)) {
            self.end_client(client, cause);
        }
        for server in servers_of(&self.engine.connections, &pools) {
            self.close_server(server);
        }
    }

    /// Ends the session of a client, at whichever core it is.
    pub fn kill_anywhere(&mut self, serial: ClientSerial) {
        if !self.kill_client(serial) {
            self.tell_all(&CoreMessage::Kill { serial });
        }
    }

    /// Kills a client if it is at this core, and returns whether it was. If it has just come to a
    /// core that had the command before, that core hears of it again.
    fn kill_client(&mut self, serial: ClientSerial) -> bool {
        let found = self.engine.connections.clients().find(|client| client.serial == serial);
        if let Some(conn) = found.map(|client| client.conn) {
            self.end_client(conn, DisconnectReason::Killed);
            return true;
        }
        let place = self.engine.core_state.shared.moved.kill(serial);
        if let Some((core, _)) = place.filter(|(core, _)| *core != self.engine.core_state.core) {
            self.ports.act(Action::Tell { core, message: CoreMessage::Kill { serial } });
        }
        false
    }
}
