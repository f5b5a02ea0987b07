//! The order in which SQLite sessions with more output take their turns.
//!
//! In one turn of the loop each waiting session produces one piece of output, and all together at
//! most about [`MOST`] bytes, so that the other clients of the core do not wait long. Sessions that
//! had no turn come first in the next one.

use std::collections::VecDeque;

use refrain_pool::Conn;

/// Bytes of output per turn of the loop. A piece that is under way when the limit is reached is
/// completed.
const MOST: usize = 2 * 1024 * 1024;

/// The queue of sessions that have more output.
pub(crate) struct Round {
    line: VecDeque<Conn>,
    /// The number of sessions that were waiting when the turn began and have not had a turn since.
    due: usize,
    /// Bytes that may still be produced in this turn.
    left: usize,
    /// True if a waiting session has had its turn. One always gets a turn, even if sessions outside
    /// the queue used up the bytes.
    served: bool,
}

impl Round {
    pub(crate) fn new() -> Self {
        Self { line: VecDeque::new(), due: 0, left: MOST, served: false }
    }

    /// Puts a session into the queue for the next turn, unless the session is in it.
    pub(crate) fn join(&mut self, conn: Conn) {
        if !self.line.contains(&conn) {
            self.line.push_back(conn);
        }
    }

    /// Takes the next session to go on; `None` if no more sessions go on in this turn.
    pub(crate) fn next(&mut self) -> Option<Conn> {
        if self.due == 0 || self.is_over() && self.served {
            return None;
        }
        self.due -= 1;
        self.served = true;
        self.line.pop_front()
    }

    /// Counts the bytes that a session produced.
    pub(crate) fn produced(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// True if this turn's bytes are used up.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// True if no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Begins the next turn of the loop.
    pub(crate) fn begin(&mut self) {
        self.due = self.line.len();
        self.left = MOST;
        self.served = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one turn in which each session produces `bytes` and waits again. Returns the sessions
    /// in their order.
    fn turn(round: &mut Round, bytes: usize) -> Vec<u32> {
        round.begin();
        let mut ran = Vec::new();
        while let Some(conn) = round.next() {
            ran.push(conn.0);
            round.produced(bytes);
            round.join(conn);
        }
        ran
    }

    fn line(conns: &[u32]) -> Round {
        let mut round = Round::new();
        conns.iter().for_each(|conn| round.join(Conn(*conn)));
        round
    }

    #[test]
    fn each_has_one_turn_in_a_turn_of_the_loop() {
        let mut round = line(&[3, 1, 2, 1]);
        assert_eq!(round.next(), None, "who comes has a turn in the next");
        assert_eq!(turn(&mut round, 1), [3, 1, 2]);
        assert_eq!(turn(&mut round, 1), [3, 1, 2]);
        assert!(!round.is_empty());
    }

    #[test]
    fn who_had_none_is_first_in_the_next() {
        let mut round = line(&[1, 2, 3]);
        assert_eq!(turn(&mut round, MOST / 2), [1, 2]);
        assert!(round.is_over());
        assert_eq!(turn(&mut round, MOST / 2), [3, 1]);
        assert_eq!(turn(&mut round, MOST), [2]);
    }

    #[test]
    fn one_of_the_line_is_heard_whatever_others_say() {
        let mut round = line(&[1, 2]);
        round.begin();
        round.produced(MOST);
        assert!(round.is_over());
        assert_eq!((round.next(), round.next()), (Some(Conn(1)), None));
    }
}
