//! The login of Refrain to a server: greeting, TLS, and the proof that the server's plugin asks
//! for.
//!
//! The server chooses the plugin. Refrain has `mysql_native_password` and `caching_sha2_password`;
//! any other one is refused by name, and so is whatever would send the password itself over a
//! connection that others could read.

use refrain_mysql_wire::auth::caching_sha2;
use refrain_mysql_wire::error_code;
use refrain_mysql_wire::handshake::{
    Attributes, AuthReply, AuthSwitchRequest, Greeting, HandshakeResponse41, HandshakeV10,
    NONCE_BYTES, SslRequest,
};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::{ErrPacket, OkPacket};
use refrain_mysql_wire::{Capabilities, Status};

use super::encrypted::{self, SEED_BYTES};
use super::flavour::Flavour;
use super::secret::{Plugin, ServerSecret};

/// The longest packet that Refrain says it sends and takes. Servers do not use it.
const MAX_PACKET: u32 = 1 << 30;
/// The name of the attribute that says which program a session is of.
const PROGRAM_NAME: &[u8] = b"program_name";

/// Whether a session is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// No.
    Never,
    /// If the server offers it.
    IfOffered,
    /// Yes, or the login fails.
    Always,
}

/// The session that a server is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The user's name.
    pub user: Box<[u8]>,
    /// The secret.
    pub secret: ServerSecret,
    /// The default database; empty for none.
    pub schema: Box<[u8]>,
    /// Whether the session is encrypted.
    pub tls: Tls,
    /// Whether the connection is a Unix socket, which nobody else can read.
    pub is_local: bool,
    /// Capabilities beside those that every server is asked for: [`Capabilities::FOUND_ROWS`],
    /// [`Capabilities::MULTI_STATEMENTS`], [`Capabilities::IGNORE_SPACE`].
    pub capabilities: Capabilities,
    /// The id of the collation; `None` for the server's own.
    pub collation: Option<u8>,
    /// The name of the program in the server's list of sessions; empty for none.
    pub program_name: Box<[u8]>,
}

/// A session that has begun.
#[derive(Clone, Debug)]
pub struct LoggedIn {
    /// All that the greeting said of the server.
    pub flavour: Flavour,
    /// The session's number at the server, for KILL.
    pub connection_id: u32,
    /// The capabilities that both sides have.
    pub capabilities: Capabilities,
    /// The flags of the session.
    pub status: Status,
    /// The changes of the session's state that the server reports, for
    /// [`refrain_mysql_wire::track::Changes`].
    pub changes: Box<[u8]>,
}

/// The failure of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason in words, for the log.
    pub why: String,
    /// The payload of the server's ERR packet, if there was one.
    pub error: Option<Box<[u8]>>,
    /// Whether a later attempt may succeed though nobody changes the configuration.
    pub is_outage: bool,
}

/// The consequence of a server's packet.
#[derive(Debug)]
pub enum ServerStep {
    /// The server's next packet is waited for.
    More,
    /// Once what is written has been sent, the connection goes over to TLS. Then comes
    /// [`ServerLogin::secured`].
    StartTls,
    /// The session has begun.
    LoggedIn(Box<LoggedIn>),
    /// The login failed.
    Failed(Failure),
}

/// One login to a server.
#[derive(Debug)]
pub struct ServerLogin {
    wanted: Wanted,
    /// Randomness for one encryption.
    seed: [u8; SEED_BYTES],
    /// The sequence id of the next packet.
    sequence: u8,
    /// Whether nobody else can read what is sent.
    is_private: bool,
    stage: Stage,
    greeted: Option<Greeted>,
}

/// The greeting, and the capabilities that follow from it.
#[derive(Debug)]
struct Greeted {
    flavour: Flavour,
    connection_id: u32,
    capabilities: Capabilities,
    nonce: [u8; NONCE_BYTES],
}

/// The packet that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The greeting.
    Greeting,
    /// None: the connection goes over to TLS.
    Securing,
    /// The server's answer to a proof of this plugin; `None` for a plugin that Refrain lacks.
    Proved(Option<Plugin>),
    /// The server's RSA key.
    KeyAsked,
    /// The server's answer to the password itself.
    Told,
    /// None: the login is over.
    Over,
}

impl ServerLogin {
    /// Waits for a server's greeting. `seed` is random.
    pub fn new(wanted: Wanted, seed: [u8; SEED_BYTES]) -> Self {
        let is_private = wanted.is_local;
        Self { wanted, seed, sequence: 0, is_private, stage: Stage::Greeting, greeted: None }
    }

    /// Takes a server's packet.
    pub fn input(&mut self, payload: &[u8], sequence: u8, out: &mut Vec<u8>) -> ServerStep {
        if sequence != self.sequence {
            return self.fail("the server's packets are out of order");
        }
        self.sequence = sequence.wrapping_add(1);
        match self.stage {
            Stage::Greeting => self.greeting(payload, out),
            Stage::Securing | Stage::Over => self.fail("the server speaks out of turn"),
            Stage::Proved(_) | Stage::KeyAsked | Stage::Told => self.reply(payload, out),
        }
    }

    /// Goes on within TLS.
    pub fn secured(&mut self, out: &mut Vec<u8>) -> ServerStep {
        self.is_private = true;
        self.respond(out)
    }

    /// Returns the sequence id of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    fn greeting(&mut self, payload: &[u8], out: &mut Vec<u8>) -> ServerStep {
        let greeting = match Greeting::read(payload) {
            Ok(Greeting::Handshake(greeting)) => greeting,
            Ok(Greeting::Refused(err)) => return self.refused(&err, payload),
            Err(_) => return self.fail("the server's greeting is none of MySQL's or MariaDB's"),
        };
        let capabilities = self.capabilities(&greeting);
        let has_tls = greeting.capabilities.has(Capabilities::SSL);
        let flavour = Flavour::of(&greeting);
        let HandshakeV10 { connection_id, nonce, .. } = greeting;
        self.greeted = Some(Greeted { flavour, connection_id, capabilities, nonce });
        match self.wanted.tls {
            Tls::Always if !has_tls => self.fail("the server does not offer TLS"),
            Tls::Always | Tls::IfOffered if has_tls => self.ask_for_tls(out),
            _ => self.respond(out),
        }
    }

    /// Returns the capabilities that the session gets.
    fn capabilities(&self, greeting: &HandshakeV10<'_>) -> Capabilities {
        let Wanted { schema, .. } = &self.wanted;
        let mut wanted = Flavour::of(greeting).asked() | self.wanted.capabilities;
        if !schema.is_empty() {
            wanted = wanted | Capabilities::CONNECT_WITH_DB;
        }
        wanted & greeting.capabilities
    }

    fn ask_for_tls(&mut self, out: &mut Vec<u8>) -> ServerStep {
        let Some(greeted) = &mut self.greeted else { return self.fail(TOO_EARLY) };
        greeted.capabilities = greeted.capabilities | Capabilities::SSL;
        let request = SslRequest {
            capabilities: greeted.capabilities,
            max_packet: MAX_PACKET,
            collation: self.wanted.collation.unwrap_or(greeted.flavour.collation),
        };
        self.send(out, |out| request.write(out));
        self.stage = Stage::Securing;
        ServerStep::StartTls
    }

    /// Answers the greeting.
    fn respond(&mut self, out: &mut Vec<u8>) -> ServerStep {
        let Some(greeted) = &self.greeted else { return self.fail(TOO_EARLY) };
        let wanted = &self.wanted;
        // A proof for a plugin that Refrain lacks, or that the secret does not serve, is left out:
        // the server asks for the plugin of the account, which may be another one.
        let named = Plugin::named(&greeted.flavour.plugin);
        let proof =
            |plugin| wanted.secret.proof(plugin, &greeted.nonce).map(|proof| (plugin, proof));
        let proved = named.and_then(proof).or_else(|| proof(Plugin::Native));
        let (plugin, proof) = match proved {
            Some((plugin, proof)) => (Some(plugin), proof),
            None => (None, Vec::new()),
        };
        let mut attributes = Vec::new();
        if !wanted.program_name.is_empty() {
            Attributes::put(&mut attributes, PROGRAM_NAME, &wanted.program_name);
        }
        let response = HandshakeResponse41 {
            capabilities: greeted.capabilities,
            max_packet: MAX_PACKET,
            collation: wanted.collation.unwrap_or(greeted.flavour.collation),
            user: &wanted.user,
            proof: &proof,
            database: &wanted.schema,
            plugin: plugin.unwrap_or(Plugin::Native).name(),
            attributes: Attributes(&attributes),
            zstd_level: 0,
        };
        self.sequence = packet::message(out, self.sequence, |out| response.write(out));
        self.stage = Stage::Proved(plugin);
        ServerStep::More
    }

    /// Handles a server's packet behind the response.
    fn reply(&mut self, payload: &[u8], out: &mut Vec<u8>) -> ServerStep {
        let Some(greeted) = &self.greeted else { return self.fail(TOO_EARLY) };
        match AuthReply::read(payload, greeted.capabilities) {
            Ok(AuthReply::Ok(ok)) => self.logged_in(&ok),
            Ok(AuthReply::Err(err)) => self.refused(&err, payload),
            Ok(AuthReply::Switch(switch)) => self.switch(&switch, out),
            Ok(AuthReply::MoreData(data)) => self.more_data(data, out),
            Err(_) => self.fail("the server's answer to the login is malformed"),
        }
    }

    /// Proves the password by the plugin that the server asks for.
    fn switch(&mut self, switch: &AuthSwitchRequest<'_>, out: &mut Vec<u8>) -> ServerStep {
        let name = String::from_utf8_lossy(switch.plugin);
        let Some(plugin) = Plugin::named(switch.plugin) else {
            return self.fail(format!("the server asks for {name}, which Refrain does not have"));
        };
        if !matches!(self.stage, Stage::Proved(_)) {
            return self.fail("the server asks for another plugin in the middle of one");
        }
        let Some(greeted) = &mut self.greeted else { return self.fail(TOO_EARLY) };
        let Ok(nonce) = switch.data.try_into() else {
            return self.fail(format!("the server asks for {name} without a nonce"));
        };
        greeted.nonce = nonce;
        let Some(proof) = self.wanted.secret.proof(plugin, &nonce) else {
            return self.fail(format!(
                "the server asks for {name}, which takes the password itself: its hash for \
                 mysql_native_password does not serve"
            ));
        };
        self.send(out, |out| out.extend_from_slice(&proof));
        self.stage = Stage::Proved(Some(plugin));
        ServerStep::More
    }

    /// Answers the data of `caching_sha2_password`, which alone sends any.
    fn more_data(&mut self, data: &[u8], out: &mut Vec<u8>) -> ServerStep {
        match (self.stage, data) {
            (Stage::Proved(Some(Plugin::CachingSha2)), caching_sha2::FAST_AUTH_SUCCESS) => {
                self.stage = Stage::Told;
                ServerStep::More
            }
            (
                Stage::Proved(Some(Plugin::CachingSha2)),
                caching_sha2::PERFORM_FULL_AUTHENTICATION,
            ) => self.tell_password(out),
            (Stage::KeyAsked, key) => self.tell_encrypted(key, out),
            _ => self.fail("the server sends data that no plugin of Refrain's takes"),
        }
    }

    /// Sends the password itself where nobody else can read it, else asks for the server's key.
    fn tell_password(&mut self, out: &mut Vec<u8>) -> ServerStep {
        let ServerSecret::Password(password) = &self.wanted.secret else {
            return self.fail("the server asks for the password, and none is configured");
        };
        if !self.is_private {
            self.send(out, |out| out.extend_from_slice(caching_sha2::REQUEST_PUBLIC_KEY));
            self.stage = Stage::KeyAsked;
            return ServerStep::More;
        }
        self.sequence = packet::message(out, self.sequence, |out| {
            out.extend_from_slice(password);
            out.push(0);
        });
        self.stage = Stage::Told;
        ServerStep::More
    }

    /// Sends the password, encrypted with the server's key.
    fn tell_encrypted(&mut self, key: &[u8], out: &mut Vec<u8>) -> ServerStep {
        let (ServerSecret::Password(password), Some(greeted)) =
            (&self.wanted.secret, &self.greeted)
        else {
            return self.fail(TOO_EARLY);
        };
        match encrypted::password(password, &greeted.nonce, key, self.seed) {
            Ok(encrypted) => {
                self.send(out, |out| out.extend_from_slice(&encrypted));
                self.stage = Stage::Told;
                ServerStep::More
            }
            Err(why) => self.fail(why),
        }
    }

    fn logged_in(&mut self, ok: &OkPacket<'_>) -> ServerStep {
        self.stage = Stage::Over;
        let Some(greeted) = self.greeted.take() else { return self.fail(TOO_EARLY) };
        let Greeted { flavour, connection_id, capabilities, .. } = greeted;
        ServerStep::LoggedIn(Box::new(LoggedIn {
            flavour,
            connection_id,
            capabilities,
            status: ok.status,
            changes: ok.changes.0.into(),
        }))
    }

    fn send(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = packet::message(out, self.sequence, fill);
    }
}

/// A packet of a server that has not greeted.
const TOO_EARLY: &str = "the server has not greeted";

/// How a login fails.
impl ServerLogin {
    fn fail(&mut self, why: impl Into<String>) -> ServerStep {
        self.stage = Stage::Over;
        ServerStep::Failed(Failure { why: why.into(), error: None, is_outage: false })
    }

    /// Takes a server's refusal.
    fn refused(&mut self, err: &ErrPacket<'_>, payload: &[u8]) -> ServerStep {
        self.stage = Stage::Over;
        let why = refusal(err);
        let is_outage = is_passing(err);
        ServerStep::Failed(Failure { why, error: Some(payload.into()), is_outage })
    }
}

/// Returns a server's refusal in words, for the log.
pub(crate) fn refusal(err: &ErrPacket<'_>) -> String {
    format!("{} ({})", String::from_utf8_lossy(err.message), err.number)
}

/// Errors that pass without a change of the configuration: limits of the server, and its end. A
/// blocked host is one as well, since flushing hosts at the server lets it in again.
const PASSING: [u16; 6] = [
    error_code::CON_COUNT.number,
    error_code::SERVER_SHUTDOWN.number,
    error_code::HOST_IS_BLOCKED.number,
    error_code::TOO_MANY_USER_CONNECTIONS.number,
    error_code::USER_LIMIT_REACHED.number,
    error_code::SERVER_OFFLINE_MODE.number,
];

/// True if a later login may succeed though nobody changes the configuration. An error of the class
/// 08S01 is about this connection alone.
fn is_passing(err: &ErrPacket<'_>) -> bool {
    PASSING.contains(&err.number) || err.sqlstate == Some(error_code::SERVER_SHUTDOWN.sqlstate)
}
