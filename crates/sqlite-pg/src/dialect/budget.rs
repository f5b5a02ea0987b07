//! The budget of a translation: how much longer than its text the SQL may get, and how much work
//! that takes.
//!
//! Some forms write an operand once for each item of a list, or for each column of a row, and each
//! form may stand in such an operand again. So the translation counts the bytes that it writes more
//! than once, and stops before they are made. It counts its steps too: some forms translate a part
//! a second time, once its types are known.
//!
//! The limits grow with the text, so long lists and long literals pass.

use crate::failure::Failure;

use super::hints;
use super::value::{Bare, Expr};

/// The most bytes that a translation copies, and those for each byte of its text.
const COPIED_BYTES_MAX: usize = 4 << 20;
const COPIED_BYTES_EACH: usize = 16;
/// The bytes that an expression may have beyond those of its parts without counting as copies.
const OWN_BYTES: usize = 256;
/// The most expressions that a translation makes, and those for each byte of its text.
const STEPS_MAX: usize = 100_000;
const STEPS_EACH: usize = 4;

/// The bytes and the steps that a translation has left.
pub(super) struct Budget {
    bytes: usize,
    steps: usize,
    /// The bytes of the parts so far of the expression that is being translated.
    parts: usize,
}

impl Budget {
    /// Makes the budget of a text.
    pub(super) fn of(text: &str) -> Self {
        Self {
            bytes: COPIED_BYTES_MAX + COPIED_BYTES_EACH * text.len(),
            steps: STEPS_MAX + STEPS_EACH * text.len(),
            parts: 0,
        }
    }

    /// Begins an expression. Returns the bytes of the parts of the one around it.
    ///
    /// # Errors
    /// 54001 if there are no steps left.
    pub(super) fn begin(&mut self) -> Result<usize, Failure> {
        self.steps = self.steps.checked_sub(1).ok_or_else(hints::too_long)?;
        Ok(std::mem::take(&mut self.parts))
    }

    /// Ends an expression: it is a part of the one around it.
    ///
    /// # Errors
    /// 54001 if it is longer than its parts by more than is left.
    pub(super) fn end(&mut self, around: usize, made: &Expr) -> Result<(), Failure> {
        let bytes = size(made);
        let copied = bytes.saturating_sub(self.parts + OWN_BYTES);
        self.parts = around + bytes;
        self.take(copied)
    }

    /// Takes the bytes of a copy of an expression, which the caller makes next.
    ///
    /// # Errors
    /// 54001 if fewer bytes are left.
    pub(super) fn copy(&mut self, of: &Expr) -> Result<(), Failure> {
        self.parts += size(of);
        self.take(size(of))
    }

    /// Takes this many bytes.
    ///
    /// # Errors
    /// 54001 if fewer are left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(hints::too_long)?;
        Ok(())
    }
}

/// Returns the bytes of an expression.
fn size(of: &Expr) -> usize {
    let bare: usize = of.bare.iter().map(|(_, name)| size_of::<Bare>() + name.len()).sum();
    of.sql.len() + of.constant.as_ref().map_or(0, String::len) + bare
}
