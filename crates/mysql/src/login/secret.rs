//! The secret of a user: as it is stored, to check clients; and as it logs in to servers.
//!
//! An unknown user has a secret as well, which no proof satisfies. It passes through the same code
//! as any other and is refused at the very end, so that neither the packets of an exchange nor its
//! duration show which names exist.

use std::fmt;

use refrain_mysql_wire::auth::{caching_sha2, native};
use refrain_mysql_wire::handshake::NONCE_BYTES;
use zeroize::Zeroizing;

/// An authentication plugin that Refrain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`.
    Native,
    /// `caching_sha2_password`.
    CachingSha2,
}

impl Plugin {
    /// Returns the plugin of this name.
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Native, Self::CachingSha2].into_iter().find(|plugin| plugin.name() == name)
    }

    /// Returns the name.
    pub fn name(self) -> &'static [u8] {
        match self {
            Self::Native => native::PLUGIN,
            Self::CachingSha2 => caching_sha2::PLUGIN,
        }
    }
}

/// A password, which is not empty.
type Password = Zeroizing<Vec<u8>>;

/// A user's stored secret, prepared so that a login costs little.
#[derive(Clone)]
pub struct Secret {
    /// The verifier of either kind of secret.
    native: native::Verifier,
    /// The rest of it, if the password itself is stored.
    password: Option<(Password, caching_sha2::Verifier)>,
    /// Whether there is such a user. Checked last of all.
    known: bool,
}

/// The kind of secret that an unknown user seems to have. It shows: a user of whom only the double
/// hash is stored is asked for `mysql_native_password`. Take the kind that most users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// A password.
    Password,
    /// The double hash of `mysql_native_password`.
    Native,
}

impl Secret {
    /// Takes a secret as it is configured: a password, or `*` and 40 hexadecimal digits as
    /// `mysql.user` has them. `None` for an empty one, which checks nobody.
    pub fn parse(text: &str) -> Option<Self> {
        match native::Verifier::parse(text) {
            Some(native) => Some(Self { native, password: None, known: true }),
            None => Self::of_password(text.as_bytes()),
        }
    }

    /// Takes the double hash of `mysql_native_password`.
    pub fn of_hash(hash: [u8; native::BYTES]) -> Self {
        Self { native: native::Verifier::new(hash), password: None, known: true }
    }

    /// Takes a password; `None` for an empty one.
    pub fn of_password(password: &[u8]) -> Option<Self> {
        let sha2 = caching_sha2::Key::of(password).verifier();
        let native = native::Key::of(password).verifier();
        let stored = Some((Zeroizing::new(password.to_vec()), sha2));
        (!password.is_empty()).then_some(Self { native, password: stored, known: true })
    }

    /// Makes the secret of an unknown user, from 20 random bytes.
    pub fn unknown(like: Like, random: [u8; NONCE_BYTES]) -> Self {
        let sha2 = caching_sha2::Key::of(&random).verifier();
        let native = native::Key::of(&random).verifier();
        let stored = Some((Zeroizing::new(random.to_vec()), sha2));
        Self { native, password: stored.filter(|_| like == Like::Password), known: false }
    }

    /// True if the plugin's proofs can be checked.
    pub(super) fn serves(&self, plugin: Plugin) -> bool {
        plugin == Plugin::Native || self.password.is_some()
    }

    /// Checks a proof. Returns the secret that logs in to servers.
    pub(super) fn check(
        &self,
        plugin: Plugin,
        nonce: &[u8; NONCE_BYTES],
        proof: &[u8],
    ) -> Option<ServerSecret> {
        let password = self.password.as_ref();
        let secret = match plugin {
            Plugin::Native => {
                let key = self.native.verify(nonce, proof)?;
                match password {
                    Some((password, _)) => ServerSecret::Password(password.clone()),
                    None => ServerSecret::Native(key),
                }
            }
            Plugin::CachingSha2 => {
                let (password, verifier) = password?;
                verifier.verify(nonce, proof)?;
                ServerSecret::Password(password.clone())
            }
        };
        self.known.then_some(secret)
    }

    /// Returns the secret that logs in to servers without any proof from a client.
    pub fn for_servers(&self) -> ServerSecret {
        match &self.password {
            Some((password, _)) if self.known => ServerSecret::Password(password.clone()),
            _ => ServerSecret::None,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The secret with which Refrain logs in to a server.
#[derive(Clone, Default)]
pub enum ServerSecret {
    /// No password: the server's account has none.
    #[default]
    None,
    /// The password. Serves every plugin.
    Password(Password),
    /// The key of `mysql_native_password`, which serves this plugin alone.
    Native(native::Key),
}

impl ServerSecret {
    /// Whether this is the same secret as another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Password(own), Self::Password(other)) => own == other,
            (Self::Native(own), Self::Native(other)) => own == other,
            _ => false,
        }
    }

    /// Takes a password; an empty one is none.
    pub fn of_password(password: &[u8]) -> Self {
        match password {
            [] => Self::None,
            _ => Self::Password(Zeroizing::new(password.to_vec())),
        }
    }

    /// Makes a plugin's proof; empty without a password. `None` if the secret does not serve it.
    pub(super) fn proof(&self, plugin: Plugin, nonce: &[u8; NONCE_BYTES]) -> Option<Vec<u8>> {
        match (self, plugin) {
            (Self::None, _) => Some(Vec::new()),
            (Self::Password(password), Plugin::Native) => {
                Some(native::Key::of(password).proof(nonce).to_vec())
            }
            (Self::Password(password), Plugin::CachingSha2) => {
                Some(caching_sha2::Key::of(password).proof(nonce).to_vec())
            }
            (Self::Native(key), Plugin::Native) => Some(key.proof(nonce).to_vec()),
            (Self::Native(_), Plugin::CachingSha2) => None,
        }
    }
}

impl fmt::Debug for ServerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(_) => "Password(..)",
            Self::Native(_) => "Native(..)",
        })
    }
}
