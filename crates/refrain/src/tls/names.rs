//! The contents of a certificate: names, times, and the hash that a login may be bound to.
//!
//! Verified certificates alone give names to a decision; a certificate that cannot be read gives
//! none.

use refrain_pool::secured::Certificate;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::oid;
use x509_parser::der_parser::oid::Oid;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::FromDer;
use x509_parser::signature_algorithm::SignatureAlgorithm;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Returns the hash of a certificate for the channel binding `tls-server-end-point`: by the hash
/// function of its signature, but SHA-256 for MD5 and SHA-1 (RFC 5929, section 4.1). `None` if the
/// signature has no hash function of its own, as with Ed25519.
pub(super) fn end_point(der: &[u8]) -> Option<Box<[u8]>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let algorithm = &certificate.signature_algorithm;
    let hash = match SignatureAlgorithm::try_from(algorithm) {
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => {
            HashName::of_digest(parameters.hash_algorithm_oid())?
        }
        _ => HashName::of_signature(&algorithm.algorithm)?,
    };
    Some(match hash {
        HashName::Sha224 => Sha224::digest(der).as_slice().into(),
        HashName::Sha256 => Sha256::digest(der).as_slice().into(),
        HashName::Sha384 => Sha384::digest(der).as_slice().into(),
        HashName::Sha512 => Sha512::digest(der).as_slice().into(),
    })
}

/// A hash function that a login is bound by.
#[derive(Clone, Copy)]
enum HashName {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl HashName {
    fn of_signature(signature: &Oid<'_>) -> Option<Self> {
        let table = [
            (oid!(1.2.840.113549.1.1.4), Self::Sha256),
            (oid!(1.2.840.113549.1.1.5), Self::Sha256),
            (oid!(1.2.840.113549.1.1.14), Self::Sha224),
            (oid!(1.2.840.113549.1.1.11), Self::Sha256),
            (oid!(1.2.840.113549.1.1.12), Self::Sha384),
            (oid!(1.2.840.113549.1.1.13), Self::Sha512),
            (oid!(1.2.840.10045.4.1), Self::Sha256),
            (oid!(1.2.840.10045.4.3.1), Self::Sha224),
            (oid!(1.2.840.10045.4.3.2), Self::Sha256),
            (oid!(1.2.840.10045.4.3.3), Self::Sha384),
            (oid!(1.2.840.10045.4.3.4), Self::Sha512),
        ];
        table.iter().find(|(name, _)| name == signature).map(|(_, hash)| *hash)
    }

    fn of_digest(digest: &Oid<'_>) -> Option<Self> {
        let table = [
            (oid!(1.3.14.3.2.26), Self::Sha256),
            (oid!(2.16.840.1.101.3.4.2.4), Self::Sha224),
            (oid!(2.16.840.1.101.3.4.2.1), Self::Sha256),
            (oid!(2.16.840.1.101.3.4.2.2), Self::Sha384),
            (oid!(2.16.840.1.101.3.4.2.3), Self::Sha512),
        ];
        table.iter().find(|(name, _)| name == digest).map(|(_, hash)| *hash)
    }
}

/// Returns the names in a certificate; `None` if it cannot be read.
pub(super) fn certificate(der: &[u8]) -> Option<Certificate> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let mut names = Vec::new();
    if let Ok(Some(extension)) = certificate.subject_alternative_name() {
        for name in &extension.value.general_names {
            match name {
                // A name with a zero byte in it is none, as with the common name.
                GeneralName::DNSName(name) | GeneralName::RFC822Name(name)
                    if !name.contains('\0') =>
                {
                    names.push((*name).into());
                }
                _ => {}
            }
        }
    }
    let subject = certificate.subject();
    Some(Certificate {
        common_name: common_name(subject).map(Into::into),
        subject: distinguished_name(subject).into(),
        names,
    })
}

/// Whether a certificate without DNS names has this host as its common name. The standards have
/// dropped such names, and libpq still takes them.
pub(super) fn common_name_is(der: &[u8], host: &str) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    let Ok(alternative) = certificate.subject_alternative_name() else { return false };
    let has_names = alternative.is_some_and(|extension| {
        let is_host = |name: &GeneralName<'_>| {
            matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_))
        };
        extension.value.general_names.iter().any(is_host)
    });
    let Some(name) = common_name(certificate.subject()).filter(|_| !has_names) else {
        return false;
    };
    // A wildcard stands for the first label alone.
    let rest = |text: &str| text.split_once('.').map(|(_, rest)| rest.to_ascii_lowercase());
    let is_wildcard = name.starts_with("*.") && rest(name).is_some_and(|rest| rest.contains('.'));
    name.eq_ignore_ascii_case(host) || is_wildcard && rest(name) == rest(host)
}

/// Whether a certificate is valid at this time, in seconds since 1970; if not, whether it has
/// expired. `None` if it cannot be read.
pub(super) fn validity(der: &[u8], seconds: u64) -> Option<Validity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let now = ASN1Time::from_timestamp(i64::try_from(seconds).ok()?).ok()?;
    let validity = certificate.validity();
    Some(match (validity.is_valid_at(now), now > validity.not_after) {
        (true, _) => Validity::Valid,
        (false, true) => Validity::Expired,
        (false, false) => Validity::NotYet,
    })
}

/// Whether a certificate is valid at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// It is.
    Valid,
    /// Not any more.
    Expired,
    /// Not yet.
    NotYet,
}

/// Returns the first common name. A name with a zero byte in it is none: the part before it may be
/// somebody else's.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    subject.iter_common_name().next()?.as_str().ok().filter(|name| !name.contains('\0'))
}

/// Writes a name as RFC 2253 does: the last part first.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let part = |attribute: &AttributeTypeAndValue<'_>| {
        let kind = attribute.attr_type();
        let short = oid2abbrev(kind, oid_registry());
        let short = short.map_or_else(|_| kind.to_id_string(), str::to_owned);
        format!("{short}={}", escaped(attribute.as_str().unwrap_or_default()))
    };
    let mut parts: Vec<String> =
        name.iter_rdn().map(|rdn| rdn.iter().map(part).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, letter) in value.chars().enumerate() {
        let is_edge = letter == ' ' && (at == 0 || at == last) || letter == '#' && at == 0;
        if is_edge || matches!(letter, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
