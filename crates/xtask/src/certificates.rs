//! Certificates for tests: authorities made on the spot, and what they sign.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    SanType, date_time_ymd,
};

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as texts of files.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// Makes an authority of this name.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = named(name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Returns the authority's own certificate, as the text of a file.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for a common name, and for hosts (names or addresses) and mail
    /// addresses.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn sign(&self, common_name: &str, hosts: &[&str]) -> Result<Signed> {
        self.sign_as(named(common_name, hosts)?)
    }

    /// Signs a certificate for a common name within an organization.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn sign_member(&self, common_name: &str, organization: &str) -> Result<Signed> {
        let mut params = named(common_name, &[])?;
        params.distinguished_name.push(DnType::OrganizationName, organization);
        self.sign_as(params)
    }

    /// Signs a certificate that has expired.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn sign_expired(&self, common_name: &str, hosts: &[&str]) -> Result<Signed> {
        let mut params = named(common_name, hosts)?;
        params.not_after = date_time_ymd(2001, 1, 1);
        self.sign_as(params)
    }

    fn sign_as(&self, params: CertificateParams) -> Result<Signed> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem() })
    }
}

impl Signed {
    /// Writes the certificate and the key as the files `NAME.crt` and `NAME.key` of a folder.
    /// libpq, PostgreSQL and other drivers refuse a key that others may read.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        fs::write(folder.join(format!("{name}.crt")), &self.certificate)?;
        let key = folder.join(format!("{name}.key"));
        fs::write(&key, &self.key)?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        Ok(())
    }
}

/// Writes the authority's certificate, and a certificate for `localhost` with its key, as files of
/// a folder. Returns their options of the proxy: those towards clients, and those towards a server.
///
/// # Errors
/// If a file cannot be written.
pub fn write_for_proxy(authority: &Authority, folder: &Path) -> Result<(String, String)> {
    fs::create_dir_all(folder)?;
    authority.sign("refrain", &["localhost"])?.write(folder, "own")?;
    let path = |name: &str| folder.join(name);
    fs::write(path("root.crt"), authority.certificate())?;
    let to_clients = format!(
        "client_tls_cert_file = {:?}\nclient_tls_key_file = {:?}\n",
        path("own.crt"),
        path("own.key")
    );
    let to_server = format!("sslmode = \"verify-full\"\nsslrootcert = {:?}\n", path("root.crt"));
    Ok((to_clients, to_server))
}

/// Makes a certificate that its own key has signed, as PostgreSQL's manual does: it could be that
/// of an authority.
///
/// # Errors
/// If no key can be made.
pub fn self_signed(common_name: &str) -> Result<Signed> {
    let mut params = named(common_name, &[])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Signed { certificate, key: key.serialize_pem() })
}

fn named(common_name: &str, hosts: &[&str]) -> Result<CertificateParams> {
    let (mails, hosts): (Vec<_>, Vec<_>) =
        hosts.iter().map(|&host| host.to_owned()).partition(|host| host.contains('@'));
    let mut params = CertificateParams::new(hosts)?;
    for mail in mails {
        params.subject_alt_names.push(SanType::Rfc822Name(mail.try_into()?));
    }
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}
