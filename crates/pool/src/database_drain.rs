//! Draining databases: a client drops, renames or copies one, and idle servers must disconnect from
//! it.
//!
//! A server waits some seconds for other sessions to leave such a database, and then fails. From
//! the client's query until the server's reply, but for at most `WAIT_MAX`, no core keeps a server
//! of that database that no client needs: an idle server is closed, and so is one that comes back
//! from a client or arrives from another core. A client that waits still gets a server.
//!
//! A database is known by its name at the server. Refrain does not compare addresses: the same
//! server may be configured under several, and closing one server too many costs just a connection.

use std::sync::Arc;
use std::time::Duration;

use crate::ids::Conn;
use crate::parts::Parts;
use crate::pool::Pool;
use crate::time::Now;

/// Time after which a drain ends: the five seconds that servers are known to wait, and some for a
/// lock before that.
const WAIT_MAX: Duration = Duration::from_secs(7);
/// Number of databases that can be drained at a time; one more takes the place of the first.
const DATABASES_MAX: usize = 64;

/// A database's name at the server.
pub type Name = Arc<[u8]>;

/// The databases that are drained.
#[derive(Debug, Default)]
pub struct DatabaseDrain {
    databases: Vec<Leaving>,
    /// Databases that a client of this core has just named, and that other cores do not know of.
    news: Vec<Name>,
}

/// A database that is drained.
#[derive(Debug)]
struct Leaving {
    name: Name,
    /// The client of this core whose command needs the drain; `None` if another core has it.
    client: Option<Conn>,
    until: Now,
}

impl DatabaseDrain {
    /// Starts to drain a database for a client of this core.
    pub fn ask(&mut self, name: &[u8], client: Conn, now: Now) {
        let name = Name::from(name);
        self.news.push(name.clone());
        self.begin(name, Some(client), now);
    }

    /// Starts to drain a database, or restarts the time of its drain.
    pub fn begin(&mut self, name: Name, client: Option<Conn>, now: Now) {
        self.end(&name);
        self.databases.retain(|leaving| leaving.until > now);
        if self.databases.len() >= DATABASES_MAX {
            self.databases.remove(0);
        }
        self.databases.push(Leaving { name, client, until: now.after(WAIT_MAX) });
    }

    /// Ends the drain of a database.
    pub fn end(&mut self, name: &[u8]) {
        self.databases.retain(|leaving| *leaving.name != *name);
    }

    /// Whether there are databases that other cores do not know of.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Takes out the databases that other cores do not know of.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.news)
    }

    /// Returns the databases that are drained for this client.
    #[inline]
    pub(crate) fn wanted_by(&self, client: Conn) -> Vec<Name> {
        let wanted = self.databases.iter().filter(|leaving| leaving.client == Some(client));
        wanted.map(|leaving| leaving.name.clone()).collect()
    }

    /// Whether the database of this pool's servers is drained.
    #[inline]
    pub fn concerns<P: Parts>(&self, pool: &Pool<P>, now: Now) -> bool {
        let name = || pool.server_database().as_bytes();
        self.databases.iter().any(|leaving| leaving.until > now && *leaving.name == *name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(database_drain: &DatabaseDrain) -> Vec<&[u8]> {
        database_drain.databases.iter().map(|leaving| &*leaving.name).collect()
    }

    #[test]
    fn a_database_is_left_until_it_is_dropped_and_not_for_ever() {
        let mut database_drain = DatabaseDrain::default();
        database_drain.ask(b"a", Conn(1), Now(0));
        database_drain.begin(Name::from(&b"b"[..]), None, Now(1));
        assert_eq!(database_drain.take_news().len(), 1);
        assert_eq!(names(&database_drain), [&b"a"[..], b"b"]);
        assert_eq!(database_drain.wanted_by(Conn(1)).len(), 1);
        database_drain.end(b"a");
        assert_eq!(names(&database_drain), [b"b"]);
        let later = Now(2).after(WAIT_MAX);
        for at in 0..2 * DATABASES_MAX as u64 {
            database_drain.ask(&at.to_be_bytes(), Conn(1), later);
        }
        assert_eq!(database_drain.databases.len(), DATABASES_MAX);
    }
}
