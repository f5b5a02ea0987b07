//! Users who may log in, and the options of each.

use crate::pool::{PoolOptions, PoolOverrides};
use crate::secret::UserSecret;
use crate::table::table;

/// A user that clients may log in as.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Name of the user; [`User::ANY`] stands for every user without an entry.
    pub name: String,
    /// The password, or a hash of it.
    pub secret: UserSecret,
    /// Whether the secret is from the file of `auth_file`.
    pub is_listed: bool,
    /// Pool options set for this user, in every database.
    pub pool: PoolOverrides,
    /// Server connections over all pools of the user; `None` is no limit.
    pub max_connections: Option<u32>,
    /// Clients of the user; `None` is no limit.
    pub max_client_connections: Option<u32>,
}

impl User {
    /// The name of the entry that has the options of all users without an entry.
    pub const ANY: &str = "*";

    /// Returns the rules that the user's options break over those of a database. That the user's
    /// pools are smaller than what pools keep open breaks none: they keep less.
    pub(crate) fn conflicts(&self, pool: &PoolOptions) -> Vec<(&'static str, &'static str)> {
        let mut broken = self.pool.over(pool).conflicts();
        broken.retain(|(name, _)| *name != "min_pool_size" || self.pool.shown(name).is_some());
        broken
    }

    /// Makes the entry of a user whom `auth_file` lists, and who has no options but those of all
    /// users without an entry.
    pub(crate) fn listed(name: &str, secret: UserSecret, any: Option<&Self>) -> Self {
        Self {
            name: name.to_owned(),
            secret,
            is_listed: true,
            pool: any.map_or_else(PoolOverrides::default, |any| any.pool.clone()),
            max_connections: any.and_then(|any| any.max_connections),
            max_client_connections: any.and_then(|any| any.max_client_connections),
        }
    }
}

table! {
    /// A user's own keys, as they stand in the file.
    pub(crate) struct UserKeys;

    /// The user's password, in plain text or as PostgreSQL or MySQL stores it.
    ///
    /// Copy `SCRAM-SHA-256$…` and `md5…` from `pg_authid.rolpassword`. Refrain can log in to
    /// servers with a plain password, or if the database has a `password` of its own. A user
    /// without one is looked up in `auth_file` and by `auth_query`.
    ///
    /// For clients of MySQL alone, it may be the hash of `mysql_native_password`: `*` and 40
    /// hexadecimal digits.
    password: UserSecret,
        NewConnections, takes ["secret", "md5d41d8cd98f00b204e9800998ecf8427e"], not ["SCRAM-SHA-256$x"];

    /// Server connections over all pools of the user. Under `*`, the limit of each user.
    ///
    /// At the limit, a pool whose clients wait gets the room of the server of another pool that was
    /// idle for longest (`servers_evicted` in the metrics, `server_evicted` in the log).
    max_connections: Option<u32> = "unlimited" ["1" to "1000000"],
        Reload, takes ["100"], not ["0"];

    /// Clients of the user. Under `*`, the limit of each user.
    max_client_connections: Option<u32> = "unlimited" ["1" to "10000000"],
        Reload, takes ["100"], not ["0"];
}

impl UserKeys {
    /// Returns the keys that describe a user in a file.
    pub(crate) fn of(user: &User) -> Self {
        Self {
            password: user.secret.clone(),
            max_connections: user.max_connections,
            max_client_connections: user.max_client_connections,
        }
    }
}
