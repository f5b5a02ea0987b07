//! Proofs of passwords: `mysql_native_password` and `caching_sha2_password`.
//!
//! In both the client proves that it knows a *key*, the hash of the password, to a server that
//! keeps a *verifier*, the hash of the key. The proof is the key, masked with a hash of verifier
//! and nonce, so whoever has the verifier learns the key from a proof. The key is enough to log in
//! to a server that keeps the same verifier; so a proxy that has a verifier can pass logins on.
//!
//! An empty password has an empty proof, which no function here makes or takes.

use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::handshake::NONCE_BYTES;

/// Returns the hash of the parts, one behind the other.
fn hash<D: Digest, const N: usize>(parts: [&[u8]; 2]) -> [u8; N]
where
    [u8; N]: From<sha2::digest::Output<D>>,
{
    let [first, second] = parts;
    D::new().chain_update(first).chain_update(second).finalize().into()
}

/// Returns both combined by exclusive or.
fn xor<const N: usize>(a: &[u8; N], b: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|at| a[at] ^ b[at])
}

/// The plugin `mysql_native_password` (MySQL, "Native Authentication"; MariaDB, "Authentication
/// Plugin - mysql_native_password").
pub mod native {
    use super::*;

    /// The plugin's name.
    pub const PLUGIN: &[u8] = b"mysql_native_password";
    /// Bytes of a key, a verifier and a proof.
    pub const BYTES: usize = 20;

    /// SHA1 of the password.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Key(Zeroizing<[u8; BYTES]>);

    /// SHA1 of the key. `mysql.user` has it in hexadecimal digits behind an asterisk.
    #[derive(Clone)]
    pub struct Verifier(Zeroizing<[u8; BYTES]>);

    impl Key {
        /// Makes the key of a password.
        pub fn of(password: &[u8]) -> Self {
            Self(hash::<Sha1, BYTES>([password, b""]).into())
        }

        /// Returns the verifier that a server keeps.
        pub fn verifier(&self) -> Verifier {
            Verifier(hash::<Sha1, BYTES>([&self.0[..], b""]).into())
        }

        /// Makes the proof for a server's nonce.
        pub fn proof(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; BYTES] {
            xor(&self.0, &self.verifier().mask(nonce))
        }
    }

    impl Verifier {
        /// Takes the bytes of a verifier.
        pub fn new(bytes: [u8; BYTES]) -> Self {
            Self(bytes.into())
        }

        /// Reads the form that `mysql.user` has: `*` and 40 hexadecimal digits.
        pub fn parse(text: &str) -> Option<Self> {
            let digits = text.strip_prefix('*').filter(|digits| digits.len() == 2 * BYTES)?;
            let mut bytes = Zeroizing::new([0; BYTES]);
            for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
                let digit = |letter: u8| char::from(letter).to_digit(16);
                *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
            }
            Some(Self(bytes))
        }

        /// Returns the key if the proof was made with it, for this nonce.
        pub fn verify(&self, nonce: &[u8; NONCE_BYTES], proof: &[u8]) -> Option<Key> {
            let key = Key(xor(proof.try_into().ok()?, &self.mask(nonce)).into());
            bool::from(key.verifier().0.ct_eq(&self.0[..])).then_some(key)
        }

        fn mask(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; BYTES] {
            hash::<Sha1, BYTES>([nonce, &self.0[..]])
        }
    }
}

/// The plugin `caching_sha2_password` (MySQL, "Caching_sha2_password information").
///
/// The proof logs in as long as the server has the account's verifier in its memory. Otherwise the
/// server asks for the password itself: over TLS as it is, else encrypted with the server's RSA
/// key.
pub mod caching_sha2 {
    use super::*;

    /// The plugin's name.
    pub const PLUGIN: &[u8] = b"caching_sha2_password";
    /// Bytes of a key, a verifier and a proof.
    pub const BYTES: usize = 32;
    /// The plugin's data that asks a server for its RSA key. The answer is the key as PEM.
    pub const REQUEST_PUBLIC_KEY: &[u8] = b"\x02";
    /// The plugin's data behind a proof that a server accepts; OK follows.
    pub const FAST_AUTH_SUCCESS: &[u8] = b"\x03";
    /// The plugin's data with which a server asks for the password.
    pub const PERFORM_FULL_AUTHENTICATION: &[u8] = b"\x04";

    /// SHA256 of the password.
    #[derive(Clone)]
    pub struct Key(Zeroizing<[u8; BYTES]>);

    /// SHA256 of the key, which a server keeps in memory.
    #[derive(Clone)]
    pub struct Verifier(Zeroizing<[u8; BYTES]>);

    impl Key {
        /// Makes the key of a password.
        pub fn of(password: &[u8]) -> Self {
            Self(hash::<Sha256, BYTES>([password, b""]).into())
        }

        /// Returns the verifier that a server keeps.
        pub fn verifier(&self) -> Verifier {
            Verifier(hash::<Sha256, BYTES>([&self.0[..], b""]).into())
        }

        /// Makes the proof for a server's nonce.
        pub fn proof(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; BYTES] {
            xor(&self.0, &self.verifier().mask(nonce))
        }
    }

    impl Verifier {
        /// Returns the key if the proof was made with it, for this nonce.
        pub fn verify(&self, nonce: &[u8; NONCE_BYTES], proof: &[u8]) -> Option<Key> {
            let key = Key(xor(proof.try_into().ok()?, &self.mask(nonce)).into());
            bool::from(key.verifier().0.ct_eq(&self.0[..])).then_some(key)
        }

        fn mask(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; BYTES] {
            // The other way round than in `mysql_native_password`: the nonce comes last.
            hash::<Sha256, BYTES>([&self.0[..], nonce])
        }
    }

    /// Returns the password as it is encrypted with the server's RSA key (OAEP with SHA1): with a
    /// zero byte, and masked with the nonce.
    pub fn masked(password: &[u8], nonce: &[u8; NONCE_BYTES]) -> Zeroizing<Vec<u8>> {
        let terminated = password.iter().chain(&[0]);
        let masked = terminated.zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        masked.collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; NONCE_BYTES] = *b"RB3vz&Gr+yD&/ZZ305ZG";

    #[test]
    fn a_native_verifier_is_that_of_the_server() {
        // SELECT PASSWORD('secret')
        let stored = native::Verifier::parse("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
        let stored = stored.expect("a verifier");
        let key = stored.verify(&NONCE, &native::Key::of(b"secret").proof(&NONCE)).expect("right");
        assert_eq!(key.proof(&NONCE), native::Key::of(b"secret").proof(&NONCE));
        assert!(stored.verify(&NONCE, &native::Key::of(b"Secret").proof(&NONCE)).is_none());
        for bad in ["", "*14E6", "14E65567ABDB5135D0CFD9A70B3032C179A49EE7"] {
            assert!(native::Verifier::parse(bad).is_none());
        }
        assert!(native::Verifier::parse(&format!("*{}", "g".repeat(40))).is_none());
        assert!(native::Verifier::parse(&format!("*{}", "é".repeat(20))).is_none());
    }

    #[test]
    fn a_proof_is_for_one_nonce_and_one_password() {
        let (right, wrong) = (caching_sha2::Key::of(b"secret"), caching_sha2::Key::of(b"other"));
        let verifier = right.verifier();
        assert!(verifier.verify(&NONCE, &right.proof(&NONCE)).is_some());
        assert!(verifier.verify(&[7; NONCE_BYTES], &right.proof(&NONCE)).is_none());
        assert!(verifier.verify(&NONCE, &wrong.proof(&NONCE)).is_none());
        assert!(verifier.verify(&NONCE, b"").is_none());
    }

    #[test]
    fn a_password_is_masked_with_its_zero_byte() {
        let masked = caching_sha2::masked(b"secret", &NONCE);
        assert_eq!(masked.len(), 7);
        assert_eq!(masked[6], NONCE[6]);
    }
}
