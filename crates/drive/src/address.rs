//! Addresses to listen on and to connect to, and the peers of connections.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use socket2::SockAddr;

/// An address to listen on or to connect to. The caller resolves names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IPv4 or IPv6 address and port.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(PathBuf),
}

impl Address {
    /// Converts the address for the kernel. Fails if a path is longer than the 107 bytes that the
    /// kernel allows.
    pub(crate) fn to_kernel(&self) -> io::Result<SockAddr> {
        match self {
            Address::Tcp(address) => Ok(SockAddr::from(*address)),
            Address::Unix(path) => SockAddr::unix(path),
        }
    }

    /// Converts an address from the kernel; `None` for a Unix socket without a name, as on the
    /// connecting side.
    pub(crate) fn from_kernel(address: &SockAddr) -> Option<Address> {
        match address.as_socket() {
            Some(address) => Some(Address::Tcp(address)),
            None => address.as_pathname().map(|path| Address::Unix(path.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// The peer of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A peer on the network, with its address.
    Tcp(SocketAddr),
    /// A process connected over a Unix socket. `SO_PEERCRED` describes the process at the time when
    /// it connected.
    Unix {
        /// The user ID of the process.
        uid: Option<u32>,
        /// The process ID.
        pid: Option<i32>,
    },
}
