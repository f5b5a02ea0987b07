//! We prove who we are to a server; we are its client.
//!
//! A [`Login`] has the user's name and a [`Secret`], and answers what the server asks. It sends no
//! more than it is asked for and never what does not fit: no password hash where the password is
//! wanted, no SCRAM proof for a verifier other than the one its keys belong to.
//!
//! A server that asks for SCRAM has to prove itself as well. Its `AuthenticationOk` is an error
//! until its signature has been checked, or seen at least where there is no key to check it with. A
//! server that asks for less (nothing, the cleartext password) gets that: the caller decides
//! whether it may ask, by the transport of the connection.
//!
//! Over TLS a login is bound to the server's certificate if the server offers to
//! (`SCRAM-SHA-256-PLUS`), or has to be, as libpq's `channel_binding` has it.
//!
//! With a password, SCRAM costs a PBKDF2 of the server's choosing: bounded to a million, and spared
//! where the caller brings back the [`Salted`] of an earlier login. A server keeps a verifier's
//! salt until the password changes, so for all logins of a pool it is paid once.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use refrain_config::ChannelBinding;
use refrain_pg_wire::back::Authentication;
use refrain_pool::secured::Secured;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::malformed::Malformed;
use super::password::{Key, Md5Hash, Password};
use super::scram::{
    self, Flag, MECHANISM, MECHANISM_PLUS, NONCE_BYTES, ServerFinal, ServerFirst, bound_to,
};
use super::secret::Secret;
use super::verifier::{KeyPair, proof, signature};

/// The most rounds of PBKDF2 done at a server's request: most of a second.
const MAX_ITERATIONS: u32 = 1_000_000;

/// An authentication message of the server, as `pg-wire` has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAsks<'a> {
    /// Nothing: the login is complete.
    Ok,
    /// The password.
    CleartextPassword,
    /// Its MD5 with this salt.
    Md5 {
        /// As sent.
        salt: [u8; 4],
    },
    /// A choice of mechanism.
    Sasl {
        /// As on the wire: zero-terminated names, the last one empty.
        mechanisms: &'a [u8],
    },
    /// SCRAM's server-first message.
    SaslContinue(&'a [u8]),
    /// SCRAM's server-final message.
    SaslFinal(&'a [u8]),
    /// Something else, by its number (Kerberos, GSSAPI, SSPI, ...).
    Other(u32),
}

impl<'a> From<Authentication<'a>> for ServerAsks<'a> {
    fn from(asked: Authentication<'a>) -> Self {
        match asked {
            Authentication::Ok => Self::Ok,
            Authentication::Cleartext => Self::CleartextPassword,
            Authentication::Md5(salt) => Self::Md5 { salt },
            Authentication::Sasl(mechanisms) => Self::Sasl { mechanisms },
            Authentication::SaslContinue(body) => Self::SaslContinue(body),
            Authentication::SaslFinal(body) => Self::SaslFinal(body),
            Authentication::Other(kind) => Self::Other(kind),
        }
    }
}

/// The reply to a server's message.
#[must_use]
pub enum Reply {
    /// Send a `p` message with this body, and go on.
    Send(Zeroizing<Vec<u8>>, Login),
    /// Nothing to send; go on.
    Wait(Login),
    /// The login is complete.
    LoggedIn,
}

impl fmt::Debug for Reply {
    /// Leaves out the body, which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(_, login) => f.debug_tuple("Send").field(login).finish_non_exhaustive(),
            Self::Wait(login) => f.debug_tuple("Wait").field(login).finish(),
            Self::LoggedIn => f.write_str("LoggedIn"),
        }
    }
}

/// The reason why a login failed. It is for the operator: clients do not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginError {
    /// The server wants a password and we have none.
    NoPassword,
    /// The server wants the password in another form than we have it.
    SecretUnfit,
    /// The server wants something that we do not do, by its number (10: no SASL mechanism fits).
    Unsupported(u32),
    /// The server wants more rounds of PBKDF2 than is reasonable.
    TooManyIterations(u32),
    /// The server's verifier is not the one that our SCRAM keys belong to.
    SaltMismatch,
    /// The server does not know the user's verifier, or would not show that it does.
    ServerProofWrong,
    /// The server refused our proof, by SCRAM's own means.
    Refused,
    /// The login is not bound to the server's certificate, in these words.
    Binding(&'static str),
    /// The server broke the protocol.
    Malformed(Malformed),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPassword => f.write_str("server asks for a password and none is known"),
            Self::SecretUnfit => f.write_str("server asks for another form of the password"),
            Self::Unsupported(kind) => write!(f, "server asks for authentication of kind {kind}"),
            Self::TooManyIterations(n) => write!(f, "server asks for {n} SCRAM iterations"),
            Self::SaltMismatch => f.write_str("server's SCRAM verifier is not the one we know"),
            Self::ServerProofWrong => f.write_str("server has not proved that it knows the user"),
            Self::Refused => f.write_str("server refuses the SCRAM proof"),
            Self::Binding(words) => f.write_str(words),
            Self::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for LoginError {}

impl From<Malformed> for LoginError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// The result of PBKDF2 for a password and a salt, kept so that PBKDF2 runs once. It serves any
/// login with that password; a login with another password, salt or iterations replaces it.
#[derive(Clone)]
pub struct Salted {
    password: Password,
    salt: Vec<u8>,
    iterations: u32,
    keys: KeyPair,
}

impl Salted {
    /// Does the PBKDF2.
    pub fn derive(password: &Password, salt: &[u8], iterations: u32) -> Self {
        let keys = KeyPair::derive(password, salt, iterations);
        Self { password: password.clone(), salt: salt.to_vec(), iterations, keys }
    }

    fn fits(&self, password: &Password, first: &ServerFirst<'_>) -> bool {
        let same_salt = self.salt == first.salt && self.iterations == first.iterations;
        same_salt && bool::from(self.password.same(password))
    }
}

impl fmt::Debug for Salted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salted").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// A login under way at a server.
#[derive(Debug)]
pub struct Login {
    user: String,
    secret: Secret,
    nonce: String,
    channel: Channel,
    /// The opening's word on channel binding.
    flag: Flag,
    stage: LoginStage,
}

/// The connection of a login, as far as the login may be bound to it.
#[derive(Debug)]
struct Channel {
    is_encrypted: bool,
    end_point: Option<Box<[u8]>>,
    wanted: ChannelBinding,
}

#[derive(Debug)]
enum LoginStage {
    /// Nothing asked yet.
    Start,
    /// All said: a password sent, or a signature seen.
    AwaitOk,
    /// Client-first sent.
    AwaitChallenge,
    /// Proof sent. The signature that is to come, where we can tell.
    AwaitSignature(Option<[u8; 32]>),
}

impl Login {
    /// Begins a login. Nothing is sent before the server asks.
    pub fn new(user: &str, secret: Secret, random: &[u8; NONCE_BYTES]) -> Self {
        let nonce = scram::nonce(random);
        let channel =
            Channel { is_encrypted: false, end_point: None, wanted: ChannelBinding::Disable };
        let stage = LoginStage::Start;
        Self { user: user.to_owned(), secret, nonce, channel, flag: Flag::Unable, stage }
    }

    /// Binds the login to an encrypted connection as far as it is wanted.
    #[must_use]
    pub fn over(self, secured: Option<&Secured>, wanted: ChannelBinding) -> Self {
        let end_point = secured.and_then(|secured| secured.end_point.clone());
        let channel = Channel { is_encrypted: secured.is_some(), end_point, wanted };
        Self { channel, ..self }
    }

    /// Answers a message of the server. The caller keeps `salted` between logins.
    ///
    /// # Errors
    ///
    /// The login has failed, and the connection must be closed.
    pub fn answer(
        self,
        asks: ServerAsks<'_>,
        salted: &mut Option<Salted>,
    ) -> Result<Reply, LoginError> {
        let is_unbound = self.channel.wanted == ChannelBinding::Require && self.flag != Flag::Bound;
        match (&self.stage, asks) {
            (LoginStage::Start, asks) if is_unbound && !matches!(asks, ServerAsks::Sasl { .. }) => {
                Err(LoginError::Binding(
                    "channel binding is required, and the server does without it",
                ))
            }
            (_, ServerAsks::Other(kind)) => Err(LoginError::Unsupported(kind)),
            (LoginStage::Start | LoginStage::AwaitOk, ServerAsks::Ok) => Ok(Reply::LoggedIn),
            (_, ServerAsks::Ok) => Err(LoginError::ServerProofWrong),
            (LoginStage::Start, ServerAsks::CleartextPassword) => self.send_password(),
            (LoginStage::Start, ServerAsks::Md5 { salt }) => self.send_md5(salt),
            (LoginStage::Start, ServerAsks::Sasl { mechanisms }) => self.send_first(mechanisms),
            (LoginStage::AwaitChallenge, ServerAsks::SaslContinue(body)) => {
                self.prove(body, salted)
            }
            (LoginStage::AwaitSignature(expected), ServerAsks::SaslFinal(body)) => {
                check_signature(*expected, body)?;
                Ok(Reply::Wait(Self { stage: LoginStage::AwaitOk, ..self }))
            }
            _ => Err(Malformed("authentication message out of turn").into()),
        }
    }

    fn send_password(self) -> Result<Reply, LoginError> {
        match &self.secret {
            Secret::None => Err(LoginError::NoPassword),
            Secret::Password(password) => Ok(terminated(password.bytes())),
            Secret::Md5(_) | Secret::Scram(_) => Err(LoginError::SecretUnfit),
        }
        .map(|body| Reply::Send(body, Self { stage: LoginStage::AwaitOk, ..self }))
    }

    fn send_md5(self, salt: [u8; 4]) -> Result<Reply, LoginError> {
        match &self.secret {
            Secret::None => Err(LoginError::NoPassword),
            Secret::Password(password) => Ok(Md5Hash::of(password, &self.user)),
            Secret::Md5(hash) => Ok(hash.clone()),
            Secret::Scram(_) => Err(LoginError::SecretUnfit),
        }
        .map(|hash| terminated(hash.salted(salt).bytes()))
        .map(|body| Reply::Send(body, Self { stage: LoginStage::AwaitOk, ..self }))
    }

    /// Chooses SCRAM and opens it. The user's name stays empty, as the server has it already.
    fn send_first(self, mechanisms: &[u8]) -> Result<Reply, LoginError> {
        let offers = |mechanism: &str| {
            mechanisms.split(|byte| *byte == 0).any(|name| name == mechanism.as_bytes())
        };
        let flag = self.channel.choose(offers(MECHANISM_PLUS))?;
        let mechanism = if flag == Flag::Bound { MECHANISM_PLUS } else { MECHANISM };
        if !offers(mechanism) {
            return Err(LoginError::Unsupported(10));
        }
        match &self.secret {
            Secret::None => return Err(LoginError::NoPassword),
            Secret::Md5(_) => return Err(LoginError::SecretUnfit),
            Secret::Password(_) | Secret::Scram(_) => {}
        }
        let message = format!("{}{}", flag.header(), self.client_first_bare());
        let length = u32::try_from(message.len()).expect("a message of ours is short");
        let mechanism = terminated(mechanism.as_bytes());
        let body = [mechanism.as_slice(), &length.to_be_bytes(), message.as_bytes()].concat();
        let login = Self { flag, stage: LoginStage::AwaitChallenge, ..self };
        Ok(Reply::Send(Zeroizing::new(body), login))
    }

    fn client_first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Answers the server's challenge with our proof.
    fn prove(self, body: &[u8], salted: &mut Option<Salted>) -> Result<Reply, LoginError> {
        let first = ServerFirst::parse(body)?;
        let nonce = first.nonce;
        let Some([_, ..]) = nonce.strip_prefix(self.nonce.as_bytes()) else {
            return Err(Malformed("SCRAM nonce is not made of ours and the server's").into());
        };
        let (client_key, server_key) = self.keys(&first, salted)?;
        let bare = self.client_first_bare();
        let end_point = self.channel.end_point.as_deref().filter(|_| self.flag == Flag::Bound);
        let bound_to = bound_to(self.flag.header().as_bytes(), end_point);
        let unproved = [b"c=", bound_to.as_bytes(), b",r=", nonce].concat();
        let said = [bare.as_bytes(), body, &unproved].join(&b',');
        let proof = BASE64_STANDARD.encode(proof(&client_key, &said));
        let expected = server_key.map(|key| signature(&key, &said));
        let message = [&unproved, b",p=".as_slice(), proof.as_bytes()].concat();
        let stage = LoginStage::AwaitSignature(expected);
        Ok(Reply::Send(Zeroizing::new(message), Self { stage, ..self }))
    }

    /// Returns the client's key and, if known, the server's.
    fn keys(
        &self,
        first: &ServerFirst<'_>,
        salted: &mut Option<Salted>,
    ) -> Result<(Key, Option<Key>), LoginError> {
        match &self.secret {
            Secret::Password(password) => {
                let kept = salted.take().filter(|kept| kept.fits(password, first));
                if kept.is_none() && first.iterations > MAX_ITERATIONS {
                    return Err(LoginError::TooManyIterations(first.iterations));
                }
                let derive = || Salted::derive(password, &first.salt, first.iterations);
                let keys = salted.insert(kept.unwrap_or_else(derive)).keys.clone();
                Ok((keys.client, Some(keys.server)))
            }
            Secret::Scram(keys) => {
                if keys.salt != first.salt || keys.iterations != first.iterations {
                    return Err(LoginError::SaltMismatch);
                }
                Ok((keys.client_key.clone(), keys.server_key.clone()))
            }
            Secret::None | Secret::Md5(_) => Err(LoginError::NoPassword),
        }
    }
}

impl Channel {
    /// Chooses what to say of channel binding to a server that `offers` it, or does not.
    fn choose(&self, offers: bool) -> Result<Flag, LoginError> {
        if offers && !self.is_encrypted {
            // Nothing to bind to, as the server should know: somebody may stand between.
            return Err(LoginError::Binding(
                "server offers SCRAM-SHA-256-PLUS over a connection in the clear",
            ));
        }
        let is_able = self.is_encrypted && self.wanted != ChannelBinding::Disable;
        match (is_able && offers, &self.end_point) {
            (true, Some(_)) => Ok(Flag::Bound),
            _ if self.wanted == ChannelBinding::Require => Err(LoginError::Binding(
                "channel binding is required, and cannot be had on this connection",
            )),
            // `y` would be a lie: the server does offer it.
            (true, None) => Ok(Flag::Unable),
            (false, _) => Ok(if is_able { Flag::Able } else { Flag::Unable }),
        }
    }
}

fn check_signature(expected: Option<[u8; 32]>, body: &[u8]) -> Result<(), LoginError> {
    let ServerFinal::Signature(signature) = ServerFinal::parse(body)? else {
        return Err(LoginError::Refused);
    };
    match expected {
        Some(expected) if !bool::from(expected.ct_eq(&signature)) => {
            Err(LoginError::ServerProofWrong)
        }
        _ => Ok(()),
    }
}

fn terminated(text: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new([text, &[0]].concat())
}
