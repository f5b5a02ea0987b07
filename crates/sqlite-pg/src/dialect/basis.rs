//! The facts from which a translation starts: the statement's text, and the catalog of its file.

use refrain_grammar::protobuf::RangeVar;

use crate::failure::Failure;
use crate::sequences::Sequence;

use super::schema_names::{of_sqlite, qualified};
use super::scope::{Attribute, Catalog};
use super::{NotTranslated, Translated, hints};

/// A statement's text, and the catalog of the file in which it runs.
#[derive(Clone, Copy)]
pub(super) struct Basis<'a> {
    pub(super) text: &'a str,
    pub(super) catalog: &'a dyn Catalog,
}

impl Basis<'_> {
    /// Returns the SQL of a table of the file, and its columns.
    pub(super) fn table(&self, table: &RangeVar) -> Translated<(String, Vec<Attribute>)> {
        if let Ok(schema) = of_sqlite(&table.schemaname)
            && let Some(attributes) = self.catalog.table(schema, &table.relname)
        {
            return Ok((qualified(self.catalog, schema, &table.relname), attributes));
        }
        let catalog = ["pg_catalog", "information_schema"].contains(&table.schemaname.as_str());
        if catalog || table.schemaname.is_empty() && table.relname.starts_with("pg_") {
            return Err(hints::refuse("catalog").into());
        }
        let called = match table.schemaname.as_str() {
            "" => table.relname.clone(),
            schema => format!("{schema}.{}", table.relname),
        };
        let message = format!("relation \"{called}\" does not exist");
        let hint = if table.schemaname.is_empty() { "" } else { "CREATE SCHEMA makes a schema" };
        let failure = Failure::new("42P01", message).hint(hint);
        Err(NotTranslated::from(failure).at(self.text, table.location))
    }

    /// Returns a column of a table.
    pub(super) fn column_of(&self, called: &str, relation: &RangeVar) -> Translated<Attribute> {
        let (_, attributes) = self.table(relation)?;
        let known = attributes.into_iter().find(|known| known.name == called);
        Ok(known.ok_or_else(|| {
            let message =
                format!("column \"{called}\" of relation \"{}\" does not exist", relation.relname);
            Failure::new("42703", message)
        })?)
    }

    /// Refuses to write to a sequence.
    pub(super) fn no_sequence(&self, called: &str, columns: &[Attribute]) -> Translated<()> {
        let may_be = columns.first().is_some_and(|column| column.name == "last_value");
        let definition = || self.catalog.definition(called);
        match may_be.then(definition).flatten().and_then(|sql| Sequence::read(&sql)) {
            Some(_) => {
                let message = format!("cannot change sequence \"{called}\"");
                Err(Failure::new("42809", message).into())
            }
            None => Ok(()),
        }
    }
}
