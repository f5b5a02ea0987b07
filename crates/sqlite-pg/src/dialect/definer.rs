//! The translation of definitions that have expressions.

use crate::key_mark::GivenBy;
use crate::types::Type;

use super::Translator;
use super::edits::Edits;
use super::scope::{Scoped, Scopes};

/// A definition with defaults, conditions, or a query: those are translated as a query's are.
pub(super) struct Definer<'t, 'a> {
    pub(super) translator: &'t mut Translator<'a>,
    pub(super) edits: &'t mut Edits<'a>,
}

/// A column in a CREATE TABLE or ADD COLUMN.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) is: Type,
    pub(super) limit: Option<u32>,
    /// Its type in SQLite.
    pub(super) sql: String,
    /// The source of its values.
    pub(super) given: GivenBy,
    pub(super) key: bool,
    /// The name of the key's constraint; an empty text stands for none.
    pub(super) key_name: String,
    /// The name of the key's sequence.
    pub(super) sequence: Option<String>,
    /// True if the text says INTEGER, which as a key is SQLite's row number.
    pub(super) integer: bool,
    /// The text after the type.
    pub(super) rest: String,
}

impl Scoped for Definer<'_, '_> {
    fn scopes(&mut self) -> &mut Scopes {
        &mut self.translator.scopes
    }
}
