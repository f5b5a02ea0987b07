//! The secret of a user in each of its forms: a password, an MD5 hash, a pair of SCRAM keys.
//!
//! [`StoredSecret`] is what a configuration or a row of `pg_authid` holds, and serves to check a
//! client. [`Secret`] is what one can log in with. They differ: a SCRAM verifier checks but does
//! not log in, client keys log in but cannot be stored by anyone honest.

use std::fmt;

use refrain_config::ScramVerifier;

use super::password::{Key, Md5Hash, Password};

/// A user's password in the form in which it is stored, to check clients.
#[derive(Clone, Debug)]
pub enum StoredSecret {
    /// The password itself.
    Password(Password),
    /// Its MD5 hash. Serves for the methods cleartext and MD5.
    Md5(Md5Hash),
    /// Its SCRAM verifier. Serves for the methods cleartext and SCRAM.
    Scram(ScramVerifier),
}

impl StoredSecret {
    /// Tells the three forms apart as PostgreSQL does.
    ///
    /// `None` for what can be no password, and for what begins like a SCRAM verifier and is none:
    /// PostgreSQL would take the latter for a password, but a damaged verifier is likelier, and
    /// those who can read it should not be able to log in with it.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with(ScramVerifier::PREFIX) {
            return ScramVerifier::parse(text).map(Self::Scram);
        }
        match Md5Hash::parse(text) {
            Some(hash) => Some(Self::Md5(hash)),
            None => Password::new(text).map(Self::Password),
        }
    }
}

/// The secret with which Refrain logs in at a server.
#[derive(Clone, Debug)]
pub enum Secret {
    /// Nothing: only a server that trusts Refrain accepts the login.
    None,
    /// The password. Serves wherever one is asked for.
    Password(Password),
    /// Its MD5 hash. Serves where MD5 is asked for.
    Md5(Md5Hash),
    /// SCRAM keys. Serve at servers that have the same verifier.
    Scram(ScramKeys),
}

impl Secret {
    /// Whether this is the same secret as another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Password(own), Self::Password(other)) => own.same(other).into(),
            (Self::Md5(own), Self::Md5(other)) => own.bytes() == other.bytes(),
            (Self::Scram(own), Self::Scram(other)) => own.client_key == other.client_key,
            _ => false,
        }
    }
}

/// The keys by which a user can log in where a certain verifier is stored.
///
/// Salt and iterations name that verifier: a server that announces others would only see a wrong
/// proof, so none is sent.
#[derive(Clone)]
pub struct ScramKeys {
    /// Makes the proof.
    pub client_key: Key,
    /// The verifier's salt.
    pub salt: Vec<u8>,
    /// The verifier's iterations.
    pub iterations: u32,
    /// Checks the server's signature. Without it the server is believed.
    pub server_key: Option<Key>,
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramKeys").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}
