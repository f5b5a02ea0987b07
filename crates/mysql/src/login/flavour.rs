//! The kind of a server, as its greeting tells it; and the capabilities of both sides.
//!
//! Drivers choose their syntax by the version of the greeting, so a client gets its server's own
//! string. Capabilities decide about the form of replies: a client is offered those that Refrain
//! can serve, and a server is asked for one set that all servers of a pool have in common.

use refrain_mysql_wire::handshake::{HandshakeV10, NONCE_BYTES};
use refrain_mysql_wire::{Capabilities, Status};

use super::secret::Plugin;
use crate::errors::Brand;

/// Capabilities that a client may have if its server has them. What is not here:
///
/// - COMPRESS and ZSTD_COMPRESSION_ALGORITHM: packets are passed on as they are.
/// - OPTIONAL_RESULTSET_METADATA, and MariaDB's CACHE_METADATA: whether definitions of columns come
///   depends on what the session has got before.
/// - QUERY_ATTRIBUTES and STMT_BULK_OPERATIONS: not every server of a pool may have them.
/// - MULTI_FACTOR_AUTHENTICATION and CAN_HANDLE_EXPIRED_PASSWORDS: Refrain checks one password,
///   which does not expire.
/// - PROGRESS: packets in the middle of a reply that are none of the reply.
/// - NO_SCHEMA: it changes what a text means, and no known library asks for it.
const OFFERED: Capabilities = set(&[
    Capabilities::CLIENT_MYSQL,
    Capabilities::FOUND_ROWS,
    Capabilities::LONG_FLAG,
    Capabilities::CONNECT_WITH_DB,
    Capabilities::ODBC,
    Capabilities::LOCAL_FILES,
    Capabilities::IGNORE_SPACE,
    Capabilities::PROTOCOL_41,
    Capabilities::INTERACTIVE,
    Capabilities::IGNORE_SIGPIPE,
    Capabilities::TRANSACTIONS,
    Capabilities::RESERVED,
    Capabilities::SECURE_CONNECTION,
    Capabilities::MULTI_STATEMENTS,
    Capabilities::MULTI_RESULTS,
    Capabilities::PS_MULTI_RESULTS,
    Capabilities::PLUGIN_AUTH,
    Capabilities::CONNECT_ATTRS,
    Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA,
    Capabilities::SESSION_TRACK,
    Capabilities::DEPRECATE_EOF,
    Capabilities::EXTENDED_METADATA,
    Capabilities::SSL_VERIFY_SERVER_CERT,
    Capabilities::REMEMBER_OPTIONS,
]);

/// Capabilities that a server is asked for if it has them, whatever the clients have: what a client
/// lacks is taken out of the replies. Others depend on the clients ([`super::Wanted`]).
const ASKED: Capabilities = set(&[
    Capabilities::CLIENT_MYSQL,
    Capabilities::LONG_FLAG,
    Capabilities::PROTOCOL_41,
    Capabilities::TRANSACTIONS,
    Capabilities::SECURE_CONNECTION,
    Capabilities::PLUGIN_AUTH,
    Capabilities::CONNECT_ATTRS,
    Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA,
    Capabilities::SESSION_TRACK,
]);

/// Returns a set of these capabilities.
const fn set(capabilities: &[Capabilities]) -> Capabilities {
    let (mut bits, mut at) = (0, 0);
    while at < capabilities.len() {
        bits |= capabilities[at].bits();
        at += 1;
    }
    Capabilities::from_bits(bits)
}

/// All that a greeting says of a server, and not of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flavour {
    /// The version, as the server sends it.
    pub version: Box<[u8]>,
    /// The capabilities that the server offers.
    pub capabilities: Capabilities,
    /// The low byte of the id of the server's collation.
    pub collation: u8,
    /// The flags of a new session.
    pub status: Status,
    /// The authentication plugin that the server begins with.
    pub plugin: Box<[u8]>,
}

impl Flavour {
    /// Takes what a greeting says.
    pub fn of(greeting: &HandshakeV10<'_>) -> Self {
        Self {
            version: greeting.version.into(),
            capabilities: greeting.capabilities,
            collation: greeting.collation,
            status: greeting.status,
            plugin: greeting.plugin.into(),
        }
    }

    /// Returns the product.
    pub fn brand(&self) -> Brand {
        let named = self.version.windows(7).any(|part| part.eq_ignore_ascii_case(b"mariadb"));
        if named { Brand::MariaDb } else { Brand::MySql }
    }

    /// Returns the capabilities that clients are offered.
    pub fn offered(&self, has_tls: bool) -> Capabilities {
        let offered = self.capabilities & OFFERED;
        if has_tls { offered | Capabilities::SSL } else { offered }
    }

    /// Returns the capabilities that a server is asked for.
    pub fn asked(&self) -> Capabilities {
        self.capabilities & ASKED
    }

    /// Returns the greeting of a client.
    pub fn greeting(
        &self,
        connection_id: u32,
        nonce: [u8; NONCE_BYTES],
        has_tls: bool,
    ) -> HandshakeV10<'_> {
        HandshakeV10 {
            version: &self.version,
            connection_id,
            nonce,
            capabilities: self.offered(has_tls),
            collation: self.collation,
            status: self.status,
            plugin: self.plugin().name(),
        }
    }

    /// Returns the plugin that clients are asked for first: the server's, if Refrain has it.
    pub fn plugin(&self) -> Plugin {
        Plugin::named(&self.plugin).unwrap_or(Plugin::CachingSha2)
    }
}
