//! The encryption of a password with a server's key.

use std::convert::Infallible;

use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::{Oaep, PublicKey};
use sha1::Sha1;

/// Encrypts with a key as a server sends it: RSA with OAEP and SHA1.
pub(crate) fn with_key(pem: &[u8], text: &[u8]) -> Vec<u8> {
    let pem = std::str::from_utf8(pem).expect("a key as text");
    let key = PublicKey::from_public_key_pem(pem).expect("a key");
    key.encrypt(&mut Same(0), Oaep::<Sha1>::new(), text).expect("a text that is short enough")
}

/// Numbers that are always the same: nothing secret is in a test.
struct Same(u64);

impl TryRng for Same {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|bits| bits as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = (self.try_next_u64()? >> 56) as u8;
        }
        Ok(())
    }
}

impl TryCryptoRng for Same {}
