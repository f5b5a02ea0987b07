//! The translations of statements, kept for the next time: SQLite's text, and the types that the
//! client gets.
//!
//! A translation depends on the schema. It is stamped with SQLite's number of the schema version,
//! read before anything else of the schema was. It is checked whenever its statement was compiled
//! again ([`TranslatedStatement::is_stale`]). A translation for a schema that one transaction or
//! session alone sees is neither kept for others nor stamped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use refrain_sqlite::Connection;

use crate::attributes::Attributes;
use crate::dialect::{NotTranslated, ResultColumn, Translation, translate};
use crate::failure::Failure;
use crate::schemas::{SchemaTables, Schemas};
use crate::types::Type;

/// The most translations that are kept.
const KEPT_MAX: usize = 1024;
/// The longest text, in bytes, whose translation is kept.
const TEXT_MAX: usize = 16 * 1024;

/// A statement of PostgreSQL's dialect, translated.
#[derive(Debug)]
pub(crate) struct TranslatedStatement {
    /// The text for SQLite.
    pub(crate) sql: String,
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) parameters: Vec<Option<Type>>,
    /// The error that a constant in the text raises.
    fails: Option<Failure>,
    /// The client's text of this statement alone.
    text: String,
    /// The types that the client gave its parameters.
    given: Vec<Option<Type>>,
    /// SQLite's number of the schema version it was made for; `None` if it is for this one time.
    version: Option<i64>,
    /// Connections for which it was found to be valid, each with its count of schema changes at
    /// that time.
    seen: Mutex<Vec<(u64, u64)>>,
}

/// The most connections that a translation remembers.
const SEEN_MAX: usize = 32;

/// The translations for a pool's connections.
pub(crate) struct TranslationCache {
    kept: Mutex<LruCache<String, Arc<TranslatedStatement>>>,
    schemas: Schemas,
}

impl Default for TranslationCache {
    fn default() -> Self {
        Self { kept: Mutex::new(LruCache::new(KEPT_MAX)), schemas: Schemas::default() }
    }
}

/// Returns the key of a statement: its text, and the types that the client gave its parameters.
fn key(text: &str, given: &[Option<Type>]) -> String {
    let letters = given.iter().map(|is| is.map_or('-', |is| char::from(is.letter())));
    format!("{text}\0{}", letters.collect::<String>())
}

impl TranslationCache {
    fn kept(&self) -> MutexGuard<'_, LruCache<String, Arc<TranslatedStatement>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the translation of a statement, and true if it was kept. `alone` is true if the
    /// session may see another schema than others do.
    ///
    /// # Errors
    /// The statement is refused, or not PostgreSQL's.
    pub(crate) fn get(
        &self,
        connection: &Connection,
        text: &str,
        given: &[Option<Type>],
        alone: bool,
    ) -> Result<(Arc<TranslatedStatement>, bool), NotTranslated> {
        if alone {
            return Ok((
                Arc::new(TranslatedStatement::find(&SchemaTables::of(connection), text, given)?),
                false,
            ));
        }
        let kept = match given {
            [] => self.kept().get(text).cloned(),
            given => self.kept().get(key(text, given).as_str()).cloned(),
        };
        if let Some(kept) = kept {
            return Ok((kept, true));
        }
        let tables = SchemaTables::kept(connection, seen(connection, false), &self.schemas);
        let made = Arc::new(TranslatedStatement::find(&tables, text, given)?);
        if text.len() <= TEXT_MAX {
            let key = if given.is_empty() { text.to_owned() } else { key(text, given) };
            self.kept().insert(key, made.clone());
        }
        Ok((made, false))
    }

    /// Forgets a translation that is no longer valid.
    pub(crate) fn forget(&self, translated: &TranslatedStatement) {
        match &translated.given[..] {
            [] => self.kept().remove(translated.text.as_str()),
            given => self.kept().remove(key(&translated.text, given).as_str()),
        };
    }
}

impl TranslatedStatement {
    fn find(
        tables: &SchemaTables<'_>,
        text: &str,
        given: &[Option<Type>],
    ) -> Result<Self, NotTranslated> {
        let seen = Mutex::new(tables.seen().into_iter().collect());
        let version = tables.version();
        let Translation { mut sql, columns, parameters, fails } = translate(text, tables, given)?;
        // The text is made unique by its types: the statement cache must not mix up two
        // translations that differ in their types alone.
        if !columns.is_empty() {
            let letters = columns.iter().map(|column| {
                let limit = column.limit.map(|limit| limit.to_string()).unwrap_or_default();
                format!("{}{limit}", char::from(column.is.letter()))
            });
            sql.push_str(&format!(" /*{}*/", letters.collect::<String>()));
        }
        let (text, given) = (text.to_owned(), given.to_vec());
        Ok(Self { sql, columns, parameters, fails, text, given, version, seen })
    }

    /// Checks that each constant has a value, as PostgreSQL does before it runs a statement.
    ///
    /// # Errors
    /// The error of the first constant that has none.
    pub(crate) fn compute(&self) -> Result<(), Failure> {
        self.fails.clone().map_or(Ok(()), Err)
    }

    /// True if the schema has changed so that the statement would be translated otherwise.
    pub(crate) fn is_stale(&self, connection: &Connection) -> bool {
        let now = seen(connection, self.version.is_none());
        let mut known = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_some_and(|now| known.contains(&now)) {
            return false;
        }
        if self.version.is_some() && self.version == Attributes(connection).version() {
            let full = known.len() == SEEN_MAX;
            known.drain(..usize::from(full));
            known.extend(now);
            return false;
        }
        drop(known);
        match Self::find(&SchemaTables::of(connection), &self.text, &self.given) {
            Ok(now) => now.sql != self.sql || now.parameters != self.parameters,
            Err(_) => true,
        }
    }
}

/// Returns a connection's number and its count of schema changes; none if it has to be checked each
/// time.
fn seen(connection: &Connection, alone: bool) -> Option<(u64, u64)> {
    let epoch = if alone { None } else { connection.schema_epoch().ok() };
    epoch.map(|epoch| (connection.number(), epoch))
}

/// Returns the types that a client gave its parameters. Text counts as no type, as the statement
/// says what a text is.
pub(crate) fn given(oids: &[u32]) -> Vec<Option<Type>> {
    let is = |oid: &u32| Type::of_oid(*oid).filter(|is| !is.is_text());
    oids.iter().map(is).collect()
}

/// Moves an error's position into a longer text, in which the statement begins after `before`.
pub(crate) fn moved(failure: Failure, before: &str) -> Failure {
    let position = match failure.position {
        0 => 0,
        position => position + before.chars().count(),
    };
    Failure { position, ..failure }
}
