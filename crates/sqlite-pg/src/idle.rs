//! The idle connections of a pool.
//!
//! One of them is for short reads and caches more pages than the others. Others write: a connection
//! drops its cached pages when another connection has written. So the loop takes the connection for
//! short reads first, and a thread takes it last.

use std::sync::{Mutex, MutexGuard, PoisonError};

use refrain_sqlite::Connection;

use crate::runs_on::RunsOn;

/// Idle connections that a pool keeps.
const MAX: usize = 16;

/// The connection that was given back last is taken first.
#[derive(Default)]
pub(crate) struct IdleConnections(
    #[expect(clippy::vec_box, reason = "a connection goes from hand to hand and is large")]
    Mutex<Vec<Box<Connection>>>,
);

impl IdleConnections {
    #[expect(clippy::vec_box, reason = "as above")]
    fn all(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection, if one is idle: the one for short reads on the loop, another one on a
    /// thread, either if there is no choice.
    pub(crate) fn take(&self, runs_on: RunsOn) -> Option<Box<Connection>> {
        let mut all = self.all();
        let wanted = runs_on == RunsOn::Loop;
        let found = all.iter().rposition(|connection| connection.is_reader() == wanted);
        match found {
            Some(found) => Some(all.remove(found)),
            None => all.pop(),
        }
    }

    /// Takes a connection back. Returns it if the pool keeps [`MAX`] already.
    pub(crate) fn put(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let mut all = self.all();
        if all.len() < MAX || connection.is_reader() {
            all.push(connection);
            return None;
        }
        Some(connection)
    }

    /// True if no connection is idle.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Calls `look` with each idle connection.
    pub(crate) fn each(&self, look: &mut impl FnMut(&Connection)) {
        self.all().iter().for_each(|connection| look(connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_sqlite::Database;
    use refrain_sqlite::OpenOptions;

    #[test]
    fn the_loop_has_the_reader_and_threads_the_others() {
        let database = Database::new(":memory:", OpenOptions::default());
        let open = || Box::new(database.connect().unwrap());
        let (reader, other) = (open(), open());
        database.make_reader(&reader).unwrap();
        let (first, second) = (reader.number(), other.number());
        let idle = IdleConnections::default();
        let give = |connection| assert!(idle.put(connection).is_none());
        give(reader);
        give(other);
        for (runs_on, wanted) in
            [(RunsOn::Loop, first), (RunsOn::Thread, second), (RunsOn::Loop, first)]
        {
            let taken = idle.take(runs_on).unwrap();
            assert_eq!(taken.number(), wanted);
            give(taken);
        }
        let taken = idle.take(RunsOn::Loop).unwrap();
        let last = idle.take(RunsOn::Loop).unwrap();
        assert_eq!(last.number(), second, "one is better than none");
        assert!(idle.is_empty());
        give(taken);
        assert_eq!(idle.take(RunsOn::Thread).unwrap().number(), first, "here as well");
    }

    #[test]
    fn the_reader_is_never_too_many() {
        let database = Database::new(":memory:", OpenOptions::default());
        let idle = IdleConnections::default();
        for _ in 0..MAX {
            assert!(idle.put(Box::new(database.connect().unwrap())).is_none());
        }
        assert!(idle.put(Box::new(database.connect().unwrap())).is_some());
        let reader = Box::new(database.connect().unwrap());
        database.make_reader(&reader).unwrap();
        assert!(idle.put(reader).is_none());
    }
}
