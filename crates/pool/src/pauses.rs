//! The databases that are paused. Their clients get no server until the operator resumes them.
//!
//! The cores share this list: a core opens its part of a pool when the first client comes, which
//! may be after the operator's command.

use std::collections::HashSet;
use std::sync::Arc;

/// The databases that are paused.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// Whether databases that are no exceptions are paused.
    all: bool,
    /// The exceptions.
    except: HashSet<Arc<str>>,
}

impl Pauses {
    /// Pauses or resumes a database, or all.
    pub(crate) fn set(&mut self, database: Option<&Arc<str>>, paused: bool) {
        match database {
            None => *self = Self { all: paused, except: HashSet::new() },
            Some(database) if self.all == paused => drop(self.except.remove(database)),
            Some(database) => drop(self.except.insert(database.clone())),
        }
    }

    /// Whether a database is paused.
    pub(crate) fn has(&self, database: &str) -> bool {
        self.all != self.except.contains(database)
    }

    /// Whether all databases were paused at once.
    pub(crate) fn all(&self) -> bool {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_orders_to_pause_counts() {
        let (one, two) = (Arc::from("one"), Arc::from("two"));
        let mut pauses = Pauses::default();
        pauses.set(Some(&one), true);
        assert_eq!((pauses.has("one"), pauses.has("two"), pauses.all()), (true, false, false));
        pauses.set(None, true);
        pauses.set(Some(&two), false);
        assert_eq!((pauses.has("one"), pauses.has("two"), pauses.all()), (true, false, true));
        pauses.set(Some(&two), true);
        assert!(pauses.has("two"));
        pauses.set(None, false);
        assert!(!pauses.has("one"));
    }
}
