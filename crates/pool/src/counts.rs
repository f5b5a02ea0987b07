//! Counts of servers over all cores of a protocol, against their limits.
//!
//! A core asks `Counts::admit_server` before it connects a server, and calls
//! `Counts::server_gone` when the server has gone. A core that was refused gets a message when
//! there is room again. A server may also leave its place to a server of another pool, which is
//! counted in the same moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client_counts::leave;
use crate::ids::{Core, PoolId};
use crate::parts::Parts;
use crate::pool_shared::PoolShared;
use crate::settings::PoolSettings;

/// Numbers of servers, and the cores that wait for room to connect one.
#[derive(Debug, Default)]
struct ServerCounts {
    pools: HashMap<PoolId, u32>,
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
    /// The parts of pools that wait for room, in the order in which each came.
    line: BTreeMap<u64, Wait>,
    /// The place of each in the line.
    places: HashMap<(PoolId, Core), u64>,
    /// The next place in the line.
    next_place: u64,
}

/// A core's part of a pool that waits for room.
#[derive(Debug)]
struct Wait {
    who: (PoolId, Core),
    database: Arc<str>,
    user: Arc<str>,
    settings: Arc<PoolSettings>,
}

/// The limits by which there is room for one more server of a pool.
#[derive(Clone, Copy, Debug)]
struct Room {
    pool: bool,
    database: bool,
    user: bool,
}

impl Room {
    fn is_there(self) -> bool {
        self.pool && self.database && self.user
    }
}

/// The limits, shared with other pools, that keep a pool from one more server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The database has `max_connections` servers.
    pub(crate) database: bool,
    /// The user has `max_connections` servers.
    pub(crate) user: bool,
}

/// The consequences of a server's end.
#[derive(Debug)]
pub(crate) struct ServerGone {
    /// Whether one more server of the heir is counted, and may be connected.
    pub(crate) is_inherited: bool,
    /// The parts of pools that may try again.
    pub(crate) waiting: Vec<(PoolId, Core)>,
}

/// The permit to connect a server, or its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectPermit {
    /// The core may connect a server, which is counted already.
    Granted,
    /// The core may not. It gets [`crate::message::CoreMessage::Room`] when there may be room.
    Refused,
}

/// Counts of servers over all cores of a protocol.
#[derive(Debug, Default)]
pub struct Counts {
    servers: Mutex<ServerCounts>,
}

impl Counts {
    /// Counts one more server of `pool`, unless the pool, its database or its user has as many as
    /// allowed. With `reserve`, the pool may also use its reserve. If refused, `core` is told when
    /// there may be room.
    pub(crate) fn admit_server<P: Parts>(
        &self,
        pool: &PoolShared<P>,
        core: Core,
        beyond: u32,
    ) -> ConnectPermit {
        let settings = pool.settings();
        let mut server_counts = lock(&self.servers);
        if !server_counts.room(pool, &settings, beyond).is_there() {
            server_counts.wait(pool, core, settings);
            return ConnectPermit::Refused;
        }
        server_counts.add(pool);
        ConnectPermit::Granted
    }

    /// Counts out a server that was admitted. If its place goes to another pool, and the limits
    /// allow it, one more server of the heir is counted.
    pub(crate) fn server_gone<P: Parts>(
        &self,
        pool: &PoolShared<P>,
        heir: Option<&PoolShared<P>>,
    ) -> ServerGone {
        let mut server_counts = lock(&self.servers);
        let ServerCounts { pools, databases, users, .. } = &mut *server_counts;
        leave(pools, &pool.id);
        leave(databases, &pool.database);
        leave(users, &pool.user);
        let heir = heir.filter(|heir| server_counts.room(heir, &heir.settings(), 0).is_there());
        if let Some(heir) = heir {
            server_counts.add(heir);
        }
        ServerGone { is_inherited: heir.is_some(), waiting: server_counts.wake() }
    }

    /// Returns the limits that keep a pool from one more server though its own size does not.
    pub(crate) fn shortage<P: Parts>(&self, pool: &PoolShared<P>) -> Option<Shortage> {
        let settings = pool.settings();
        let room = lock(&self.servers).room(pool, &settings, 0);
        let shortage = Shortage { database: !room.database, user: !room.user };
        (room.pool && !room.is_there()).then_some(shortage)
    }

    /// Returns the number of servers that a pool has beyond the limits of the pool, its database
    /// and its user. There are such servers after a reload that has lowered a limit.
    pub(crate) fn surplus<P: Parts>(&self, pool: &PoolShared<P>) -> u32 {
        let settings = pool.settings();
        let server_counts = lock(&self.servers);
        let options = &settings.options;
        let size = options.pool_size.saturating_add(options.reserve_pool_size);
        let beyond = |count: Option<&u32>, max: Option<u32>| {
            max.map_or(0, |max| count.copied().unwrap_or(0).saturating_sub(max))
        };
        beyond(server_counts.pools.get(&pool.id), Some(size))
            .max(beyond(server_counts.databases.get(&pool.database), settings.database_max))
            .max(beyond(server_counts.users.get(&pool.user), settings.user_max))
    }

    /// Returns the number of servers of a pool, over all cores.
    pub fn servers(&self, pool: PoolId) -> u32 {
        lock(&self.servers).pools.get(&pool).copied().unwrap_or(0)
    }

    /// Returns the number of servers of a database, or of all databases. It includes servers of all
    /// cores and servers on the way between cores.
    pub fn database_servers(&self, database: Option<&str>) -> u32 {
        let server_counts = lock(&self.servers);
        match database {
            Some(database) => server_counts.databases.get(database).copied().unwrap_or(0),
            None => server_counts.databases.values().sum(),
        }
    }

    /// Calls `forget` for a pool that has no server, while no core can be admitted one. If it
    /// returns true, no core waits for room in that pool any more.
    pub(crate) fn forget(&self, pool: PoolId, forget: impl FnOnce() -> bool) {
        let mut counts = lock(&self.servers);
        if !counts.pools.contains_key(&pool) && forget() {
            let ServerCounts { line, places, .. } = &mut *counts;
            line.retain(|_, wait| wait.who.0 != pool);
            places.retain(|(waits, _), _| *waits != pool);
        }
    }
}

impl ServerCounts {
    /// Returns the limits by which there is room for one more server, if the pool may have so many
    /// `beyond` its size.
    fn room<P: Parts>(&self, pool: &PoolShared<P>, settings: &PoolSettings, beyond: u32) -> Room {
        self.room_of((pool.id, &pool.database, &pool.user), settings, beyond)
    }

    fn room_of(
        &self,
        (pool, database, user): (PoolId, &str, &str),
        settings: &PoolSettings,
        beyond: u32,
    ) -> Room {
        let below = |count: Option<&u32>, max: Option<u32>| {
            max.is_none_or(|max| count.copied().unwrap_or(0) < max)
        };
        let size = settings.options.pool_size.saturating_add(beyond);
        Room {
            pool: below(self.pools.get(&pool), Some(size)),
            database: below(self.databases.get(database), settings.database_max),
            user: below(self.users.get(user), settings.user_max),
        }
    }

    fn add<P: Parts>(&mut self, pool: &PoolShared<P>) {
        *self.pools.entry(pool.id).or_default() += 1;
        *self.databases.entry(pool.database.clone()).or_default() += 1;
        *self.users.entry(pool.user.clone()).or_default() += 1;
    }

    /// Puts a part of a pool into the line, unless it stands there.
    fn wait<P: Parts>(&mut self, pool: &PoolShared<P>, core: Core, settings: Arc<PoolSettings>) {
        let who = (pool.id, core);
        let place = *self.places.entry(who).or_insert(self.next_place);
        self.next_place = self.next_place.max(place + 1);
        let (database, user) = (pool.database.clone(), pool.user.clone());
        self.line.insert(place, Wait { who, database, user, settings });
    }

    /// Takes those out of the line for whom there is room.
    fn wake(&mut self) -> Vec<(PoolId, Core)> {
        let has_room = |wait: &Wait| {
            let names = (wait.who.0, &*wait.database, &*wait.user);
            let reserve = wait.settings.options.reserve_pool_size;
            self.room_of(names, &wait.settings, reserve).is_there()
        };
        let waits = self.line.iter().filter(|(_, wait)| has_room(wait));
        let woken: Vec<_> = waits.map(|(place, wait)| (*place, wait.who)).collect();
        for (place, who) in &woken {
            self.line.remove(place);
            self.places.remove(who);
        }
        woken.into_iter().map(|(_, who)| who).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
