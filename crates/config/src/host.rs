//! Hosts: where a server is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::sqlite::Sqlite;
use crate::tls::ServerTls;
use crate::value::{Given, Value, choice};

choice! {
    /// The state that a server has to be in. The words are libpq's.
    TargetSessionAttrs {
        /// Any state.
        Any = "any",
        /// Sessions may write unless they say otherwise.
        ReadWrite = "read-write",
        /// Sessions may not write unless they say otherwise.
        ReadOnly = "read-only",
        /// The server is not in recovery.
        Primary = "primary",
        /// The server is in recovery.
        Standby = "standby",
        /// The server is in recovery, or no other of the hosts is.
        PreferStandby = "prefer-standby",
    }
}

choice! {
    /// The order in which hosts are tried.
    LoadBalanceHosts {
        /// The order in which they are written; the one in use as long as it can be used.
        Disable = "disable",
        /// In turn.
        RoundRobin = "round-robin",
        /// At random.
        Random = "random",
    }
}

choice! {
    /// The servers on which reads may run.
    Reads {
        /// The servers in the wanted state.
        Primary = "primary",
        /// These, and the standbys among the hosts.
        Standby = "standby",
    }
}

/// The ports of a database's hosts: one for all, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ports(pub(crate) Vec<u16>);

impl Value for Ports {
    fn what() -> String {
        "a whole number".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        match given {
            Given::Text(_) => Vec::read(given).filter(|ports| !ports.is_empty()).map(Self),
            _ => u16::read(given).map(|port| Self(vec![port])),
        }
    }

    fn show(&self) -> String {
        self.0.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
    }

    fn measure(&self) -> Option<u64> {
        self.0.iter().min().map(|port| u64::from(*port))
    }
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name or an address, without brackets, and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// The encryption of connections.
        tls: Arc<ServerTls>,
    },
    /// The directory of a Unix socket `.s.PGSQL.<port>`.
    Unix {
        /// Directory.
        dir: PathBuf,
        /// The number at the end of the socket's name.
        port: u16,
    },
    /// The path of a Unix socket.
    Socket(PathBuf),
    /// An SQLite file, which this process serves as a PostgreSQL server would.
    Sqlite(Arc<Sqlite>),
}

impl Host {
    /// Whether connections lead to the servers. Else they are sessions in this process.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Sqlite(_))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix { dir, port } => write!(f, "{}/.s.PGSQL.{port}", dir.display()),
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Sqlite(file) => write!(f, "{}", file.path.display()),
        }
    }
}
