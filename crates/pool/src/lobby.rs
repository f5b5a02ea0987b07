//! The lobby counts connections of clients, at their login and after it, and decides which
//! connection makes way if there are too many.
//!
//! A connection costs its peer nothing until the peer has to authenticate. So connections that have
//! not authenticated are counted apart from clients, and have a limit of their own: silent
//! connections, however many, keep no client out. If there are too many, Refrain closes the oldest
//! one of the address that has the most. So a flood from one address drives out itself. A flood
//! from many addresses drives out the connections that take longest to log in.
//!
//! A connection takes the lock when it comes and when its login is over.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::General;

use crate::ids::{ClientSerial, Conn, Core, Peer};
use crate::process::Process;
use crate::time::Now;

/// Number of clients of the admin console, on top of `max_client_conn`: an operator can look when
/// that limit is reached.
pub const CONSOLES_MAX: u32 = 64;
/// Microseconds between two lines in the log that say that connections have to make way.
const SILENCE_US: u64 = 60_000_000;

/// The count that a connection of a client belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A connection that has not authenticated.
    Login,
    /// A client that has authenticated.
    Client,
    /// A client of the admin console.
    Console,
}

/// A connection that has not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// The core that serves the connection.
    pub core: Core,
    /// The connection's number at that core.
    pub conn: Conn,
    /// The client's serial.
    pub serial: ClientSerial,
}

/// The limits of connections, with the descriptors that this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of clients at most.
    pub clients: u32,
    /// Number of connections that have not authenticated, at most.
    pub logins: u32,
}

impl Limits {
    /// Returns the limits that the options set, lowered so that connections of clients need at
    /// most `room` descriptors. Logins get at most a quarter of `room`.
    pub fn within(room: u32, general: &General) -> Self {
        let logins = general.max_login_conn.min(room / 4).max(1);
        let rest = room.saturating_sub(logins).saturating_sub(CONSOLES_MAX).max(1);
        Self { clients: general.max_client_conn.min(rest), logins }
    }
}

/// The origin of a peer. The peer of one IPv6 address can use its whole /64 network, so the network
/// is one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    V4([u8; 4]),
    V6([u8; 8]),
    Unix(Option<u32>),
}

impl Origin {
    fn of(peer: &Peer) -> Self {
        match peer {
            Peer::Unix { uid, .. } => Self::Unix(*uid),
            Peer::Tcp(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => Self::V4(ip.octets()),
                IpAddr::V6(ip) => {
                    let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                    Self::V6([a, b, c, d, e, f, g, h])
                }
            },
        }
    }
}

/// The connections of one origin that have not authenticated, oldest first.
type Crowd = BTreeMap<ClientSerial, (Core, Conn)>;
/// The size of a crowd, and its oldest connection. The last rank is that of the largest crowd. If
/// several are as large, it is that of the crowd whose oldest connection came first.
type Rank = (usize, Reverse<ClientSerial>);

#[derive(Debug, Default)]
struct Logins {
    crowds: HashMap<Origin, Crowd>,
    ranks: BTreeMap<Rank, Origin>,
    count: u32,
    told: Option<Now>,
}

impl Logins {
    /// Changes the crowd of an address, and its rank with it.
    fn change<T>(&mut self, origin: Origin, change: impl FnOnce(&mut Crowd) -> T) -> T {
        let crowd = self.crowds.entry(origin).or_default();
        if let Some(rank) = rank(crowd) {
            self.ranks.remove(&rank);
        }
        let changed = change(crowd);
        match rank(crowd) {
            Some(rank) => drop(self.ranks.insert(rank, origin)),
            None => drop(self.crowds.remove(&origin)),
        }
        changed
    }

    /// Takes out the connection that has to make way.
    fn crowd_out(&mut self) -> Option<Newcomer> {
        let (_, &origin) = self.ranks.last_key_value()?;
        let (serial, (core, conn)) = self.change(origin, BTreeMap::pop_first)?;
        self.count -= 1;
        Some(Newcomer { core, conn, serial })
    }
}

fn rank(crowd: &Crowd) -> Option<Rank> {
    crowd.first_key_value().map(|(&oldest, _)| (crowd.len(), Reverse(oldest)))
}

/// The connections of clients, over all cores of a protocol. See the module.
#[derive(Debug)]
pub struct Lobby {
    logins: Mutex<Logins>,
    process: Arc<Process>,
    consoles: AtomicU32,
    room: AtomicU32,
    crowded_out: AtomicU64,
    timed_out: AtomicU64,
    turned_away: AtomicU64,
}

impl Default for Lobby {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl Lobby {
    /// Makes a lobby without connections. The limit of clients holds for the process.
    pub(crate) fn of(process: Arc<Process>) -> Self {
        Self {
            logins: Mutex::default(),
            process,
            consoles: AtomicU32::new(0),
            room: AtomicU32::new(u32::MAX),
            crowded_out: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        }
    }

    /// Sets the number of descriptors for connections of clients.
    pub fn set_room(&self, room: u32) {
        self.room.store(room, Relaxed);
    }

    /// Returns the limits under these options.
    pub fn limits(&self, general: &General) -> Limits {
        Limits::within(self.room.load(Relaxed), general)
    }

    /// Returns the number of connections that have not authenticated.
    pub fn logins(&self) -> u32 {
        self.lock().count
    }

    /// Returns the number of all connections of clients.
    pub fn total(&self) -> u32 {
        self.logins() + self.process.clients.load(Relaxed) + self.consoles.load(Relaxed)
    }

    /// Returns the number of logins that had to make way for later ones, since the start.
    pub fn crowded_out(&self) -> u64 {
        self.crowded_out.load(Relaxed)
    }

    /// Returns the number of logins that took too long, since the start.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Relaxed)
    }

    /// Returns the number of connections closed at once for want of descriptors, since the start.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Counts a connection that is closed at once for want of descriptors.
    pub fn turn_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    /// Counts a login that took too long.
    pub(crate) fn note_timeout(&self) {
        self.timed_out.fetch_add(1, Relaxed);
    }

    /// Takes in a connection. If there are more than `most` logins now, returns the connection that
    /// has to go.
    pub fn come(&self, peer: &Peer, newcomer: Newcomer, most: u32) -> Option<Newcomer> {
        let Newcomer { core, conn, serial } = newcomer;
        let mut logins = self.lock();
        let before = logins.change(Origin::of(peer), |crowd| crowd.insert(serial, (core, conn)));
        assert!(before.is_none(), "a connection comes once");
        logins.count += 1;
        let gone = (logins.count > most).then(|| logins.crowd_out()).flatten();
        self.crowded_out.fetch_add(gone.is_some().into(), Relaxed);
        gone
    }

    /// Whether the log is to have a line about connections that make way: it had none for
    /// [`SILENCE_US`].
    pub(crate) fn is_news(&self, now: Now) -> bool {
        let mut logins = self.lock();
        let news = logins.told.is_none_or(|told| now.since(told) >= SILENCE_US);
        if news {
            logins.told = Some(now);
        }
        news
    }

    /// Counts a connection that has authenticated, unless there are `most` of its kind. Returns
    /// whether there is room for it.
    pub fn admit(&self, counted: Counted, most: u32) -> bool {
        let count = match counted {
            Counted::Login => return true,
            Counted::Client => &self.process.clients,
            Counted::Console => &self.consoles,
        };
        count.fetch_update(Relaxed, Relaxed, |count| (count < most).then_some(count + 1)).is_ok()
    }

    /// Whether there is no room for another client.
    pub fn is_full(&self, most: u32) -> bool {
        self.process.clients.load(Relaxed) >= most
    }

    /// Counts out a connection that has gone, or that another count has now. A login that had to
    /// make way is out already.
    pub fn go(&self, counted: Counted, peer: &Peer, serial: ClientSerial) {
        let count = match counted {
            Counted::Login => {
                let mut logins = self.lock();
                let origin = Origin::of(peer);
                if logins.change(origin, |crowd| crowd.remove(&serial)).is_some() {
                    logins.count -= 1;
                }
                return;
            }
            Counted::Client => &self.process.clients,
            Counted::Console => &self.consoles,
        };
        let before = count.fetch_sub(1, Relaxed);
        assert!(before > 0, "who goes was counted");
    }

    fn lock(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::Tcp(text.parse().unwrap())
    }

    fn come(lobby: &Lobby, address: &str, serial: u64, most: u32) -> Option<u64> {
        let conn = Conn(u32::try_from(serial).unwrap());
        let newcomer = Newcomer { core: Core(0), conn, serial: ClientSerial(serial) };
        lobby.come(&peer(address), newcomer, most).map(|gone| gone.serial.0)
    }

    #[test]
    fn the_oldest_of_the_largest_crowd_makes_way() {
        let lobby = Lobby::default();
        for (serial, address) in ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"].iter().enumerate() {
            assert_eq!(come(&lobby, address, serial as u64, 3), None);
        }
        assert_eq!(come(&lobby, "10.0.0.3:1", 3, 3), Some(1));
        // Each address has one now: the connection that came first makes way.
        assert_eq!(come(&lobby, "10.0.0.4:1", 4, 3), Some(0));
        // A flood drives out itself.
        assert_eq!(come(&lobby, "10.0.0.4:2", 5, 3), Some(4));
        assert_eq!(come(&lobby, "10.0.0.4:3", 6, 3), Some(5));
        assert_eq!(come(&lobby, "10.0.0.4:4", 7, 3), Some(6));
        assert_eq!((lobby.logins(), lobby.crowded_out()), (3, 5));
        // A connection that had to make way may be counted out once more.
        lobby.go(Counted::Login, &peer("10.0.0.4:1"), ClientSerial(4));
        lobby.go(Counted::Login, &peer("10.0.0.4:4"), ClientSerial(7));
        assert_eq!(lobby.logins(), 2);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let lobby = Lobby::default();
        assert_eq!(come(&lobby, "[2001:db8::1]:1", 0, 3), None);
        assert_eq!(come(&lobby, "[2001:db8:0:1::1]:1", 1, 3), None);
        assert_eq!(come(&lobby, "[2001:db8:0:1:ffff::2]:1", 2, 3), None);
        assert_eq!(come(&lobby, "10.0.0.1:1", 3, 3), Some(1));
        assert_eq!(come(&lobby, "[::ffff:10.0.0.1]:2", 4, 3), Some(3));
    }

    #[test]
    fn lobbies_of_a_process_have_one_limit_of_clients() {
        let process = Arc::default();
        let [one, other] = [(); 2].map(|()| Lobby::of(Arc::clone(&process)));
        assert!(one.admit(Counted::Client, 1) && !other.admit(Counted::Client, 1));
        assert!(other.is_full(1) && other.admit(Counted::Console, 1));
        one.go(Counted::Client, &peer("10.0.0.1:1"), ClientSerial(0));
        assert!(other.admit(Counted::Client, 1));
    }

    #[test]
    fn clients_are_admitted_up_to_a_limit() {
        let lobby = Lobby::default();
        let anybody = peer("10.0.0.1:1");
        assert!(lobby.admit(Counted::Client, 1) && !lobby.admit(Counted::Client, 1));
        assert!(lobby.admit(Counted::Console, 1));
        lobby.go(Counted::Client, &anybody, ClientSerial(0));
        assert!(lobby.admit(Counted::Client, 1));
        let general = General { max_client_conn: 100, max_login_conn: 1000, ..General::default() };
        lobby.set_room(200);
        assert_eq!(lobby.limits(&general), Limits { clients: 86, logins: 50 });
        lobby.set_room(u32::MAX);
        assert_eq!(lobby.limits(&general), Limits { clients: 100, logins: 1000 });
    }
}
