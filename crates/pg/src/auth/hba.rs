//! The method by which a client proves who it is, where the rules of `pg_hba.conf` choose it.
//!
//! The order is PostgreSQL's (`ClientAuthentication`): the first rule that is for the client, then
//! the certificate that the rule asks for, then the method. All of that comes before anything is
//! said about the user or a password, so a client that no rule is for learns nothing about either.
//! The words and SQLSTATEs are PostgreSQL's as well, but for a password in clear text, which
//! PostgreSQL does not refuse.

use std::fmt;

use refrain_config::{CertificateName, ClientCertificate, Hba, HbaMethod, Newcomer, Rule};
use refrain_pool::ids::Peer;
use refrain_pool::secured::{Certificate, Secured};

use super::client::Method;

/// A client that wants to log in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applicant<'a> {
    /// The peer of its connection.
    pub(crate) peer: &'a Peer,
    /// The encryption of its connection, if it has any.
    pub(crate) secured: Option<&'a Secured>,
    /// The database that it asks for.
    pub(crate) database: &'a str,
    /// The user that it says it is.
    pub(crate) user: &'a str,
    /// Whether it wants to replicate the whole server, and no database.
    pub(crate) replicates: bool,
}

/// A refusal before or after the exchange. [`fmt::Display`] gives the words for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No rule is for the client.
    NoEntry(Described),
    /// A rule rejects the client.
    Rejected(Described),
    /// The rule asks for a certificate, and the client has shown none.
    NoCertificate,
    /// The client is not who it says it is.
    Failed {
        /// The method of the rule.
        method: HbaMethod,
        /// The user that the client says it is.
        user: String,
        /// The name that it has instead, for the log alone.
        detail: String,
    },
    /// The password would come in clear text over a network.
    ClearText,
}

/// A client as PostgreSQL describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// Whether it wants to replicate the whole server.
    replicates: bool,
    /// Its host, its user, its database if it wants one, and its encryption.
    rest: String,
}

impl Denied {
    /// Returns the SQLSTATE for the client.
    pub(crate) fn sqlstate(&self) -> &'static str {
        match self {
            Self::Failed {
                method: HbaMethod::Password | HbaMethod::Md5 | HbaMethod::Scram,
                ..
            } => "28P01",
            _ => "28000",
        }
    }

    /// Returns what the log says besides; empty if there is no more to say.
    pub(crate) fn detail(&self) -> &str {
        match self {
            Self::Failed { detail, .. } => detail,
            _ => "",
        }
    }

    /// Returns the hint for the client; empty if there is none.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::ClearText => "Connect with TLS, or set insecure_password = true in Refrain.",
            _ => "",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEntry(Described { replicates, rest }) => {
                let what = if *replicates { "replication connection from " } else { "" };
                write!(f, "no pg_hba.conf entry for {what}{rest}")
            }
            Self::Rejected(Described { replicates, rest }) => {
                let what = if *replicates { "replication " } else { "" };
                write!(f, "pg_hba.conf rejects {what}connection for {rest}")
            }
            Self::NoCertificate => f.write_str("connection requires a valid client certificate"),
            Self::Failed { method, user, .. } => {
                let by = match method {
                    HbaMethod::Trust | HbaMethod::Reject => "\"trust\"",
                    HbaMethod::Password | HbaMethod::Md5 | HbaMethod::Scram => "password",
                    HbaMethod::Cert => "certificate",
                    HbaMethod::Peer => "Peer",
                };
                write!(f, "{by} authentication failed for user \"{user}\"")
            }
            Self::ClearText => f.write_str("passwords in clear text need an encrypted connection"),
        }
    }
}

impl Applicant<'_> {
    /// Returns the first rule that is for the client, with its place among all rules.
    pub(crate) fn rule<'a>(&self, hba: &'a Hba) -> Option<(usize, &'a Rule)> {
        let address = match self.peer {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Unix { .. } => None,
        };
        let encrypted = self.secured.is_some();
        let Self { database, user, replicates, .. } = *self;
        let database = Some(database).filter(|_| !replicates);
        hba.find(&Newcomer { address, encrypted, database, user })
    }

    /// Returns the refusal of a client that no rule is for.
    pub(crate) fn no_entry(&self) -> Denied {
        Denied::NoEntry(self.described())
    }

    /// Returns the method that a rule asks for. [`Method::Trust`] if the client has nothing more to
    /// prove.
    ///
    /// # Errors
    /// The refusal, if the connection itself shows that the client must not log in.
    pub(crate) fn method(&self, hba: &Hba, rule: &Rule) -> Result<Method, Denied> {
        let asks = rule.certificate != ClientCertificate::NotAsked;
        if asks && self.certificate().is_none() {
            return Err(Denied::NoCertificate);
        }
        match rule.method {
            HbaMethod::Trust => Ok(Method::Trust),
            HbaMethod::Reject => Err(Denied::Rejected(self.described())),
            HbaMethod::Password => Ok(Method::Password),
            HbaMethod::Md5 => Ok(Method::Md5),
            HbaMethod::Scram => Ok(Method::Scram),
            HbaMethod::Cert => {
                self.check_names(hba, rule, &self.certified(rule)).map(|()| Method::Trust)
            }
            HbaMethod::Peer => {
                self.check_names(hba, rule, self.system().as_slice()).map(|()| Method::Trust)
            }
        }
    }

    /// Checks what a rule asks for besides its method, once the client has proved who it is.
    ///
    /// # Errors
    /// The refusal, if the client has shown the certificate of another user.
    pub(crate) fn check_certificate(&self, hba: &Hba, rule: &Rule) -> Result<(), Denied> {
        match rule.certificate {
            ClientCertificate::OfUser => self.check_names(hba, rule, &self.certified(rule)),
            ClientCertificate::NotAsked | ClientCertificate::Signed => Ok(()),
        }
    }

    /// Whether a password that the client sends in clear text may be read on its way.
    pub(crate) fn is_overheard(&self) -> bool {
        let is_remote = match self.peer {
            Peer::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Peer::Unix { .. } => false,
        };
        is_remote && self.secured.is_none()
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.secured.and_then(|secured| secured.certificate.as_ref())
    }

    /// Returns the names in the client's certificate that a rule looks at.
    fn certified(&self, rule: &Rule) -> Vec<&str> {
        let Some(certificate) = self.certificate() else { return Vec::new() };
        let name = match rule.name {
            CertificateName::CommonName => certificate.common_name.as_deref(),
            CertificateName::Subject => Some(&*certificate.subject),
        };
        // PostgreSQL never looks at these names. Without a map they would be names of users, which
        // the authority may not have meant; with `clientname=DN` the rule asks for the subject.
        let others = match (rule.name, &rule.map) {
            (CertificateName::CommonName, Some(_)) => certificate.names.as_slice(),
            _ => &[],
        };
        name.into_iter().chain(others.iter().map(|name| &**name)).collect()
    }

    /// Returns the name that the operating system has for the user of the client's process.
    fn system(&self) -> Option<&str> {
        match self.peer {
            Peer::Unix { name, .. } => name.as_deref(),
            Peer::Tcp(_) => None,
        }
    }

    /// Checks that the client may be the user that it says it is, under one of the names that it
    /// has elsewhere.
    fn check_names(&self, hba: &Hba, rule: &Rule, names: &[&str]) -> Result<(), Denied> {
        let user = self.user;
        let map = rule.map.as_deref();
        let mut named = names.iter().filter(|name| !name.is_empty());
        if named.clone().any(|name| hba.maps(map, name, user)) {
            return Ok(());
        }
        let detail = match (named.next(), map) {
            (Some(name), None) => format!(
                "provided user name ({user}) and authenticated user name ({name}) do not match"
            ),
            (Some(name), Some(map)) => format!(
                "no match in usermap \"{map}\" for user \"{user}\" authenticated as \"{name}\""
            ),
            (None, _) => "there is no name to compare with".to_owned(),
        };
        Err(Denied::Failed { method: rule.method, user: user.to_owned(), detail })
    }

    /// Returns the client's address as PostgreSQL writes it.
    pub(crate) fn host(&self) -> String {
        match self.peer {
            Peer::Tcp(address) => address.ip().to_canonical().to_string(),
            Peer::Unix { .. } => "[local]".to_owned(),
        }
    }

    /// Describes the client in PostgreSQL's words.
    fn described(&self) -> Described {
        let Self { database, user, replicates, .. } = *self;
        let host = self.host();
        let encryption = if self.secured.is_some() { "SSL encryption" } else { "no encryption" };
        let database =
            if replicates { String::new() } else { format!("database \"{database}\", ") };
        let rest = format!("host \"{host}\", user \"{user}\", {database}{encryption}");
        Described { replicates, rest }
    }
}
