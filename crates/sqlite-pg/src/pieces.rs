//! The output of a thread, handed on in pieces: a single row may have half a gigabyte.
//!
//! The loop copies one piece at a time, as its client reads. It frees no large memory, because that
//! may take a tenth of a second: once all pieces are handed on, the memory goes back to a thread.

use std::mem;

/// The longest piece, in bytes. The loop copies it in about a tenth of a millisecond.
const PIECE: usize = 512 * 1024;

/// Output of a thread.
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// The number of bytes that were handed on.
    handed: usize,
}

impl Pieces {
    /// Makes pieces of the output.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, handed: 0 }
    }

    /// Appends the next piece to `out`.
    pub(crate) fn hand_on(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() && self.bytes.len() <= PIECE {
            return mem::swap(out, &mut self.bytes);
        }
        let until = self.bytes.len().min(self.handed + PIECE);
        out.extend_from_slice(self.bytes.get(self.handed..until).unwrap_or_default());
        self.handed = until;
    }

    /// True if no piece is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.handed == self.bytes.len()
    }

    /// True if a thread should free the memory.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.capacity() > PIECE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_comes_in_its_order_and_no_piece_is_long() {
        for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let all: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[1]).collect();
            let mut pieces = Pieces::new(all.clone());
            assert_eq!(pieces.is_large(), length > PIECE);
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
