//! Counts of clients that have authenticated, by database and by user, against their limits. They
//! count for the process, whatever protocols it serves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit that keeps a client out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The database has `max_client_connections` clients.
    Database,
    /// The user has `max_client_connections` clients.
    User,
}

/// The limits of a client's database and of its user; `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientLimits {
    pub(crate) database: Option<u32>,
    pub(crate) user: Option<u32>,
}

#[derive(Debug, Default)]
struct Numbers {
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
}

/// Numbers of clients that have authenticated.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts(Mutex<Numbers>);

impl ClientCounts {
    /// Counts a client that has authenticated.
    ///
    /// # Errors
    /// If the client's database or user has as many clients as allowed. The client is not counted
    /// then.
    pub(crate) fn admit(
        &self,
        database: &Arc<str>,
        user: &str,
        limits: ClientLimits,
    ) -> Result<(), LimitReached> {
        let mut numbers = self.lock();
        let Numbers { databases, users } = &mut *numbers;
        let full = |count: Option<&u32>, max: Option<u32>| {
            max.is_some_and(|max| count.copied().unwrap_or(0) >= max)
        };
        if full(databases.get(database), limits.database) {
            return Err(LimitReached::Database);
        }
        if full(users.get(user), limits.user) {
            return Err(LimitReached::User);
        }
        *databases.entry(database.clone()).or_default() += 1;
        *users.entry(user.into()).or_default() += 1;
        Ok(())
    }

    /// Counts out a client that was admitted.
    pub(crate) fn gone(&self, database: &Arc<str>, user: &Arc<str>) {
        let mut numbers = self.lock();
        let Numbers { databases, users } = &mut *numbers;
        leave(databases, database);
        leave(users, user);
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lowers the count of `key` by one, and removes a count of zero.
pub(crate) fn leave<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u32>, key: &K) {
    let count = counts.get_mut(key).expect("who goes was counted");
    *count = count.checked_sub(1).expect("no more go than came");
    if *count == 0 {
        counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_counted_for_its_database_and_its_user_or_not_at_all() {
        let [shop, bank, anna] = ["shop", "bank", "anna"].map(Arc::<str>::from);
        let counts = ClientCounts::default();
        let admit = |database: &Arc<str>, user: &str| {
            counts.admit(database, user, ClientLimits { database: Some(2), user: Some(1) })
        };
        assert_eq!(admit(&shop, "anna"), Ok(()));
        assert_eq!(admit(&bank, "anna"), Err(LimitReached::User));
        assert_eq!(admit(&shop, "bob"), Ok(()));
        assert_eq!(admit(&shop, "carl"), Err(LimitReached::Database));
        counts.gone(&shop, &anna);
        assert_eq!((admit(&bank, "anna"), admit(&shop, "carl")), (Ok(()), Ok(())));
    }
}
