//! The tables of a file, kept for as long as its schema does not change.
//!
//! A new text has to be translated, and a query of SQLite for its tables takes longer than all the
//! rest of the translation. So the answers are kept until the connection counts a change of the
//! schema.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use refrain_sqlite::{Connection, Error};

use crate::attributes::Attributes;
use crate::dialect::{Attribute, Catalog, EnumColumn, SchemaObject};
use crate::enums::EnumType;
use crate::failure::Failure;

/// The most connections whose tables are kept.
const CONNECTIONS_MAX: usize = 32;
/// The most tables that are kept for each connection.
const TABLES_MAX: usize = 256;

/// The tables of each connection.
pub(crate) struct Schemas(Mutex<LruCache<u64, KnownSchema>>);

/// The tables of a connection since its last count of a schema change.
#[derive(Default)]
struct KnownSchema {
    epoch: u64,
    version: Option<i64>,
    /// The schemas that CREATE SCHEMA has made.
    schemas: Option<Vec<String>>,
    /// Tables by schema name and table name.
    tables: HashMap<(Option<String>, String), Option<Vec<Attribute>>>,
}

impl Default for Schemas {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CONNECTIONS_MAX)))
    }
}

/// The tables that a connection sees.
pub(crate) struct SchemaTables<'a> {
    asked: Attributes<'a>,
    kept: Option<KeptTables<'a>>,
}

/// The place where the tables of a connection are kept.
struct KeptTables<'a> {
    schemas: &'a Schemas,
    connection: u64,
    epoch: u64,
}

impl<'a> SchemaTables<'a> {
    /// Reads the tables as they are now, for this one time.
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self { asked: Attributes::of(connection), kept: None }
    }

    /// Uses kept tables. `seen` is the connection's number and its count of schema changes.
    pub(crate) fn kept(
        connection: &'a Connection,
        seen: Option<(u64, u64)>,
        schemas: &'a Schemas,
    ) -> Self {
        let kept = seen.map(|(connection, epoch)| KeptTables { schemas, connection, epoch });
        Self { asked: Attributes::of(connection), kept }
    }

    /// Checks that all tables could be read.
    ///
    /// # Errors
    /// The first error that says nothing of the tables.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.asked.check()
    }

    /// Returns the connection's number and its count of schema changes, if its tables are kept.
    pub(crate) fn seen(&self) -> Option<(u64, u64)> {
        self.kept.as_ref().map(|kept| (kept.connection, kept.epoch))
    }

    /// Returns a number that changes with the main file's schema; `None` if the tables are not
    /// kept, or SQLite cannot tell.
    pub(crate) fn version(&self) -> Option<i64> {
        let kept = self.kept.as_ref()?;
        kept.get(|schema| schema.version).or_else(|| {
            let version = self.asked.version();
            kept.set(|schema| schema.version = version);
            version
        })
    }
}

impl KeptTables<'_> {
    fn lock(&self) -> MutexGuard<'_, LruCache<u64, KnownSchema>> {
        self.schemas.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a kept value, if the schema has not changed since.
    fn get<T>(&self, get: impl FnOnce(&KnownSchema) -> Option<T>) -> Option<T> {
        let mut all = self.lock();
        all.get(&self.connection).filter(|schema| schema.epoch == self.epoch).and_then(get)
    }

    fn set(&self, set: impl FnOnce(&mut KnownSchema)) {
        let mut all = self.lock();
        let schema = all.entry(self.connection).or_insert_with(KnownSchema::default);
        if schema.epoch != self.epoch {
            *schema = KnownSchema { epoch: self.epoch, ..KnownSchema::default() };
        }
        set(schema);
    }
}

impl Catalog for SchemaTables<'_> {
    fn table(&self, schema: Option<&str>, table: &str) -> Option<Vec<Attribute>> {
        let Some(kept) = &self.kept else { return self.asked.table(schema, table) };
        let key = (schema.map(str::to_owned), table.to_owned());
        if let Some(known) = kept.get(|schema| schema.tables.get(&key).cloned()) {
            return known;
        }
        let found = self.asked.table(schema, table);
        if self.check().is_err() {
            return found;
        }
        kept.set(|schema| {
            if schema.tables.len() == TABLES_MAX {
                schema.tables.clear();
            }
            schema.tables.insert(key, found.clone());
        });
        found
    }

    fn definition(&self, table: &str) -> Option<String> {
        self.asked.definition(table)
    }

    fn computed(&self, sql: &str) -> Result<String, Failure> {
        self.asked.computed(sql)
    }

    fn is_unique(&self, table: &str, columns: &[String]) -> bool {
        self.asked.is_unique(table, columns)
    }

    fn constrained(&self, index: &str) -> Option<(String, bool)> {
        self.asked.constrained(index)
    }

    fn is_taken(&self, name: &str) -> bool {
        self.asked.is_taken(name)
    }

    fn schemas(&self) -> Vec<String> {
        let Some(kept) = &self.kept else { return self.asked.schemas() };
        kept.get(|schema| schema.schemas.clone()).unwrap_or_else(|| {
            let found = self.asked.schemas();
            if self.check().is_ok() {
                kept.set(|schema| schema.schemas = Some(found.clone()));
            }
            found
        })
    }

    fn inside(&self, schema: &str) -> Vec<String> {
        self.asked.inside(schema)
    }

    fn key_sequence(&self, name: &str) -> Option<(String, crate::types::Type)> {
        self.asked.key_sequence(name)
    }

    fn key_sequence_name(&self, table: &str, column: &str) -> String {
        self.asked.key_sequence_name(table, column)
    }

    fn users_of_sequence(&self, name: &str) -> Vec<(String, String)> {
        self.asked.users_of_sequence(name)
    }

    fn owned_sequences(&self, table: &str) -> Vec<(String, String)> {
        self.asked.owned_sequences(table)
    }

    fn enum_of(&self, oid: u32) -> Option<EnumType> {
        self.asked.enum_of(oid)
    }

    fn columns_of_enum(&self, of: EnumType) -> Vec<EnumColumn> {
        self.asked.columns_of_enum(of)
    }

    fn with_text(&self, text: &str) -> Vec<SchemaObject> {
        self.asked.with_text(text)
    }

    fn columns_of(&self, index: &str) -> Vec<String> {
        self.asked.columns_of(index)
    }

    fn dependents(&self, table: &str) -> Vec<String> {
        self.asked.dependents(table)
    }

    fn readers(&self, name: &str) -> Vec<String> {
        self.asked.readers(name)
    }

    fn referrers(&self, table: &str) -> Vec<String> {
        self.asked.referrers(table)
    }
}
