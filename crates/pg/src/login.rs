//! Clients at their login: first packet, proof of who they are, pool, welcome.
//!
//! A client is let in when its pool's server has been reached once, since what a server says of itself at a
//! login has to be passed on. Startup parameters that no server has accepted yet are put to one first: a
//! value that PostgreSQL refuses ends the login, as it would there.

use refrain_config::{AuthMethod, Database};
use refrain_wire::Header;
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write::{self, Report};

use crate::auth::{
    AuthRequest, Authenticated, Method, NONCE_BYTES, Proving, Refusal, Step as Proof,
};
use crate::client::{Client, Entrant, Phase};
use crate::defaults::Defaults;
use crate::engine::Step;
use crate::event::Level;
use crate::fault::Cause;
use crate::ids::{Conn, PoolId, pid_of};
use crate::lobby::Counted;
use crate::settings::{Edit, Setting};
use crate::shared::{Crowded, PoolShared};

/// The largest message at the login: PostgreSQL's `PG_MAX_AUTH_TOKEN_LENGTH`.
const AUTH_BYTES_MAX: u32 = 65_535;

impl Step<'_> {
    /// What a client says before it is let in.
    pub(crate) fn login_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.roles.client(conn) else { return };
        let all = client.inbox.join(bytes);
        let mut at = 0;
        loop {
            let Some(client) = self.engine.roles.client(conn) else { return };
            let used = match client.phase {
                Phase::Opening => self.open(conn, &all[at..]),
                Phase::Proving(..) => self.proving(conn, &all[at..]),
                _ => None,
            };
            match used {
                Some(used) => at += used,
                None => break,
            }
        }
        if let Some(client) = self.engine.roles.client(conn) {
            client.inbox.put_back(all, at);
            if matches!(client.phase, Phase::Ready(_) | Phase::Console(..)) {
                self.engine.runnable.push_back(conn);
            }
            self.regulate(conn);
        }
    }

    /// The first packet. Says how many bytes it took; `None` while it is not all there.
    fn open(&mut self, conn: Conn, input: &[u8]) -> Option<usize> {
        let (used, entrant) = self.opening(conn, input)?;
        if let Some(entrant) = entrant {
            self.challenge(conn, entrant);
        }
        Some(used)
    }

    /// Asks a client to prove who it is.
    fn challenge(&mut self, conn: Conn, mut entrant: Entrant) {
        let shared = self.engine.hub.shared.clone();
        entrant.pool = shared.find_pool(&entrant.database, &entrant.user);
        let method = match shared.options().general.auth {
            AuthMethod::Trust => Method::Trust,
            AuthMethod::Password => Method::Password,
            AuthMethod::Md5 => Method::Md5,
            AuthMethod::Scram => Method::Scram,
        };
        let credential = shared.credential(&entrant.user);
        let random: [u8; NONCE_BYTES] = self.engine.hub.random();
        let proof = Proving::start(method, &credential, &random);
        self.proof(conn, Box::new(entrant), proof);
    }

    /// A message of a client that is proving who it is.
    fn proving(&mut self, conn: Conn, input: &[u8]) -> Option<usize> {
        let header = match Header::parse(input) {
            Ok(Some(header)) if header.tag == front::TERMINATE => {
                self.end_client(conn, Cause::Terminated);
                return None;
            }
            Ok(Some(h)) if h.tag == front::PASSWORD && h.body <= AUTH_BYTES_MAX => h,
            Ok(None) => return None,
            Ok(Some(header)) if header.tag != front::PASSWORD => {
                self.refuse_message(conn, header.tag);
                return None;
            }
            Ok(Some(_)) | Err(_) => {
                self.end_client(conn, Cause::ClientProtocol);
                return None;
            }
        };
        let length = header.message_bytes();
        let body = input.get(refrain_wire::frame::HEADER_BYTES..length)?;
        let client = self.engine.roles.client(conn)?;
        let Phase::Proving(entrant, proving) = std::mem::replace(&mut client.phase, Phase::Opening)
        else {
            return None;
        };
        self.proof(conn, entrant, proving.receive(body));
        Some(length)
    }

    /// A message that proves nothing ends the login, in PostgreSQL's words.
    fn refuse_message(&mut self, conn: Conn, tag: u8) {
        let Some(Client { phase: Phase::Proving(_, proving), .. }) = self.engine.roles.client(conn)
        else {
            return;
        };
        let wanted = if proving.is_sasl() { "SASL" } else { "password" };
        let message = format!("expected {wanted} response, got message type {tag}");
        let report = Report { severity: "FATAL", sqlstate: "08P01", message: &message, hint: "" };
        self.refuse_client(conn, Cause::ClientProtocol, &report);
    }

    /// What came of a step of the proof.
    fn proof(&mut self, conn: Conn, entrant: Box<Entrant>, proof: Proof) {
        match proof {
            Proof::Send(request, proving) => {
                self.ask(conn, &request);
                if let Some(client) = self.engine.roles.client(conn) {
                    client.phase = Phase::Proving(entrant, Box::new(proving));
                }
            }
            Proof::Failed(refusal) => self.refused(conn, &entrant, &refusal),
            Proof::Done(authenticated, requests) => {
                requests.iter().for_each(|request| self.ask(conn, request));
                self.enter(conn, entrant, authenticated);
            }
        }
    }

    fn ask(&mut self, conn: Conn, request: &AuthRequest) {
        let out = self.ports.out(conn);
        match request {
            AuthRequest::Ok => write::authentication(out, 0, &[]),
            AuthRequest::CleartextPassword => write::authentication(out, 3, &[]),
            AuthRequest::Md5 { salt } => write::authentication(out, 5, salt),
            AuthRequest::Sasl { mechanisms } => {
                let mut list = Vec::new();
                mechanisms.iter().for_each(|name| write::string(&mut list, name.as_bytes()));
                list.push(0);
                write::authentication(out, 10, &list);
            }
            AuthRequest::SaslContinue(data) => write::authentication(out, 11, data),
            AuthRequest::SaslFinal(data) => write::authentication(out, 12, data),
        }
    }

    fn refused(&mut self, conn: Conn, entrant: &Entrant, refusal: &Refusal) {
        if let Some(pool) = entrant.pool.as_ref().and_then(|p| self.engine.hub.find_pool(p.id)) {
            pool.counters.client_login_failures += 1;
        }
        let message = refusal.to_string();
        let sqlstate = refusal.sqlstate();
        let report = Report { severity: "FATAL", sqlstate, message: &message, hint: "" };
        self.refuse_client(conn, Cause::Login, &report);
    }

    /// A client has proved who it is: finds its pool.
    fn enter(&mut self, conn: Conn, entrant: Box<Entrant>, authenticated: Authenticated) {
        // The exchange may have begun before a reload.
        if !self.engine.hub.shared.options().admits(authenticated.user()) {
            return self.end_client(conn, Cause::Login);
        }
        if let Some(name) = Database::CONSOLES.iter().find(|name| **name == entrant.database) {
            return self.enter_console(conn, authenticated, name);
        }
        let Entrant { database, user, .. } = &*entrant;
        let known = self.engine.hub.shared.options().database(database).is_some();
        let Some(shared) = self.engine.hub.shared.pool(database, user) else {
            if known {
                return self.end_client(conn, Cause::TooManyClients);
            }
            return self.refuse_unknown(conn, &entrant.database);
        };
        if !self.count_as(conn, Counted::Client) {
            return self.end_client(conn, Cause::TooManyClients);
        }
        if let Err(crowded) = self.engine.hub.shared.admit_client(&shared) {
            return self.refuse_crowded(conn, crowded, &shared);
        }
        shared.learn_secret(authenticated.secret());
        let Some(client) = self.engine.roles.client(conn) else { return };
        let pool = self.engine.hub.open_pool(&shared, self.now);
        pool.clients += 1;
        client.pool = shared.id;
        client.phase = Phase::Entering(entrant, authenticated);
        // What servers said once says nothing of now: the database may have been dropped since. While a pool is paused, there is
        // nobody to ask.
        if shared.welcome().is_some() && (shared.is_live() || pool.paused) {
            self.admit(conn);
        } else {
            if !pool.entering.contains(&conn) {
                pool.entering.push(conn);
            }
            self.grow(shared.id);
        }
    }

    /// Ends a login to a database that there is not.
    fn refuse_unknown(&mut self, conn: Conn, database: &str) {
        let message = format!("database \"{database}\" does not exist");
        let options = self.engine.hub.shared.options();
        let default = options.general.default_database.as_deref();
        let hint = default.map_or_else(String::new, |default| {
            format!(
                "The database here is \"{default}\". A configuration file may name others; see docs/config.md."
            )
        });
        let report =
            Report { severity: "FATAL", sqlstate: "3D000", message: &message, hint: &hint };
        self.refuse_client(conn, Cause::UnknownDatabase, &report);
    }

    /// Ends a login of one client too many, in PostgreSQL's words.
    fn refuse_crowded(&mut self, conn: Conn, crowded: Crowded, pool: &PoolShared) {
        let message = match crowded {
            Crowded::Database => format!("too many connections for database \"{}\"", pool.database),
            Crowded::User => format!("too many connections for role \"{}\"", pool.user),
        };
        let report = Report { severity: "FATAL", sqlstate: "53300", message: &message, hint: "" };
        self.refuse_client(conn, Cause::TooManyClients, &report);
    }

    /// The pool's server has been reached: clients that waited for that go on.
    pub(crate) fn let_in(&mut self, id: PoolId) {
        let Some(pool) = self.engine.hub.find_pool(id) else { return };
        for client in std::mem::take(&mut pool.entering) {
            self.admit(client);
        }
    }

    /// Works out the settings a client begins with. Those that no server has seen are put to one.
    fn admit(&mut self, conn: Conn) {
        let Some(client) = self.engine.roles.client(conn) else { return };
        let Phase::Entering(entrant, authenticated) =
            std::mem::replace(&mut client.phase, Phase::Opening)
        else {
            return;
        };
        let pool = self.engine.hub.pool(client.pool);
        let Some(welcome) = pool.shared.welcome() else { return };
        client.managed = pool.settings.options.prepared_statements;
        let mut edit = Edit::default();
        for (name, value) in welcome.iter().filter(|(n, _)| crate::settings::is_settable(n)) {
            edit.set(name, value);
        }
        let default = edit.clone();
        if !entrant.settings.is_empty() {
            let mut startup = Edit::default();
            for (name, value) in &entrant.settings {
                edit.set(name, value);
                startup.set(name, value);
            }
            client.startup = Some(Box::new(startup));
        }
        let plain = is_plain(&entrant.settings);
        let id = client.pool;
        let wants = self.engine.hub.profile(edit);
        let defaults = self.engine.hub.profile(default);
        let proven = self.engine.hub.pool(id).proven(&wants);
        let now = self.now;
        let Some(client) = self.engine.roles.client(conn) else { return };
        client.defaults = Defaults { profile: defaults, since: now };
        client.profile = proven.clone().unwrap_or(wants);
        if plain || proven.is_some() {
            return self.welcome(conn, &entrant, authenticated);
        }
        client.phase = Phase::Checking(entrant, authenticated);
        if self.lend(conn) {
            self.engine.runnable.push_back(conn);
        }
    }

    /// A server that is to look at a client's startup parameters has been lent, or has answered.
    pub(crate) fn checked(&mut self, conn: Conn) {
        let Some(client) = self.engine.roles.client(conn) else { return };
        let Some(link) = client.link else { return };
        let (client, server) = self.engine.roles.pair(conn, link);
        if server.ledger.quiescent().is_none() {
            return;
        }
        let made = server.profile.clone();
        let phase = std::mem::replace(&mut client.phase, Phase::Opening);
        let Phase::Checking(entrant, authenticated) = phase else { return };
        let mut edit = self.engine.hub.pool(client.pool).shared.welcome().map_or_else(
            Edit::default,
            |welcome| {
                let mut edit = Edit::default();
                let settable = welcome.iter().filter(|(n, _)| crate::settings::is_settable(n));
                settable.for_each(|(name, value)| edit.set(name, value));
                edit
            },
        );
        entrant.settings.iter().for_each(|(name, value)| edit.set(name, value));
        client.profile = made.clone();
        let id = client.pool;
        let wants = self.engine.hub.profile(edit);
        self.engine.hub.pool(id).prove(wants, made);
        self.unlink(conn, link);
        self.welcome(conn, &entrant, authenticated);
    }

    /// A server refused the settings a client wants: the client has heard it, and both go.
    pub(crate) fn refuse_login(&mut self, client: Conn, server: Conn) {
        if let Some(c) = self.engine.roles.client(client) {
            c.link = None;
        }
        self.remove_client(client, false);
        if let Some(s) = self.engine.roles.server(server) {
            s.custody = crate::server::Custody::Resetting;
        }
        self.close_server(server);
    }

    /// Lets a client in.
    fn welcome(&mut self, conn: Conn, _entrant: &Entrant, authenticated: Authenticated) {
        let key: [u8; 32] = self.engine.hub.random();
        let core = self.engine.hub.core;
        let Some(client) = self.engine.roles.client(conn) else { return };
        let pool = self.engine.hub.pool(client.pool);
        let Some(welcome) = pool.shared.welcome() else { return };
        let out = self.ports.out(conn);
        for (name, value) in welcome.iter() {
            write::parameter_status(out, name, client.profile.get(name).unwrap_or(value));
        }
        if let Some(startup) = &mut client.startup {
            startup.take_values(&client.profile);
        }
        let bytes = if client.minor >= 2 { 32 } else { 4 };
        client.key = key[..bytes].into();
        write::backend_key(out, pid_of(core, conn), &client.key);
        write::ready(out, Status::Idle);
        client.phase = Phase::Ready(authenticated);
        client.requested = self.now;
        pool.counters.client_logins += 1;
        self.unblock(conn);
        self.note_client(conn, Level::Debug, Cause::Terminated, "logged in".to_owned());
    }
}

/// Whether no server needs to look at these settings: an application's name in plain ASCII is as it is.
fn is_plain(settings: &[Setting]) -> bool {
    settings.iter().all(|(name, value)| {
        name.eq_ignore_ascii_case(b"application_name")
            && value.len() < 64
            && value.iter().all(|b| (b' '..=b'~').contains(b))
    })
}
