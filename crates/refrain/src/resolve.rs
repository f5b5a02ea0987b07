//! Name lookup: from host names to IP addresses, off the cores.
//!
//! The system's resolver blocks, for seconds if a name server is down, so each lookup has a thread
//! of its own. Host names come from the configuration alone, so there are never more such threads
//! than configured hosts. All attempts that ask for a name during its lookup get the same answer.
//!
//! An answer is used for [`FRESH`]. If a later lookup fails, the last answer stays in use: servers
//! rarely move, and name servers fail. If the first lookup of a name fails, the failure is not
//! remembered.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which an answer is used without asking again. `getaddrinfo` does not return the
/// record's own TTL.
const FRESH: Duration = Duration::from_secs(15);

/// The IP addresses of a host name in the resolver's order, or why there are none.
pub(crate) type Addresses = Result<Vec<IpAddr>, String>;

/// Passes the addresses to an attempt to connect that waits for them.
pub(crate) type Asker = Box<dyn FnOnce(Addresses) + Send>;

/// A name with its addresses, for `SHOW DNS_HOSTS`.
#[derive(Clone, Debug)]
pub(crate) struct KnownHost {
    pub(crate) name: String,
    pub(crate) fresh_for: Duration,
    pub(crate) addresses: Vec<IpAddr>,
}

#[derive(Default)]
struct Entry {
    addresses: Vec<IpAddr>,
    asked: Option<Instant>,
    /// `Some` while a thread looks the name up.
    askers: Option<Vec<Asker>>,
}

impl Entry {
    fn fresh_for(&self) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| FRESH.saturating_sub(asked.elapsed()))
    }
}

/// The names that were asked for, with their addresses.
#[derive(Default)]
pub(crate) struct Resolver {
    entries: Mutex<HashMap<String, Entry>>,
}

impl Resolver {
    /// Returns the addresses of `name` if they are known. Otherwise `asker` gets them later, from
    /// another thread.
    pub(crate) fn ask(self: &Arc<Self>, name: &str, asker: Asker) -> Option<Vec<IpAddr>> {
        let mut entries = self.entries();
        let entry = entries.entry(name.to_owned()).or_default();
        if entry.fresh_for() > Duration::ZERO {
            return Some(entry.addresses.clone());
        }
        if let Some(askers) = &mut entry.askers {
            askers.push(asker);
            return None;
        }
        entry.askers = Some(vec![asker]);
        drop(entries);
        let (this, name) = (Arc::clone(self), name.to_owned());
        let thread = thread::Builder::new().name("resolve".to_owned());
        let started = thread.spawn({
            let name = name.clone();
            move || this.answer(&name, look_up(&name))
        });
        if let Err(error) = started {
            self.answer(
                &name,
                Err(format!("could not start a thread to look up {name:?}: {error}")),
            );
        }
        None
    }

    /// Returns all names, sorted.
    pub(crate) fn known(&self) -> Vec<KnownHost> {
        let known = |(name, entry): (&String, &Entry)| KnownHost {
            name: name.clone(),
            fresh_for: entry.fresh_for(),
            addresses: entry.addresses.clone(),
        };
        let mut hosts: Vec<_> = self.entries().iter().map(known).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        hosts
    }

    fn answer(&self, name: &str, found: Addresses) {
        let mut entries = self.entries();
        let entry = entries.entry(name.to_owned()).or_default();
        let addresses = match found {
            Ok(addresses) => {
                entry.addresses.clone_from(&addresses);
                entry.asked = Some(Instant::now());
                Ok(addresses)
            }
            Err(why) if entry.addresses.is_empty() => Err(why),
            Err(why) => {
                tracing::warn!(
                    cause = "name_stale",
                    "name lookup failed, using the last known addresses: {why}"
                );
                Ok(entry.addresses.clone())
            }
        };
        let askers = entry.askers.take().unwrap_or_default();
        drop(entries);
        askers.into_iter().for_each(|asker| asker(addresses.clone()));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the system's resolver, which blocks.
pub(crate) fn look_up(name: &str) -> Addresses {
    let found = (name, 0).to_socket_addrs().map_err(|error| format!("host {name:?}: {error}"))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|address| address.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(format!("host {name:?} has no address")) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up() {
        assert!(look_up("localhost").unwrap().iter().all(IpAddr::is_loopback));
        assert!(look_up("no.such.name.invalid").is_err());
    }
}
