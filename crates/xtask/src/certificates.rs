//! Certificates for tests: authorities made on the spot, and what they sign.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SanType, SigningKey,
    date_time_ymd,
};

/// The serial number of the next certificate.
static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as texts of files.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
    /// The serial number.
    serial: u64,
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

    /// Signs a certificate of version 1, which has no extensions, as OpenSSL does where nobody asks
    /// for extensions.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn sign_old(&self, common_name: &str) -> Result<Signed> {
        let mut params = named(common_name, &[])?;
        let serial = number(&mut params);
        let key = KeyPair::generate()?;
        let newer = params.signed_by(&key, &self.0)?;
        let certificate = pem(&self.as_version_1(newer.der())?);
        Ok(Signed { certificate, key: key.serialize_pem(), serial })
    }

    /// Makes an authority below this one, or what is none, since its certificate does not say so.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn below(&self, name: &str, is_authority: bool) -> Result<Self> {
        let mut params = named(name, &[])?;
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        }
        Ok(Self(CertifiedIssuer::signed_by(params, KeyPair::generate()?, &self.0)?))
    }

    /// Returns a certificate without its version and its extensions, signed anew.
    fn as_version_1(&self, newer: &[u8]) -> Result<Vec<u8>> {
        let parts = parts(content(newer)?)?;
        let [signed, algorithm, _] = parts[..] else { bail!("a certificate has three parts") };
        let fields = self::parts(content(signed)?)?;
        let is_old = |field: &&&[u8]| !matches!(field.first(), Some(0xa0 | 0xa3));
        let signed = sequence(&fields.iter().filter(is_old).copied().collect::<Vec<_>>().concat());
        let signature = [&[0], &*self.0.key().sign(&signed)?].concat();
        Ok(sequence(&[&signed, algorithm, &element(0x03, &signature)].concat()))
    }

    /// Returns the text of a file with the list of the certificates that the authority has revoked
    /// (CRL). Its time ends in this year.
    ///
    /// # Errors
    /// If the list cannot be signed.
    pub fn revoke(&self, revoked: &[&Signed], year: i32) -> Result<String> {
        self.list(revoked.iter().map(|signed| signed.serial), year)
    }

    /// Returns the text of such a file with all certificates that were made so far in this process.
    ///
    /// # Errors
    /// If the list cannot be signed.
    pub fn revoke_all(&self) -> Result<String> {
        self.list(1..NEXT_SERIAL.load(Ordering::Relaxed), 2100)
    }

    fn list(&self, serials: impl Iterator<Item = u64>, year: i32) -> Result<String> {
        let revoked = serials.map(|serial| RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2000, 1, 1),
            next_update: date_time_ymd(year, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(params.signed_by(&self.0)?.pem()?)
    }

    fn sign_as(&self, mut params: CertificateParams) -> Result<Signed> {
        let serial = number(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem(), serial })
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
    let serial = number(&mut params);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Signed { certificate, key: key.serialize_pem(), serial })
}

/// Returns the head's length and the content's length of the first element of an encoding (DER).
fn lengths(der: &[u8]) -> Result<(usize, usize)> {
    let first = usize::from(*der.get(1).context("an element is cut")?);
    let digits = first.checked_sub(0x80);
    let Some(digits) = digits else { return Ok((2, first)) };
    let length = der.get(2..2 + digits).context("an element is cut")?;
    Ok((2 + digits, length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte))))
}

/// Returns the content of an element.
fn content(der: &[u8]) -> Result<&[u8]> {
    let (head, length) = lengths(der)?;
    der.get(head..head + length).context("an element is cut")
}

/// Returns the elements of a content.
fn parts(mut der: &[u8]) -> Result<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !der.is_empty() {
        let (head, length) = lengths(der)?;
        let (part, rest) = der.split_at_checked(head + length).context("an element is cut")?;
        parts.push(part);
        der = rest;
    }
    Ok(parts)
}

fn sequence(content: &[u8]) -> Vec<u8> {
    element(0x30, content)
}

/// Encodes an element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits = &length[length.iter().take_while(|&&byte| byte == 0).count()..];
    let head = match content.len() {
        short @ ..0x80 => vec![tag, short as u8],
        _ => [&[tag, 0x80 + digits.len() as u8], digits].concat(),
    };
    [&head, content].concat()
}

/// Returns a certificate as the text of a file.
fn pem(der: &[u8]) -> String {
    let lines: Vec<_> = STANDARD.encode(der).into_bytes();
    let lines: Vec<_> = lines.chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Gives a certificate a serial number of its own.
fn number(params: &mut CertificateParams) -> u64 {
    let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
    params.serial_number = Some(serial.into());
    serial
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
