//! Counts of servers and clients over all cores, against their limits.
//!
//! A core asks `Counts::admit_server` before it connects a server, and calls
//! `Counts::server_gone` when the server has gone. A core that was refused gets a message when
//! there is room again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ids::{Core, PoolId};
use crate::parts::Parts;
use crate::pool_shared::PoolShared;

/// Numbers of servers, and the cores that wait for room to connect one.
#[derive(Debug, Default)]
struct ServerCounts {
    pools: HashMap<PoolId, u32>,
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
    waits_for_room: Vec<(PoolId, Core)>,
}

/// Numbers of clients that have authenticated, by database and by user.
#[derive(Debug, Default)]
struct ClientCounts {
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
}

/// The limit that keeps a client out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The database has `max_client_connections` clients.
    Database,
    /// The user has `max_client_connections` clients.
    User,
}

/// The permit to connect a server, or its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectPermit {
    /// The core may connect a server, which is counted already.
    Granted,
    /// The core may not. It gets [`crate::message::CoreMessage::Room`] when there may be room.
    Refused,
}

/// Counts of servers and clients over all cores.
#[derive(Debug, Default)]
pub struct Counts {
    servers: Mutex<ServerCounts>,
    clients: Mutex<ClientCounts>,
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
        let options = &settings.options;
        let size = options.pool_size.saturating_add(beyond);
        let below = |count: Option<&u32>, max: Option<u32>| {
            max.is_none_or(|max| count.copied().unwrap_or(0) < max)
        };
        let room = below(server_counts.pools.get(&pool.id), Some(size))
            && below(server_counts.databases.get(&pool.database), settings.database_max)
            && below(server_counts.users.get(&pool.user), settings.user_max);
        if !room {
            if !server_counts.waits_for_room.contains(&(pool.id, core)) {
                server_counts.waits_for_room.push((pool.id, core));
            }
            return ConnectPermit::Refused;
        }
        *server_counts.pools.entry(pool.id).or_default() += 1;
        *server_counts.databases.entry(pool.database.clone()).or_default() += 1;
        *server_counts.users.entry(pool.user.clone()).or_default() += 1;
        ConnectPermit::Granted
    }

    /// Counts out a server that was admitted. Returns the pools and cores that may try again.
    pub(crate) fn server_gone<P: Parts>(&self, pool: &PoolShared<P>) -> Vec<(PoolId, Core)> {
        let mut server_counts = lock(&self.servers);
        let ServerCounts { pools, databases, users, .. } = &mut *server_counts;
        leave(pools, &pool.id);
        leave(databases, &pool.database);
        leave(users, &pool.user);
        std::mem::take(&mut server_counts.waits_for_room)
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

    /// Counts a client that has authenticated.
    ///
    /// # Errors
    /// If the client's database or user has as many clients as allowed. The client is not counted
    /// then.
    pub fn admit_client<P: Parts>(&self, pool: &PoolShared<P>) -> Result<(), LimitReached> {
        let settings = pool.settings();
        let mut client_counts = lock(&self.clients);
        let ClientCounts { databases, users } = &mut *client_counts;
        let full = |count: Option<&u32>, max: Option<u32>| {
            max.is_some_and(|max| count.copied().unwrap_or(0) >= max)
        };
        if full(databases.get(&pool.database), settings.database_clients_max) {
            return Err(LimitReached::Database);
        }
        if full(users.get(&pool.user), settings.user_clients_max) {
            return Err(LimitReached::User);
        }
        *databases.entry(pool.database.clone()).or_default() += 1;
        *users.entry(pool.user.clone()).or_default() += 1;
        Ok(())
    }

    /// Counts out a client that was admitted.
    pub(crate) fn client_gone<P: Parts>(&self, pool: &PoolShared<P>) {
        let mut client_counts = lock(&self.clients);
        let ClientCounts { databases, users } = &mut *client_counts;
        leave(databases, &pool.database);
        leave(users, &pool.user);
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
            counts.waits_for_room.retain(|(waits_for_room, _)| *waits_for_room != pool);
        }
    }
}

/// Lowers the count of `key` by one, and removes a count of zero.
fn leave<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u32>, key: &K) {
    let count = counts.get_mut(key).expect("who goes was counted");
    *count = count.checked_sub(1).expect("no more go than came");
    if *count == 0 {
        counts.remove(key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
