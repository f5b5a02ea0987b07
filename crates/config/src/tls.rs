//! TLS: when connections are encrypted, and with which files, versions and ciphers.
//!
//! Names of ciphers and groups are OpenSSL's, as in PostgreSQL's `ssl_ciphers` and `ssl_groups`. An
//! empty list of either stands for all that Refrain has. Reading the files is not done here.

use std::path::PathBuf;

use crate::value::{Given, Value, choice};

choice! {
    /// When a connection is encrypted, and what is checked of the peer's certificate.
    SslMode {
        /// Never.
        Disable = "disable",
        /// If the peer insists on it.
        Allow = "allow",
        /// If the peer can do it.
        Prefer = "prefer",
        /// Always.
        Require = "require",
        /// Always, and a trusted authority has to have signed the certificate.
        VerifyCa = "verify-ca",
        /// Always; in addition a server's certificate has to be for the host that was asked for.
        VerifyFull = "verify-full",
    }
}

impl SslMode {
    /// Whether no connection may stay in the clear.
    pub fn is_required(self) -> bool {
        matches!(self, Self::Require | Self::VerifyCa | Self::VerifyFull)
    }

    /// Whether the peer's certificate has to be signed by a trusted authority.
    pub fn is_verifying(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyFull)
    }
}

choice! {
    /// A version of TLS.
    TlsProtocol {
        /// TLS 1.2.
        V12 = "tlsv1.2",
        /// TLS 1.3.
        V13 = "tlsv1.3",
    }
}

choice! {
    /// A cipher suite: three of TLS 1.3, then those of TLS 1.2.
    TlsCipher {
        /// AES-256 in TLS 1.3.
        Aes256Sha384 = "TLS_AES_256_GCM_SHA384",
        /// AES-128 in TLS 1.3.
        Aes128Sha256 = "TLS_AES_128_GCM_SHA256",
        /// ChaCha20 in TLS 1.3.
        ChaCha20Sha256 = "TLS_CHACHA20_POLY1305_SHA256",
        /// AES-256 in TLS 1.2, certificates with elliptic curves.
        EcdsaAes256 = "ECDHE-ECDSA-AES256-GCM-SHA384",
        /// AES-128 in TLS 1.2, certificates with elliptic curves.
        EcdsaAes128 = "ECDHE-ECDSA-AES128-GCM-SHA256",
        /// ChaCha20 in TLS 1.2, certificates with elliptic curves.
        EcdsaChaCha20 = "ECDHE-ECDSA-CHACHA20-POLY1305",
        /// AES-256 in TLS 1.2, certificates with RSA.
        RsaAes256 = "ECDHE-RSA-AES256-GCM-SHA384",
        /// AES-128 in TLS 1.2, certificates with RSA.
        RsaAes128 = "ECDHE-RSA-AES128-GCM-SHA256",
        /// ChaCha20 in TLS 1.2, certificates with RSA.
        RsaChaCha20 = "ECDHE-RSA-CHACHA20-POLY1305",
    }
}

choice! {
    /// A group for the exchange of keys.
    TlsGroup {
        /// Curve25519.
        X25519 = "X25519",
        /// The curve of NIST with 256 bits.
        P256 = "prime256v1",
        /// The curve of NIST with 384 bits.
        P384 = "secp384r1",
    }
}

choice! {
    /// Whether SCRAM is bound to the certificate of the server, as libpq's `channel_binding` has
    /// it.
    ChannelBinding {
        /// Never.
        Disable = "disable",
        /// If the server offers it.
        Prefer = "prefer",
        /// Always: a server that does not offer it is left.
        Require = "require",
    }
}

choice! {
    /// How a connection to a server begins to be encrypted, as libpq's `sslnegotiation` has it.
    SslNegotiation {
        /// The server is asked first whether it encrypts.
        Postgres = "postgres",
        /// The connection begins with the handshake.
        Direct = "direct",
    }
}

/// The authorities that may sign a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Authorities {
    /// The authorities that the system trusts.
    System,
    /// The authorities in a file.
    File(PathBuf),
}

impl Authorities {
    const SYSTEM: &str = "system";
}

impl Value for Authorities {
    const ABSENT: &[&str] = PathBuf::ABSENT;

    fn what() -> String {
        format!("{} or \"{}\"", PathBuf::what(), Self::SYSTEM)
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text()? {
            Self::SYSTEM => Some(Self::System),
            _ => PathBuf::read(given).map(Self::File),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::System => Self::SYSTEM.to_owned(),
            Self::File(path) => path.show(),
        }
    }
}

/// The choices of a handshake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsChoices {
    /// The versions; never empty.
    pub protocols: Vec<TlsProtocol>,
    /// The cipher suites, best first; empty for all.
    pub ciphers: Vec<TlsCipher>,
    /// The groups, best first; empty for all.
    pub groups: Vec<TlsGroup>,
}

/// The encryption of connections to a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerTls {
    /// When to encrypt, and what to check of the server's certificate.
    pub mode: SslMode,
    /// Whether the connection begins with the handshake.
    pub negotiation: SslNegotiation,
    /// The trusted authorities.
    pub authorities: Option<Authorities>,
    /// The file with the lists of certificates that these have revoked.
    pub crl_file: Option<PathBuf>,
    /// The files with Refrain's certificate and its key, for servers that ask for one.
    pub own: Option<(PathBuf, PathBuf)>,
    /// The choices of the handshake.
    pub choices: TlsChoices,
}

impl ServerTls {
    /// Whether the server's certificate is checked. Like libpq, Refrain checks it under `require`
    /// as well if there are authorities.
    pub fn is_verifying(&self) -> bool {
        let is_checked = self.mode == SslMode::Require && self.authorities.is_some();
        self.mode.is_verifying() || is_checked
    }
}

/// libpq's words for a mode that is too weak, without the mode.
const WEAK_FOR_SYSTEM: &str =
    "weak sslmode may not be used with sslrootcert=system (use \"verify-full\")";
/// See [`WEAK_FOR_SYSTEM`].
const WEAK_FOR_DIRECT: &str = "weak sslmode may not be used with sslnegotiation=direct \
                               (use \"require\", \"verify-ca\", or \"verify-full\")";

/// Returns when connections to a server are encrypted, if the authorities and the negotiation allow
/// for the mode that was chosen, as libpq does.
///
/// # Errors
/// The option at fault, and why.
pub(crate) fn server_mode(
    chosen: Option<SslMode>,
    authorities: Option<&Authorities>,
    negotiation: SslNegotiation,
) -> Result<SslMode, (&'static str, &'static str)> {
    let is_system = authorities == Some(&Authorities::System);
    let default = if is_system { SslMode::VerifyFull } else { SslMode::Prefer };
    let mode = chosen.unwrap_or(default);
    if is_system && mode != SslMode::VerifyFull {
        return Err(("sslmode", WEAK_FOR_SYSTEM));
    }
    if negotiation == SslNegotiation::Direct && !mode.is_required() {
        return Err(("sslmode", WEAK_FOR_DIRECT));
    }
    if mode.is_verifying() && authorities.is_none() {
        return Err(("sslrootcert", "is missing: sslmode needs authorities to verify with"));
    }
    Ok(mode)
}
