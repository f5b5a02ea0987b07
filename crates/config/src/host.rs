//! Hosts: where a server is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::sqlite::Sqlite;
use crate::tls::ServerTls;

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
