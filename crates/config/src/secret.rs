//! Passwords and password hashes.
//!
//! A secret is never printed: `Debug` shows `***`, there is no `Display`, and `SHOW CONFIG`, error
//! messages and reload reports show `***` too. Its memory is overwritten when it is dropped.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroize;

/// A text that must not be shown: a password.
///
/// The time that `==` takes depends on the secrets, so a login must not be decided with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the code that sends or checks it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A user's password, in the forms that PostgreSQL stores in `pg_authid.rolpassword`, or that MySQL
/// stores in `mysql.user`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum UserSecret {
    /// No password: the user can log in only if none is asked for.
    #[default]
    None,
    /// The password itself. Works with every method, and for logging in to the server.
    Plain(Secret),
    /// `md5` and 32 hexadecimal digits: the MD5 of password and user name. Works with `md5` only.
    Md5(Secret),
    /// A SCRAM-SHA-256 verifier. Works with `scram`, `md5` (SCRAM is used instead) and `password`.
    Scram(ScramVerifier),
    /// The hash of `mysql_native_password`. Works for clients of MySQL only.
    Native(NativeHash),
}

impl UserSecret {
    /// Recognizes the form by its prefix, as both servers do; `None` for a damaged SCRAM verifier.
    ///
    /// PostgreSQL takes a damaged verifier for a plain password. A user is unlikely to choose such
    /// a password, so Refrain refuses it.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with(ScramVerifier::PREFIX) {
            return ScramVerifier::parse(text).map(Self::Scram);
        }
        if let Some(hash) = NativeHash::parse(text) {
            return Some(Self::Native(hash));
        }
        let is_md5 = text.strip_prefix("md5").is_some_and(|digits| {
            digits.len() == 32
                && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        let secret = Secret::new(text);
        Some(if is_md5 { Self::Md5(secret) } else { Self::Plain(secret) })
    }

    /// Returns the kind of the secret, in PostgreSQL's word for the method that needs it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Plain(_) => "password",
            Self::Md5(_) => "md5",
            Self::Scram(_) => "scram-sha-256",
            Self::Native(_) => "mysql_native_password",
        }
    }

    /// Returns the secret if it logs in to servers: the password itself, or its MD5 hash if
    /// `takes_md5`.
    pub fn for_servers(&self, takes_md5: bool) -> Option<&Secret> {
        match self {
            Self::Plain(secret) => Some(secret),
            Self::Md5(hash) => Some(hash).filter(|_| takes_md5),
            Self::None | Self::Scram(_) | Self::Native(_) => None,
        }
    }
}

/// The hash with which `mysql_native_password` checks a login: the SHA-1 of the SHA-1 of the
/// password.
#[derive(Clone, PartialEq, Eq)]
pub struct NativeHash(pub [u8; 20]);

impl NativeHash {
    /// Reads `*` and 40 hexadecimal digits, as `mysql.user` has it.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('*').filter(|digits| digits.len() == 40)?;
        let mut hash = [0; 20];
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| !pair.starts_with('+'))?;
        }
        Some(Self(hash))
    }
}

impl fmt::Debug for NativeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The data with which a server checks a SCRAM-SHA-256 login without knowing the password (RFC
/// 5803).
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    /// Rounds of PBKDF2, one or more; 4096 in PostgreSQL unless set otherwise.
    pub iterations: u32,
    /// The salt, decoded: sixteen bytes where PostgreSQL chose it; never empty.
    pub salt: Vec<u8>,
    /// H(ClientKey).
    pub stored_key: [u8; 32],
    /// HMAC(SaltedPassword, "Server Key"). It lets its owner pass for the server, not for the user.
    pub server_key: [u8; 32],
}

impl ScramVerifier {
    /// The beginning of a verifier's text.
    pub const PREFIX: &str = "SCRAM-SHA-256$";

    /// Reads `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`, the latter three in
    /// base64, as `pg_authid` has it.
    pub fn parse(text: &str) -> Option<Self> {
        let (rounds, keys) = text.strip_prefix(Self::PREFIX)?.split_once('$')?;
        let (iterations, salt) = rounds.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        let is_number = iterations.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            iterations: iterations.parse().ok().filter(|&n| is_number && n > 0)?,
            salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }
}

impl fmt::Display for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|b| STANDARD.encode(b));
        write!(f, "{}{}:{salt}${stored}:{server}", Self::PREFIX, self.iterations)
    }
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramVerifier")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_told_by_the_prefix() {
        let keys = "V6+wQmyMTAvjmZ4fxODpuUDJyl+FISAUlU5omL36sNM=:o9FVhQ8zMN3AHJQvWpeTP4lYYo1qK8yjpUjvFEgGFHg=";
        let scram = format!("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==${keys}");
        let Some(UserSecret::Scram(verifier)) = UserSecret::parse(&scram) else { panic!() };
        assert_eq!((verifier.iterations, verifier.salt.len()), (4096, 16));

        let md5 = "md5d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(UserSecret::parse(md5), Some(UserSecret::Md5(Secret::new(md5))));
        let native = UserSecret::parse("*7FC8780E9200B93A9AC7A3AB87FDA9C8DC9A4D9A");
        let Some(UserSecret::Native(hash)) = native else { panic!() };
        assert_eq!((hash.0[0], hash.0[19]), (0x7f, 0x9a));
        for plain in [
            "secret",
            "*7FC8",
            "*+FC8780E9200B93A9AC7A3AB87FDA9C8DC9A4D9A",
            "md5short",
            "md5D41D8CD98F00B204E9800998ECF8427E",
            "",
        ] {
            assert_eq!(UserSecret::parse(plain), Some(UserSecret::Plain(Secret::new(plain))));
        }
        for damaged in ["SCRAM-SHA-256$", "SCRAM-SHA-256$4096:AA==$AA==:AA==", &scram[..60]] {
            assert_eq!(UserSecret::parse(damaged), None);
        }
        assert_eq!(verifier.to_string(), scram);
        for (from, to) in [("4096", "0"), ("4096", "+1"), (":W22ZaJ0SNY7soEsUEjb6gQ==", ":")] {
            assert_eq!(UserSecret::parse(&scram.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!("{:?}", UserSecret::parse("hunter2").unwrap());
        assert_eq!(shown, "Plain(***)");
    }
}
