//! Other processes of Refrain or of PgBouncer that serve the same clients, to which cancel requests
//! are passed on.

use std::path::PathBuf;

use crate::table::table;

/// The greatest number of a process among its peers, as in PgBouncer.
pub(crate) const PEER_ID_MAX: u32 = 16_383;

/// Another process that serves the same clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process's own number (`peer_id`).
    pub id: u32,
    /// The number, as it is written.
    pub(crate) name: String,
    /// The place where it listens.
    pub place: PeerPlace,
}

/// The place where another process listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerPlace {
    /// The name or address of a host, and a port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Peer {
    /// Makes a peer of its name, which is its number, and its keys.
    ///
    /// # Errors
    /// What is wrong with the name, or missing.
    pub(crate) fn new(name: &str, keys: PeerKeys) -> Result<Self, String> {
        let id = name.parse().ok().filter(|id| (1..=PEER_ID_MAX).contains(id));
        let id = id.ok_or(format!("expected the number of a peer, from 1 to {PEER_ID_MAX}"))?;
        let PeerKeys { host, port, .. } = keys;
        let place = match host {
            Some(dir) if dir.starts_with('/') => {
                PeerPlace::Unix(PathBuf::from(dir).join(format!(".s.PGSQL.{port}")))
            }
            Some(host) => PeerPlace::Tcp(host, port),
            None => return Err("expected a host".to_owned()),
        };
        Ok(Self { id, name: name.to_owned(), place })
    }

    /// Returns the host or the socket, for the console.
    pub fn host(&self) -> String {
        match &self.place {
            PeerPlace::Tcp(host, _) => host.clone(),
            PeerPlace::Unix(path) => path.display().to_string(),
        }
    }

    /// Returns the place, for the log.
    pub(crate) fn shown(&self) -> String {
        match &self.place {
            PeerPlace::Tcp(host, port) => format!("{host}:{port}"),
            PeerPlace::Unix(path) => path.display().to_string(),
        }
    }

    /// Returns the port; 0 for a Unix socket.
    pub fn port(&self) -> u16 {
        match self.place {
            PeerPlace::Tcp(_, port) => port,
            PeerPlace::Unix(_) => 0,
        }
    }
}

table! {
    /// The keys of a peer.
    pub(crate) struct PeerKeys;

    /// Host on which the process listens, or the directory of its Unix socket.
    host: Option<String>,
        Reload, takes ["10.0.0.2", "/run/refrain-2"], not [];

    /// Port on which the process listens, or the one in the name of its Unix socket.
    port: u16 = "6432" ["1" to "65535"],
        Reload, takes ["6433"], not ["0", "65536"];
}
