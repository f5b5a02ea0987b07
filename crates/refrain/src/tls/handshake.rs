//! A handshake: with whom, and what comes of it.

use std::sync::Arc;

use refrain_config::{ServerTls, SslNegotiation};
use refrain_drive::Address;
use refrain_pool::secured::Secured;
use rustls::{ClientConfig, ProtocolVersion};

use super::configs::{ALPN, cipher_name};
use super::names;
use super::records::Records;

/// A server, and what it has been tried with.
pub(super) struct Target {
    pub(super) tls: Arc<ServerTls>,
    pub(super) name: String,
    pub(super) config: Arc<ClientConfig>,
    pub(super) address: Option<Address>,
    /// Whether this is the second connection: in the clear if the first was encrypted, or the
    /// other way round.
    pub(super) is_second: bool,
}

/// A handshake.
pub(super) struct Shaking {
    pub(super) records: Records,
    pub(super) with: Party,
}

pub(super) enum Party {
    Client {
        end_point: Option<Box<[u8]>>,
        is_direct: bool,
    },
    Server(Box<Target>),
    /// A server that the engine has asked for TLS.
    Asked(Arc<ServerTls>),
}

impl Shaking {
    /// Returns what was agreed on.
    pub(super) fn agreed(&self) -> Result<Secured, String> {
        let state = self.records.state();
        let version = match state.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => return Err("no version of TLS was agreed on".to_owned()),
        };
        let suite = state.negotiated_cipher_suite();
        let cipher = suite.map_or("", |suite| cipher_name(suite.suite())).into();
        let shown = state.peer_certificates().and_then(<[_]>::first);
        let of_server = |tls: &ServerTls| {
            let certificate = shown.filter(|_| tls.is_verifying());
            (
                shown.and_then(|der| names::end_point(der)),
                certificate.and_then(|der| names::certificate(der)),
            )
        };
        let (end_point, certificate) = match &self.with {
            Party::Client { is_direct: true, .. } if state.alpn_protocol() != Some(ALPN) => {
                return Err("received direct SSL connection request without ALPN protocol \
                            negotiation extension"
                    .to_owned());
            }
            Party::Client { end_point, .. } => {
                (end_point.clone(), shown.and_then(|der| names::certificate(der)))
            }
            // Another server might take what follows for a protocol of its own.
            Party::Server(target)
                if target.tls.negotiation == SslNegotiation::Direct
                    && state.alpn_protocol() != Some(ALPN) =>
            {
                return Err("direct SSL connection was established without ALPN protocol \
                            negotiation extension"
                    .to_owned());
            }
            Party::Server(target) => of_server(&target.tls),
            Party::Asked(tls) => of_server(tls),
        };
        Ok(Secured { version, cipher, end_point, certificate })
    }
}
