//! Users who may log in, and what is set for each.

use crate::pool::PoolOverrides;
use crate::secret::UserSecret;
use crate::table::table;

/// A user clients may log in as.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// The name.
    pub name: String,
    /// What is known of the password.
    pub secret: UserSecret,
    /// Pool options set for this user, in whatever database.
    pub pool: PoolOverrides,
    /// Servers over all pools of the user; `None` is no limit.
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
    /// The keys by which a user would be written.
    pub(crate) fn of(user: &User) -> Self {
        Self {
            password: user.secret.clone(),
            max_connections: user.max_connections,
            max_client_connections: user.max_client_connections,
        }
    }
}
