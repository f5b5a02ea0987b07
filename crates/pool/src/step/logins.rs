//! Logins to servers that have succeeded or failed.

use crate::connections::Connection;
use crate::disconnect::DisconnectReason;
use crate::engine::Step;
use crate::event::{Action, Level};
use crate::ids::{Conn, PoolId};
use crate::message::CoreMessage;
use crate::protocol::Protocol;
use crate::server::ServerState;
use crate::waiters::Waiter;

impl<P: Protocol> Step<'_, P> {
    /// Takes in a server that has logged in, and frees it. `news` is true if the other cores have
    /// to know of the login, even if the pool has another server.
    pub fn logged_in(&mut self, conn: Conn, news: bool) {
        let jitter: [u8; 1] = self.engine.core_state.random();
        let Some(server) = self.engine.connections.server(conn) else { return };
        server.state = ServerState::Resetting;
        server.connected = self.now;
        let id = server.pool;
        let pool = self.engine.core_state.pool(id);
        let options = &pool.settings.options;
        if let Some(lifetime) = options.server_lifetime {
            let shorter = options.server_lifetime_jitter.of(lifetime) * u32::from(jitter[0]) / 256;
            server.expires = self.now.after(lifetime.saturating_sub(shorter));
        }
        pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
        pool.counters.pool.server_logins += 1;
        if pool.shared.server_lives() || news {
            for core in self.engine.core_state.others() {
                let message = CoreMessage::ServerReached { pool: id };
                self.ports.act(Action::Tell { core, message });
            }
        }
        self.let_in(id);
        self.free(conn);
    }

    /// Removes a server that could not be connected or logged in to, and tries again later.
    /// Returns whether the pool has no other server, so that the clients that wait get an error
    /// ([`Self::fail_waiting`]).
    pub fn drop_failed(&mut self, conn: Conn, cause: DisconnectReason, why: &str) -> bool {
        let Connection::Server(server) = self.engine.connections.take(conn) else { return false };
        self.ports.close(conn);
        let now = self.now;
        let pool = self.engine.core_state.pool(server.pool);
        pool.counters.pool.server_login_failures += 1;
        pool.retry = now.after(pool.settings.options.server_login_retry);
        let host = pool.settings.host.to_string();
        let none_left = pool.servers == pool.connecting;
        // The reason of a failed connect begins with the address, which need not come twice.
        let detail = if why.starts_with(&host) { why.to_owned() } else { format!("{host}: {why}") };
        self.note_pool(server.pool, Level::Error, cause, detail);
        self.forget_server(&server);
        none_left
    }

    /// Ends the sessions of all clients that wait for a server of a pool, and loses the jobs that
    /// wait for one. `tell` writes the error.
    pub fn fail_waiting(
        &mut self,
        id: PoolId,
        cause: DisconnectReason,
        why: &str,
        tell: impl Fn(&mut Vec<u8>),
    ) {
        let pool = self.engine.core_state.pool(id);
        let mut clients = std::mem::take(&mut pool.entering);
        while let Some(Waiter::Client(client)) = pool.waiters.next_client() {
            clients.push(client);
        }
        self.lose_jobs(id);
        for client in clients {
            self.note_client(client, Level::Warn, cause, why.to_owned());
            tell(self.ports.out(client));
            self.remove_client(client, false);
        }
    }

    /// Closes a pool whose database or user does not exist: now, or with the first tick at which
    /// the pool is unused.
    pub fn forget_soon(&mut self, id: PoolId) {
        let now = self.now;
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        if pool.is_unused() {
            return self.engine.core_state.close_pool(id);
        }
        // Another core waits for a message from this one, or a client came meanwhile. With this
        // `retry` the pool goes at the next tick, and is not kept until the next attempt to
        // connect.
        pool.retry = now;
    }
}
