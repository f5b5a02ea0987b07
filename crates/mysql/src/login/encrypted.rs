//! The encryption of a password with a server's RSA key: OAEP with SHA1, without a private key.
//!
//! A server of MySQL asks for it where a connection is neither encrypted nor local, and the account
//! is not in its memory. The key comes over the same connection, so this keeps a password from who
//! listens, not from who can pretend to be the server; that takes TLS with a verified certificate.

use std::fmt;

use refrain_mysql_wire::auth::caching_sha2;
use refrain_mysql_wire::handshake::NONCE_BYTES;
use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::{Oaep, PublicKey};
use sha1::Sha1;

/// Bytes of randomness that one encryption takes: those of a SHA1 hash.
pub(super) const SEED_BYTES: usize = 20;

/// Encrypts a password for the server that sent this key and this nonce. Returns the reason in
/// words if that cannot be done.
pub(super) fn password(
    password: &[u8],
    nonce: &[u8; NONCE_BYTES],
    pem: &[u8],
    seed: [u8; SEED_BYTES],
) -> Result<Vec<u8>, &'static str> {
    // A file that ends in a zero byte is sent as it is.
    let pem = pem.split(|&byte| byte == 0).next().unwrap_or(pem);
    let pem = std::str::from_utf8(pem).map_err(|_| "the server's RSA key is no text")?;
    let key = PublicKey::from_public_key_pem(pem).map_err(|_| "the server's RSA key is none")?;
    let masked = caching_sha2::masked(password, nonce);
    let encrypted = key.encrypt(&mut Seed(Some(seed)), Oaep::<Sha1>::new(), &masked);
    encrypted.map_err(|_| "the password is too long for the server's RSA key")
}

/// Randomness that is there once.
struct Seed(Option<[u8; SEED_BYTES]>);

/// The randomness has been used up.
#[derive(Debug)]
struct UsedUp;

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no randomness is left")
    }
}

impl std::error::Error for UsedUp {}

impl TryRng for Seed {
    type Error = UsedUp;

    fn try_next_u32(&mut self) -> Result<u32, UsedUp> {
        Err(UsedUp)
    }

    fn try_next_u64(&mut self) -> Result<u64, UsedUp> {
        Err(UsedUp)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), UsedUp> {
        let seed = self.0.take().ok_or(UsedUp)?;
        let there = seed.get(..bytes.len()).ok_or(UsedUp)?;
        bytes.copy_from_slice(there);
        Ok(())
    }
}

impl TryCryptoRng for Seed {}
