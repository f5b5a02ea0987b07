//! The stored secret of a user, prepared so that a login costs little.
//!
//! The caller keeps one [`Credential`] per user for as long as the user's secret stays the same. An
//! unknown user has one too: it holds a secret that cannot be guessed, passes through the same code
//! as any other, and is refused at the very end. So neither the messages of an exchange nor its
//! duration show which names exist.
//!
//! An unknown user must look the same at each attempt: a salt that changed between two attempts
//! would give it away. So its salt comes from a [`Seed`]. The salt of a user whose plain password
//! is stored comes from the same seed, so that a user who becomes known keeps its salt.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use refrain_config::ScramVerifier;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::password::{Key, Md5Hash, Password};
use super::secret::{ScramKeys, Secret, StoredSecret};
use super::verifier::{hmac, is_of, recover, verifier_of};

/// Iterations of verifiers that Refrain makes, unless the options say others: PostgreSQL's default.
pub(crate) const ITERATIONS: u32 = 4096;

/// The random key from which Refrain derives the salts and secrets that it has to invent, and the
/// iterations of the verifiers that it makes.
///
/// The same seed must serve all cores and processes that answer under one address, or salts would
/// differ from one attempt to the next.
#[derive(Clone)]
pub struct Seed(Key, Arc<AtomicU32>);

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl Seed {
    /// Takes 32 random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(Zeroizing::new(random), Arc::new(AtomicU32::new(ITERATIONS)))
    }

    /// Has verifiers that are made from now on have so many iterations, on all cores.
    pub(crate) fn set_iterations(&self, iterations: u32) {
        self.1.store(iterations.max(1), Relaxed);
    }

    fn iterations(&self) -> u32 {
        self.1.load(Relaxed)
    }

    pub(super) fn key(&self, purpose: &str, user: &str) -> Key {
        hmac(&self.0, &[purpose.as_bytes(), user.as_bytes()])
    }

    fn salt(&self, user: &str) -> Vec<u8> {
        self.key("salt\0", user)[..16].to_vec()
    }

    /// Returns a verifier that belongs to no password.
    fn verifier(&self, user: &str, iterations: u32) -> ScramVerifier {
        ScramVerifier {
            iterations,
            salt: self.salt(user),
            stored_key: *self.key("stored\0", user),
            server_key: *self.key("server\0", user),
        }
    }
}

/// The kind of secret that an unknown user seems to have.
///
/// The kind shows: with [`Method::Md5`](super::Method::Md5), a user who has a verifier is asked for
/// SCRAM. Take the kind that most users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// A plain password.
    Password,
    /// An MD5 hash.
    Md5,
    /// A SCRAM verifier of that many iterations.
    Scram {
        /// 4096 unless the servers have `scram_iterations` set.
        iterations: u32,
    },
}

/// A user's name and what is stored to check the user by.
#[derive(Clone, Debug)]
pub struct Credential {
    user: String,
    kind: Kind,
    /// The user's own verifier if there is one; otherwise one that no proof satisfies.
    verifier: ScramVerifier,
    /// Whether there is such a user. Checked last of all.
    known: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Password(Password),
    Md5(Md5Hash),
    Scram,
}

impl Credential {
    /// Whether there is such a user.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Prepares a user's stored secret. A plain password costs a PBKDF2 here, so that no login has
    /// to pay it.
    pub fn prepare(user: &str, stored: StoredSecret, seed: &Seed) -> Self {
        let (kind, verifier) = match stored {
            StoredSecret::Password(password) => {
                let verifier = verifier_of(&password, &seed.salt(user), seed.iterations());
                (Kind::Password(password), verifier)
            }
            StoredSecret::Md5(hash) => (Kind::Md5(hash), seed.verifier(user, seed.iterations())),
            StoredSecret::Scram(verifier) => (Kind::Scram, verifier),
        };
        Self { user: user.to_owned(), kind, verifier, known: true }
    }

    /// Makes the credential of an unknown user. This is cheap: the caller need not keep it.
    pub fn unknown(user: &str, like: Like, seed: &Seed) -> Self {
        let secret = seed.key("secret\0", user);
        let made = seed.iterations();
        let (kind, iterations) = match like {
            Like::Password => (Kind::Password(Password::of_key(&secret)), made),
            Like::Md5 => (Kind::Md5(Md5Hash::digest(&[&secret[..]])), made),
            Like::Scram { iterations } => (Kind::Scram, iterations.max(1)),
        };
        let verifier = seed.verifier(user, iterations);
        Self { user: user.to_owned(), kind, verifier, known: false }
    }

    /// Whether this is the credential that the secret makes.
    pub(crate) fn is_of(&self, stored: &StoredSecret, seed: &Seed) -> bool {
        match (&self.kind, stored) {
            (Kind::Password(own), StoredSecret::Password(other)) => {
                self.verifier.iterations == seed.iterations() && bool::from(own.same(other))
            }
            (Kind::Md5(own), StoredSecret::Md5(other)) => own.bytes().ct_eq(other.bytes()).into(),
            (Kind::Scram, StoredSecret::Scram(other)) => self.verifier == *other,
            _ => false,
        }
    }

    /// Returns the kind of the secret, in PostgreSQL's word for the method that needs it.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.kind {
            Kind::Password(_) => "password",
            Kind::Md5(_) => "md5",
            Kind::Scram => "scram-sha-256",
        }
    }

    /// Returns the user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the secret that logs in at servers without any proof from a client.
    pub fn secret(&self) -> Secret {
        match &self.kind {
            _ if !self.known => Secret::None,
            Kind::Password(password) => Secret::Password(password.clone()),
            Kind::Md5(hash) => Secret::Md5(hash.clone()),
            Kind::Scram => Secret::None,
        }
    }

    pub(super) fn verifier(&self) -> &ScramVerifier {
        &self.verifier
    }

    /// Whether a SCRAM verifier is stored, by which MD5 cannot be checked.
    pub(crate) fn is_scram(&self) -> bool {
        matches!(self.kind, Kind::Scram)
    }

    /// Checks a password that was sent in the clear.
    pub(crate) fn check_password(&self, sent: Password) -> Option<Secret> {
        let same = match &self.kind {
            Kind::Password(password) => password.same(&sent).into(),
            Kind::Md5(hash) => hash.bytes().ct_eq(Md5Hash::of(&sent, &self.user).bytes()).into(),
            Kind::Scram => is_of(&self.verifier, &sent),
        };
        (same && self.known).then_some(Secret::Password(sent))
    }

    /// Checks the answer to an MD5 challenge.
    pub(super) fn check_md5(&self, sent: &[u8], salt: [u8; 4]) -> Option<Secret> {
        let (hash, secret) = match &self.kind {
            Kind::Password(password) => {
                (Md5Hash::of(password, &self.user), Secret::Password(password.clone()))
            }
            Kind::Md5(hash) => (hash.clone(), Secret::Md5(hash.clone())),
            Kind::Scram => return None,
        };
        let same: bool = hash.salted(salt).bytes().ct_eq(sent).into();
        (same && self.known).then_some(secret)
    }

    /// Checks a SCRAM proof of what has been said.
    pub(super) fn check_proof(&self, proof: &[u8; 32], said: &[u8]) -> Option<Secret> {
        let client_key = recover(&self.verifier, proof, said).filter(|_| self.known)?;
        let ScramVerifier { iterations, salt, server_key, .. } = self.verifier.clone();
        match &self.kind {
            // Our own salt means nothing to a server; the password does.
            Kind::Password(password) => Some(Secret::Password(password.clone())),
            Kind::Md5(_) => None,
            Kind::Scram => {
                let server_key = Some(Zeroizing::new(server_key));
                Some(Secret::Scram(ScramKeys { client_key, salt, iterations, server_key }))
            }
        }
    }
}
