//! What a client's statement means: SQLite's text for it and the types that the client is told, kept for the next time.
//!
//! A translation depends on the schema. It is stamped with SQLite's number for the schema, read before anything else of the
//! schema was, and is looked at again whenever its statement was compiled anew ([`TranslatedStatement::is_stale`]). What a transaction or
//! a session sees alone, is not kept for others and not stamped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use refrain_sqlite::Connection;

use crate::attributes::Attributes;
use crate::dialect::{NotTranslated, ResultColumn, Translation, translate};
use crate::failure::Failure;
use crate::schemas::{SchemaTables, Schemas};
use crate::types::Type;

/// Translations that are kept.
const KEPT_MAX: usize = 1024;
/// The longest text of which the translation is kept.
const TEXT_MAX: usize = 16 * 1024;

/// What a statement of PostgreSQL's dialect means.
#[derive(Debug)]
pub(crate) struct TranslatedStatement {
    /// What SQLite gets.
    pub(crate) sql: String,
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) parameters: Vec<Option<Type>>,
    /// What a constant in it raises.
    fails: Option<Failure>,
    /// What the client sent, without what stands around it.
    text: String,
    /// What the client said that its parameters are.
    given: Vec<Option<Type>>,
    /// SQLite's number for the schema it was made with; `None` if it holds for now only.
    version: Option<i64>,
    /// Connections on which it was found to be true, and what they had counted of changes of the schema.
    seen: Mutex<Vec<(u64, u64)>>,
}

/// Connections that a meaning remembers.
const SEEN_MAX: usize = 32;

/// The translations of a database file's statements.
pub(crate) struct TranslationCache {
    kept: Mutex<LruCache<String, Arc<TranslatedStatement>>>,
    schemas: Schemas,
}

impl Default for TranslationCache {
    fn default() -> Self {
        Self { kept: Mutex::new(LruCache::new(KEPT_MAX)), schemas: Schemas::default() }
    }
}

/// What a statement is found by: its text, and what the client said of its parameters.
fn key(text: &str, given: &[Option<Type>]) -> String {
    let letters = given.iter().map(|is| is.map_or('-', |is| char::from(is.letter())));
    format!("{text}\0{}", letters.collect::<String>())
}

impl TranslationCache {
    fn kept(&self) -> MutexGuard<'_, LruCache<String, Arc<TranslatedStatement>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The meaning of a statement, kept or found out; whether it was kept. `alone` says that the session may see another
    /// schema than others.
    ///
    /// # Errors
    /// It is refused, or none of PostgreSQL's.
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

    /// A meaning is not true any more.
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
        // The types are of the text: two statements that differ in them only are two to the cache.
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

    /// Sees that each constant in it has a value, as PostgreSQL does before it runs a statement.
    ///
    /// # Errors
    /// What the first raises that has none.
    pub(crate) fn compute(&self) -> Result<(), Failure> {
        self.fails.clone().map_or(Ok(()), Err)
    }

    /// Whether the statement would be another by now, as the schema is another.
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

/// A connection, and what it has counted of changes of the schema; nothing for what is to be looked at each time.
fn seen(connection: &Connection, alone: bool) -> Option<(u64, u64)> {
    let epoch = if alone { None } else { connection.schema_epoch().ok() };
    epoch.map(|epoch| (connection.number(), epoch))
}

/// What a client says that its parameters are. A text may be anything: the statement says what.
pub(crate) fn given(oids: &[u32]) -> Vec<Option<Type>> {
    let is = |oid: &u32| Type::of_oid(*oid).filter(|is| !is.is_text());
    oids.iter().map(is).collect()
}

/// The same failure with its place in a longer text, in which its own begins behind `before`.
pub(crate) fn moved(failure: Failure, before: &str) -> Failure {
    let position = match failure.position {
        0 => 0,
        position => position + before.chars().count(),
    };
    Failure { position, ..failure }
}
