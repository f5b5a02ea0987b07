//! Where to listen and connect to, and who is at the other end.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use socket2::SockAddr;

/// A place to listen on or to connect to. Names are resolved by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IPv4 or IPv6 address and port.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(PathBuf),
}

impl Address {
    /// As the kernel wants it. Fails if a path is longer than the 107 bytes it has room for.
    pub(crate) fn to_kernel(&self) -> io::Result<SockAddr> {
        match self {
            Address::Tcp(address) => Ok(SockAddr::from(*address)),
            Address::Unix(path) => SockAddr::unix(path),
        }
    }

    /// `None` for a Unix socket without a name, which is what the connecting side has.
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

/// Who connected to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Over the network, from this address.
    Tcp(SocketAddr),
    /// Over a Unix socket. `SO_PEERCRED` names the process as it was when it connected.
    Unix {
        /// The user the process ran as.
        uid: Option<u32>,
        /// The process.
        pid: Option<i32>,
    },
}
