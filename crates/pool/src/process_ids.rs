//! The process IDs that a core tells its clients, and the connections that have them.
//!
//! A process ID is a counter, with the core's number in the lowest bits: so a cancel request finds
//! the core. An ID comes back only after the counter has run through its whole range, and never
//! while a client has it. So a late cancel request for a client that has left names nobody, where
//! the number of a connection would name the next client.
//!
//! A login takes the next ID of a run that was free when the run was found. Nothing enters a run
//! but what is given out of it, so only the beginning of a run looks at the IDs that are held.

use crate::ids::{Conn, Core};

/// Bits of a process ID: it is a positive `i32`.
const BITS: u32 = i32::BITS - 1;

/// The process IDs that one core gives.
#[derive(Debug)]
pub(crate) struct ProcessIds {
    core: Core,
    core_bits: u32,
    /// The counter of the next ID.
    next: u32,
    /// The counter at which the run of free IDs ends.
    end: u32,
    /// The IDs of the clients that are at this core since their login, by connection; 0 for none.
    held: Vec<u32>,
}

impl ProcessIds {
    /// Makes the process IDs of one of so many cores.
    pub(crate) fn new(core: Core, cores: u16) -> Self {
        let core_bits = core_bits(cores);
        Self { core, core_bits, next: 1, end: 1 << (BITS - core_bits), held: Vec::new() }
    }

    /// Gives a client an ID that nobody has. `moved` returns the IDs of the clients that have left
    /// for another core, or that have come back.
    #[inline]
    pub(crate) fn give(&mut self, conn: Conn, moved: impl FnOnce() -> Vec<u32>) -> u32 {
        if self.next == self.end {
            self.begin_run(moved());
        }
        let pid = self.next << self.core_bits | u32::from(self.core.0);
        self.next += 1;
        let place = conn.0 as usize;
        if self.held.len() <= place {
            self.held.resize(place + 1, 0);
        }
        self.held[place] = pid;
        pid
    }

    /// Finds the next run of free IDs: from behind those that are held one after the other, up to
    /// the next one that is held, or the end of the range.
    #[cold]
    fn begin_run(&mut self, moved: Vec<u32>) {
        let range = 1 << (BITS - self.core_bits);
        let own = |pid: &u32| *pid != 0 && home(*pid, self.core_bits) == self.core;
        let both = self.held.iter().copied().chain(moved).filter(own);
        let mut held: Vec<_> = both.map(|pid| pid >> self.core_bits).collect();
        held.sort_unstable();
        if self.next == range {
            self.next = 1;
        }
        self.skip_held(&held, range);
        if self.next == range {
            self.next = 1;
            self.skip_held(&held, range);
        }
    }

    /// Goes behind the held counters, which are sorted, up to a run of free ones.
    fn skip_held(&mut self, held: &[u32], range: u32) {
        for &counter in &held[held.partition_point(|counter| *counter < self.next)..] {
            if counter > self.next {
                self.end = counter;
                return;
            }
            self.next = counter + 1;
        }
        self.end = range;
    }

    /// Takes back the ID of a connection, whose client has left or goes to another core.
    #[inline]
    pub(crate) fn free(&mut self, conn: Conn) {
        self.held[conn.0 as usize] = 0;
    }

    /// Returns the connection of the client that has this ID, and has had no other core.
    pub(crate) fn find(&self, pid: u32) -> Option<Conn> {
        let place = self.held.iter().position(|held| *held == pid && pid != 0)?;
        u32::try_from(place).ok().map(Conn)
    }

    /// Returns the number of IDs that clients have who are at this core since their login.
    pub(crate) fn count(&self) -> usize {
        self.held.iter().filter(|pid| **pid != 0).count()
    }
}

/// Returns the core that has given a process ID, which may be none of `cores`.
pub(crate) fn core_of(pid: u32, cores: u16) -> Core {
    home(pid, core_bits(cores))
}

fn core_bits(cores: u16) -> u32 {
    u32::from(cores).next_power_of_two().trailing_zeros()
}

fn home(pid: u32, core_bits: u32) -> Core {
    Core((pid & ((1 << core_bits) - 1)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes IDs of a core of four whose counter has run up to the end of its range.
    fn at_the_end() -> ProcessIds {
        let mut ids = ProcessIds::new(Core(1), 4);
        ids.next = ids.end;
        ids
    }

    #[test]
    fn each_login_gets_the_next_number_whatever_its_connection() {
        let mut ids = ProcessIds::new(Core(0), 1);
        for pid in 1..=3 {
            assert_eq!(ids.give(Conn(5), Vec::new), pid);
            assert_eq!(ids.find(pid), Some(Conn(5)));
            ids.free(Conn(5));
            assert_eq!((ids.find(pid), ids.find(0), ids.count()), (None, None, 0));
        }
    }

    #[test]
    fn the_ids_of_cores_are_apart() {
        for cores in [1, 2, 3, 5, 64] {
            for core in (0..cores).map(Core) {
                let mut ids = ProcessIds::new(core, cores);
                for _ in 0..3 {
                    assert_eq!(core_of(ids.give(Conn(0), Vec::new), cores), core);
                }
                ids.next = ids.end - 1;
                let last = ids.give(Conn(0), Vec::new);
                assert!(i32::try_from(last).is_ok() && core_of(last, cores) == core);
                assert_eq!(core_of(ids.give(Conn(0), Vec::new), cores), core);
            }
        }
    }

    #[test]
    fn behind_the_last_number_come_the_first_ones_that_nobody_has() {
        let mut ids = ProcessIds::new(Core(1), 4);
        let [one, _, three] = [0, 1, 2].map(|conn| ids.give(Conn(conn), Vec::new));
        assert_eq!((one, three), (5, 13));
        ids.free(Conn(1));
        ids.next = ids.end;
        // A client with 17 has moved, and one of another core has come.
        let moved = || vec![17, 16 | 2];
        let given = [3, 4, 5].map(|conn| ids.give(Conn(conn), moved));
        assert_eq!(given, [9, 21, 25]);
        assert_eq!(ids.find(13), Some(Conn(2)));
    }

    #[test]
    fn a_run_may_begin_anew_where_the_range_ends_with_held_numbers() {
        let mut ids = at_the_end();
        ids.next -= 1;
        let last = ids.give(Conn(0), Vec::new);
        ids.next -= 2;
        ids.end = ids.next;
        assert_eq!(ids.give(Conn(1), Vec::new), last - 4);
        assert_eq!(ids.give(Conn(2), Vec::new), 5);
    }
}
