//! Secured: the encryption of a connection, as far as decisions depend on it. The loop encrypts and
//! decrypts; the engine sees bytes in the clear.

use std::fmt;

/// The encryption of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    /// The version of TLS: `TLSv1.3`.
    pub version: &'static str,
    /// The name of the cipher suite.
    pub cipher: Box<str>,
    /// The hash of the server's certificate for the channel binding `tls-server-end-point` (RFC
    /// 5929, section 4.1); `None` if the certificate's signature has no single hash.
    pub end_point: Option<Box<[u8]>>,
    /// The certificate that the peer has shown, and that a trusted authority has signed.
    pub certificate: Option<Certificate>,
}

/// Shows the version and the cipher, as PgBouncer does.
impl fmt::Display for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.version, self.cipher)
    }
}

/// The names in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The common name of the subject.
    pub common_name: Option<Box<str>>,
    /// The whole subject, as RFC 2253 writes it.
    pub subject: Box<str>,
    /// The names of the extension `subjectAltName`: DNS names and mail addresses.
    pub names: Vec<Box<str>>,
}
