//! Users who may log in, and the options of each.

use crate::pool::PoolOverrides;
use crate::secret::UserSecret;
use crate::table::table;

/// A user that clients may log in as.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// The password, or a hash of it.
    pub secret: UserSecret,
    /// Pool options set for this user, in every database.
    pub pool: PoolOverrides,
    /// Server connections over all pools of the user; `None` is no limit.
    pub max_connections: Option<u32>,
    /// Clients of the user; `None` is no limit.
    pub max_client_connections: Option<u32>,
}

table! {
    /// A user's own keys, as they stand in the file.
    pub(crate) struct UserKeys;

    /// The user's password, in plain text or as PostgreSQL stores it.
    ///
    /// Copy `SCRAM-SHA-256$…` and `md5…` from `pg_authid.rolpassword`. Refrain can log in to
    /// servers with a plain password, or if the database has a `password` of its own.
    password: UserSecret,
        NewConnections, takes ["secret", "md5d41d8cd98f00b204e9800998ecf8427e"], not ["SCRAM-SHA-256$x"];

    /// Server connections over all pools of the user.
    max_connections: Option<u32> = "unlimited" ["1" to "1000000"],
        Reload, takes ["100"], not ["0"];

    /// Clients of the user.
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
