//! The proxy's own counters, asked for at its console.

use crate::client::Peers;
use crate::conn::Conn;
use crate::msg::Msg;

/// The database name of the console.
const CONSOLE: &str = "pgbouncer";

/// Counters of the proxy, summed over its pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that went to a server behind those of other clients.
    pub shared: u64,
    /// Requests that were sent again to another server.
    pub resent: u64,
    /// Requests that the cache answered.
    pub hits: u64,
}

impl Counters {
    /// Asks the proxy.
    ///
    /// # Errors
    /// If the proxy has no console for this user.
    pub fn ask(peers: &Peers) -> Result<Self, String> {
        let params = [("user", peers.user.as_str()), ("database", CONSOLE)];
        let params = params.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let words = |broken| format!("the proxy's console: {broken:?}");
        let mut conn = Conn::open(&peers.proxied, &params, peers.limit).map_err(words)?;
        let mut query = Vec::new();
        Msg::Query(b"show counters".to_vec()).encode(&mut query);
        conn.write(&query).map_err(words)?;
        let (mut counters, mut ready) = (Self::default(), 0);
        while ready < 2 {
            let frame = conn.read().map_err(words)?;
            match frame.tag {
                b'E' => return Err(format!("the proxy's console: {frame}")),
                b'D' => counters.add(&frame.values()),
                b'Z' => ready += 1,
                _ => {}
            }
        }
        Ok(counters)
    }

    /// Adds a row of SHOW COUNTERS: database, user, counter, value.
    fn add(&mut self, row: &[Option<&[u8]>]) {
        let [_, _, Some(name), Some(value)] = row else { return };
        let value = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        match *name {
            b"requests_shared" => self.shared += value.unwrap_or(0),
            b"requests_resent" => self.resent += value.unwrap_or(0),
            b"cache_hits" => self.hits += value.unwrap_or(0),
            _ => {}
        }
    }

    /// Returns what has been counted since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            shared: self.shared.saturating_sub(before.shared),
            resent: self.resent.saturating_sub(before.resent),
            hits: self.hits.saturating_sub(before.hits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn counters_are_summed_over_pools() {
        let mut counters = Counters::default();
        let row = |name, value| [Some(&b"d"[..]), Some(b"u"), Some(name), Some(value)];
        counters.add(&row(b"requests_shared", b"3"));
        counters.add(&row(b"requests_shared", b"4"));
        counters.add(&row(b"requests_resent", b"2"));
        counters.add(&row(b"cache_hits", b"5"));
        counters.add(&row(b"queries", b"9"));
        assert_eq!(counters, Counters { shared: 7, resent: 2, hits: 5 });
        let before = Counters { shared: 5, resent: 0, hits: 1 };
        assert_eq!(counters.since(before), Counters { shared: 2, resent: 2, hits: 4 });
    }
}
