//! The needs of handshakes: certificates, keys, authorities and choices, read from the files that
//! the options name.
//!
//! A [`Setup`] is read in full or not at all, at the start and at each reload. When an option is
//! set on the console, only the files of options that changed are read. A [`Store`] has the one in
//! force. Cores look into it once per connection.
//!
//! Sessions are resumed both ways: clients get a ticket, whose contents no core has to remember,
//! and tickets of servers are kept with the setup. A reload ends both, so that no session outlives
//! the authority that let it in.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use refrain_config::{
    General, Host, Options, ServerTls, SslMode, TlsChoices, TlsCipher, TlsGroup, TlsProtocol,
};
use rustls::crypto::ring::{self, Ticketer, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, ClientConfig, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::verify::{ClientVerifier, ServerVerifier};
use super::{files, names};

/// The name of the protocol in TLS (ALPN), which PostgreSQL has registered.
pub(super) const ALPN: &[u8] = b"postgresql";

/// The cipher suites, with OpenSSL's names.
const CIPHERS: &[(TlsCipher, SupportedCipherSuite, &str)] = {
    use TlsCipher as C;
    use cipher_suite as s;
    &[
        (C::Aes256Sha384, s::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
        (C::Aes128Sha256, s::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
        (C::ChaCha20Sha256, s::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
        (
            C::EcdsaAes256,
            s::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            C::EcdsaAes128,
            s::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            C::EcdsaChaCha20,
            s::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (C::RsaAes256, s::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384"),
        (C::RsaAes128, s::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
        (
            C::RsaChaCha20,
            s::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            "ECDHE-RSA-CHACHA20-POLY1305",
        ),
    ]
};

/// Returns OpenSSL's name of a cipher suite.
pub(super) fn cipher_name(suite: CipherSuite) -> &'static str {
    let found = CIPHERS.iter().find(|(_, supported, _)| supported.suite() == suite);
    found.map_or("", |(.., name)| name)
}

/// The needs of handshakes with clients.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) config: Arc<ServerConfig>,
    /// The hash of Refrain's certificate, to which clients bind their logins.
    pub(super) end_point: Option<Box<[u8]>>,
    /// The options that it was made of.
    terms: Terms,
}

/// The options that the handshakes with clients depend on.
#[derive(Debug, PartialEq, Eq)]
struct Terms {
    is_verifying: bool,
    choices: TlsChoices,
    /// The files of the certificate, its key, the authorities and what these have revoked.
    files: [Option<PathBuf>; 4],
}

impl Terms {
    fn of(general: &General) -> Self {
        let General {
            client_tls_cert_file: cert,
            client_tls_key_file: key,
            client_tls_ca_file: authorities,
            client_tls_crl_file: revoked,
            ..
        } = general;
        Self {
            is_verifying: general.client_tls_sslmode.is_verifying(),
            choices: general.client_tls_choices(),
            files: [cert, key, authorities, revoked].map(Clone::clone),
        }
    }
}

/// The needs of all handshakes, of one configuration.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    clients: Option<Arc<Acceptor>>,
    servers: Servers,
    /// Servers of the setup before: until a core has heard of a reload, it connects by these.
    left: Servers,
}

type Servers = HashMap<Arc<ServerTls>, Arc<ClientConfig>>;

impl Setup {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// The first file that is of no use, and why; or the options that leave no choice.
    pub(crate) fn read(options: &Options) -> Result<Self, String> {
        Self::default().changed(options)
    }

    /// Returns the setup of other options: with the certificates of this one, and what the files
    /// have now of which this one has nothing.
    fn changed(&self, options: &Options) -> Result<Self, String> {
        let terms = Terms::of(&options.general);
        let clients = match (options.general.client_tls_sslmode, &self.clients) {
            (SslMode::Disable, _) => None,
            (_, Some(own)) if own.terms == terms => Some(Arc::clone(own)),
            _ => Some(Arc::new(acceptor(&options.general, terms)?)),
        };
        let mut servers = HashMap::new();
        for database in &options.databases {
            for host in database.server.hosts() {
                let Host::Tcp { tls, .. } = host else { continue };
                if tls.mode == SslMode::Disable || servers.contains_key(tls) {
                    continue;
                }
                let config = match self.servers.get(tls) {
                    Some(own) => Arc::clone(own),
                    None => Arc::new(
                        connector(tls)
                            .map_err(|why| format!("databases.{}: {why}", database.name))?,
                    ),
                };
                servers.insert(Arc::clone(tls), config);
            }
        }
        Ok(Self { clients, servers, left: Servers::new() })
    }
}

/// The setup in force.
#[derive(Debug)]
pub(crate) struct Store(RwLock<Arc<Setup>>);

impl Store {
    /// Makes a store with its first setup.
    pub(crate) fn new(setup: Setup) -> Self {
        Self(RwLock::new(Arc::new(setup)))
    }

    /// Puts a setup into force, for connections from now on.
    pub(crate) fn replace(&self, setup: Setup) {
        let left = self.current().servers.clone();
        let setup = Arc::new(Setup { left, ..setup });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = setup;
    }

    /// Returns the setup of other options. Files are read only for options that are not in force:
    /// certificates that have been renewed since wait for a reload.
    ///
    /// # Errors
    /// The first file that is of no use, and why; or the options that leave no choice.
    pub(crate) fn changed(&self, options: &Options) -> Result<Setup, String> {
        self.current().changed(options)
    }

    /// Returns what a handshake with a client needs; `None` if clients may not encrypt any more.
    pub(super) fn of_clients(&self) -> Option<Arc<Acceptor>> {
        self.current().clients.clone()
    }

    /// Returns what a handshake with a server needs; `None` if the server's options are not in
    /// force any more.
    pub(super) fn of_server(&self, tls: &Arc<ServerTls>) -> Option<Arc<ClientConfig>> {
        let current = self.current();
        current.servers.get(tls).or_else(|| current.left.get(tls)).cloned()
    }

    fn current(&self) -> Arc<Setup> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn acceptor(general: &General, terms: Terms) -> Result<Acceptor, String> {
    let choices = &terms.choices;
    let provider = Arc::new(provider(choices));
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(choices))
        .map_err(|error| format!("client_tls_ciphers: {error}"))?;
    let builder = match &general.client_tls_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let (roots, mut certificates) = files::authorities(path)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            // A list whose time is over refuses everybody, as in PostgreSQL.
            let verifier = match &general.client_tls_crl_file {
                Some(path) => {
                    certificates.clear();
                    verifier.with_crls(files::revoked(path)?).enforce_revocation_expiration()
                }
                None => verifier,
            };
            let verifier = match terms.is_verifying {
                true => verifier,
                false => verifier.allow_unauthenticated(),
            };
            let verifier = verifier.build();
            let named = general.client_tls_crl_file.as_ref().unwrap_or(path);
            let verifier = verifier.map_err(|error| format!("{}: {error}", named.display()))?;
            let verifier = ClientVerifier::new(&provider, verifier, certificates);
            builder.with_client_cert_verifier(Arc::new(verifier))
        }
    };
    let missing = || "client_tls_cert_file and client_tls_key_file are missing".to_owned();
    let cert_file = general.client_tls_cert_file.as_ref().ok_or_else(missing)?;
    let key_file = general.client_tls_key_file.as_ref().ok_or_else(missing)?;
    let own = files::certified(cert_file, key_file, &provider)?;
    let end_point = own.cert.first().and_then(|certificate| names::end_point(certificate));
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(own)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ignore_client_order = !choices.ciphers.is_empty();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Ticketer::new().map_err(|error| error.to_string())?;
    config.send_tls13_tickets = 1;
    Ok(Acceptor { config: Arc::new(config), end_point, terms })
}

fn connector(tls: &ServerTls) -> Result<ClientConfig, String> {
    let provider = Arc::new(provider(&tls.choices));
    let is_verifying = tls.is_verifying();
    let authorities = match tls.authorities.as_ref().filter(|_| is_verifying) {
        Some(authorities) => Some(files::trusted(authorities)?),
        None => None,
    };
    let revoked = match tls.crl_file.as_ref().filter(|_| is_verifying) {
        Some(path) => files::revoked(path)?,
        None => Vec::new(),
    };
    let checks_name = tls.mode == SslMode::VerifyFull;
    let verifier = ServerVerifier::new(&provider, authorities, revoked, checks_name);
    let verifier = verifier.map_err(|error| match &tls.crl_file {
        Some(path) => format!("{}: {error}", path.display()),
        None => error,
    })?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(&tls.choices))
        .map_err(|error| format!("server_tls_ciphers: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &tls.own {
        None => builder.with_no_client_auth(),
        Some((cert_file, key_file)) => {
            let own = files::certified(cert_file, key_file, &provider)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
        }
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

/// Returns rustls's cryptography by `ring`, with the ciphers and groups of choice.
fn provider(choices: &TlsChoices) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !choices.ciphers.is_empty() {
        let suite = |cipher: &TlsCipher| {
            CIPHERS.iter().find(|(named, ..)| named == cipher).map(|(_, suite, _)| *suite)
        };
        provider.cipher_suites = choices.ciphers.iter().filter_map(suite).collect();
    }
    if !choices.groups.is_empty() {
        provider.kx_groups = choices.groups.iter().map(group).collect();
    }
    provider
}

fn group(group: &TlsGroup) -> &'static dyn SupportedKxGroup {
    match group {
        TlsGroup::X25519 => kx_group::X25519,
        TlsGroup::P256 => kx_group::SECP256R1,
        TlsGroup::P384 => kx_group::SECP384R1,
    }
}

fn versions(choices: &TlsChoices) -> Vec<&'static SupportedProtocolVersion> {
    let version = |protocol: &TlsProtocol| match protocol {
        TlsProtocol::V12 => &TLS12,
        TlsProtocol::V13 => &TLS13,
    };
    choices.protocols.iter().map(version).collect()
}
