//! A rule: a line of `pg_hba.conf`.

use std::fmt;

use super::address::Address;
use super::groups::Groups;
use super::names::{DatabaseName, UserName};
use super::problem::Place;
use super::tokens::{Field, Line, Token};

/// The connections that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Connections of the Unix socket.
    Local,
    /// Connections by TCP, encrypted or not.
    Host,
    /// Connections with TLS.
    HostSsl,
    /// Connections by TCP without TLS.
    HostNoSsl,
    /// Connections that GSSAPI encrypts: none, because Refrain offers no GSSAPI.
    HostGss,
}

/// The method by which a rule lets clients in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HbaMethod {
    /// Every client is let in.
    Trust,
    /// No client is let in.
    Reject,
    /// By the password, in clear text.
    Password,
    /// By MD5; by SCRAM for users whose secret is a SCRAM verifier.
    Md5,
    /// By SCRAM-SHA-256.
    Scram,
    /// By the client's certificate.
    Cert,
    /// By the name that the operating system has for the client's process.
    Peer,
}

impl HbaMethod {
    /// The methods by their names.
    const NAMES: &[(&str, Self)] = &[
        ("trust", Self::Trust),
        ("reject", Self::Reject),
        ("password", Self::Password),
        ("md5", Self::Md5),
        ("scram-sha-256", Self::Scram),
        ("cert", Self::Cert),
        ("peer", Self::Peer),
    ];
    /// The further methods of PostgreSQL.
    const UNSUPPORTED: &[&str] = &["ident", "gss", "sspi", "pam", "bsd", "ldap", "radius", "oauth"];

    fn read(text: &str, kind: Kind) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        let method = match known {
            Some((_, method)) => *method,
            // As in PostgreSQL: on the Unix socket the kernel is asked in place of an ident server.
            None if text == "ident" && kind == Kind::Local => Self::Peer,
            None => {
                let names: Vec<_> = Self::NAMES.iter().map(|(name, _)| *name).collect();
                let expected = names.join(", ");
                let why = match Self::UNSUPPORTED.contains(&text) {
                    true => "not supported by Refrain; ",
                    false => "",
                };
                return Err(format!(
                    "invalid authentication method \"{text}\": {why}expected one of {expected}"
                ));
            }
        };
        match (method, kind) {
            (Self::Peer, Kind::Local) | (Self::Cert, Kind::HostSsl) => Ok(method),
            (Self::Peer, _) => {
                Err("peer authentication is only supported on local sockets".to_owned())
            }
            (Self::Cert, _) => {
                Err("cert authentication is only supported on hostssl connections".to_owned())
            }
            _ => Ok(method),
        }
    }

    /// Whether a client is let in without a secret that Refrain knows.
    pub fn needs_no_secret(self) -> bool {
        matches!(self, Self::Trust | Self::Cert | Self::Peer)
    }
}

/// The certificate that a rule asks of a client, besides its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// None.
    NotAsked,
    /// One that a trusted authority has signed.
    Signed,
    /// One that also has the user's name.
    OfUser,
}

/// The name in a certificate that is compared with the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// The common name of the subject.
    CommonName,
    /// The whole subject.
    Subject,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub(super) place: Place,
    text: String,
    kind: Kind,
    databases: Vec<DatabaseName>,
    users: Vec<UserName>,
    /// The addresses of clients by TCP.
    pub(super) address: Address,
    /// The method.
    pub method: HbaMethod,
    /// The certificate that is asked for.
    pub certificate: ClientCertificate,
    /// The name in the certificate.
    pub name: CertificateName,
    /// The map of user names.
    pub map: Option<String>,
}

impl Rule {
    /// Reads a line.
    pub(super) fn read(line: Line, groups: &Groups) -> Result<Self, String> {
        let mut fields = line.fields.iter();
        let kind = kind(fields.next())?;
        let databases = fields.next().ok_or("end-of-line before database specification")?;
        let databases = databases.iter().map(DatabaseName::read).collect::<Result<_, _>>()?;
        let users = fields.next().ok_or("end-of-line before role specification")?;
        let users = users.iter().map(|user| UserName::read(user, groups));
        let users = users.collect::<Result<_, _>>()?;
        let address = match kind {
            Kind::Local => Address::All,
            _ => {
                let field = fields.next().ok_or("end-of-line before IP address specification")?;
                Address::read(field, &mut fields)?
            }
        };
        let method = fields.next().ok_or("end-of-line before authentication method")?;
        let [Token { text: method, .. }] = method.as_slice() else {
            return Err("multiple values specified for authentication type: \
                        specify exactly one authentication type per line"
                .to_owned());
        };
        let method = HbaMethod::read(method, kind)?;
        let mut rule = Self {
            kind,
            databases,
            users,
            address,
            method,
            certificate: match method {
                HbaMethod::Cert => ClientCertificate::OfUser,
                _ => ClientCertificate::NotAsked,
            },
            name: CertificateName::CommonName,
            map: None,
            place: line.place,
            text: line.text,
        };
        for token in fields.flatten() {
            rule.option(&token.text)?;
        }
        Ok(rule)
    }

    /// Reads an option behind the method.
    fn option(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("authentication option not in name=value format: {text}"))?;
        let is_ssl = self.kind == Kind::HostSsl;
        match (name, value) {
            ("map", map) if matches!(self.method, HbaMethod::Peer | HbaMethod::Cert) => {
                self.map = Some(map.to_owned());
            }
            ("map", _) => {
                return Err("authentication option \"map\" is only valid for authentication \
                            methods peer and cert"
                    .to_owned());
            }
            ("clientcert" | "clientname", _) if !is_ssl => {
                return Err(format!("{name} can only be configured for \"hostssl\" rows"));
            }
            ("clientcert", "verify-full") => self.certificate = ClientCertificate::OfUser,
            ("clientcert", "verify-ca") if self.method == HbaMethod::Cert => {
                return Err("clientcert only accepts \"verify-full\" when using \"cert\" \
                            authentication"
                    .to_owned());
            }
            ("clientcert", "verify-ca") => self.certificate = ClientCertificate::Signed,
            ("clientname", "CN") => self.name = CertificateName::CommonName,
            ("clientname", "DN") => self.name = CertificateName::Subject,
            ("clientcert", _) => {
                return Err(format!(
                    "invalid value for clientcert: \"{value}\": expected verify-ca or verify-full"
                ));
            }
            ("clientname", _) => {
                return Err(format!(
                    "invalid value for clientname: \"{value}\": expected CN or DN"
                ));
            }
            _ => return Err(format!("unrecognized authentication option name: \"{name}\"")),
        }
        Ok(())
    }

    /// Whether the rule is for connections of this kind.
    pub(super) fn is_for(&self, is_local: bool, encrypted: bool) -> bool {
        match self.kind {
            Kind::Local => is_local,
            Kind::Host => !is_local,
            Kind::HostSsl => !is_local && encrypted,
            Kind::HostNoSsl => !is_local && !encrypted,
            Kind::HostGss => false,
        }
    }

    /// Whether the rule is for this database of this user.
    pub(super) fn is_for_database(
        &self,
        database: Option<&str>,
        user: &str,
        groups: &Groups,
    ) -> bool {
        self.databases.iter().any(|name| name.means(database, user, groups))
    }

    /// Whether the rule is for this user.
    pub(super) fn is_for_user(&self, user: &str, groups: &Groups) -> bool {
        self.users.iter().any(|name| name.means(user, groups))
    }

    /// Whether clients of other machines are let in without any proof.
    pub fn trusts_strangers(&self) -> bool {
        let is_tcp = !matches!(self.kind, Kind::Local | Kind::HostGss);
        self.method == HbaMethod::Trust
            && self.certificate == ClientCertificate::NotAsked
            && is_tcp
            && !self.address.is_loopback()
    }

    /// Returns the file of the line; empty if the rule stands in the configuration itself.
    pub fn file(&self) -> String {
        self.place.file.as_ref().map_or_else(String::new, |file| file.display().to_string())
    }

    /// Returns the number of the line, from 1.
    pub fn line(&self) -> usize {
        self.place.line
    }

    /// Returns the line as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Names the line and repeats it, for the log.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: \"{}\"", self.place, self.text)
    }
}

/// Reads the first field of a line.
fn kind(field: Option<&Field>) -> Result<Kind, String> {
    let [token] = field.map(Vec::as_slice).unwrap_or_default() else {
        return Err("multiple values specified for connection type: \
                    specify exactly one connection type per line"
            .to_owned());
    };
    Ok(match token.text.as_str() {
        "local" => Kind::Local,
        // No connection is encrypted by GSSAPI.
        "host" | "hostnogssenc" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        "hostgssenc" => Kind::HostGss,
        other => {
            return Err(format!(
                "invalid connection type \"{other}\": expected local, host, hostssl, hostnossl, \
                 hostgssenc or hostnogssenc"
            ));
        }
    })
}
