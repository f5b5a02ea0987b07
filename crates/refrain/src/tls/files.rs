//! The files of certificates and keys. An error names its file.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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

fn named(path: &Path, error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("{}: {error}", path.display()),
        other => format!("{}: {other}", path.display()),
    }
}
