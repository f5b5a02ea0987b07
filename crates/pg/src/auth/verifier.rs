//! SCRAM's keys, and the verifier that PostgreSQL keeps of a password (RFC 5802, RFC 7677).
//!
//! ```text
//! salted password = PBKDF2(password, salt, iterations)
//! client key      = HMAC(salted password, "Client Key")       stored key = SHA-256(client key)
//! server key      = HMAC(salted password, "Server Key")
//! proof           = client key XOR HMAC(stored key, what both sides have said)
//! signature       = HMAC(server key, what both sides have said)
//! ```
//!
//! A verifier has the stored key and the server key. From it and a right proof follows the client
//! key, which is how the server checks, and how a proxy comes to know the key.

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use refrain_config::ScramVerifier;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::malformed::Malformed;
use super::password::{Key, Password};

/// Makes the verifier of a password. Costs `iterations` rounds of PBKDF2.
pub fn verifier_of(password: &Password, salt: &[u8], iterations: u32) -> ScramVerifier {
    let keys = KeyPair::derive(password, salt, iterations);
    ScramVerifier {
        iterations,
        salt: salt.to_vec(),
        stored_key: Sha256::digest(&keys.client[..]).into(),
        server_key: *keys.server,
    }
}

/// Checks a proof with a verifier, and recovers from a right one the client key.
pub(super) fn recover(verifier: &ScramVerifier, proof: &[u8; 32], said: &[u8]) -> Option<Key> {
    let mut key = hmac(&verifier.stored_key, &[said]);
    xor(&mut key, proof);
    let digest: [u8; 32] = Sha256::digest(&key[..]).into();
    bool::from(digest.ct_eq(&verifier.stored_key)).then_some(key)
}

/// Whether a verifier is that of a password. Costs a PBKDF2.
pub(super) fn is_of(verifier: &ScramVerifier, password: &Password) -> bool {
    let other = verifier_of(password, &verifier.salt, verifier.iterations);
    other.stored_key.ct_eq(&verifier.stored_key).into()
}

/// The two keys that a password and a salt make.
#[derive(Clone)]
pub(super) struct KeyPair {
    pub(super) client: Key,
    pub(super) server: Key,
}

impl KeyPair {
    pub(super) fn derive(password: &Password, salt: &[u8], iterations: u32) -> Self {
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(&password.prepared(), salt, iterations, &mut salted[..]);
        Self { client: hmac(&salted, &[b"Client Key"]), server: hmac(&salted, &[b"Server Key"]) }
    }
}

/// Returns the proof that Refrain has a client key, for the messages of the exchange.
pub(super) fn proof(client_key: &Key, said: &[u8]) -> [u8; 32] {
    let stored_key: [u8; 32] = Sha256::digest(&client_key[..]).into();
    let mut proof = hmac(&stored_key, &[said]);
    xor(&mut proof, client_key);
    *proof
}

/// Returns the server's signature of the messages of the exchange.
pub(super) fn signature(server_key: &[u8; 32], said: &[u8]) -> [u8; 32] {
    *hmac(server_key, &[said])
}

pub(super) fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

fn xor(key: &mut Key, other: &[u8; 32]) {
    for (byte, other) in key.iter_mut().zip(other) {
        *byte ^= other;
    }
}

pub(super) fn parse_iterations(text: &[u8]) -> Result<u32, Malformed> {
    let digits = text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| digits).and_then(|t| t.parse().ok());
    number.filter(|n| *n > 0).ok_or(Malformed("SCRAM iterations are no number above zero"))
}

pub(super) fn parse_salt(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    let salt = BASE64_STANDARD.decode(text).ok().filter(|salt| !salt.is_empty());
    salt.ok_or(Malformed("SCRAM salt is not base64"))
}

pub(super) fn parse_32(text: &[u8]) -> Result<[u8; 32], Malformed> {
    let bytes = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(Malformed("SCRAM value is not 32 bytes in base64"))
}
