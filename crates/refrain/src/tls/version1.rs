//! Certificates of version 1, which have no extensions. OpenSSL makes them where nobody asks for
//! extensions, and PostgreSQL's manual makes those of servers so. rustls knows version 3 alone.
//!
//! - A handshake is checked by the key of a certificate, whatever else is in it.
//! - A certificate of version 1 is taken, as by OpenSSL, where a trusted authority has signed it,
//!   or an authority of version 3 below one. It has one name, the common name.
//! - It is never that of an authority, unless it is itself trusted: it cannot say that it is one.
//! - Whether one is revoked is not known: with lists of revoked certificates it is refused.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use webpki::RawPublicKeyEntity;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::Any;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Version;

use super::names::{self, Validity};

/// Most certificates that a peer may send between its own and that of a trusted authority.
const BETWEEN_MAX: usize = 6;

/// Returns the key of a certificate.
pub(super) fn public_key(der: &[u8]) -> Option<SubjectPublicKeyInfoDer<'_>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(SubjectPublicKeyInfoDer::from(certificate.tbs_certificate.subject_pki.raw))
}

/// Whether a certificate is of version 1.
pub(super) fn is_old(der: &[u8]) -> bool {
    X509Certificate::from_der(der)
        .is_ok_and(|(_, certificate)| certificate.version() == X509Version::V1)
}

/// Checks that the owner of a certificate has signed a handshake of TLS 1.2.
///
/// # Errors
/// If it has not, or the key of the certificate cannot be read.
pub(super) fn tls12_signature(
    message: &[u8],
    der: &[u8],
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(der).ok_or(CertificateError::BadEncoding)?;
    let key = RawPublicKeyEntity::try_from(&key).map_err(|_| CertificateError::BadEncoding)?;
    let known = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let (_, ways) = known.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let fits =
        ways.iter().any(|way| key.verify_signature(*way, message, signed.signature()).is_ok());
    match fits {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

/// Checks that the owner of a certificate has signed a handshake of TLS 1.3.
///
/// # Errors
/// If it has not, or the key of the certificate cannot be read.
pub(super) fn tls13_signature(
    message: &[u8],
    der: &[u8],
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(der).ok_or(CertificateError::BadEncoding)?;
    verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
}

/// Checks that an authority that is trusted, or one below it, has signed a certificate of version
/// 1, and that the time of none of them is over.
///
/// # Errors
/// If not.
pub(super) fn verify(
    end: &CertificateDer<'_>,
    between: &[CertificateDer<'_>],
    trusted: &[CertificateDer<'static>],
    now: UnixTime,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    is_in_time(end, now)?;
    let mut between: Vec<_> = between.iter().take(BETWEEN_MAX).collect();
    let mut signed = end;
    let mut below = 0;
    loop {
        // An authority that was renewed has two certificates with one name and key.
        let roots = trusted.iter().filter(|root| has_signed(root, signed, algorithms));
        let mut in_time = roots.filter(|root| !restricts_names(root)).map(|it| is_in_time(it, now));
        if let Some(first) = in_time.next() {
            return in_time.fold(first, Result::or);
        }
        let next = between
            .iter()
            .position(|it| has_signed(it, signed, algorithms) && is_authority(it, below));
        let next = between.swap_remove(next.ok_or(CertificateError::UnknownIssuer)?);
        is_in_time(next, now)?;
        (signed, below) = (next, below + 1);
    }
}

/// Checks that the time of a certificate has come and is not over.
///
/// # Errors
/// If not, or if the certificate cannot be read.
pub(super) fn is_in_time(der: &[u8], now: UnixTime) -> Result<(), Error> {
    match names::validity(der, now.as_secs()) {
        Some(Validity::Valid) => Ok(()),
        Some(Validity::Expired) => Err(CertificateError::Expired.into()),
        Some(Validity::NotYet) => Err(CertificateError::NotValidYet.into()),
        None => Err(CertificateError::BadEncoding.into()),
    }
}

/// Whether a certificate names another as its signer, and the other's key has signed it.
fn has_signed(signer: &[u8], signed: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
    let Ok((_, above)) = X509Certificate::from_der(signer) else { return false };
    let Ok((_, certificate)) = X509Certificate::from_der(signed) else { return false };
    let names_it = above.subject().as_raw() == certificate.issuer().as_raw();
    if !names_it || certificate.tbs_certificate.signature != certificate.signature_algorithm {
        return false;
    }
    let key = SubjectPublicKeyInfoDer::from(above.tbs_certificate.subject_pki.raw);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    let (signature, message) =
        (&certificate.signature_value.data, certificate.tbs_certificate.as_ref());
    let Some(algorithm) = signature_algorithm(signed) else { return false };
    algorithms
        .all
        .iter()
        .filter(|way| way.signature_alg_id().as_ref() == algorithm)
        .any(|way| key.verify_signature(*way, message, signature).is_ok())
}

/// Returns the encoded name and parameters of the algorithm by which a certificate is signed.
fn signature_algorithm(der: &[u8]) -> Option<&[u8]> {
    let (_, certificate) = Any::from_der(der).ok()?;
    let (rest, _) = Any::from_der(certificate.data).ok()?;
    let (_, algorithm) = Any::from_der(rest).ok()?;
    Some(algorithm.data)
}

/// Whether an authority may sign for some names alone. Names of version 1 are not compared with
/// these.
fn restricts_names(der: &[u8]) -> bool {
    X509Certificate::from_der(der)
        .is_ok_and(|(_, certificate)| !matches!(certificate.name_constraints(), Ok(None)))
}

/// Whether a certificate is that of an authority that may sign, with so many authorities below it.
/// One with a restriction that is not understood here is not.
fn is_authority(der: &[u8], below: u32) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    let mut may_sign = false;
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::BasicConstraints(basic) => {
                may_sign = basic.ca && basic.path_len_constraint.is_none_or(|most| below <= most);
            }
            ParsedExtension::KeyUsage(usage) if usage.key_cert_sign() => {}
            ParsedExtension::KeyUsage(_)
            | ParsedExtension::NameConstraints(_)
            | ParsedExtension::ExtendedKeyUsage(_) => return false,
            _ if extension.critical => return false,
            _ => {}
        }
    }
    may_sign
}
