//! A client proves who it is; we are its server.
//!
//! ```text
//! Trust       (nothing)                               -> Done
//! Password    ask, password                           -> Done | Failed
//! Md5         ask with salt, hash                     -> Done | Failed
//! Scram       ask, client-first, challenge, proof     -> Done | Failed
//! ```
//!
//! The body of each `p` message goes into [`Proving::receive`], which consumes the exchange and
//! returns the next [`AuthStep`]. A malformed message is refused at once with `08P01`, since that
//! depends on the message alone. A wrong proof is refused at the end, always with the same words.
//!
//! As in PostgreSQL, a user who has a SCRAM verifier is asked for SCRAM where MD5 is configured;
//! the user name inside SCRAM is not read, as the startup message has it; an authorization identity
//! is refused.
//!
//! Over TLS, `SCRAM-SHA-256-PLUS` is offered as well, which binds the login to the certificate that
//! the client sees. A client that says `y` (it could bind, and was not offered to) is refused then:
//! somebody between the two has taken the offer away (RFC 5802, section 6).

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use refrain_pg_wire::write;
use refrain_pool::secured::Secured;
use subtle::ConstantTimeEq;

use super::credential::Credential;
use super::malformed::Malformed;
use super::password::{Password, text_body};
use super::scram::{
    self, ClientFinal, ClientFirst, Flag, MECHANISM, MECHANISM_PLUS, NONCE_BYTES, bound_to,
};
use super::secret::Secret;
use super::verifier::signature;

/// The longest password taken, and the longest SCRAM message: PostgreSQL's limits.
const MAX_PASSWORD: usize = 65_535;
const MAX_SCRAM: usize = 1024;

/// The method by which a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// By its password, sent in the clear.
    Password,
    /// By an MD5 of password and salt; by SCRAM where a verifier is stored.
    Md5,
    /// By SCRAM-SHA-256.
    Scram,
}

/// An authentication message to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthRequest {
    /// The client is who it says.
    Ok,
    /// Asks for the password.
    CleartextPassword,
    /// Asks for its MD5 with this salt.
    Md5 {
        /// Four random bytes.
        salt: [u8; 4],
    },
    /// Asks for a choice among mechanisms.
    Sasl {
        /// Best first.
        mechanisms: &'static [&'static str],
    },
    /// Goes on with the mechanism chosen.
    SaslContinue(Vec<u8>),
    /// The mechanism's last word.
    SaslFinal(Vec<u8>),
}

impl AuthRequest {
    /// Appends the message ("Message Formats", the messages that begin with Authentication).
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ok => write::authentication(out, 0, &[]),
            Self::CleartextPassword => write::authentication(out, 3, &[]),
            Self::Md5 { salt } => write::authentication(out, 5, salt),
            Self::Sasl { mechanisms } => {
                let mut list = Vec::new();
                mechanisms.iter().for_each(|name| write::string(&mut list, name.as_bytes()));
                list.push(0);
                write::authentication(out, 10, &list);
            }
            Self::SaslContinue(data) => write::authentication(out, 11, data),
            Self::SaslFinal(data) => write::authentication(out, 12, data),
        }
    }
}

/// The next step of an exchange, after its start or after a message of the client.
#[must_use]
#[derive(Debug)]
pub enum AuthStep {
    /// Send this, and feed the client's answer to the exchange.
    Send(AuthRequest, Proving),
    /// The client has proved who it is. Send these, in this order; the last is [`AuthRequest::Ok`].
    Done(Authenticated, Vec<AuthRequest>),
    /// The client has not proved who it is. Send the refusal, and close the connection.
    Failed(AuthError),
}

/// Proof that a client is who it says. Only [`Proving`] makes one.
#[derive(Debug)]
pub struct Authenticated {
    user: String,
    secret: Secret,
}

impl Authenticated {
    /// Returns the user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the secret with which Refrain can log in at servers as this user: the password if it
    /// was sent or is stored, the MD5 hash if that is stored, else the SCRAM keys. [`Secret::None`]
    /// under [`Method::Trust`].
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}

/// Why a client was refused. [`fmt::Display`] gives the words for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// There is no such user, or the password is wrong, or none is stored that fits the method.
    Password {
        /// The name that the client gave.
        user: String,
    },
    /// The login is not bound to the channel that the client uses, in these words.
    Binding(&'static str),
    /// The client broke the protocol.
    Malformed(Malformed),
}

impl AuthError {
    /// Returns the SQLSTATE for the client.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Password { .. } => "28P01",
            Self::Binding(_) => "28000",
            Self::Malformed(_) => "08P01",
        }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user } => {
                write!(f, "password authentication failed for user \"{user}\"")
            }
            Self::Binding(words) => f.write_str(words),
            Self::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for AuthError {}

/// An exchange under way with a client.
#[derive(Debug)]
pub struct Proving {
    credential: Credential,
    awaits: Awaits,
}

/// The message that is to come.
#[derive(Debug)]
enum Awaits {
    Password,
    Md5 { salt: [u8; 4] },
    SaslInitial(Opened),
    ClientFirst(Opened),
    ClientFinal(Challenged),
}

/// A SCRAM exchange before the client's first message.
#[derive(Debug)]
struct Opened {
    nonce: String,
    /// The hash that the login may be bound to; `None` in the clear.
    end_point: Option<Box<[u8]>>,
    /// Whether the client has chosen to bind.
    is_bound: bool,
}

/// The values that the client's proof must agree with.
#[derive(Debug)]
struct Challenged {
    /// The gs2 header and what the login is bound to.
    bound_to: String,
    is_bound: bool,
    /// The client's nonce and Refrain's.
    nonce: Vec<u8>,
    /// Client-first (less header), server-first and commas after both: the head of what is signed.
    said: Vec<u8>,
}

impl Proving {
    /// Opens the exchange in the clear.
    pub fn start(method: Method, credential: &Credential, random: &[u8; NONCE_BYTES]) -> AuthStep {
        Self::start_over(None, method, credential, random)
    }

    /// Opens the exchange over an encrypted connection, or in the clear.
    pub fn start_over(
        secured: Option<&Secured>,
        method: Method,
        credential: &Credential,
        random: &[u8; NONCE_BYTES],
    ) -> AuthStep {
        let (request, awaits) = match method {
            Method::Trust => return AuthStep::trust(credential.user()),
            Method::Password => (AuthRequest::CleartextPassword, Awaits::Password),
            Method::Md5 if !credential.is_scram() => {
                let [a, b, c, d, ..] = *random;
                let salt = [a, b, c, d];
                (AuthRequest::Md5 { salt }, Awaits::Md5 { salt })
            }
            Method::Md5 | Method::Scram => {
                let nonce = scram::nonce(random);
                let end_point = secured.and_then(|secured| secured.end_point.clone());
                let mechanisms: &[&str] = match end_point {
                    Some(_) => &[MECHANISM_PLUS, MECHANISM],
                    None => &[MECHANISM],
                };
                let opened = Opened { nonce, end_point, is_bound: false };
                (AuthRequest::Sasl { mechanisms }, Awaits::SaslInitial(opened))
            }
        };
        AuthStep::Send(request, Self { credential: credential.clone(), awaits })
    }

    /// Whether a message of SASL is to come, and not a password.
    pub fn is_sasl(&self) -> bool {
        !matches!(self.awaits, Awaits::Password | Awaits::Md5 { .. })
    }

    /// Takes the body of a `p` message: what follows its length.
    pub fn receive(self, body: &[u8]) -> AuthStep {
        let Self { credential, awaits } = self;
        let step = match awaits {
            Awaits::Password => check_password(&credential, body),
            Awaits::Md5 { salt } => check_md5(&credential, salt, body),
            Awaits::SaslInitial(opened) => sasl_initial(credential, opened, body),
            Awaits::ClientFirst(opened) => client_first(credential, opened, body),
            Awaits::ClientFinal(challenged) => client_final(&credential, &challenged, body),
        };
        step.unwrap_or_else(|malformed| AuthStep::Failed(AuthError::Malformed(malformed)))
    }
}

impl AuthStep {
    /// Believes a client its name: [`Method::Trust`].
    pub fn trust(user: &str) -> Self {
        Self::done(user, Secret::None, Vec::new())
    }

    fn done(user: &str, secret: Secret, mut say: Vec<AuthRequest>) -> Self {
        say.push(AuthRequest::Ok);
        Self::Done(Authenticated { user: user.to_owned(), secret }, say)
    }

    /// Ends the exchange by what the check of a secret has found.
    fn end(credential: &Credential, found: Option<Secret>, say: Vec<AuthRequest>) -> Self {
        match found {
            Some(secret) => Self::done(credential.user(), secret, say),
            None => Self::Failed(AuthError::Password { user: credential.user().to_owned() }),
        }
    }
}

fn check_password(credential: &Credential, body: &[u8]) -> Result<AuthStep, Malformed> {
    let text = text_body(at_most(MAX_PASSWORD, body)?)?;
    // No user has an empty password. The client may learn this early: PostgreSQL says so too.
    let found = Password::new(text).and_then(|password| credential.check_password(password));
    Ok(AuthStep::end(credential, found, Vec::new()))
}

fn check_md5(credential: &Credential, salt: [u8; 4], body: &[u8]) -> Result<AuthStep, Malformed> {
    let text = text_body(at_most(MAX_PASSWORD, body)?)?;
    Ok(AuthStep::end(credential, credential.check_md5(text, salt), Vec::new()))
}

/// Reads a mechanism's name and the length and bytes of its first message, which may be left out.
fn sasl_initial(
    credential: Credential,
    mut opened: Opened,
    body: &[u8],
) -> Result<AuthStep, Malformed> {
    let body = at_most(MAX_SCRAM, body)?;
    let end = body.iter().position(|byte| *byte == 0);
    let end = end.ok_or(Malformed("SASL mechanism's name has no end"))?;
    opened.is_bound = &body[..end] == MECHANISM_PLUS.as_bytes();
    let is_offered = &body[..end] == MECHANISM.as_bytes() || opened.end_point.is_some();
    if !is_offered || !opened.is_bound && &body[..end] != MECHANISM.as_bytes() {
        return Err(Malformed("client selected an invalid SASL authentication mechanism"));
    }
    let (length, message) =
        body[end + 1..].split_first_chunk::<4>().ok_or(Malformed("SASL message has no length"))?;
    match i32::from_be_bytes(*length) {
        -1 if message.is_empty() => {
            let request = AuthRequest::SaslContinue(Vec::new());
            let awaits = Awaits::ClientFirst(opened);
            Ok(AuthStep::Send(request, Proving { credential, awaits }))
        }
        length if usize::try_from(length) == Ok(message.len()) => {
            client_first(credential, opened, message)
        }
        _ => Err(Malformed("SASL message is not as long as it says")),
    }
}

fn client_first(
    credential: Credential,
    opened: Opened,
    body: &[u8],
) -> Result<AuthStep, Malformed> {
    let first = ClientFirst::parse(at_most(MAX_SCRAM, body)?)?;
    match (first.flag, opened.is_bound) {
        (Flag::Bound, true) | (Flag::Unable, false) => {}
        (Flag::Able, false) if opened.end_point.is_none() => {}
        (Flag::Able, false) => {
            return Ok(AuthStep::Failed(AuthError::Binding(
                "SCRAM channel binding negotiation error",
            )));
        }
        (Flag::Unable | Flag::Able, true) => {
            return Err(Malformed(
                "client selected SCRAM-SHA-256-PLUS, but the SCRAM message has no channel binding",
            ));
        }
        (Flag::Bound, false) => {
            return Err(Malformed(
                "client selected SCRAM-SHA-256, but the SCRAM message has channel binding",
            ));
        }
    }
    let end_point = opened.end_point.as_deref().filter(|_| opened.is_bound);
    let bound_to = bound_to(first.gs2_header, end_point);
    let nonce = [first.nonce, opened.nonce.as_bytes()].concat();
    let verifier = credential.verifier();
    let salt = BASE64_STANDARD.encode(&verifier.salt);
    let parameters = format!(",s={salt},i={}", verifier.iterations);
    let challenge = [b"r=", nonce.as_slice(), parameters.as_bytes()].concat();
    let awaits = Awaits::ClientFinal(Challenged {
        bound_to,
        is_bound: opened.is_bound,
        nonce,
        said: [first.bare, b",", &challenge, b","].concat(),
    });
    Ok(AuthStep::Send(AuthRequest::SaslContinue(challenge), Proving { credential, awaits }))
}

fn client_final(
    credential: &Credential,
    challenged: &Challenged,
    body: &[u8],
) -> Result<AuthStep, Malformed> {
    let last = ClientFinal::parse(at_most(MAX_SCRAM, body)?)?;
    if !bool::from(last.bound_to.ct_eq(challenged.bound_to.as_bytes())) {
        let words = "SCRAM channel binding check failed";
        return match challenged.is_bound {
            // The client sees another certificate than ours: somebody is between.
            true => Ok(AuthStep::Failed(AuthError::Binding(words))),
            false => Err(Malformed("unexpected SCRAM channel-binding attribute")),
        };
    }
    if last.nonce != challenged.nonce {
        return Err(Malformed("SCRAM nonce does not match"));
    }
    let said = [&challenged.said, last.signed].concat();
    let found = credential.check_proof(&last.proof, &said);
    let ours = BASE64_STANDARD.encode(signature(&credential.verifier().server_key, &said));
    let server_final = AuthRequest::SaslFinal(format!("v={ours}").into_bytes());
    Ok(AuthStep::end(credential, found, vec![server_final]))
}

fn at_most(limit: usize, body: &[u8]) -> Result<&[u8], Malformed> {
    if body.len() > limit { Err(Malformed("authentication message is too long")) } else { Ok(body) }
}
