//! The events of a connection, by its role: it is established or encrypted, it brings bytes, it
//! ends.
//!
//! The protocol gets held bytes first, and the pool holds the bytes that the protocol has not
//! handled. The session of a client ends with its server, but for reads of which the client has got
//! nothing: they run elsewhere.

use std::sync::Arc;

use crate::client::{Phase, WaitingFor};
use crate::connections::Connection;
use crate::disconnect::DisconnectReason;
use crate::engine::Step;
use crate::event::{Level, TlsPeer};
use crate::hosts::HostPlace;
use crate::ids::Conn;
use crate::protocol::Protocol;
use crate::secured::Secured;
use crate::server::Server;
use crate::step::flow::resume_feeder;
use crate::step::sessions::END_OF_STREAM;
use crate::step::travel::unpack;
use crate::transfer::{Moving, Transfer};

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
            && !resume_feeder(&mut self.engine.connections, self.ports, conn)
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
                let pool = self.engine.core_state.pool_in_use(client.pool);
                pool.counters.pool.bytes_received += bytes.len() as u64;
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
            self.engine.connections.read_on(conn);
        }
        self.flow().regulate(conn);
    }

    /// Handles the input of a client that is logged in: the bytes that were held, and `bytes`
    /// behind them.
    fn serve_ready(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.waiting_for != WaitingFor::Nothing {
            return self.hold(conn, bytes);
        }
        if client.inbox.held() == 0 && bytes.is_empty() && client.ended.is_none() {
            return self.flow().regulate(conn);
        }
        if client.inbox.held() == 0 {
            let used = P::input(self, conn, bytes);
            self.hold(conn, &bytes[used..]);
        } else {
            let all = client.inbox.join(bytes);
            let used = P::input(self, conn, &all);
            if let Some(client) = self.engine.connections.client(conn) {
                client.inbox.put_back(all, used);
                self.flow().regulate(conn);
            }
            if self.engine.core_state.is_shutting_down() {
                self.drain_client(conn);
            }
        }
    }

    /// Holds input of a client for later.
    fn hold(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(client) = self.engine.connections.client(conn)
            && (!bytes.is_empty() || client.paused)
        {
            client.inbox.hold(bytes);
            self.flow().regulate(conn);
        }
    }

    /// Stops reading a client while too much is queued to its server, or to the client itself:
    /// replies that Refrain makes itself come from no server that could be paused.
    #[inline]
    pub fn push_back_on_client(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let high = self.engine.core_state.pool_in_use(client.pool).settings.options.buffer_high;
        if self.ports.queued(server) > high || self.ports.queued(conn) > high {
            self.flow().stop_reading(conn);
        }
    }

    /// Whether a client without a server leaves too many replies unread. If so, stops reading it.
    #[inline]
    pub fn reads_slowly(&mut self, conn: Conn) -> bool {
        self.ports.queued(conn) > 0 && self.has_too_much_queued(conn)
    }

    fn has_too_much_queued(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let high = self.engine.core_state.pool_in_use(client.pool).settings.options.buffer_high;
        let full = self.ports.queued(conn) > high;
        if full {
            self.flow().stop_reading(conn);
        }
        full
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
        self.engine.connections.read_on(conn);
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

    /// Takes in a server or a client of another core.
    pub(crate) fn arrived(&mut self, conn: Conn, transfer: Transfer<P>) {
        match transfer.0 {
            Moving::Server(server) => self.server_arrives(conn, server),
            Moving::Client(traveller) => match unpack(self.engine, self.now, conn, traveller) {
                Some(cause) => self.end_client(conn, cause),
                None => self.engine.connections.read_on(conn),
            },
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
        self.supply().grow(id);
    }

    /// Has the loop encrypt the connection of a server that the protocol asks for it in the last
    /// bytes that are queued there. [`Protocol::secured`] or [`Protocol::connect_failed`] follows.
    pub fn start_tls(&mut self, conn: Conn) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        let host = server.host.clone();
        self.ports.start_tls(conn, TlsPeer::Server(host), Vec::new());
    }

    /// Takes in a server that has logged in, and frees it. `news` is true if the other cores have
    /// to know of the login, even if the pool has another server.
    pub fn logged_in(&mut self, conn: Conn, news: bool) {
        let Some((id, waiting)) = self.supply().logged_in(conn, news) else { return };
        // A client that has something checked by a server before it is let in takes this one.
        self.free(conn);
        self.let_in(id);
        self.supply().tell_of_host(waiting);
    }

    /// Handles the loss of a server's connection.
    pub(crate) fn server_gone(&mut self, conn: Conn, why: &str) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        let (id, pid, new) = (server.pool, server.pid, server.is_new());
        let host = server.host.clone();
        let detail = format!("{host}, process {pid}: {why}");
        self.log().note_host(id, &host, Level::Info, DisconnectReason::ServerGone.key(), detail);
        if new {
            return P::connect_failed(self, conn, why);
        }
        self.lose_server(conn, true, DisconnectReason::ServerGone);
    }

    /// Drops a server that ends its session or has broken the protocol, and ends its client's
    /// session.
    pub fn end_server(&mut self, conn: Conn, cause: DisconnectReason) {
        self.lose_server(conn, false, cause);
    }

    /// Forgets a server, and ends its client's session, unless the client's request can run on
    /// another server.
    fn lose_server(&mut self, conn: Conn, gone: bool, cause: DisconnectReason) {
        let server = self.engine.connections.server(conn);
        if let Some(place) = server.as_ref().and_then(|server| server.place.as_ref()) {
            place.lose();
        }
        let client = server.and_then(|server| server.client());
        let stays = client.filter(|client| {
            let linked = self.linked(*client, conn);
            linked.client.may_go_elsewhere(linked.server)
        });
        if let Some(client) = stays {
            self.sharing().give_turn_up(client, conn);
        }
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, gone);
        if let Some(client) = client.filter(|_| stays.is_none()) {
            self.server_failed_client(client, cause, cut);
        }
    }

    /// Ends the session of a client whose server is gone. If `cut`, the client has got half a
    /// message and gets no error.
    fn server_failed_client(&mut self, client: Conn, cause: DisconnectReason, cut: bool) {
        if let Some(c) = self.engine.connections.client(client) {
            c.link = None;
            self.end_client_saying(client, cause, !cut);
        }
    }
}
