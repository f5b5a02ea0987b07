//! The check of a peer's certificate: rustls's own, with its verdict softened as libpq's `sslmode`
//! and PostgreSQL have it.
//!
//! - without authorities, every certificate is taken, and nothing of it has to be understood but
//!   its key, which the server has to own;
//! - certificates of version 1 are taken (`version1.rs`);
//! - under `verify-ca` the name does not matter. rustls looks at the name last, so this one error
//!   means that the rest is right;
//! - a certificate that is itself in the file of authorities is trusted, as by OpenSSL, also if
//!   rustls would not have that of an authority for a server. PostgreSQL's manual makes such
//!   certificates.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use super::{names, version1};

/// The check of a server's certificate.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    trusted: Option<Trusted>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The authorities that may sign a server's certificate.
#[derive(Debug)]
struct Trusted {
    chain: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    /// Makes a check by these authorities and lists of revoked certificates. Without authorities,
    /// the check takes every certificate.
    ///
    /// # Errors
    /// If no check can be made of the authorities.
    pub(super) fn new(
        provider: &Arc<CryptoProvider>,
        authorities: Option<(RootCertStore, Vec<CertificateDer<'static>>)>,
        revoked: Vec<CertificateRevocationListDer<'static>>,
        checks_name: bool,
    ) -> Result<Self, String> {
        let trusted = match authorities {
            None => None,
            Some((roots, certificates)) => {
                let builder = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots),
                    Arc::clone(provider),
                );
                let has_lists = !revoked.is_empty();
                let builder = match has_lists {
                    true => builder.with_crls(revoked).enforce_revocation_expiration(),
                    false => builder,
                };
                let chain = builder.build().map_err(|error| error.to_string())?;
                // A certificate that is in the file itself may be on a list: then it is of use as
                // that of an authority alone.
                let certificates = if has_lists { Vec::new() } else { certificates };
                Some(Trusted { chain, certificates })
            }
        };
        let algorithms = provider.signature_verification_algorithms;
        Ok(Self { trusted, checks_name, algorithms })
    }

    fn is_named(&self, der: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
        if version1::is_old(der) {
            let is_so = !self.checks_name || names::common_name_is(der, &host.to_str());
            return if is_so { Ok(()) } else { Err(CertificateError::NotValidForName.into()) };
        }
        let checked = ParsedCertificate::try_from(der)
            .and_then(|certificate| verify_server_name(&certificate, host));
        match checked {
            Err(error) if !self.forgives(&error, der, host) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether an error is one of a name that does not matter, or that libpq would take.
    fn forgives(&self, error: &Error, der: &CertificateDer<'_>, host: &ServerName<'_>) -> bool {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let is_of_name = matches!(
            error,
            Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })
        );
        is_of_name && (!self.checks_name || names::common_name_is(der, &host.to_str()))
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        if trusted.certificates.iter().any(|certificate| certificate == end_entity) {
            version1::is_in_time(end_entity, now)?;
            self.is_named(end_entity, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        if !trusted.certificates.is_empty() && version1::is_old(end_entity) {
            let roots = &trusted.certificates;
            version1::verify(end_entity, intermediates, roots, now, &self.algorithms)?;
            self.is_named(end_entity, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let verified = trusted.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if self.forgives(&error, end_entity, server_name) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        version1::tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        version1::tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The check of a client's certificate.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    /// The authorities for certificates of version 1; none where there are lists of revoked ones.
    certificates: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    /// Makes a check by rustls's own, and by these authorities for certificates of version 1.
    pub(super) fn new(
        provider: &CryptoProvider,
        chain: Arc<dyn ClientCertVerifier>,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { chain, certificates, algorithms: provider.signature_verification_algorithms }
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.chain.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.certificates.is_empty() || !version1::is_old(end_entity) {
            return self.chain.verify_client_cert(end_entity, intermediates, now);
        }
        version1::verify(end_entity, intermediates, &self.certificates, now, &self.algorithms)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        version1::tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        version1::tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
