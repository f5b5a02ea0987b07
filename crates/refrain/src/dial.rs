//! Attempts to connect to servers: a host may be a name, and a name may have several addresses.
//!
//! An attempt tries the addresses one after the other, in the resolver's order. The engine gets the
//! first success, or the last failure. Each attempt has a ticket, because the engine may give up
//! and use the connection's number again while the resolver still looks up the name.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::{io, vec};

use refrain_config::Host;
use refrain_drive::Address;
use refrain_pool::Conn;

use crate::resolve::{Addresses, Resolver};

/// Sends the core mail with the addresses for an attempt: its connection and its ticket.
type Tell = dyn Fn(Conn, u64, Addresses) + Send + Sync;

/// The attempts of one core.
pub(crate) struct Dialer {
    resolver: Arc<Resolver>,
    tell: Arc<Tell>,
    attempts: HashMap<Conn, Attempt>,
    /// Connections whose last address failed and that have another address to try.
    again: Vec<Conn>,
    ticket: u64,
}

struct Attempt {
    ticket: u64,
    port: u16,
    /// The address being tried, for the error message.
    trying: Option<Address>,
    rest: vec::IntoIter<IpAddr>,
}

impl Attempt {
    fn advance(&mut self) -> Option<Address> {
        let address = self.rest.next()?;
        let address = Address::Tcp(SocketAddr::new(address, self.port));
        self.trying = Some(address.clone());
        Some(address)
    }
}

impl Dialer {
    /// Makes the attempts of a core that has none. `tell` sends the core mail with addresses.
    pub(crate) fn new(
        resolver: Arc<Resolver>,
        tell: impl Fn(Conn, u64, Addresses) + Send + Sync + 'static,
    ) -> Self {
        let (attempts, again) = (HashMap::new(), Vec::new());
        Self { resolver, tell: Arc::new(tell), attempts, again, ticket: 0 }
    }

    /// Begins an attempt. Returns the address to connect to, or `None` if the addresses will come
    /// by mail.
    pub(crate) fn begin(&mut self, conn: Conn, host: &Host) -> Option<Address> {
        let (name, port) = match host {
            Host::Unix { dir, port } => {
                return Some(Address::Unix(dir.join(format!(".s.PGSQL.{port}"))));
            }
            Host::Socket(path) => return Some(Address::Unix(path.clone())),
            Host::Tcp { host, port, .. } => (host, *port),
            // SQLite runs in this process: there is nothing to connect to.
            Host::Sqlite(_) => return None,
        };
        self.ticket += 1;
        let known = match name.parse() {
            Ok(address) => Some(vec![address]),
            Err(_) => {
                let (tell, ticket) = (Arc::clone(&self.tell), self.ticket);
                let asker = move |addresses| tell(conn, ticket, addresses);
                self.resolver.ask(name, Box::new(asker))
            }
        };
        let rest = known.unwrap_or_default().into_iter();
        let mut attempt = Attempt { ticket: self.ticket, port, trying: None, rest };
        let first = attempt.advance();
        self.attempts.insert(conn, attempt);
        first
    }

    /// Takes the addresses of a name, and returns the first to connect to. Returns `None` if the
    /// attempt was given up.
    ///
    /// # Errors
    /// Why there is no address, for the engine.
    pub(crate) fn resolved(
        &mut self,
        conn: Conn,
        ticket: u64,
        addresses: Addresses,
    ) -> Result<Option<Address>, String> {
        let waits = |attempt: &&mut Attempt| attempt.ticket == ticket;
        let Some(attempt) = self.attempts.get_mut(&conn).filter(waits) else { return Ok(None) };
        attempt.rest = addresses?.into_iter();
        Ok(attempt.advance())
    }

    /// Ends an attempt that succeeded. Returns the address that it led to.
    pub(crate) fn succeeded(&mut self, conn: Conn) -> Option<Address> {
        self.attempts.remove(&conn)?.trying
    }

    /// Ends an attempt that the engine gave up.
    pub(crate) fn forget(&mut self, conn: Conn) {
        self.attempts.remove(&conn);
    }

    /// Handles a failed address. Returns `None` if there is another address to try, otherwise the
    /// error for the engine.
    pub(crate) fn failed(&mut self, conn: Conn, error: &io::Error) -> Option<String> {
        let Some(attempt) = self.attempts.get(&conn) else { return Some(error.to_string()) };
        if attempt.rest.len() > 0 {
            self.again.push(conn);
            return None;
        }
        let why = match &attempt.trying {
            Some(address) => format!("{address}: {error}"),
            None => error.to_string(),
        };
        self.attempts.remove(&conn);
        Some(why)
    }

    /// Returns the next connection that tries another address, with that address.
    pub(crate) fn next_again(&mut self) -> Option<(Conn, Address)> {
        let conn = self.again.pop()?;
        let address = self.attempts.get_mut(&conn).and_then(Attempt::advance);
        address.map(|address| (conn, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_config::Options;

    fn dialer() -> Dialer {
        Dialer::new(Arc::default(), |_, _, _| ())
    }

    fn refused() -> io::Error {
        io::ErrorKind::ConnectionRefused.into()
    }

    #[test]
    fn an_address_needs_no_resolver() {
        let options = Options::from_url("postgres://[::1]").unwrap();
        let first = dialer().begin(Conn(0), &options.databases[0].server.host);
        assert_eq!(first, Some(Address::Tcp("[::1]:5432".parse().unwrap())));
        let host = Host::Unix { dir: "/tmp".into(), port: 1 };
        assert_eq!(dialer().begin(Conn(0), &host), Some(Address::Unix("/tmp/.s.PGSQL.1".into())));
    }

    #[test]
    fn addresses_are_tried_in_turn() {
        let mut dialer = dialer();
        let attempt = Attempt { ticket: 7, port: 1, trying: None, rest: Vec::new().into_iter() };
        dialer.attempts.insert(Conn(3), attempt);
        let both = || Ok(vec!["::1".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
        assert_eq!(dialer.resolved(Conn(3), 6, both()), Ok(None), "an earlier attempt");
        assert!(dialer.resolved(Conn(3), 7, both()).unwrap().is_some());
        assert_eq!(dialer.failed(Conn(3), &refused()), None);
        let (conn, second) = dialer.next_again().unwrap();
        assert_eq!((conn, second.to_string().as_str()), (Conn(3), "127.0.0.1:1"));
        assert_eq!(dialer.failed(Conn(3), &refused()).unwrap(), "127.0.0.1:1: connection refused");
        assert!(dialer.next_again().is_none());
    }
}
