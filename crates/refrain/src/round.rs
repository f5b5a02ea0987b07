//! Whose turn it is among the sessions with SQLite that have more to say.
//!
//! In a turn of the loop each of them says one piece, and all of them together so much that the others of the core do
//! not wait long. Who had no turn is first in the next.

use std::collections::VecDeque;

use refrain_pg::Conn;

/// What may be said in a turn, in bytes; what is under way then is said to its end. A megabyte takes the loop about half a
/// millisecond.
const MOST: usize = 2 * 1024 * 1024;

/// A line of sessions.
pub(crate) struct Round {
    line: VecDeque<Conn>,
    /// How many of the line stood there when the turn began, and had none yet.
    due: usize,
    /// What may still be said in this turn.
    left: usize,
    /// Whether one of the line has had its turn: one has, whatever others say whom nobody asked.
    served: bool,
}

impl Round {
    pub(crate) fn new() -> Self {
        Self { line: VecDeque::new(), due: 0, left: MOST, served: false }
    }

    /// Stands in line for the next turn.
    pub(crate) fn join(&mut self, conn: Conn) {
        if !self.line.contains(&conn) {
            self.line.push_back(conn);
        }
    }

    /// Whose turn it is now.
    pub(crate) fn next(&mut self) -> Option<Conn> {
        if self.due == 0 || self.is_over() && self.served {
            return None;
        }
        self.due -= 1;
        self.served = true;
        self.line.pop_front()
    }

    /// So much was said.
    pub(crate) fn said(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Whether no more is to be said in this turn.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Whether nobody stands in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The loop's next turn begins.
    pub(crate) fn begin(&mut self) {
        self.due = self.line.len();
        self.left = MOST;
        self.served = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a turn comes to in which each that is asked says `bytes`, and stands in line again.
    fn turn(round: &mut Round, bytes: usize) -> Vec<u32> {
        round.begin();
        let mut heard = Vec::new();
        while let Some(conn) = round.next() {
            heard.push(conn.0);
            round.said(bytes);
            round.join(conn);
        }
        heard
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
        round.said(MOST);
        assert!(round.is_over());
        assert_eq!((round.next(), round.next()), (Some(Conn(1)), None));
    }
}
