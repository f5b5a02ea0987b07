//! All connections of this core, each with its role: client, server, or side connection.
//!
//! A tick looks at the connections that are *watched*: servers, side connections, and clients that
//! may not stay as they are, because they log in or have ended their stream. A tick need not look
//! at the thousands of clients that do nothing. Servers and pools lead to the others.
//!
//! A client whose held input can be handled now is listed to be *read on* before the step ends.

use std::collections::VecDeque;

use crate::client::{Client, WaitingFor};
use crate::ids::Conn;
use crate::parts::Parts;
use crate::server::Server;
use crate::side::Side;

/// The role of a connection.
#[derive(Debug)]
pub enum Connection<P: Parts> {
    /// No connection: the number is free.
    Free,
    /// A client.
    Client(Box<Client<P>>),
    /// A server.
    Server(Box<Server<P>>),
    /// A side connection.
    Side(Box<Side<P>>),
}

/// All connections of a core, by number.
#[derive(Debug)]
pub struct Connections<P: Parts> {
    table: Vec<Connection<P>>,
    /// The connections whose `is_watched` is true. Some of the numbers may be free by now.
    watched: Vec<Conn>,
    is_watched: Vec<bool>,
    /// Clients whose input is to be read on before the step ends.
    pub(crate) runnable: VecDeque<Conn>,
    /// Number of clients, including those at their login.
    clients: usize,
}

impl<P: Parts> Default for Connections<P> {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            watched: Vec::new(),
            is_watched: Vec::new(),
            runnable: VecDeque::new(),
            clients: 0,
        }
    }
}

impl<P: Parts> Connections<P> {
    /// Gives a connection its role. The next tick looks at the connection.
    pub fn set(&mut self, conn: Conn, connection: Connection<P>) {
        let index = conn.0 as usize;
        if self.table.len() <= index {
            self.table.resize_with(index + 1, || Connection::Free);
            self.is_watched.resize(index + 1, false);
        }
        assert!(matches!(self.table[index], Connection::Free), "a connection has one role");
        self.clients += usize::from(matches!(connection, Connection::Client(_)));
        self.table[index] = connection;
        self.watch(conn);
    }

    /// Has the next tick look at a connection, which has a role.
    pub(crate) fn watch(&mut self, conn: Conn) {
        if !std::mem::replace(&mut self.is_watched[conn.0 as usize], true) {
            self.watched.push(conn);
        }
    }

    /// Whether the next tick looks at a connection, which has a role.
    pub(crate) fn is_watched(&self, conn: Conn) -> bool {
        self.is_watched[conn.0 as usize]
    }

    /// Whether the next tick looks at any connection.
    pub(crate) fn has_watched(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Takes out the connections that this tick looks at.
    pub(crate) fn take_watched(&mut self) -> Vec<Conn> {
        std::mem::take(&mut self.watched)
    }

    /// Puts back those of the connections taken out that the next tick has to look at again.
    pub(crate) fn keep_watched(
        &mut self,
        mut looked: Vec<Conn>,
        stays: impl Fn(&Connection<P>) -> bool,
    ) {
        looked.retain(|conn| {
            let index = conn.0 as usize;
            self.is_watched[index] = stays(&self.table[index]);
            self.is_watched[index]
        });
        looked.append(&mut self.watched);
        self.watched = looked;
    }

    /// Takes a connection's role away.
    pub fn take(&mut self, conn: Conn) -> Connection<P> {
        let Some(place) = self.table.get_mut(conn.0 as usize) else { return Connection::Free };
        let taken = std::mem::replace(place, Connection::Free);
        self.clients -= usize::from(matches!(taken, Connection::Client(_)));
        taken
    }

    /// Returns the number of clients, including those at their login.
    pub(crate) fn client_count(&self) -> usize {
        self.clients
    }

    /// Schedules a client's input to be handled before the step ends.
    pub fn read_on(&mut self, conn: Conn) {
        self.runnable.push_back(conn);
    }

    /// Ends a client's waiting, and schedules its input to be handled.
    #[inline(never)]
    pub fn unblock(&mut self, conn: Conn) {
        let Some(client) = self.client(conn) else { return };
        client.waiting_for = WaitingFor::Nothing;
        self.read_on(conn);
    }

    /// Returns the role of a connection.
    #[inline]
    pub fn get(&self, conn: Conn) -> &Connection<P> {
        self.table.get(conn.0 as usize).unwrap_or(&Connection::Free)
    }

    /// Returns the client at a connection.
    #[inline]
    pub fn client(&mut self, conn: Conn) -> Option<&mut Client<P>> {
        match self.table.get_mut(conn.0 as usize) {
            Some(Connection::Client(client)) => Some(client),
            _ => None,
        }
    }

    /// Returns the client at a connection for reading.
    pub fn peek_client(&self, conn: Conn) -> Option<&Client<P>> {
        match self.get(conn) {
            Connection::Client(client) => Some(client),
            _ => None,
        }
    }

    /// Returns the server at a connection.
    #[inline]
    pub fn server(&mut self, conn: Conn) -> Option<&mut Server<P>> {
        match self.table.get_mut(conn.0 as usize) {
            Some(Connection::Server(server)) => Some(server),
            _ => None,
        }
    }

    /// Returns the side connection with this number.
    pub fn side(&mut self, conn: Conn) -> Option<&mut Side<P>> {
        match self.table.get_mut(conn.0 as usize) {
            Some(Connection::Side(side)) => Some(side),
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
        match self.table.get_disjoint_mut([client.0 as usize, server.0 as usize]) {
            Ok([Connection::Client(client), Connection::Server(server)]) => (client, server),
            _ => panic!("a link joins a client and a server"),
        }
    }

    /// Returns the number of connections that there have been at once.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Iterates over all clients.
    pub fn clients(&self) -> impl Iterator<Item = &Client<P>> {
        self.table.iter().filter_map(|connection| match connection {
            Connection::Client(client) => Some(&**client),
            _ => None,
        })
    }

    /// Iterates over all servers.
    pub fn servers(&self) -> impl Iterator<Item = &Server<P>> {
        self.table.iter().filter_map(|connection| match connection {
            Connection::Server(server) => Some(&**server),
            _ => None,
        })
    }

    /// Iterates over the servers that are logged in and not idle.
    pub fn busy_servers(&self) -> impl Iterator<Item = &Server<P>> {
        // Each tick looks at all servers.
        self.watched.iter().filter_map(|&conn| match self.get(conn) {
            Connection::Server(server) if server.is_busy() => Some(&**server),
            _ => None,
        })
    }

    /// Iterates over the numbers that are in use.
    pub fn conns(&self) -> impl Iterator<Item = Conn> + use<P> {
        let used: Vec<_> = (0u32..)
            .zip(&self.table)
            .filter(|(_, connection)| !matches!(connection, Connection::Free))
            .map(|(index, _)| Conn(index))
            .collect();
        used.into_iter()
    }
}
