//! All connections of this core, each with its role: client, server, or cancel request.

use crate::client::Client;
use crate::ids::Conn;
use crate::parts::Parts;
use crate::server::Server;
use crate::time::Now;

/// The role of a connection.
#[derive(Debug)]
pub enum Connection<P: Parts> {
    /// No connection: the number is free.
    Free,
    /// A client.
    Client(Box<Client<P>>),
    /// A server.
    Server(Box<Server<P>>),
    /// A cancel request on its way to a server.
    Cancel(Box<CancelRun>),
}

/// A cancel request on its way to a server.
#[derive(Debug)]
pub struct CancelRun {
    /// The server whose statement is to be cancelled. The server is not lent to another client
    /// meanwhile.
    pub server: Conn,
    /// The server's serial. The connection's number may belong to another server by now, and two
    /// servers may choose the same process ID.
    pub serial: u64,
    /// The server's process ID, which the request names.
    pub pid: u32,
    /// The server's cancel key, which the request shows.
    pub key: Box<[u8]>,
    /// When the request began.
    pub since: Now,
}

/// All connections of a core, by number.
#[derive(Debug)]
pub struct Connections<P: Parts>(Vec<Connection<P>>);

impl<P: Parts> Default for Connections<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: Parts> Connections<P> {
    /// Gives a connection its role.
    pub fn set(&mut self, conn: Conn, connection: Connection<P>) {
        let index = conn.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || Connection::Free);
        }
        assert!(matches!(self.0[index], Connection::Free), "a connection has one role");
        self.0[index] = connection;
    }

    /// Takes a connection's role away.
    pub fn take(&mut self, conn: Conn) -> Connection<P> {
        self.0
            .get_mut(conn.0 as usize)
            .map_or(Connection::Free, |place| std::mem::replace(place, Connection::Free))
    }

    /// Returns the role of a connection.
    #[inline]
    pub fn get(&self, conn: Conn) -> &Connection<P> {
        self.0.get(conn.0 as usize).unwrap_or(&Connection::Free)
    }

    /// Returns the client at a connection.
    #[inline]
    pub fn client(&mut self, conn: Conn) -> Option<&mut Client<P>> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Connection::Client(client)) => Some(client),
            _ => None,
        }
    }

    /// Returns the server at a connection.
    #[inline]
    pub fn server(&mut self, conn: Conn) -> Option<&mut Server<P>> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Connection::Server(server)) => Some(server),
            _ => None,
        }
    }

    /// Returns a client and a server at once.
    ///
    /// # Panics
    /// If no client has the first number, or no server the second: a link joins a client and a
    /// server that exist.
    #[inline]
    pub fn pair(&mut self, client: Conn, server: Conn) -> (&mut Client<P>, &mut Server<P>) {
        let both = self.0.get_disjoint_mut([client.0 as usize, server.0 as usize]);
        match both {
            Ok([Connection::Client(client), Connection::Server(server)]) => (client, server),
            _ => panic!("a link joins a client and a server"),
        }
    }

    /// Iterates over all clients.
    pub fn clients(&self) -> impl Iterator<Item = &Client<P>> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Client(client) => Some(&**client),
            _ => None,
        })
    }

    /// Iterates over all servers.
    pub fn servers(&self) -> impl Iterator<Item = &Server<P>> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Server(server) => Some(&**server),
            _ => None,
        })
    }

    /// Iterates over the numbers that are in use.
    pub fn conns(&self) -> impl Iterator<Item = Conn> + use<P> {
        let used: Vec<_> = (0u32..)
            .zip(&self.0)
            .filter(|(_, connection)| !matches!(connection, Connection::Free))
            .map(|(index, _)| Conn(index))
            .collect();
        used.into_iter()
    }
}
