//! What is known of a user, in each of its forms: a password, an MD5 hash, a pair of SCRAM keys.
//!
//! [`Stored`] is what a configuration or a row of `pg_authid` holds, and serves to check a client.
//! [`Secret`] is what one can log in with. They differ: a SCRAM verifier checks but does not log
//! in, client keys log in but cannot be stored by anyone honest.

use std::fmt;

use md5::{Digest, Md5};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::scram::Malformed;
use super::verifier::{Key, ScramVerifier};

/// A password: one byte or more, none of them zero.
///
/// PostgreSQL knows no empty passwords, and its protocol ends a password with a zero byte. Bytes,
/// for PostgreSQL does not ask that a password be text.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes a password, unless it is empty or has a zero byte in it.
    pub fn new(bytes: impl AsRef<[u8]>) -> Option<Self> {
        let bytes = bytes.as_ref();
        let usable = !bytes.is_empty() && !bytes.contains(&0);
        usable.then(|| Self(Zeroizing::new(bytes.to_vec())))
    }

    /// A password of 64 hex digits, for one that nobody is to guess.
    pub(super) fn of_key(key: &Key) -> Self {
        let mut digits = Zeroizing::new(vec![0; 64]);
        write_hex(&key[..], &mut digits);
        Self(digits)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The password as SCRAM hashes it: normalised by SASLprep where that can be done.
    ///
    /// PostgreSQL, its server and its clients, takes the bytes as they are when they are not UTF-8,
    /// when SASLprep forbids a character, and when nothing would remain.
    pub(super) fn prepared(&self) -> Zeroizing<Vec<u8>> {
        let text = std::str::from_utf8(&self.0).ok();
        match text.map(stringprep::saslprep) {
            Some(Ok(text)) if !text.is_empty() => Zeroizing::new(text.into_owned().into_bytes()),
            _ => self.0.clone(),
        }
    }

    /// Compares digests rather than bytes, so that time tells nothing of the length either.
    pub(super) fn same(&self, other: &Self) -> Choice {
        let [ours, theirs] = [self, other].map(|password| Sha256::digest(password.bytes()));
        ours.as_slice().ct_eq(theirs.as_slice())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// PostgreSQL's MD5 hash of a password: `md5` and the digest of password and user name in hex.
///
/// Who has the hash can log in with it where MD5 is asked for: it is as good as the password.
#[derive(Clone)]
pub struct Md5Hash(Zeroizing<[u8; 35]>);

impl Md5Hash {
    /// Hashes a user's password.
    pub fn of(password: &Password, user: &str) -> Self {
        Self::digest(&[password.bytes(), user.as_bytes()])
    }

    /// Reads a hash as `pg_authid` holds it: `md5` and 32 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hash: &[u8; 35] = text.as_bytes().try_into().ok()?;
        let hex = hash.strip_prefix(b"md5")?;
        let well_formed = hex.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        well_formed.then(|| Self(Zeroizing::new(*hash)))
    }

    /// What goes over the wire: the hash, less its `md5`, hashed again with the server's salt.
    pub(super) fn salted(&self, salt: [u8; 4]) -> Self {
        Self::digest(&[&self.0[3..], &salt])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..]
    }

    pub(super) fn digest(parts: &[&[u8]]) -> Self {
        let mut md5 = Md5::new();
        for part in parts {
            md5.update(part);
        }
        let mut hash = Zeroizing::new(*b"md5................................");
        write_hex(&md5.finalize(), &mut hash[3..]);
        Self(hash)
    }
}

impl fmt::Debug for Md5Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5Hash(..)")
    }
}

/// What is kept of a user's password, to check the user by.
#[derive(Clone, Debug)]
pub enum Stored {
    /// The password itself.
    Password(Password),
    /// Its MD5 hash. Serves for the methods cleartext and MD5.
    Md5(Md5Hash),
    /// Its SCRAM verifier. Serves for the methods cleartext and SCRAM.
    Scram(ScramVerifier),
}

impl Stored {
    /// Tells the three forms apart as PostgreSQL does.
    ///
    /// `None` for what can be no password, and for what begins like a SCRAM verifier and is none:
    /// PostgreSQL would take the latter for a password, but a damaged verifier is likelier, and
    /// those who can read it should not be able to log in with it.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with(ScramVerifier::PREFIX) {
            return ScramVerifier::parse(text).ok().map(Self::Scram);
        }
        match Md5Hash::parse(text) {
            Some(hash) => Some(Self::Md5(hash)),
            None => Password::new(text).map(Self::Password),
        }
    }
}

/// What we have to log in at a server with.
#[derive(Clone, Debug)]
pub enum Secret {
    /// Nothing: only servers that trust us let us in.
    None,
    /// The password. Serves wherever one is asked for.
    Password(Password),
    /// Its MD5 hash. Serves where MD5 is asked for.
    Md5(Md5Hash),
    /// SCRAM keys. Serve at servers that have the same verifier.
    Scram(ScramKeys),
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

/// Reads a password message: text that ends in the only zero byte.
pub(super) fn text_body(body: &[u8]) -> Result<&[u8], Malformed> {
    match body.split_last() {
        Some((0, text)) if !text.contains(&0) => Ok(text),
        _ => Err(Malformed("password message is not one zero-terminated string")),
    }
}

/// Writes two lower-case digits a byte.
fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (digits, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        digits[0] = HEX[usize::from(byte >> 4)];
        digits[1] = HEX[usize::from(byte & 0x0f)];
    }
}
