//! The way to the proxy, in the clear or by TLS, and the certificates of both sides.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rustls::{ClientConfig, ServerConfig};

use crate::bench::session;
use crate::certificates::{Authority, write_for_proxy};
use crate::channel::Channel;
use crate::records::{self, TLS12, TLS13};
use crate::workspace;

/// The longest that a client waits for a reply.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The needs of TLS on both sides of the proxy.
#[derive(Debug)]
pub(super) struct Encryption {
    /// Clients, with one version of TLS each.
    clients: [Arc<ClientConfig>; 2],
    /// The lying server.
    pub(super) server: Arc<ServerConfig>,
    /// Options of the proxy towards clients, and towards servers.
    pub(super) options: (String, String),
}

impl Encryption {
    /// Makes certificates, and writes the files of the proxy.
    pub(super) fn new(authority: &Authority) -> Result<Self> {
        let options = write_for_proxy(authority, &workspace::target().join("fuzz-tls"))?;
        let root = authority.certificate();
        let clients = [records::client(&root, &TLS12)?, records::client(&root, &TLS13)?];
        let server = records::server(&authority.sign("fake", &["localhost", "127.0.0.1"])?)?;
        Ok(Self { clients, server, options })
    }
}

/// The way to the proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Door<'a> {
    pub(super) port: u16,
    pub(super) encryption: Option<&'a Encryption>,
}

impl Door<'_> {
    /// Connects. `number` chooses the version of TLS.
    pub(super) fn open(&self, number: u64) -> Result<Channel> {
        let clients = self.encryption.map(|encryption| &encryption.clients);
        session::dial(self.port, PATIENCE, clients.map(|both| &both[usize::from(number % 2 == 1)]))
    }
}
