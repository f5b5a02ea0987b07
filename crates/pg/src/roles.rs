//! What each connection is to this core.

use crate::client::Client;
use crate::ids::Conn;
use crate::server::Server;
use crate::time::Now;

/// What a connection is.
#[derive(Debug, Default)]
pub(crate) enum Role {
    /// Nothing: the number is free.
    #[default]
    Free,
    /// A client.
    Client(Box<Client>),
    /// A server.
    Server(Box<Server>),
    /// A request to cancel, on its way to a server.
    Cancel(Box<CancelRun>),
}

/// A request to cancel, on its way to a server.
#[derive(Debug)]
pub(crate) struct CancelRun {
    /// The server whose statement is to be cancelled, which is not lent out meanwhile.
    pub(crate) server: Conn,
    /// Its number: the connection's may be another server's by now, and process IDs are the servers' to choose.
    pub(crate) serial: u64,
    /// What BackendKeyData said.
    pub(crate) pid: u32,
    /// What BackendKeyData said.
    pub(crate) key: Box<[u8]>,
    /// When somebody asked for it.
    pub(crate) since: Now,
}

/// All connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Roles(Vec<Role>);

impl Roles {
    /// Gives a connection its role.
    pub(crate) fn set(&mut self, conn: Conn, role: Role) {
        let index = conn.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Role::default);
        }
        assert!(matches!(self.0[index], Role::Free), "a connection has one role");
        self.0[index] = role;
    }

    /// Takes a connection's role away.
    pub(crate) fn take(&mut self, conn: Conn) -> Role {
        self.0.get_mut(conn.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    /// What a connection is.
    #[inline]
    pub(crate) fn get(&self, conn: Conn) -> &Role {
        self.0.get(conn.0 as usize).unwrap_or(&Role::Free)
    }

    /// The client at a connection.
    #[inline]
    pub(crate) fn client(&mut self, conn: Conn) -> Option<&mut Client> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Role::Client(client)) => Some(client),
            _ => None,
        }
    }

    /// The server at a connection.
    #[inline]
    pub(crate) fn server(&mut self, conn: Conn) -> Option<&mut Server> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Role::Server(server)) => Some(server),
            _ => None,
        }
    }

    /// A client and a server at once.
    ///
    /// # Panics
    /// Where they are not what they are taken for: a link joins a client and a server that exist.
    #[inline]
    pub(crate) fn pair(&mut self, client: Conn, server: Conn) -> (&mut Client, &mut Server) {
        let both = self.0.get_disjoint_mut([client.0 as usize, server.0 as usize]);
        match both {
            Ok([Role::Client(client), Role::Server(server)]) => (client, server),
            _ => panic!("a link joins a client and a server"),
        }
    }

    /// All clients.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.0.iter().filter_map(|role| match role {
            Role::Client(client) => Some(&**client),
            _ => None,
        })
    }

    /// All servers.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.0.iter().filter_map(|role| match role {
            Role::Server(server) => Some(&**server),
            _ => None,
        })
    }

    /// The numbers of all that are in use.
    pub(crate) fn conns(&self) -> impl Iterator<Item = Conn> + use<> {
        let used: Vec<_> = (0u32..)
            .zip(&self.0)
            .filter(|(_, role)| !matches!(role, Role::Free))
            .map(|(index, _)| Conn(index))
            .collect();
        used.into_iter()
    }
}
