//! The login of a client: greeting, request for TLS, response, and the proof of a password.
//!
//! A client proves its password by the plugin that it begins with, if Refrain has it and the stored
//! secret serves it; otherwise it is asked for another one. A wrong password and an unknown user
//! get the same packets. COM_CHANGE_USER repeats the exchange inside a session.
//!
//! The OK packet is not written here: what the client asked for may still be refused, such as its
//! schema.

use refrain_mysql_wire::Capabilities;
use refrain_mysql_wire::auth::caching_sha2;
use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::handshake::{
    AuthReply, AuthSwitchRequest, HandshakeResponse41, Login, NONCE_BYTES,
};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::request::ChangeUser;
use refrain_pool::disconnect::DisconnectReason;

use super::flavour::Flavour;
use super::secret::{Plugin, Secret, ServerSecret};
use crate::errors::{self, Brand};

/// The least capabilities of a client; a client without them is older than MySQL 4.1.
const LEAST: Capabilities = Capabilities::from_bits(
    Capabilities::PROTOCOL_41.bits() | Capabilities::SECURE_CONNECTION.bits(),
);

/// All that a client is greeted with.
#[derive(Clone, Copy, Debug)]
pub struct Welcome<'a> {
    /// The server that the client seems to reach.
    pub flavour: &'a Flavour,
    /// Random bytes.
    pub random: [u8; NONCE_BYTES],
    /// The session's number, by which KILL names it.
    pub connection_id: u32,
    /// Whether the client may go over to TLS.
    pub has_tls: bool,
    /// The client's host, as it stands in errors: its address, or `localhost`.
    pub host: &'a str,
}

/// All that a session needs for COM_CHANGE_USER.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The server that the client was greeted as.
    pub flavour: &'a Flavour,
    /// The result of the session's login.
    pub agreed: &'a Agreed,
    /// Random bytes.
    pub random: [u8; NONCE_BYTES],
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The client's host, as it stands in errors.
    pub host: &'a str,
    /// The sequence id of the next packet.
    pub sequence: u8,
}

/// The result of a client's login.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// The capabilities that client and greeting have in common.
    pub capabilities: Capabilities,
    /// The id of the client's collation; its low byte, if it comes from a login.
    pub collation: u16,
    /// The user's name.
    pub user: Box<[u8]>,
    /// The default database; empty if the client asked for none.
    pub schema: Box<[u8]>,
    /// The last nonce of the session, which clients without PLUGIN_AUTH use again.
    pub nonce: [u8; NONCE_BYTES],
    /// The sequence id of the packet that ends the login: OK, or ERR.
    pub sequence: u8,
    /// The secret that logs in to servers: [`ServerSecret::None`] for a trusted client, and once it
    /// has been taken.
    pub secret: ServerSecret,
}

/// The consequence of a client's packet.
#[derive(Debug)]
pub enum ClientStep {
    /// The client's next packet is waited for.
    More,
    /// The next bytes are the client's first record of TLS. Then comes [`ClientLogin::secured`].
    StartTls,
    /// The client has named itself: [`ClientLogin::trust`], [`ClientLogin::prove`] or
    /// [`ClientLogin::refuse`] is next.
    WhoIs,
    /// The login is over, and the error is written.
    Refused(DisconnectReason),
    /// The client has proved to be its user. The packet that ends the login is the caller's.
    Authenticated(Agreed),
}

/// The login of one client.
#[derive(Debug)]
pub struct ClientLogin {
    offered: Capabilities,
    brand: Brand,
    /// The plugin that clients with other ones are asked for.
    plugin: Plugin,
    host: Box<str>,
    is_tls: bool,
    stage: Stage,
    /// The result so far: all that the client has said.
    agreed: Agreed,
}

#[derive(Debug)]
enum Stage {
    /// The client's response is due, or its request for TLS.
    Greeted,
    /// The connection goes over to TLS.
    Securing,
    /// The caller looks for the client's secret.
    Named(Proof),
    /// The client was asked for a plugin's proof, which is checked by the secret if there is one.
    Asked(Plugin, Option<Secret>),
    /// The client was asked for the password itself.
    AskedInFull(Secret),
    /// The login is over.
    Over,
}

/// The proof that a client came with.
#[derive(Debug)]
enum Proof {
    /// One by this plugin.
    By(Plugin, Vec<u8>),
    /// None yet. The client names the plugin that it would begin with, if Refrain has it.
    Due(Option<Plugin>),
}

impl ClientLogin {
    /// Greets a client.
    pub fn greet(welcome: &Welcome<'_>, out: &mut Vec<u8>) -> Self {
        let &Welcome { flavour, random, connection_id, has_tls, host } = welcome;
        let agreed = Agreed::before_response(random);
        let greeting = flavour.greeting(connection_id, agreed.nonce, has_tls);
        let mut login = Self {
            offered: greeting.capabilities,
            brand: flavour.brand(),
            plugin: flavour.plugin(),
            host: host.into(),
            is_tls: false,
            stage: Stage::Greeted,
            agreed,
        };
        login.send(out, |out| greeting.write(out));
        login
    }

    /// Begins the exchange of COM_CHANGE_USER. The client's secret is next, as behind
    /// [`ClientStep::WhoIs`].
    pub fn change_user(change: &Change<'_>, request: &ChangeUser<'_>) -> Self {
        let session = change.agreed;
        let capabilities = session.capabilities;
        // Servers ask every client for a new proof that can be asked, whatever it comes with.
        let named = capabilities.has(Capabilities::PLUGIN_AUTH);
        let proof = match named {
            true => Proof::Due(Plugin::named(request.plugin)),
            false => Proof::By(Plugin::Native, request.proof.to_vec()),
        };
        let agreed = Agreed {
            capabilities,
            collation: request.collation.unwrap_or(session.collation),
            user: request.user.into(),
            schema: request.database.into(),
            nonce: if named { nonce(change.random) } else { session.nonce },
            sequence: change.sequence,
            secret: ServerSecret::None,
        };
        Self {
            offered: capabilities,
            brand: change.flavour.brand(),
            plugin: change.flavour.plugin(),
            host: change.host.into(),
            is_tls: change.is_tls,
            stage: Stage::Named(proof),
            agreed,
        }
    }

    /// Returns the user's name, once the client has named itself.
    pub fn user(&self) -> &[u8] {
        &self.agreed.user
    }

    /// Returns the default database that the client asked for; empty if it asked for none.
    pub fn schema(&self) -> &[u8] {
        &self.agreed.schema
    }

    /// True if the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns the sequence id of the next packet.
    pub fn sequence(&self) -> u8 {
        self.agreed.sequence
    }

    /// Takes a client's packet.
    pub fn input(&mut self, payload: &[u8], sequence: u8, out: &mut Vec<u8>) -> ClientStep {
        if sequence != self.agreed.sequence {
            return self.fail(out, DisconnectReason::Synchronization);
        }
        self.agreed.sequence = sequence.wrapping_add(1);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Greeted => self.response(payload, out),
            Stage::Asked(plugin, secret) => self.check(plugin, payload, secret.as_ref(), out),
            Stage::AskedInFull(secret) => self.check_in_full(payload, &secret, out),
            Stage::Securing | Stage::Named(_) | Stage::Over => {
                self.fail(out, DisconnectReason::ClientProtocol)
            }
        }
    }

    /// Goes on within TLS.
    pub fn secured(&mut self) {
        self.is_tls = true;
        self.stage = Stage::Greeted;
    }

    /// Ends the login of a client that needs no proof.
    pub fn trust(&mut self, out: &mut Vec<u8>) -> ClientStep {
        self.settle(None, out)
    }

    /// Checks the client's proof by a secret, or asks for a proof that can be checked by it.
    pub fn prove(&mut self, secret: &Secret, out: &mut Vec<u8>) -> ClientStep {
        self.settle(Some(secret), out)
    }

    /// Ends the login of a client that may not log in, for this reason.
    pub fn refuse(&mut self, reason: DisconnectReason, out: &mut Vec<u8>) -> ClientStep {
        self.fail(out, reason)
    }

    /// Checks the client's proof, or asks for one that can be checked.
    fn settle(&mut self, secret: Option<&Secret>, out: &mut Vec<u8>) -> ClientStep {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Named(proof) = stage else {
            return self.fail(out, DisconnectReason::ClientProtocol);
        };
        let serves = |plugin: &Plugin| secret.is_none_or(|secret| secret.serves(*plugin));
        let preferred = match proof {
            Proof::By(plugin, proof) if serves(&plugin) => {
                return self.check(plugin, &proof, secret, out);
            }
            Proof::By(..) => None,
            Proof::Due(plugin) => plugin,
        };
        let plugin = [preferred, Some(self.plugin)].into_iter().flatten().find(serves);
        self.ask(plugin.unwrap_or(Plugin::Native), secret, out)
    }

    /// Asks for a proof by a plugin.
    fn ask(&mut self, plugin: Plugin, secret: Option<&Secret>, out: &mut Vec<u8>) -> ClientStep {
        let nonce = self.agreed.nonce;
        let switch = AuthSwitchRequest { plugin: plugin.name(), data: &nonce };
        self.reply(out, &AuthReply::Switch(switch));
        self.stage = Stage::Asked(plugin, secret.cloned());
        ClientStep::More
    }

    /// Takes a client's response, or its request for TLS.
    fn response(&mut self, payload: &[u8], out: &mut Vec<u8>) -> ClientStep {
        if is_old(payload) {
            return self.fail(out, DisconnectReason::ClientVersion);
        }
        match Login::read(payload, self.offered) {
            Ok(Login::SslRequest(_)) if !self.is_tls && self.offered.has(Capabilities::SSL) => {
                self.stage = Stage::Securing;
                ClientStep::StartTls
            }
            Ok(Login::Response(response)) => self.named(&response),
            Ok(Login::SslRequest(_)) | Err(_) => self.fail(out, DisconnectReason::ClientProtocol),
        }
    }

    /// Keeps what a response says.
    fn named(&mut self, response: &HandshakeResponse41<'_>) -> ClientStep {
        self.agreed.capabilities = response.capabilities;
        self.agreed.collation = u16::from(response.collation);
        self.agreed.user = response.user.into();
        self.agreed.schema = response.database.into();
        let proof = match Plugin::named(response.plugin) {
            _ if !response.capabilities.has(Capabilities::PLUGIN_AUTH) => {
                Proof::By(Plugin::Native, response.proof.to_vec())
            }
            // Clients leave out the proof of a plugin that they have not been greeted with, since
            // the nonce is not for it. They wait to be asked.
            Some(plugin) if plugin == self.plugin || !response.proof.is_empty() => {
                Proof::By(plugin, response.proof.to_vec())
            }
            plugin => Proof::Due(plugin),
        };
        self.stage = Stage::Named(proof);
        ClientStep::WhoIs
    }

    /// Checks a proof by a secret; without one, any proof is right.
    fn check(
        &mut self,
        plugin: Plugin,
        proof: &[u8],
        secret: Option<&Secret>,
        out: &mut Vec<u8>,
    ) -> ClientStep {
        let found = secret.map(|secret| (secret, secret.check(plugin, &self.agreed.nonce, proof)));
        let secret = match found {
            None => ServerSecret::None,
            Some((_, Some(secret))) => secret,
            Some((secret, None)) if plugin == Plugin::CachingSha2 && !is_empty(proof) => {
                return self.ask_again(secret, out);
            }
            Some((_, None)) => return self.deny(!is_empty(proof), out),
        };
        // A client with such a proof waits for the plugin's answer.
        if plugin == Plugin::CachingSha2 && !is_empty(proof) {
            self.reply(out, &AuthReply::MoreData(caching_sha2::FAST_AUTH_SUCCESS));
        }
        ClientStep::Authenticated(Agreed { secret, ..self.agreed.clone() })
    }

    /// Asks in another way for what a proof of `caching_sha2_password` has not proved. Servers ask
    /// for the password itself, since they may have forgotten it, so nobody notices that a
    /// library's proofs are wrong: sqlx's 0.8 are. In the clear a client would want a key to
    /// encrypt it with.
    fn ask_again(&mut self, secret: &Secret, out: &mut Vec<u8>) -> ClientStep {
        if self.is_tls {
            let full = AuthReply::MoreData(caching_sha2::PERFORM_FULL_AUTHENTICATION);
            self.reply(out, &full);
            self.stage = Stage::AskedInFull(secret.clone());
            return ClientStep::More;
        }
        self.ask(Plugin::Native, Some(secret), out)
    }

    /// Checks a password, which ends with a zero byte.
    fn check_in_full(&mut self, payload: &[u8], secret: &Secret, out: &mut Vec<u8>) -> ClientStep {
        let password = payload.strip_suffix(b"\0").unwrap_or(payload);
        let nonce = self.agreed.nonce;
        let proof = caching_sha2::Key::of(password).proof(&nonce);
        match secret.check(Plugin::CachingSha2, &nonce, &proof) {
            Some(secret) => ClientStep::Authenticated(Agreed { secret, ..self.agreed.clone() }),
            None => self.deny(true, out),
        }
    }
}

/// How a login ends.
impl ClientLogin {
    /// Denies access, in the words for a wrong password and an unknown user.
    fn deny(&mut self, with_password: bool, out: &mut Vec<u8>) -> ClientStep {
        let user = String::from_utf8_lossy(&self.agreed.user).into_owned();
        let words = errors::access_denied(&user, &self.host, with_password);
        self.end(out, error_code::ACCESS_DENIED, &words, DisconnectReason::Login)
    }

    /// Ends the login for a reason.
    fn fail(&mut self, out: &mut Vec<u8>, reason: DisconnectReason) -> ClientStep {
        if reason == DisconnectReason::Login {
            let with_password = match &self.stage {
                Stage::Named(Proof::By(_, proof)) => !is_empty(proof),
                _ => true,
            };
            return self.deny(with_password, out);
        }
        match errors::in_login(reason, self.brand) {
            Some(error) => self.end(out, error.code, error.words, reason),
            None => {
                self.stage = Stage::Over;
                ClientStep::Refused(reason)
            }
        }
    }

    fn end(
        &mut self,
        out: &mut Vec<u8>,
        code: ErrorCode,
        words: &str,
        reason: DisconnectReason,
    ) -> ClientStep {
        self.stage = Stage::Over;
        self.agreed.sequence = errors::write(out, self.agreed.sequence, code, words.as_bytes());
        ClientStep::Refused(reason)
    }

    fn reply(&mut self, out: &mut Vec<u8>, reply: &AuthReply<'_>) {
        let capabilities = self.agreed.capabilities;
        self.send(out, |out| reply.write(out, capabilities));
    }

    fn send(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
        self.agreed.sequence = packet::message(out, self.agreed.sequence, fill);
    }
}

impl Agreed {
    /// Makes what is agreed on before the client has said anything.
    fn before_response(random: [u8; NONCE_BYTES]) -> Self {
        Self {
            capabilities: Capabilities::NONE,
            collation: 0,
            user: Box::default(),
            schema: Box::default(),
            nonce: nonce(random),
            sequence: 0,
            secret: ServerSecret::None,
        }
    }
}

/// Makes a nonce of random bytes. It is a string for some libraries, which end it at a zero byte;
/// and servers leave `$` out of it.
fn nonce(random: [u8; NONCE_BYTES]) -> [u8; NONCE_BYTES] {
    random.map(|byte| match byte & 0x7F {
        0 | b'$' => b'#',
        letter => letter,
    })
}

/// True if a proof says that there is no password. Some libraries send a zero byte for it.
fn is_empty(proof: &[u8]) -> bool {
    matches!(proof, [] | [0])
}

/// True if a response is one of a client before MySQL 4.1, or of one without its proofs.
fn is_old(payload: &[u8]) -> bool {
    let low = payload.first_chunk::<2>().map(|&low| u64::from(u16::from_le_bytes(low)));
    low.is_some_and(|low| !Capabilities::from_bits(low).has(LEAST))
}
