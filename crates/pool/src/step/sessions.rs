//! The beginning and the end of clients' sessions.
//!
//! From the beginning of a shutdown no client begins another transaction. A client with nothing
//! under way leaves at once. One in a transaction, one that waits for a server, and one of whose
//! request a part has come, leave when that request, or its transaction, is over
//! ([`Step::transaction_over`]); a tick finds those whose request needed no server. Clients of the
//! console stay until the program stops.

use std::sync::Arc;

use crate::client::{Client, Phase, WaitingFor};
use crate::connections::Connection;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::event::{Action, Level};
use crate::ids::{ClientSerial, Conn, Peer, PoolId};
use crate::inbox::Rest;
use crate::lobby::{CONSOLES_MAX, Counted, Newcomer};
use crate::message::CoreMessage;
use crate::pool_shared::PoolShared;
use crate::protocol::{Activity, Protocol};
use crate::server::Server;
use crate::step::leave::{forget_client, uncount};
use crate::step::notes::ClientNote;

/// Log text for a peer that has ended its stream.
pub const END_OF_STREAM: &str = "end of stream";

impl<P: Protocol> Engine<P> {
    /// Whether a shutdown has begun and no client is left but those of the console.
    pub fn is_drained(&self) -> bool {
        let is_console = |session| P::phase(session) == Phase::Console;
        self.core_state.draining
            && self.connections.clients().all(|client| is_console(&client.session))
    }
}

impl<P: Protocol> Step<'_, P> {
    /// Takes in a new connection, and greets it if the protocol speaks first. If too many
    /// connections have not logged in, the lobby names one that has to make way.
    pub(crate) fn accepted(&mut self, conn: Conn, peer: Peer) {
        let core_state = &mut self.engine.core_state;
        let (shared, core) = (core_state.shared.clone(), core_state.core);
        let serial = shared.client_serial();
        let limits = shared.lobby.limits(&shared.options().general);
        let gone = shared.lobby.come(&peer, Newcomer { core, conn, serial }, limits.logins);
        let session = P::client(&core_state.protocol, self.now);
        let client = Client::new(serial, conn, peer, self.now, session);
        self.engine.connections.set(conn, Connection::Client(Box::new(client)));
        P::greet(self, conn);
        let Some(Newcomer { core: there, conn, serial }) = gone else { return };
        if there == core {
            self.make_way(conn, serial);
        } else {
            let message = CoreMessage::MakeWay { conn, serial };
            self.ports.act(Action::Tell { core: there, message });
        }
    }

    /// Closes a connection that has to make way for a later one, unless it has logged in meanwhile.
    pub(crate) fn make_way(&mut self, conn: Conn, serial: ClientSerial) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.serial != serial || client.counted != Counted::Login {
            return;
        }
        let lobby = &self.engine.core_state.shared.lobby;
        if lobby.is_news(self.now) {
            let count = lobby.crowded_out();
            let told = format!(
                "{count} connections that had not logged in were closed so far to make room"
            );
            let note = ClientNote::new(Level::Warn, DisconnectReason::CrowdedOut);
            let note = ClientNote { detail: told, is_end: false, ..note };
            self.log().tell_of_client(conn, note);
        }
        self.end_login(conn, DisconnectReason::CrowdedOut);
    }

    /// Ends a login that took too long or had to make way. A silent peer
    /// ([`Protocol::is_silent`]) gets no error: the peer may be no client, and there may be many.
    pub(crate) fn end_login(&mut self, conn: Conn, cause: DisconnectReason) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let silent = P::is_silent(&client.session);
        self.log().note_client(
            conn,
            if silent { Level::Debug } else { Level::Warn },
            cause,
            String::new(),
        );
        if !silent {
            self.tell(conn, cause);
        }
        self.remove_client(conn, false);
    }

    /// Counts a connection that has authenticated. Returns false if the limit is reached. One that
    /// has been counted so before keeps its place.
    pub fn count_as(&mut self, conn: Conn, counted: Counted) -> bool {
        let shared = &self.engine.core_state.shared;
        let most = match counted {
            Counted::Console => CONSOLES_MAX,
            _ => shared.lobby.limits(&shared.options().general).clients,
        };
        let Some(client) = self.engine.connections.client(conn) else { return false };
        if client.counted == counted {
            return true;
        }
        let room = shared.lobby.admit(counted, most);
        if room {
            shared.lobby.go(client.counted, &client.peer, client.serial);
            client.counted = counted;
        }
        room
    }

    /// Gives a client that has authenticated to its pool, which lets the client in
    /// ([`Protocol::admit`]): at once, or when a server of the pool has been reached.
    pub fn enter(&mut self, conn: Conn, shared: &Arc<PoolShared<P>>, user: &str) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.user = if user == &*shared.user { shared.user.clone() } else { user.into() };
        let pool = self.engine.core_state.open_pool(shared, self.now);
        pool.clients += 1;
        client.pool = shared.id;
        // If no server is logged in, the database may have been dropped since the last login. So
        // the pool connects a server first. A paused pool connects none.
        if P::is_known(&shared.protocol) && (shared.is_live() || pool.choice.paused) {
            return P::admit(self, conn);
        }
        if !pool.entering.contains(&conn) {
            pool.entering.push(conn);
        }
        self.supply().grow(shared.id);
    }

    /// Goes on with the logins that waited until a server of the pool was reached.
    pub(crate) fn let_in(&mut self, id: PoolId) {
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        for client in std::mem::take(&mut pool.entering) {
            P::admit(self, client);
        }
    }

    /// Notes and logs that a client has been told that it is logged in.
    pub fn client_logged_in(&mut self, conn: Conn) {
        if let Some(client) = self.engine.connections.client(conn) {
            client.logged_in.get_or_insert(self.now);
        }
        self.log().note_login(conn);
    }

    /// Whether a client has got only the beginning of a message. The client would take an error
    /// for the rest of that message.
    pub fn is_cut(&mut self, conn: Conn) -> bool {
        let link = self.engine.connections.client(conn).and_then(|client| client.link);
        let server = link.and_then(|server| self.engine.connections.server(server));
        server.is_some_and(|s| {
            s.inbox.rest > 0 && s.inbox.rest_goes == Rest::On && s.client() == Some(conn)
        })
    }

    /// Ends a client's session with the error for `cause`, and takes back the client's server.
    pub fn end_client(&mut self, conn: Conn, cause: DisconnectReason) {
        let says = !self.is_cut(conn);
        self.end_client_saying(conn, cause, says);
    }

    /// Ends a client's session, with the error for `cause` if `says`.
    pub(crate) fn end_client_saying(&mut self, conn: Conn, cause: DisconnectReason, says: bool) {
        let level = match cause {
            DisconnectReason::Terminated
            | DisconnectReason::ClientGone
            | DisconnectReason::Shutdown => self.ports.session_notes().end_level(),
            _ => Level::Warn,
        };
        self.log().note_client(conn, level, cause, String::new());
        if says {
            self.tell(conn, cause);
        }
        self.remove_client(conn, false);
    }

    /// Tells a client why its session ends.
    #[inline(never)]
    fn tell(&mut self, conn: Conn, cause: DisconnectReason) {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        if let Some(client) = connections.client(conn) {
            P::tell(&core_state.shared, &client.session, self.ports.out(conn), cause);
        }
    }

    /// Ends the session of a client whose connection broke.
    pub(crate) fn client_gone(&mut self, conn: Conn, why: &str) {
        self.note_gone(conn, why);
        self.remove_client(conn, true);
    }

    /// Logs that a client has gone without a word. That is news if a server works for the client or
    /// has its transaction open.
    pub fn note_gone(&mut self, conn: Conn, why: &str) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let server = client.link.and_then(|server| self.engine.connections.server(server));
        let (level, amid) = match server.map(|server| P::activity(&server.session)) {
            Some(Activity { in_transaction: true, .. }) => (Level::Info, ", amid a transaction"),
            Some(Activity { owes: true, .. }) => (Level::Info, ", amid a request"),
            _ => (self.ports.session_notes().end_level(), ""),
        };
        let detail = format!("{why}{amid}");
        self.log().note_client(conn, level, DisconnectReason::ClientGone, detail);
    }

    /// Closes the connection of a client with which the loop could not agree on its encryption.
    pub(crate) fn handshake_failed(&mut self, conn: Conn, why: &str) {
        self.log().note_client(conn, Level::Warn, DisconnectReason::Tls, why.to_owned());
        self.remove_client(conn, false);
    }

    /// Ends the session of a client that has ended its stream, once it waits for nothing and its
    /// server owes it nothing.
    pub fn leave_if_ended(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.ended.is_none() || client.waiting_for != WaitingFor::Nothing {
            return;
        }
        let server = client.link.and_then(|server| self.engine.connections.server(server));
        if server.is_some_and(|server| P::activity(&server.session).owes) {
            return;
        }
        self.note_gone(conn, END_OF_STREAM);
        self.remove_client(conn, false);
    }

    /// Forgets a client, and closes its connection: at once if the peer has gone, else once its
    /// output is sent. Takes its server back.
    pub fn remove_client(&mut self, conn: Conn, gone: bool) {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let client = forget_client(core_state, connections, self.ports, (conn, gone));
        let Some(client) = client else { return };
        if let Some(server) = client.link {
            self.take_back(server, &client);
        }
    }

    /// Takes a client out of its pool, and takes its server back. The client waits for nothing, and
    /// logs in again: [`Self::enter`] gives it to the same pool or another one.
    pub fn leave_pool(&mut self, conn: Conn) {
        let Connection::Client(mut client) = self.engine.connections.take(conn) else { return };
        uncount(&mut self.engine.core_state, &client);
        if let Some(server) = client.link {
            self.take_back(server, &client);
        }
        (client.pool, client.link, client.requested) = (PoolId::NONE, None, self.now);
        self.engine.connections.set(conn, Connection::Client(client));
    }

    /// Begins a shutdown, and ends the sessions of clients that do nothing.
    pub(crate) fn drain(&mut self) {
        self.engine.core_state.draining = true;
        for conn in self.engine.connections.conns() {
            self.drain_client(conn);
        }
    }

    /// Ends a client's session during a shutdown if nothing is under way: all requests are answered
    /// in full, and no request has arrived in part.
    #[cold]
    pub(crate) fn drain_client(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let phase = P::phase(&client.session);
        let ready = phase == Phase::Ready;
        let speaks = ready && (client.inbox.held() > 0 || client.inbox.rest > 0);
        let is_in = phase != Phase::Login;
        let (link, waits) = (client.link, is_in && client.waiting_for != WaitingFor::Nothing);
        let is_quiet = |server: &Server<P>| ready && P::idle(&server.session).is_some();
        let busy = match link {
            Some(server) => !self.engine.connections.server(server).is_some_and(|s| is_quiet(s)),
            None => waits,
        };
        if !busy && !speaks && phase != Phase::Console {
            self.end_client(conn, DisconnectReason::Shutdown);
        }
    }
}
