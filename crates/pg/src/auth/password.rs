//! Passwords and their MD5 hashes, wiped from memory when dropped.

use std::fmt;

use md5::{Digest, Md5};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::malformed::Malformed;

/// A key of SCRAM-SHA-256, wiped when dropped.
pub type Key = Zeroizing<[u8; 32]>;

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

    /// Makes a password of 64 hex digits, which cannot be guessed.
    pub(super) fn of_key(key: &Key) -> Self {
        let mut digits = Zeroizing::new(vec![0; 64]);
        write_hex(&key[..], &mut digits);
        Self(digits)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the password as SCRAM hashes it: normalised by SASLprep if that is possible.
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
/// The hash is enough to log in where MD5 is asked for: there it is as good as the password.
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

    /// Returns the answer to an MD5 challenge: the hash, without its `md5`, hashed again with the
    /// server's salt.
    pub(super) fn salted(&self, salt: [u8; 4]) -> Self {
        Self::digest(&[&self.0[3..], &salt])
    }

    /// Returns the hash as `pg_authid` has it.
    pub fn bytes(&self) -> &[u8] {
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
