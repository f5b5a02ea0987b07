//! The files of certificates and keys. An error names its file.

use std::path::Path;

use refrain_config::Authorities;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::version1;

/// Returns the certificates in a file, in their order.
///
/// # Errors
/// If the file cannot be read, or has no certificate.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| named(path, error))?;
    if certificates.is_empty() {
        return Err(format!("{}: the file has no certificate", path.display()));
    }
    Ok(certificates)
}

/// Returns the key in a file.
///
/// # Errors
/// If the file cannot be read, or has no key.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            format!("{}: the file has no private key, or one with a passphrase", path.display())
        }
        other => named(path, other),
    })
}

/// Returns the certificates in a file, with their key in another.
///
/// # Errors
/// If one of the files cannot be read or is of no use, or if the key is not that of the first
/// certificate.
pub(super) fn certified(
    cert_file: &Path,
    key_file: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let chain = certificates(cert_file)?;
    let key = provider.key_provider.load_private_key(key(key_file)?);
    let key = key.map_err(|error| format!("{}: {error}", key_file.display()))?;
    let unread = || format!("{}: the certificate cannot be read", cert_file.display());
    let due = chain.first().and_then(|own| version1::public_key(own)).ok_or_else(unread)?;
    if key.public_key().is_some_and(|own| own.as_ref() != due.as_ref()) {
        let (key, cert) = (key_file.display(), cert_file.display());
        return Err(format!("{key}: the key is not that of the certificate in {cert}"));
    }
    Ok(CertifiedKey::new(chain, key))
}

/// Returns the authorities in a file, and their certificates.
///
/// # Errors
/// If the file cannot be read, or one of its certificates cannot be that of an authority.
pub(super) fn authorities(
    path: &Path,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    let certificates = certificates(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok((roots, certificates))
}

/// Returns authorities, and their certificates.
///
/// # Errors
/// If their file cannot be read, or the system trusts no authority.
pub(super) fn trusted(
    authorities: &Authorities,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    match authorities {
        Authorities::File(path) => self::authorities(path),
        Authorities::System => of_the_system(),
    }
}

/// Returns the authorities that the system trusts. One that cannot be read is left out, as by
/// OpenSSL: nobody chose these files for Refrain.
fn of_the_system() -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs.iter().cloned());
    if added == 0 {
        let why: String = found.errors.iter().map(|error| format!(": {error}")).collect();
        return Err(format!("sslrootcert: the system trusts no authority{why}"));
    }
    Ok((roots, found.certs))
}

/// Returns the lists of revoked certificates in a file.
///
/// # Errors
/// If the file cannot be read, or has no list.
pub(super) fn revoked(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let read = CertificateRevocationListDer::pem_file_iter(path).and_then(Iterator::collect);
    let lists: Vec<_> = read.map_err(|error| named(path, error))?;
    if lists.is_empty() {
        return Err(format!("{}: the file has no list of revoked certificates", path.display()));
    }
    Ok(lists)
}

fn named(path: &Path, error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("{}: {error}", path.display()),
        other => format!("{}: {other}", path.display()),
    }
}
