//! All connections of this core, each with its role: client, server, or cancel request.

use crate::ground::ids::Conn;
use crate::ground::time::Now;
use crate::state::client::Client;
use crate::state::server::Server;

/// What a connection is.
#[derive(Debug, Default)]
pub(crate) enum Connection {
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
    /// Its number: the connection's may be another server's by now, and process IDs are the
    /// servers' to choose.
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
pub(crate) struct Connections(Vec<Connection>);

impl Connections {
    /// Gives a connection its role.
    pub(crate) fn set(&mut self, conn: Conn, connection: Connection) {
        let index = conn.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Connection::default);
        }
        assert!(matches!(self.0[index], Connection::Free), "a connection has one role");
        self.0[index] = connection;
    }

    /// Takes a connection's role away.
    pub(crate) fn take(&mut self, conn: Conn) -> Connection {
        self.0.get_mut(conn.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    /// What a connection is.
    #[inline]
    pub(crate) fn get(&self, conn: Conn) -> &Connection {
        self.0.get(conn.0 as usize).unwrap_or(&Connection::Free)
    }

    /// The client at a connection.
    #[inline]
    pub(crate) fn client(&mut self, conn: Conn) -> Option<&mut Client> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Connection::Client(client)) => Some(client),
            _ => None,
        }
    }

    /// The server at a connection.
    #[inline]
    pub(crate) fn server(&mut self, conn: Conn) -> Option<&mut Server> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Connection::Server(server)) => Some(server),
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
            Ok([Connection::Client(client), Connection::Server(server)]) => (client, server),
            _ => panic!("a link joins a client and a server"),
        }
    }

    /// All clients.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Client(client) => Some(&**client),
            _ => None,
        })
    }

    /// All servers.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Server(server) => Some(&**server),
            _ => None,
        })
    }

    /// The numbers of all that are in use.
    pub(crate) fn conns(&self) -> impl Iterator<Item = Conn> + use<> {
        let used: Vec<_> = (0u32..)
            .zip(&self.0)
            .filter(|(_, connection)| !matches!(connection, Connection::Free))
            .map(|(index, _)| Conn(index))
            .collect();
        used.into_iter()
    }
}
