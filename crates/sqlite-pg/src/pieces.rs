//! What is to be sent and may be much: a row may have half a gigabyte.
//!
//! The loop takes it piece by piece, as its client takes it, and copies and gives back little memory at a time. It is cut on
//! the thread that made it.

use std::mem;

/// The longest piece. The loop copies it in a tenth of a millisecond.
const PIECE: usize = 512 * 1024;

/// Output of a thread that was not handed on yet, the last piece first.
pub(crate) struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// Cuts it, and holds one piece more than before while it does.
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

    /// Appends the next piece.
    pub(crate) fn hand_on(&mut self, out: &mut Vec<u8>) {
        let mut piece = self.0.pop().unwrap_or_default();
        if out.is_empty() {
            mem::swap(out, &mut piece);
        } else {
            out.append(&mut piece);
        }
    }

    /// Whether nothing is left.
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
            let mut heard = Vec::new();
            while !pieces.is_empty() {
                let mut piece = Vec::new();
                pieces.hand_on(&mut piece);
                assert!(piece.len() <= PIECE);
                heard.extend(piece);
            }
            assert_eq!(heard, all, "{length}");
        }
    }
}
