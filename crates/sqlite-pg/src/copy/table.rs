//! The table that a COPY names.

use crate::sql_text::quoted;

/// The table of a COPY.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CopiedTable {
    /// SQLite's schema, if the text names one.
    pub(crate) schema: Option<&'static str>,
    /// Its name in the file.
    pub(crate) name: String,
}

impl CopiedTable {
    /// Makes a table of its names in the text.
    pub(super) fn named(schema: Option<&str>, name: String) -> Self {
        match schema {
            None => Self { schema: None, name },
            Some("public" | "main") => Self { schema: Some("main"), name },
            Some("pg_temp" | "temp") => Self { schema: Some("temp"), name },
            // The tables of other schemas have these in front of their names.
            Some(schema) => Self { schema: Some("main"), name: format!("{schema}.{name}") },
        }
    }

    /// Returns SQLite's SQL of its name, which is PostgreSQL's as well.
    pub(crate) fn sql(&self) -> String {
        let schema = self.schema.map_or(String::new(), |schema| format!("{schema}."));
        format!("{schema}{}", quoted(&self.name))
    }
}
