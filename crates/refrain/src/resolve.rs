//! Name lookup: from host names to IP addresses, off the cores.
//!
//! The system's resolver blocks, for seconds if a name server is down, so each lookup has a thread
//! of its own, and so does one by other name servers (`dns.rs`). Host names come from the
//! configuration alone, so there are never more such threads than configured hosts. All attempts
//! that ask for a name during its lookup get the same answer.
//!
//! An answer is used for `dns_max_ttl`. If a later lookup fails, the last answer stays in use:
//! servers rarely move, and name servers fail. If the first lookup of a name fails, the failure is
//! remembered for `dns_nxdomain_ttl`.
//!
//! A name that was asked for is looked up again and again ([`Resolver::follow`]). Servers at
//! addresses that the name has lost are left.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use refrain_config::General;

use crate::dns;

/// Time between two looks for names that are not fresh any more, at least.
const PAUSE_LEAST: Duration = Duration::from_secs(1);

/// Times for which answers are used without asking again. `getaddrinfo` does not return the
/// record's own TTL.
#[derive(Clone, Copy, Debug)]
struct Ttl {
    found: Duration,
    lost: Duration,
}

impl Default for Ttl {
    fn default() -> Self {
        let General { dns_max_ttl, dns_nxdomain_ttl, .. } = General::default();
        Self { found: dns_max_ttl, lost: dns_nxdomain_ttl }
    }
}

/// The IP addresses of a host name in the resolver's order, or why there are none.
pub(crate) type Addresses = Result<Vec<IpAddr>, String>;

/// Hears of the addresses that a name has lost.
type Follower = Box<dyn Fn(&str, Vec<IpAddr>) + Send + Sync>;

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
    /// Whether the last lookup failed.
    is_stale: bool,
    /// When the last lookup failed of a name without addresses, and why.
    lost: Option<(Instant, String)>,
}

impl Entry {
    fn fresh_for(&self, ttl: Ttl) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| ttl.found.saturating_sub(asked.elapsed()))
    }
}

/// The names that were asked for, with their addresses.
#[derive(Default)]
pub(crate) struct Resolver {
    entries: Mutex<HashMap<String, Entry>>,
    ttl: Mutex<Ttl>,
    /// The file with the name servers that are asked in place of the system's resolver.
    file: Mutex<Option<PathBuf>>,
    follower: OnceLock<Follower>,
}

impl Resolver {
    /// Puts the times for which answers are used into force, and who is asked.
    pub(crate) fn configure(&self, general: &General) {
        let General { dns_max_ttl, dns_nxdomain_ttl, .. } = *general;
        *lock(&self.ttl) = Ttl { found: dns_max_ttl, lost: dns_nxdomain_ttl };
        lock(&self.file).clone_from(&general.resolv_conf);
    }

    /// Looks a name up, which blocks.
    pub(crate) fn look_up(&self, name: &str) -> Addresses {
        let file = lock(&self.file).clone();
        look_up_by(file.as_deref(), name)
    }

    fn ttl(&self) -> Ttl {
        *lock(&self.ttl)
    }

    /// Returns the addresses of `name` if they are known. Otherwise `asker` gets them later, from
    /// another thread, or at once why there are none.
    pub(crate) fn ask(self: &Arc<Self>, name: &str, asker: Asker) -> Option<Vec<IpAddr>> {
        let ttl = self.ttl();
        let mut entries = self.entries();
        let entry = entries.entry(name.to_owned()).or_default();
        if entry.fresh_for(ttl) > Duration::ZERO {
            return Some(entry.addresses.clone());
        }
        if let Some((_, why)) = entry.lost.as_ref().filter(|(at, _)| at.elapsed() < ttl.lost) {
            let why = why.clone();
            drop(entries);
            asker(Err(why));
            return None;
        }
        if let Some(askers) = &mut entry.askers {
            askers.push(asker);
            return None;
        }
        entry.askers = Some(vec![asker]);
        drop(entries);
        self.begin(name);
        None
    }

    /// Begins to look a name up, on a thread of its own.
    fn begin(self: &Arc<Self>, name: &str) {
        let (this, name) = (Arc::clone(self), name.to_owned());
        let thread = thread::Builder::new().name("resolve".to_owned());
        let started = thread.spawn({
            let name = name.clone();
            move || this.answer(&name, this.look_up(&name))
        });
        if let Err(error) = started {
            self.answer(
                &name,
                Err(format!("could not start a thread to look up {name:?}: {error}")),
            );
        }
    }

    /// Looks known names up again from now on, as soon as their answers are not fresh any more.
    /// `hears` of the addresses that a name has lost. Without a thread for that, names are looked
    /// up when servers are connected.
    pub(crate) fn follow(
        self: &Arc<Self>,
        hears: impl Fn(&str, Vec<IpAddr>) + Send + Sync + 'static,
    ) {
        drop(self.follower.set(Box::new(hears)));
        let resolver = Arc::downgrade(self);
        let thread = thread::Builder::new().name("names".to_owned());
        let started = thread.spawn(move || {
            loop {
                let Some(this) = resolver.upgrade() else { return };
                let pause = this.ttl().found.max(PAUSE_LEAST);
                drop(this);
                thread::sleep(pause);
                let Some(this) = resolver.upgrade() else { return };
                this.renew();
            }
        });
        if let Err(error) = started {
            tracing::warn!(cause = "name_stale", "names are not looked up again: {error}");
        }
    }

    /// Looks the names up whose answers are not fresh.
    fn renew(self: &Arc<Self>) {
        let (mut due, ttl) = (Vec::new(), self.ttl());
        for (name, entry) in &mut *self.entries() {
            let is_due = entry.fresh_for(ttl) == Duration::ZERO && entry.askers.is_none();
            if is_due && !entry.addresses.is_empty() {
                entry.askers = Some(Vec::new());
                due.push(name.clone());
            }
        }
        due.iter().for_each(|name| self.begin(name));
    }

    /// Returns all names, sorted.
    pub(crate) fn known(&self) -> Vec<KnownHost> {
        let ttl = self.ttl();
        let known = |(name, entry): (&String, &Entry)| KnownHost {
            name: name.clone(),
            fresh_for: entry.fresh_for(ttl),
            addresses: entry.addresses.clone(),
        };
        let mut hosts: Vec<_> = self.entries().iter().map(known).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        hosts
    }

    fn answer(&self, name: &str, found: Addresses) {
        let mut entries = self.entries();
        let entry = entries.entry(name.to_owned()).or_default();
        let mut gone = Vec::new();
        let addresses = match found {
            Ok(addresses) => {
                gone = std::mem::replace(&mut entry.addresses, addresses.clone());
                gone.retain(|address| !addresses.contains(address));
                (entry.asked, entry.is_stale) = (Some(Instant::now()), false);
                entry.lost = None;
                Ok(addresses)
            }
            Err(why) if entry.addresses.is_empty() => {
                entry.lost = Some((Instant::now(), why.clone()));
                Err(why)
            }
            Err(why) => {
                if !std::mem::replace(&mut entry.is_stale, true) {
                    tracing::warn!(
                        cause = "name_stale",
                        "name lookup failed, using the last known addresses: {why}"
                    );
                }
                Ok(entry.addresses.clone())
            }
        };
        let askers = entry.askers.take().unwrap_or_default();
        drop(entries);
        if let Some(hears) = self.follower.get().filter(|_| !gone.is_empty()) {
            tracing::info!(cause = "name_moved", "host {name:?} has lost addresses: {gone:?}");
            hears(name, gone);
        }
        askers.into_iter().for_each(|asker| asker(addresses.clone()));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        lock(&self.entries)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the name servers of a file (`resolv_conf`), or without one the system's resolver. Blocks.
pub(crate) fn look_up_by(file: Option<&Path>, name: &str) -> Addresses {
    file.map_or_else(|| look_up(name), |file| dns::look_up(file, name))
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
    fn an_address_that_a_name_has_lost_is_told_once() {
        let [one, two]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|it| it.parse().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let resolver = Arc::<Resolver>::default();
        resolver.follow({
            let told = Arc::clone(&told);
            move |name, gone| told.lock().unwrap().push((name.to_owned(), gone))
        });
        let lost = || Err("no answer".to_owned());
        for found in [Ok(vec![one, two]), lost(), Ok(vec![two]), Ok(vec![two]), Ok(vec![two, one])]
        {
            resolver.answer("a", found);
        }
        assert_eq!(*told.lock().unwrap(), [("a".to_owned(), vec![one])]);
    }

    #[test]
    fn answers_are_used_for_as_long_as_the_options_say() {
        let day = Duration::from_secs(86_400);
        for (ttl, is_known) in [(day, true), (Duration::ZERO, false)] {
            let resolver = Arc::<Resolver>::default();
            let general = General { dns_max_ttl: ttl, dns_nxdomain_ttl: ttl, ..General::default() };
            resolver.configure(&general);
            resolver.answer("there.invalid", Ok(vec!["192.0.2.1".parse().unwrap()]));
            let found = resolver.ask("there.invalid", Box::new(|_| ()));
            assert_eq!(found.is_some(), is_known);
            resolver.answer("lost.invalid", Err("planted".to_owned()));
            let (tell, told) = std::sync::mpsc::channel();
            let asker = Box::new(move |addresses| drop(tell.send(addresses)));
            assert_eq!(resolver.ask("lost.invalid", asker), None);
            // Else the system's resolver says why, in other words.
            let why = told.recv().unwrap().unwrap_err();
            assert_eq!(why == "planted", is_known, "{why}");
        }
    }

    #[test]
    fn names_are_looked_up() {
        assert!(look_up("localhost").unwrap().iter().all(IpAddr::is_loopback));
        assert!(look_up("no.such.name.invalid").is_err());
    }
}
