//! All connections of this core, each with its role: client, server, or cancel request.

use crate::client::Client;
use crate::ids::Conn;
use crate::parts::Parts;
use crate::server::Server;
use crate::time::Now;

/// What a connection is.
#[derive(Debug)]
pub enum Connection<P: Parts> {
    /// Nothing: the number is free.
    Free,
    /// A client.
    Client(Box<Client<P>>),
    /// A server.
    Server(Box<Server<P>>),
    /// A request to cancel, on its way to a server.
    Cancel(Box<CancelRun>),
}

/// A request to cancel, on its way to a server.
#[derive(Debug)]
pub struct CancelRun {
    /// The server whose statement is to be cancelled, which is not lent out meanwhile.
    pub server: Conn,
    /// Its number: the connection's may be another server's by now, and process IDs are the
    /// servers' to choose.
    pub serial: u64,
    /// What BackendKeyData said.
    pub pid: u32,
    /// What BackendKeyData said.
    pub key: Box<[u8]>,
    /// When somebody asked for it.
    pub since: Now,
}

/// All connections, by number.
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

    /// What a connection is.
    #[inline]
    pub fn get(&self, conn: Conn) -> &Connection<P> {
        self.0.get(conn.0 as usize).unwrap_or(&Connection::Free)
    }

    /// The client at a connection.
    #[inline]
    pub fn client(&mut self, conn: Conn) -> Option<&mut Client<P>> {
        match self.0.get_mut(conn.0 as usize) {
            Some(Connection::Client(client)) => Some(client),
            _ => None,
        }
    }

    /// The server at a connection.
    #[inline]
    pub fn server(&mut self, conn: Conn) -> Option<&mut Server<P>> {
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
    pub fn pair(&mut self, client: Conn, server: Conn) -> (&mut Client<P>, &mut Server<P>) {
        let both = self.0.get_disjoint_mut([client.0 as usize, server.0 as usize]);
        match both {
            Ok([Connection::Client(client), Connection::Server(server)]) => (client, server),
            _ => panic!("a link joins a client and a server"),
        }
    }

    /// All clients.
    pub fn clients(&self) -> impl Iterator<Item = &Client<P>> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Client(client) => Some(&**client),
            _ => None,
        })
    }

    /// All servers.
    pub fn servers(&self) -> impl Iterator<Item = &Server<P>> {
        self.0.iter().filter_map(|connection| match connection {
            Connection::Server(server) => Some(&**server),
            _ => None,
        })
    }

    /// The numbers of all that are in use.
    pub fn conns(&self) -> impl Iterator<Item = Conn> + use<P> {
        let used: Vec<_> = (0u32..)
            .zip(&self.0)
            .filter(|(_, connection)| !matches!(connection, Connection::Free))
            .map(|(index, _)| Conn(index))
            .collect();
        used.into_iter()
    }
}
