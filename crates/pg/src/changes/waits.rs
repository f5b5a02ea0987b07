//! Waits: until all transactions are over that ran at some moment.

use crate::changes::snapshot::XidSnapshot;

/// The transactions that are waited for.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    /// The number of the first snapshot that was asked for behind the moment.
    from: u64,
    /// The ones that ran then and may still run, once that is known.
    running: Option<Vec<u64>>,
}

impl Waits {
    /// Begins to wait. Snapshots with this number and those behind it are asked for later.
    pub(super) fn new(from: u64) -> Self {
        Self { from, running: None }
    }

    /// Takes in a snapshot. True if all that are waited for are over.
    pub(super) fn hears(&mut self, number: u64, snapshot: &XidSnapshot) -> bool {
        if number < self.from {
            // It may be from before the moment: then others ran.
            return false;
        }
        let running = self.running.get_or_insert_with(|| snapshot.running().to_vec());
        running.retain(|xid| !snapshot.is_over(*xid));
        running.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_ran_at_the_moment_are_waited_for_and_no_others() {
        let snapshot = |text| XidSnapshot::read(text).unwrap();
        let mut waits = Waits::new(3);
        assert!(!waits.hears(2, &snapshot("9:9:")), "it was asked for before");
        assert!(!waits.hears(3, &snapshot("5:9:5,7")));
        assert!(!waits.hears(4, &snapshot("7:12:7,10")));
        assert!(waits.hears(5, &snapshot("10:12:10")), "10 has begun behind the moment");
        assert!(Waits::new(3).hears(3, &snapshot("9:9:")));
    }
}
