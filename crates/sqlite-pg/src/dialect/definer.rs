//! The translation of definitions that have expressions.

use super::Translator;
use super::basis::Basis;
use super::edits::Edits;

/// A definition with defaults, conditions, or a query: those are translated as a query's are.
pub(super) struct Definer<'t, 'a> {
    pub(super) basis: Basis<'a>,
    pub(super) translator: &'t mut Translator<'a>,
    pub(super) edits: &'t mut Edits<'a>,
}
