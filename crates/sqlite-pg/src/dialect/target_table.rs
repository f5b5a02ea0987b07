//! The table that a statement writes to.

use crate::failure::Failure;

use super::scope::{Attribute, FromItem, Scope};
use super::value::name;

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

/// Makes a scope in which the columns of a table are plain names.
pub(super) fn plain_scope(into: &TargetTable) -> Scope {
    let mut source = FromItem::table(&into.alias, &into.attributes);
    source.columns.iter_mut().for_each(|column| column.sql = name(&column.name));
    Scope { sources: vec![source], ..Scope::default() }
}
