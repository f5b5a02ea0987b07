//! TLS for tests: rustls shakes hands, and from then on a test makes each record itself. So a test
//! can send records that rustls would not make: empty ones, one for each byte, and wrong ones.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::client::ClientConnection;
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{
    InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundPlainMessage,
};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConnection;
use rustls::{
    ClientConfig, Connection, ConnectionTrafficSecrets, RootCertStore, ServerConfig,
    SupportedCipherSuite, SupportedProtocolVersion,
};

pub use rustls::version::{TLS12, TLS13};
pub use rustls::{ContentType, ProtocolVersion};

use crate::certificates::Signed;

/// A packet that asks for TLS.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Bytes of a record's header: type, version, length.
pub const HEADER_BYTES: usize = 5;
/// Most bytes of contents that TLS permits in a record.
pub const RECORD_BYTES_MAX: usize = 16 * 1024;
/// The description of the alert that ends a stream in order.
pub const CLOSE_NOTIFY: u8 = 0;

/// A record of the peer, decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The type of its contents.
    pub kind: ContentType,
    /// Its contents.
    pub contents: Vec<u8>,
}

/// The records of a connection whose handshake is over.
pub struct Records {
    sealing: Box<dyn MessageEncrypter>,
    sealed: u64,
    opening: Box<dyn MessageDecrypter>,
    opened: u64,
    version: ProtocolVersion,
    /// Bytes of the peer that are not yet a record.
    partial: Vec<u8>,
}

/// Makes the configuration of clients that trust this authority (the text of a file) and know this
/// version alone. Each client shakes hands in full.
///
/// # Errors
/// If the authority is none.
pub fn client(root: &str, version: &'static SupportedProtocolVersion) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes())?)?;
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[version])?.with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// Makes the configuration of servers with this certificate.
///
/// # Errors
/// If the certificate or its key is none.
pub fn server(signed: &Signed) -> Result<Arc<ServerConfig>> {
    let chain = vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes())?;
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12])?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key)?;
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// Returns the cryptography with those suites alone whose keys are read here.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ];
    Arc::new(CryptoProvider { cipher_suites, ..default_provider() })
}

impl Records {
    /// Asks for TLS on a stream that blocks, and shakes hands as a client.
    ///
    /// # Errors
    /// If the server refuses, or ends the stream.
    pub fn connect(config: &Arc<ClientConfig>, stream: &mut (impl Read + Write)) -> Result<Self> {
        stream.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"S", "the answer to the request for TLS is {}", answer.escape_ascii());
        let name = "localhost".try_into()?;
        Self::shake(ClientConnection::new(Arc::clone(config), name)?.into(), stream)
    }

    /// Shakes hands as a server on a stream that blocks, after the request.
    ///
    /// # Errors
    /// If the client gives up, or ends the stream.
    pub fn accept(config: &Arc<ServerConfig>, stream: &mut (impl Read + Write)) -> Result<Self> {
        Self::shake(ServerConnection::new(Arc::clone(config))?.into(), stream)
    }

    fn shake(mut connection: Connection, stream: &mut (impl Read + Write)) -> Result<Self> {
        while connection.is_handshaking() {
            send(&mut connection, stream)?;
            if connection.is_handshaking() {
                // One record and no more: rustls would keep what is behind the handshake.
                let record = whole_record(stream)?;
                connection.read_tls(&mut &record[..])?;
                let state = connection.process_new_packets();
                send(&mut connection, stream)?;
                state?;
            }
        }
        send(&mut connection, stream)?;
        Self::of(connection)
    }

    fn of(connection: Connection) -> Result<Self> {
        let version = connection.protocol_version().context("no version")?;
        let suite = connection.negotiated_cipher_suite().context("no cipher suite")?;
        let secrets = connection.dangerous_extract_secrets()?;
        let (sealed, sealing) = secrets.tx;
        let (opened, opening) = secrets.rx;
        let (
            ConnectionTrafficSecrets::Aes128Gcm { key, iv },
            ConnectionTrafficSecrets::Aes128Gcm { key: peer_key, iv: peer_iv },
        ) = (sealing, opening)
        else {
            bail!("another cipher");
        };
        let (sealing, opening) = match suite {
            SupportedCipherSuite::Tls13(suite) => {
                let aead = suite.aead_alg;
                (aead.encrypter(key, iv), aead.decrypter(peer_key, peer_iv))
            }
            SupportedCipherSuite::Tls12(suite) => {
                // A nonce has a part that stays and a part that each record shows.
                let ((fixed, shown), (peer_fixed, _)) =
                    (iv.as_ref().split_at(4), peer_iv.as_ref().split_at(4));
                let aead = suite.aead_alg;
                (aead.encrypter(key, fixed, shown), aead.decrypter(peer_key, peer_fixed))
            }
        };
        Ok(Self { sealing, sealed, opening, opened, version, partial: Vec::new() })
    }

    /// Returns the version that was agreed on.
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Makes a record of these contents, which may be empty, or more than TLS permits.
    ///
    /// # Errors
    /// If the cipher refuses.
    pub fn seal(&mut self, kind: ContentType, contents: &[u8]) -> Result<Vec<u8>> {
        let payload = OutboundChunks::Single(contents);
        let message =
            OutboundPlainMessage { typ: kind, version: ProtocolVersion::TLSv1_2, payload };
        let record = self.sealing.encrypt(message, self.sealed)?;
        self.sealed += 1;
        Ok(record.encode())
    }

    /// Makes a record of bytes of the application.
    ///
    /// # Errors
    /// If the cipher refuses.
    pub fn data(&mut self, contents: &[u8]) -> Result<Vec<u8>> {
        self.seal(ContentType::ApplicationData, contents)
    }

    /// Makes the record that ends the stream in order.
    ///
    /// # Errors
    /// If the cipher refuses.
    pub fn goodbye(&mut self) -> Result<Vec<u8>> {
        self.seal(ContentType::Alert, &[1, CLOSE_NOTIFY])
    }

    /// Takes bytes that have come.
    pub fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    /// Returns the next record, if it has come whole. One in the clear is returned as it is if it
    /// is an alert.
    ///
    /// # Errors
    /// If the record is not the peer's, or does not come in its turn.
    pub fn next_record(&mut self) -> Result<Option<Record>> {
        let Some(end) = record_end(&self.partial) else { return Ok(None) };
        let rest = self.partial.split_off(end);
        let mut record = std::mem::replace(&mut self.partial, rest);
        let kind = ContentType::from(record[0]);
        let body = &mut record[HEADER_BYTES..];
        if kind == ContentType::Alert && body.len() == 2 {
            return Ok(Some(Record { kind, contents: body.to_vec() }));
        }
        let message = InboundOpaqueMessage::new(kind, ProtocolVersion::TLSv1_2, body);
        let plain = self.opening.decrypt(message, self.opened)?;
        self.opened += 1;
        Ok(Some(Record { kind: plain.typ, contents: plain.payload.to_vec() }))
    }
}

/// Shows no keys.
impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Returns the end of the first record, if it is whole.
pub fn record_end(bytes: &[u8]) -> Option<usize> {
    let [.., high, low] = *bytes.first_chunk::<HEADER_BYTES>()?;
    let end = HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
    (end <= bytes.len()).then_some(end)
}

fn whole_record(stream: &mut impl Read) -> Result<Vec<u8>> {
    let mut record = vec![0; HEADER_BYTES];
    stream.read_exact(&mut record)?;
    let length = u16::from_be_bytes([record[3], record[4]]);
    record.resize(HEADER_BYTES + usize::from(length), 0);
    stream.read_exact(&mut record[HEADER_BYTES..])?;
    Ok(record)
}

/// Sends what rustls has to say. A peer that has gone is noticed by the next read.
fn send(connection: &mut Connection, stream: &mut impl Write) -> Result<()> {
    while connection.wants_write() {
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes)?;
        match stream.write_all(&bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}
