//! The table that a statement writes to.

use crate::failure::Failure;

use super::Translator;
use super::literals::Literals;
use super::scope::{Attribute, Scoped, Scopes};
use super::value::name;
use super::write_target::WriteTarget;

/// The table that a statement writes to.
pub(super) struct TargetTable {
    /// The name of the table in messages.
    pub(super) table: String,
    pub(super) written: String,
    pub(super) alias: String,
    pub(super) attributes: Vec<Attribute>,
}

impl TargetTable {
    /// Returns the SQL of the table, with its alias.
    pub(super) fn sql(&self) -> String {
        match self.alias == self.table {
            true => self.written.clone(),
            false => format!("{} AS {}", self.written, name(&self.alias)),
        }
    }

    pub(super) fn attribute(&self, wanted: &str) -> Result<&Attribute, Failure> {
        let found = self.attributes.iter().find(|known| known.name == wanted);
        found.ok_or_else(|| {
            let message =
                format!("column \"{wanted}\" of relation \"{}\" does not exist", self.table);
            Failure::new("42703", message).hint(format!("\\d {} lists the columns", self.table))
        })
    }
}

/// The translation of a statement that writes rows.
pub(super) struct Writer<'t, 'a> {
    pub(super) translator: &'t mut Translator<'a>,
    /// The literals that may be bound in the place of being written.
    pub(super) literals: &'t mut Literals<'a>,
    /// The table that the statement writes to, once that is known.
    pub(super) target: &'t mut Option<WriteTarget>,
}

impl Scoped for Writer<'_, '_> {
    fn scopes(&mut self) -> &mut Scopes {
        &mut self.translator.scopes
    }
}
