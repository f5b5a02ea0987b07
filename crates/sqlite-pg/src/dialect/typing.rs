//! The types and constants of a statement's expressions.

use crate::failure::Failure;
use crate::types::Type;

use super::budget::Budget;
use super::scope::Catalog;

/// The types and constants that conversions, operators and functions need and find. None of these
/// needs the names of a query.
pub(super) struct Typing<'a> {
    /// Evaluates constants.
    pub(super) catalog: &'a dyn Catalog,
    pub(super) budget: Budget,
    /// The types of parameters by number, as far as they are known.
    pub(super) parameters: Vec<Option<Type>>,
    /// The number of enclosing parts that PostgreSQL may never evaluate ([`super::folding`]).
    pub(super) unfolded: usize,
    /// The error of the first constant that fails.
    pub(super) fails: Option<Failure>,
    /// The relations of the catalog that the statement's SQL reads.
    pub(super) relations: Vec<&'static str>,
    /// The SQL of OIDs of relations by constant names, which must exist.
    pub(super) named_relations: Vec<String>,
}

impl<'a> Typing<'a> {
    /// Begins a text with the types that the client gives its parameters.
    pub(super) fn new(text: &str, catalog: &'a dyn Catalog, given: &[Option<Type>]) -> Self {
        Self {
            catalog,
            budget: Budget::of(text),
            parameters: given.to_vec(),
            unfolded: 0,
            fails: None,
            relations: Vec::new(),
            named_relations: Vec::new(),
        }
    }
}
