//! The events of a connection, by its role: it is established or encrypted, it brings bytes, it
//! ends.
//!
//! The protocol gets held bytes first, and the pool holds the bytes that the protocol has not
//! handled.

use std::sync::Arc;

use crate::client::{Phase, WaitingFor};
use crate::connections::Connection;
use crate::engine::Step;
use crate::hosts::HostPlace;
use crate::ids::Conn;
use crate::protocol::Protocol;
use crate::secured::Secured;
use crate::server::Server;
use crate::step::sessions::END_OF_STREAM;

impl<P: Protocol> Step<'_, P> {
    /// Handles bytes from the peer of a connection.
    #[inline]
    pub(crate) fn bytes(&mut self, conn: Conn, bytes: &[u8]) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => self.client_bytes(conn, bytes),
            Connection::Server(_) => self.server_bytes(conn, bytes),
            Connection::Side(_) => self.side_bytes(conn, bytes),
            Connection::Free => {
                if let Some(transfer) = self.ports.leaving(conn) {
                    transfer.hold(bytes);
                }
            }
        }
    }

    /// Notes that a connection is encrypted, and tells the protocol.
    #[cold]
    pub(crate) fn secured(&mut self, conn: Conn, secured: Arc<Secured>) {
        let connections = &mut self.engine.connections;
        if let Some(client) = connections.client(conn) {
            client.secured = Some(secured);
            P::client_secured(self, conn);
        } else if let Some(server) = connections.server(conn) {
            server.secured = Some(secured);
            P::secured(self, conn);
        } else if connections.side(conn).is_some() {
            P::side_secured(self, conn);
        }
    }

    /// Begins with a connection that is established.
    pub(crate) fn connected(&mut self, conn: Conn) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => P::connected(self, conn),
            Connection::Side(_) => self.side_connected(conn),
            Connection::Client(_) | Connection::Free => {}
        }
    }

    /// Handles a connection that could not be established, or encrypted.
    pub(crate) fn failed(&mut self, conn: Conn, why: &str) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => P::connect_failed(self, conn, why),
            Connection::Side(_) => self.side_gone(conn, Some(why)),
            Connection::Client(_) => self.handshake_failed(conn, why),
            Connection::Free => {}
        }
    }

    /// Handles the end of a peer's stream, or of its connection.
    pub(crate) fn closed(&mut self, conn: Conn, why: Option<&str>) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => match why {
                Some(why) => self.client_gone(conn, why),
                None => self.client_ends(conn),
            },
            Connection::Server(_) => self.server_gone(conn, why.unwrap_or(END_OF_STREAM)),
            Connection::Side(_) => self.side_gone(conn, why),
            Connection::Free if why.is_some() => self.ports.give_up(conn),
            // The peer may still read the last replies.
            Connection::Free => {}
        }
    }

    /// Handles the end of a write. If little enough is queued to a connection now, reads the
    /// connection that feeds it again.
    pub(crate) fn drained(&mut self, conn: Conn) {
        let pool = match self.engine.connections.get(conn) {
            Connection::Client(client) => client.pool,
            Connection::Server(server) => server.pool,
            Connection::Side(_) | Connection::Free => return,
        };
        if self.ports.queued(conn) <= self.engine.core_state.low_mark(pool)
            && !self.resume_feeder(conn)
        {
            self.offer(conn);
        }
    }

    /// Handles bytes from a client.
    #[inline]
    pub(crate) fn client_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match P::phase(&client.session) {
            Phase::Ready => {
                let pool = client.pool;
                let counters = &mut self.engine.core_state.pool_in_use(pool).counters;
                counters.pool.bytes_received += bytes.len() as u64;
                self.serve_ready(conn, bytes);
            }
            Phase::Login => self.log_in(conn, bytes),
            Phase::Entering | Phase::Checking => self.hold(conn, bytes),
            Phase::Console => P::console_input(self, conn, bytes),
        }
    }

    /// Reads on a client whose input was held.
    pub(crate) fn run(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match P::phase(&client.session) {
            Phase::Ready => self.serve_ready(conn, &[]),
            Phase::Checking => P::checked(self, conn),
            Phase::Console => P::console_input(self, conn, &[]),
            // The protocol has waited for something with the login.
            Phase::Login => self.log_in(conn, &[]),
            Phase::Entering => {}
        }
    }

    /// Handles the input of a client that has not logged in: the bytes that were held, and `bytes`
    /// behind them. Those behind the login are read once the client is let in.
    fn log_in(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let all = client.inbox.join(bytes);
        let used = P::login_input(self, conn, &all);
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.inbox.put_back(all, used);
        if matches!(P::phase(&client.session), Phase::Ready | Phase::Console) {
            self.read_on(conn);
        }
        self.regulate(conn);
    }

    /// Handles the input of a client that is logged in: the bytes that were held, and `bytes`
    /// behind them.
    fn serve_ready(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.waiting_for != WaitingFor::Nothing {
            return self.hold(conn, bytes);
        }
        if client.inbox.held() == 0 && bytes.is_empty() && client.ended.is_none() {
            return self.regulate(conn);
        }
        if client.inbox.held() == 0 {
            let used = P::input(self, conn, bytes);
            self.hold(conn, &bytes[used..]);
        } else {
            let all = client.inbox.join(bytes);
            let used = P::input(self, conn, &all);
            if let Some(client) = self.engine.connections.client(conn) {
                client.inbox.put_back(all, used);
                self.regulate(conn);
            }
            if self.engine.core_state.is_shutting_down() {
                self.drain_client(conn);
            }
        }
    }

    /// Handles the end of a client's stream.
    pub(crate) fn client_ends(&mut self, conn: Conn) {
        let now = self.now;
        let Some(client) = self.engine.connections.client(conn) else { return };
        if !matches!(P::phase(&client.session), Phase::Ready | Phase::Console) {
            return self.client_gone(conn, END_OF_STREAM);
        }
        client.ended = Some(now);
        self.engine.connections.watch(conn);
        self.engine.runnable.push_back(conn);
    }

    /// Handles bytes from a server.
    #[inline]
    pub(crate) fn server_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        if server.inbox.held() == 0 {
            let used = P::output(self, conn, bytes);
            if used < bytes.len()
                && let Some(server) = self.engine.connections.server(conn)
            {
                server.inbox.hold(&bytes[used..]);
            }
        } else {
            let all = server.inbox.join(bytes);
            let used = P::output(self, conn, &all);
            if let Some(server) = self.engine.connections.server(conn) {
                server.inbox.put_back(all, used);
            }
        }
    }

    /// Takes a server in from another core.
    pub(crate) fn server_arrives(&mut self, conn: Conn, mut server: Server<P>) {
        server.conn = conn;
        P::arrive(self, &mut server.session);
        let core_state = &mut self.engine.core_state;
        let id = server.pool;
        // The pool may have been closed on this core since it asked.
        let shared =
            core_state.shared.pool_of(id).expect("a pool that has a server is not forgotten");
        let pool = core_state.open_pool(&shared, self.now);
        pool.servers += 1;
        pool.ask_due = true;
        if P::is_marked(&server.session) {
            pool.mark();
        }
        server.close_needed |= server.reconnects != pool.shared.reconnects()
            || server.place.as_ref().is_some_and(HostPlace::is_unsuited);
        self.engine.connections.set(conn, Connection::Server(Box::new(server)));
        // The server may have sent bytes on the way, which its inbox holds.
        self.server_bytes(conn, &[]);
        self.free(conn);
        self.grow(id);
    }
}
