//! The output of a thread, cut into pieces: a single row may have half a gigabyte.
//!
//! The loop takes one piece at a time, as its client reads, and so copies and frees little memory
//! at once. The thread that made the output cuts it.

use std::mem;

/// The longest piece, in bytes. The loop copies it in about a tenth of a millisecond.
const PIECE: usize = 512 * 1024;

/// The pieces that were not handed on yet, the last one first.
pub(crate) struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// Cuts the output. Needs the memory of one more piece while it does.
    pub(crate) fn cut(mut all: Vec<u8>) -> Self {
        let mut pieces = Vec::new();
        while all.len() > PIECE {
            let last = (all.len() - 1) / PIECE * PIECE;
            pieces.push(all.split_off(last));
            all.shrink_to_fit();
        }
        pieces.push(all);
        Self(pieces)
    }

    /// Appends the next piece to `out`.
    pub(crate) fn hand_on(&mut self, out: &mut Vec<u8>) {
        let mut piece = self.0.pop().unwrap_or_default();
        if out.is_empty() {
            mem::swap(out, &mut piece);
        } else {
            out.append(&mut piece);
        }
    }

    /// True if no piece is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_comes_in_its_order_and_no_piece_is_long() {
        for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let all: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[1]).collect();
            let mut pieces = Pieces::cut(all.clone());
            let mut joined = Vec::new();
            while !pieces.is_empty() {
                let mut piece = Vec::new();
                pieces.hand_on(&mut piece);
                assert!(piece.len() <= PIECE);
                joined.extend(piece);
            }
            assert_eq!(joined, all, "{length}");
        }
    }
}
