//! A client's login: how far it has come, and what its startup packet asks for.
//!
//! The files of [`crate::login`] and the console move a client from one [`ClientState`] to the
//! next, each step by a method of its own; all others read the state. A client that is
//! [`ClientState::Ready`] has authenticated itself, and keeps the proof.

use refrain_pool::Now;
use refrain_pool::ids::{Peer, PoolId};
use refrain_pool::secured::Secured;

use crate::auth::hba::Applicant;
use crate::auth::{Authenticated, Proving};
use crate::console::session::Session;
use crate::settings::session::Setting;
use crate::settings::switches::RefusedSwitch;
use crate::state::hba_uses::MatchedRule;
use crate::state::peer_keys::PeerKey;
use crate::state::replication::Replication;

/// Bytes of the name of a role or database in PostgreSQL's catalog, at most (`NAMEDATALEN`).
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// The messages that a client may send now.
#[derive(Debug, Default)]
pub(crate) enum ClientState {
    /// Its first packet: a startup packet, or a request to encrypt or to cancel.
    #[default]
    Opening,
    /// None: the database is asked for its user's secret, for which it has waited since then.
    LookingUp(Box<LoginRequest>, Now),
    /// Its part of the authentication.
    Proving(Box<LoginRequest>, Box<Proving>),
    /// None: a server of its pool has to be reached first.
    Entering(Box<LoginRequest>, Authenticated),
    /// None: a server checks its startup parameters.
    Checking(Box<LoginRequest>, Authenticated),
    /// Anything. The time is that of the login, and zero once a server has confirmed it.
    Ready(#[expect(dead_code, reason = "a proof is held, not read")] Authenticated, Now),
    /// Commands to the admin console, under the database name that it asked for.
    Console(Authenticated, &'static str, Box<Session>),
}

/// A way to encrypt a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// SSLRequest.
    Tls,
    /// GSSENCRequest.
    Gss,
}

/// A client's login as its startup packet asks for it.
#[derive(Debug)]
pub(crate) struct LoginRequest {
    /// The minor version of the protocol that it gets.
    pub(crate) minor: u16,
    /// The user's name.
    pub(crate) user: String,
    /// The database's name.
    pub(crate) database: String,
    /// Settings to begin with.
    pub(crate) settings: Vec<Setting>,
    /// PostgreSQL's refusal of its `options`, behind those settings.
    pub(crate) refused: Option<RefusedSwitch>,
    /// Its pool; `None` for the admin console.
    pub(crate) pool: Option<PoolId>,
    /// The rule of `pg_hba.conf` that is for the client, if such rules count.
    pub(crate) rule: Option<MatchedRule>,
    /// The replication that it asks for.
    pub(crate) replication: Option<Replication>,
}

impl LoginRequest {
    /// Returns the client of the login, whose connection has this peer and this encryption, as the
    /// rules of `pg_hba.conf` look at it.
    pub(crate) fn applicant<'a>(
        &'a self,
        peer: &'a Peer,
        secured: Option<&'a Secured>,
    ) -> Applicant<'a> {
        Applicant {
            peer,
            secured,
            database: &self.database,
            user: &self.user,
            replicates: self.replicates_server(),
        }
    }

    /// Whether it asks to replicate the whole server, and no database.
    pub(crate) fn replicates_server(&self) -> bool {
        self.replication == Some(Replication::Physical)
    }
}

/// A client's login.
#[derive(Debug, Default)]
pub(crate) struct SessionLogin {
    state: ClientState,
    /// Whether the client has asked for TLS, and for GSSAPI encryption.
    asked: (bool, bool),
    /// Whether the client's connection is being encrypted, or is encrypted.
    starts_tls: bool,
    /// Whether bytes in the clear came with the request for that.
    came_in_the_clear: bool,
    /// The replication for which the client has a server of its own.
    replication: Option<Replication>,
    /// The client's key, if other processes serve the same clients.
    key: Option<Box<PeerKey>>,
    /// Whether the session ends at a simple query.
    refuses_queries: bool,
}

impl SessionLogin {
    /// Returns the messages that the client may send now.
    #[inline]
    pub(crate) fn state(&self) -> &ClientState {
        &self.state
    }

    /// Has the session end at a simple query, or not.
    pub(crate) fn refuse_queries(&mut self, refuses: bool) {
        self.refuses_queries = refuses;
    }

    /// Whether the session ends at a simple query.
    #[inline]
    pub(crate) fn refuses_queries(&self) -> bool {
        self.refuses_queries
    }

    /// Whether the client is logged in.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, ClientState::Ready(..))
    }

    /// Whether a server checks the client's startup parameters.
    #[inline]
    pub(crate) fn is_checking(&self) -> bool {
        matches!(self.state, ClientState::Checking(..))
    }

    /// Returns the user of the admin console, the database name that it asked for, and its session.
    pub(crate) fn console(&self) -> Option<(&Authenticated, &'static str, &Session)> {
        match &self.state {
            ClientState::Console(authenticated, name, session) => {
                Some((authenticated, name, session))
            }
            _ => None,
        }
    }

    /// Returns the session of a client of the admin console.
    pub(crate) fn console_session(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            ClientState::Console(_, _, session) => Some(session),
            _ => None,
        }
    }

    /// Returns the database and the user as the client names them, once it has, and until it is in.
    pub(crate) fn claimed(&self) -> Option<(&str, &str)> {
        match &self.state {
            ClientState::LookingUp(login_request, _)
            | ClientState::Proving(login_request, _)
            | ClientState::Entering(login_request, _)
            | ClientState::Checking(login_request, _) => {
                Some((&login_request.database, &login_request.user))
            }
            ClientState::Console(authenticated, name, _) => Some((name, authenticated.user())),
            ClientState::Opening | ClientState::Ready(..) => None,
        }
    }

    /// Notes that the client asks for encryption. False if it has asked for this kind before.
    pub(crate) fn note_encryption_request(&mut self, encryption: Encryption) -> bool {
        let asked = match encryption {
            Encryption::Tls => &mut self.asked.0,
            Encryption::Gss => &mut self.asked.1,
        };
        !std::mem::replace(asked, true)
    }

    /// Waits for what the database says of the client's user.
    pub(crate) fn await_user(&mut self, login_request: Box<LoginRequest>, since: Now) {
        self.state = ClientState::LookingUp(login_request, since);
    }

    /// Takes the login out that waits for its user, and since when.
    pub(crate) fn take_looking_up(&mut self) -> Option<(Box<LoginRequest>, Now)> {
        match std::mem::take(&mut self.state) {
            ClientState::LookingUp(login_request, since) => Some((login_request, since)),
            _ => None,
        }
    }

    /// Notes that the client's next bytes are a handshake, for the loop.
    pub(crate) fn start_tls(&mut self) {
        self.asked.0 = true;
        self.starts_tls = true;
    }

    /// Whether the client's next bytes are a handshake, unless that is over.
    pub(crate) fn starts_tls(&self) -> bool {
        self.starts_tls
    }

    /// Notes that bytes in the clear stood behind the client's request for TLS.
    pub(crate) fn note_bytes_in_the_clear(&mut self) {
        self.came_in_the_clear = true;
    }

    /// Whether bytes in the clear stood behind the client's request for TLS.
    pub(crate) fn had_bytes_in_the_clear(&self) -> bool {
        self.came_in_the_clear
    }

    /// Waits for the client's part of the authentication.
    pub(crate) fn await_proof(&mut self, login_request: Box<LoginRequest>, proving: Proving) {
        self.state = ClientState::Proving(login_request, Box::new(proving));
    }

    /// Takes the authentication out, to go on with it.
    pub(crate) fn take_proving(&mut self) -> Option<(Box<LoginRequest>, Box<Proving>)> {
        match std::mem::take(&mut self.state) {
            ClientState::Proving(login_request, proving) => Some((login_request, proving)),
            _ => None,
        }
    }

    /// Waits until a server of the client's pool has been reached.
    pub(crate) fn enter(&mut self, login_request: Box<LoginRequest>, proof: Authenticated) {
        self.state = ClientState::Entering(login_request, proof);
    }

    /// Takes the login out that waited for a server to be reached.
    pub(crate) fn take_entering(&mut self) -> Option<(Box<LoginRequest>, Authenticated)> {
        match std::mem::take(&mut self.state) {
            ClientState::Entering(login_request, proof) => Some((login_request, proof)),
            _ => None,
        }
    }

    /// Waits until a server has checked the client's startup parameters.
    pub(crate) fn check(&mut self, login_request: Box<LoginRequest>, proof: Authenticated) {
        self.state = ClientState::Checking(login_request, proof);
    }

    /// Takes the login out whose startup parameters were being checked.
    pub(crate) fn take_checking(&mut self) -> Option<(Box<LoginRequest>, Authenticated)> {
        match std::mem::take(&mut self.state) {
            ClientState::Checking(login_request, proof) => Some((login_request, proof)),
            _ => None,
        }
    }

    /// Notes that the client has a server of its own, for replication.
    pub(crate) fn begin_replication(&mut self, kind: Replication) {
        self.replication = Some(kind);
    }

    /// Returns the replication for which the client has a server of its own.
    pub(crate) fn replication(&self) -> Option<Replication> {
        self.replication
    }

    /// Keeps the client's key for as long as the client is there.
    pub(crate) fn keep_key(&mut self, key: PeerKey) {
        self.key = Some(Box::new(key));
    }

    /// Lets the client in.
    pub(crate) fn let_in(&mut self, proof: Authenticated, now: Now) {
        self.state = ClientState::Ready(proof, now);
    }

    /// Returns when the client has logged in, unless a server has confirmed that since.
    pub(crate) fn unconfirmed(&self) -> Option<Now> {
        match self.state {
            ClientState::Ready(_, granted) if granted != Now(0) => Some(granted),
            _ => None,
        }
    }

    /// Notes that a server has confirmed the client's login.
    pub(crate) fn confirm(&mut self) {
        if let ClientState::Ready(_, granted) = &mut self.state {
            *granted = Now(0);
        }
    }

    /// Lets the client in to the admin console, under the database name that it asked for.
    pub(crate) fn let_in_to_console(
        &mut self,
        proof: Authenticated,
        name: &'static str,
        session: Session,
    ) {
        self.state = ClientState::Console(proof, name, Box::new(session));
    }
}
