//! Hosts: which of several hosts the next server of a pool is connected to.
//!
//! All pools with the same hosts, of all cores, share what is known of these hosts. While a host is
//! good, servers are connected there. If none is, the hosts are looked at: one after the other, by
//! one connection for all pools that wait, until a host is good. A host that does not answer within
//! `LOOK` is not waited for: the next one is tried beside it. When all hosts were tried, the next
//! look begins `LOOK` after the beginning of the last one.
//!
//! A pool of one host of any state has no such part: its [`crate::pool::Pool`] says when it tries
//! again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use refrain_config::{Host, LoadBalanceHosts, Server, TargetSessionAttrs};

use crate::ids::{Core, PoolId};
use crate::time::Now;

/// Time between the beginnings of two looks, and time for which a look waits for one host.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// The state of a host, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing is known of the host, or what was known is in doubt.
    #[default]
    Unknown,
    /// The last login succeeded.
    Good,
    /// The last attempt to connect or to log in failed.
    Down,
    /// The host's state is not the one that the pools want.
    Unsuited,
}

impl Health {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Good, Self::Down, Self::Unsuited, Self::Unknown];

    /// Returns the state's word, for the console and the metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Good => "good",
            Self::Down => "down",
            Self::Unsuited => "unsuited",
        }
    }
}

/// A host, as the console and the metrics show it.
#[derive(Clone, Debug)]
pub struct HostView {
    /// The host.
    pub host: Arc<Host>,
    /// The state that pools want.
    pub wants: TargetSessionAttrs,
    /// The host's state.
    pub health: Health,
    /// Number of servers at the host, those that are being connected included.
    pub servers: u32,
    /// Number of looks at the host, while none of the list was good.
    pub looks: u64,
    /// Number of logins that succeeded.
    pub logins: u64,
    /// Number of attempts that failed.
    pub failures: u64,
    /// Number of servers that were not taken because of the host's state.
    pub unsuited: u64,
    /// The time by which the host's data is behind, in microseconds, at most, if that is known.
    pub lag_us: Option<u64>,
    /// Whether the host was a standby when a server there last told, if one has.
    pub is_standby: Option<bool>,
}

impl HostView {
    /// Returns the word for the host's role: nothing if that is not known.
    pub fn role(&self) -> &'static str {
        match self.is_standby {
            None => "",
            Some(true) => "standby",
            Some(false) => "primary",
        }
    }
}

#[derive(Debug, Default)]
struct Entry {
    health: Health,
    /// When a host that is not good is tried again while another host is good.
    retry: Now,
    /// Number of servers that are being connected or logged in to.
    connecting: u32,
    /// Whether the look under way has tried the host.
    tried: bool,
    /// The turn as of which `health` is known. A login that began before shows nothing.
    known_since: u64,
    servers: u32,
    looks: u64,
    logins: u64,
    failures: u64,
    unsuited: u64,
    lag_us: Option<u64>,
    is_standby: Option<bool>,
}

#[derive(Debug)]
struct Known {
    entries: Vec<Entry>,
    /// The host that was good last.
    current: usize,
    /// The host after the one that was chosen last.
    next: usize,
    /// When the last look began, and the host at which it began.
    looked: Now,
    first: usize,
    /// When the last attempt of a look began.
    attempt: Now,
    /// Whether the look takes hosts of any state, since none has the state that is preferred.
    takes_any: bool,
    /// When servers of the host in use were last doubted.
    doubted: Now,
    /// Number of logins that have begun, and of states that servers have shown later.
    turn: u64,
    /// The parts of pools that wait for a host.
    waiting: Vec<(PoolId, Core)>,
}

/// The hosts of pools, and what is known of them.
#[derive(Debug)]
pub struct Hosts {
    hosts: Box<[Arc<Host>]>,
    balance: LoadBalanceHosts,
    wants: TargetSessionAttrs,
    known: Mutex<Known>,
}

/// The result of an attempt to connect to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The host could not be reached, or does not let anybody in now.
    Down,
    /// The host's state is not the one that the pools want.
    Unsuited,
}

impl Hosts {
    fn new(server: &Server) -> Self {
        let hosts: Box<[_]> = server.hosts().cloned().map(Arc::new).collect();
        let known = Known {
            entries: hosts.iter().map(|_| Entry::default()).collect(),
            current: 0,
            next: 0,
            looked: Now(0),
            first: 0,
            attempt: Now(0),
            takes_any: false,
            doubted: Now(0),
            turn: 0,
            waiting: Vec::new(),
        };
        let (balance, wants) = (server.load_balance_hosts, server.target_session_attrs);
        Self { hosts, balance, wants, known: Mutex::new(known) }
    }

    fn is_of(&self, server: &Server) -> bool {
        self.hosts.iter().map(|host| &**host).eq(server.hosts())
            && self.balance == server.load_balance_hosts
            && self.wants == server.target_session_attrs
    }

    /// Returns the hosts, to look at.
    pub fn view(&self) -> Vec<HostView> {
        let known = self.known();
        let view = |(host, entry): (&Arc<Host>, &Entry)| HostView {
            host: host.clone(),
            wants: self.wants,
            health: entry.health,
            servers: entry.servers,
            looks: entry.looks,
            logins: entry.logins,
            failures: entry.failures,
            unsuited: entry.unsuited,
            lag_us: entry.lag_us,
            is_standby: entry.is_standby,
        };
        self.hosts.iter().zip(&known.entries).map(view).collect()
    }

    /// Returns the number of hosts that are not known to be in another state than pools want: one
    /// at least.
    pub(crate) fn in_use(&self) -> usize {
        let is_in_use = |entry: &&Entry| entry.health != Health::Unsuited;
        self.known().entries.iter().filter(is_in_use).count().max(1)
    }

    /// Chooses the host of the next server, and counts the server there. Returns `None` if there is
    /// none now: `who` is told when one is found, and asks again with the next tick.
    pub(crate) fn choose(
        self: &Arc<Self>,
        now: Now,
        who: (PoolId, Core),
        dice: u8,
    ) -> Option<HostPlace> {
        let mut known = self.known();
        let start = match self.balance {
            LoadBalanceHosts::Disable => known.current,
            LoadBalanceHosts::RoundRobin => known.next,
            LoadBalanceHosts::Random => usize::from(dice),
        } % self.hosts.len();
        let chosen = match known.has_good() {
            true => self.usable(&known, start, now),
            false => self.look(&mut known, start, now),
        };
        let Some(at) = chosen else {
            if !known.waiting.contains(&who) {
                known.waiting.push(who);
            }
            return None;
        };
        known.next = at + 1;
        known.entries[at].connecting += 1;
        known.entries[at].servers += 1;
        known.turn += 1;
        Some(HostPlace { hosts: self.clone(), at, turn: known.turn })
    }

    /// Returns the first host from `start` on that is good. If servers are spread over hosts, one
    /// that may be good by now is tried as well, by one server at a time.
    fn usable(&self, known: &Known, start: usize, now: Now) -> Option<usize> {
        let spreads = self.balance != LoadBalanceHosts::Disable;
        let is_usable = |at: &usize| {
            let entry = &known.entries[*at];
            let is_due = spreads && entry.connecting == 0 && entry.retry <= now;
            entry.health == Health::Good || is_due
        };
        self.from(start).find(is_usable)
    }

    /// Returns the next host of the look, if its turn has come. Begins a new look if the last one
    /// is over.
    fn look(&self, known: &mut Known, start: usize, now: Now) -> Option<usize> {
        let waits = known.entries.iter().any(|entry| entry.connecting > 0);
        if waits && now < known.attempt.after(LOOK) {
            return None;
        }
        if known.entries.iter().all(|entry| entry.tried) {
            let is_second = self.wants == TargetSessionAttrs::PreferStandby && !known.takes_any;
            let falls_back = is_second && known.has_unsuited();
            if !falls_back && now < known.looked.after(LOOK) {
                return None;
            }
            known.begin_look(start);
            known.takes_any = falls_back;
        }
        if known.entries.iter().all(|entry| !entry.tried) {
            known.looked = now;
            // Pools that still wait ask again; others may be no more.
            known.waiting.clear();
        }
        let next = self.from(known.first).find(|at| {
            let entry = &mut known.entries[*at];
            // A host that has not answered in an earlier look is not asked twice.
            !std::mem::replace(&mut entry.tried, true) && entry.connecting == 0
        });
        known.attempt = now;
        if let Some(at) = next {
            known.entries[at].looks += 1;
        }
        next
    }

    fn from(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.hosts.len();
        (0..count).map(move |step| (start + step) % count)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn has_good(&self) -> bool {
        self.entries.iter().any(|entry| entry.health == Health::Good)
    }

    fn has_unsuited(&self) -> bool {
        self.entries.iter().any(|entry| entry.health == Health::Unsuited)
    }

    /// Has the next look begin with this host.
    fn begin_look(&mut self, first: usize) {
        self.first = first;
        self.takes_any = false;
        self.entries.iter_mut().for_each(|entry| entry.tried = false);
    }

    /// Whether what a login shows that began in this turn is older than what is known of the host.
    fn is_outdated(&self, place: &HostPlace) -> bool {
        place.turn < self.entries[place.at].known_since
    }

    /// Changes what is known of a host by what a server there shows now. Logins that have begun
    /// before change nothing any more.
    fn set_now(&mut self, at: usize, health: Health) {
        self.turn += 1;
        self.entries[at].known_since = self.turn;
        self.set(at, health);
    }

    /// Changes what is known of a host that may have been the last good one. The hosts are looked
    /// at afresh then.
    fn set(&mut self, at: usize, health: Health) {
        let had_good = self.has_good();
        self.entries[at].health = health;
        if had_good && !self.has_good() {
            self.begin_look(at);
        }
    }
}

/// The host of a server, among the hosts of its pool.
#[derive(Clone, Debug)]
pub struct HostPlace {
    hosts: Arc<Hosts>,
    at: usize,
    /// The turn in which the server's login began.
    turn: u64,
}

impl HostPlace {
    /// Returns the host.
    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.hosts.hosts[self.at]
    }

    /// Whether two servers are at one host.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hosts, &other.hosts) && self.at == other.at
    }

    /// Whether a server is taken whatever the host's state is.
    pub(crate) fn takes_any(&self) -> bool {
        self.hosts.known().takes_any
    }

    /// Whether the host's state is not the one that the pools want.
    pub(crate) fn is_unsuited(&self) -> bool {
        self.hosts.known().entries[self.at].health == Health::Unsuited
    }

    /// Notes that a server has logged in. Returns the parts of pools that waited for a host;
    /// `None` if the host has been found to be in another state since the login began.
    pub(crate) fn succeeds(&self) -> Option<Vec<(PoolId, Core)>> {
        let mut known = self.hosts.known();
        let is_outdated = known.is_outdated(self);
        let entry = &mut known.entries[self.at];
        entry.logins += 1;
        entry.connecting = entry.connecting.checked_sub(1).expect("it was being connected");
        if is_outdated {
            return (entry.health != Health::Unsuited).then(Vec::new);
        }
        entry.health = Health::Good;
        entry.known_since = self.turn;
        known.current = self.at;
        Some(std::mem::take(&mut known.waiting))
    }

    /// Notes that an attempt to connect or to log in has failed; while another host is good, the
    /// host is tried again after `pause`. Returns whether the host's state is new.
    pub(crate) fn fails(&self, result: Attempt, now: Now, pause: Duration) -> bool {
        let mut known = self.hosts.known();
        let is_outdated = known.is_outdated(self);
        let entry = &mut known.entries[self.at];
        let health = match result {
            Attempt::Down => Health::Down,
            Attempt::Unsuited => Health::Unsuited,
        };
        let is_news = entry.health != health;
        entry.failures += u64::from(result == Attempt::Down);
        entry.unsuited += u64::from(result == Attempt::Unsuited);
        if is_outdated {
            return false;
        }
        entry.retry = now.after(pause);
        entry.known_since = self.turn;
        known.set(self.at, health);
        known.entries[self.at].tried = true;
        is_news
    }

    /// Notes that a server has gone, which was logged in or not.
    pub(crate) fn leave(&self, was_new: bool) {
        let mut known = self.hosts.known();
        let entry = &mut known.entries[self.at];
        entry.servers = entry.servers.checked_sub(1).expect("no more servers go than came");
        if was_new {
            let connecting = entry.connecting.checked_sub(1);
            entry.connecting = connecting.expect("it was being connected");
        }
    }

    /// Notes by how much the host's data is behind, at most, as a server there has shown.
    pub(crate) fn note_lag(&self, lag_us: Option<u64>) {
        self.hosts.known().entries[self.at].lag_us = lag_us;
    }

    /// Notes whether the host is a standby, as a server there has told.
    pub(crate) fn note_role(&self, is_standby: bool) {
        self.hosts.known().entries[self.at].is_standby = Some(is_standby);
    }

    /// Notes that a server was lost: the next server looks at the hosts first.
    pub(crate) fn lose(&self) {
        let mut known = self.hosts.known();
        if known.entries[self.at].health == Health::Good {
            known.set(self.at, Health::Unknown);
        }
    }

    /// Notes that a server may be in another state than the one that the pools want. Returns
    /// whether the host is to be looked at: at most once in [`LOOK`].
    pub(crate) fn doubt(&self, now: Now) -> bool {
        let mut known = self.hosts.known();
        let is_good = known.entries[self.at].health == Health::Good;
        if !is_good || known.doubted != Now(0) && now < known.doubted.after(LOOK) {
            return false;
        }
        known.doubted = now;
        known.set_now(self.at, Health::Unknown);
        true
    }

    /// Notes that a server has reported a state that the pools do not want. Returns whether that is
    /// new.
    pub(crate) fn unsuit(&self) -> bool {
        let mut known = self.hosts.known();
        let is_news = known.entries[self.at].health != Health::Unsuited;
        known.set_now(self.at, Health::Unsuited);
        known.entries[self.at].tried = true;
        is_news
    }
}

/// The lists of hosts that pools have.
#[derive(Debug, Default)]
pub(crate) struct HostLists(Mutex<Vec<Weak<Hosts>>>);

impl HostLists {
    /// Returns what is known of the hosts of a server. `None` if nothing has to be known: there is
    /// one host, of any state.
    pub(crate) fn of(&self, server: &Server) -> Option<Arc<Hosts>> {
        if server.more_hosts.is_empty() && server.target_session_attrs == TargetSessionAttrs::Any {
            return None;
        }
        let mut lists = self.lock();
        lists.retain(|list| list.strong_count() > 0);
        let known = lists.iter().filter_map(Weak::upgrade).find(|hosts| hosts.is_of(server));
        Some(known.unwrap_or_else(|| {
            let hosts = Arc::new(Hosts::new(server));
            lists.push(Arc::downgrade(&hosts));
            hosts
        }))
    }

    /// Returns the lists of hosts that pools have.
    pub(crate) fn all(&self) -> Vec<Arc<Hosts>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Hosts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use refrain_config::Options;

    use super::*;

    #[test]
    fn pools_that_ask_no_more_are_forgotten_with_the_next_look() {
        let options = "auth = \"trust\"\n[databases.d]\nhost = \"a,b\"\n";
        let options = Options::from_toml(options).expect("a configuration");
        let hosts = Arc::new(Hosts::new(&options.databases[0].server));
        let mut now = Now(1);
        for look in 0..100 {
            for pool in 0..3 {
                let who = (PoolId(3 * look + pool), Core(0));
                while let Some(place) = hosts.choose(now, who, 0) {
                    place.fails(Attempt::Down, now, LOOK);
                    place.leave(true);
                }
            }
            assert_eq!(hosts.known().waiting.len(), 3);
            now = now.after(LOOK);
        }
    }
}
