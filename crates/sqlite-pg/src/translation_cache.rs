//! The translations of statements, kept for the next time: SQLite's text, and the types that the
//! client gets.
//!
//! A translation depends on the schema. It is stamped with SQLite's number of the schema version,
//! read before anything else of the schema was. It is checked whenever its statement was compiled
//! again ([`TranslatedStatement::is_stale`]). A translation for a schema that one transaction or
//! session alone sees is neither kept for others nor stamped.
//!
//! INSERTs that differ only in their literals share one translation, and so one statement of
//! SQLite's, where each literal can be bound ([`BoundLiteral`]). If one cannot, or its value is an
//! error, the text is translated as it is: the error is then that of the text.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use refrain_sql::normalize::{Key, Sample, Span};
use refrain_sqlite::{Connection, Error};

use crate::attributes::Attributes;
use crate::decode::Decoded;
use crate::dialect::{
    BoundLiteral, FollowUp, NotTranslated, ResultColumn, Translation, WriteTarget, translate,
};
use crate::failure::Failure;
use crate::normalized::{NormalizedQueries, NormalizedText};
use crate::schemas::{SchemaTables, Schemas};
use crate::types::Type;

/// The number of the next translation.
static SERIAL: AtomicU64 = AtomicU64::new(1);
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
    /// The parts that run behind it, in its transaction.
    pub(crate) follow_ups: Vec<FollowUp>,
    /// A table whose rows it locks.
    pub(crate) locks: Option<String>,
    /// The table that it writes to.
    pub(crate) target: Option<WriteTarget>,
    /// The number of this translation among all of the process, from 1 on.
    pub(crate) serial: u64,
    /// The client's text of this statement alone.
    text: String,
    /// The types that the client gave its parameters.
    given: Vec<Option<Type>>,
    /// The text's literals, if they are bound.
    bound: Option<Bound>,
    /// SQLite's number of the schema version it was made for; `None` if it is for this one time.
    version: Option<i64>,
    /// Connections for which it was found to be valid, each with its count of schema changes at
    /// that time.
    seen: Mutex<Vec<(u64, u64)>>,
}

/// The literals of a normalized query, as parameters of the translation.
#[derive(Debug)]
struct Bound {
    key: Key,
    /// The text that was translated.
    sample: Arc<Sample>,
    literals: Vec<BoundLiteral>,
}

/// A translation as it is found for a text.
pub(crate) struct Found {
    pub(crate) translated: Arc<TranslatedStatement>,
    /// The values of the text's literals, if they are bound.
    pub(crate) values: Vec<Decoded<'static>>,
    /// True if the translation was kept.
    pub(crate) was_kept: bool,
}

/// The most connections that a translation remembers.
const SEEN_MAX: usize = 32;

/// The translations for a pool's connections.
pub(crate) struct TranslationCache {
    kept: Mutex<LruCache<String, Arc<TranslatedStatement>>>,
    normalized: NormalizedQueries<Arc<TranslatedStatement>>,
    schemas: Schemas,
}

impl Default for TranslationCache {
    fn default() -> Self {
        Self {
            kept: Mutex::new(LruCache::new(KEPT_MAX)),
            normalized: NormalizedQueries::default(),
            schemas: Schemas::default(),
        }
    }
}

/// Returns the key of a statement: its text, and the types that the client gave its parameters.
fn key(text: &str, given: &[Option<Type>]) -> String {
    let marks = given.iter().map(|is| is.map_or("-".to_owned(), Type::mark));
    format!("{text}\0{}", marks.collect::<String>())
}

impl TranslationCache {
    fn kept(&self) -> MutexGuard<'_, LruCache<String, Arc<TranslatedStatement>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the translation of a statement. `alone` is true if the session may see another
    /// schema than others do.
    ///
    /// # Errors
    /// The statement is refused, or not PostgreSQL's.
    pub(crate) fn get(
        &self,
        connection: &Connection,
        text: &str,
        given: &[Option<Type>],
        alone: bool,
    ) -> Result<Found, NotTranslated> {
        let found = |translated, was_kept| Found { translated, values: Vec::new(), was_kept };
        if alone {
            let made = TranslatedStatement::find(&SchemaTables::of(connection), text, given)?;
            return Ok(found(Arc::new(made), false));
        }
        if given.is_empty()
            && text.len() <= TEXT_MAX
            && let Some(found) = self.get_normalized(connection, text)
        {
            return Ok(found);
        }
        let kept = match given {
            [] => self.kept().get(text).cloned(),
            given => self.kept().get(key(text, given).as_str()).cloned(),
        };
        if let Some(kept) = kept {
            return Ok(found(kept, true));
        }
        let seen = seen(connection, false).map_err(unreadable)?;
        let tables = SchemaTables::kept(connection, seen, &self.schemas);
        let made = Arc::new(TranslatedStatement::find(&tables, text, given)?);
        if text.len() <= TEXT_MAX {
            let key = if given.is_empty() { text.to_owned() } else { key(text, given) };
            self.kept().insert(key, made.clone());
        }
        Ok(found(made, false))
    }

    /// Returns the translation of the text's normalized query with the values of its literals; none
    /// if the text has to be translated as it is.
    fn get_normalized(&self, connection: &Connection, text: &str) -> Option<Found> {
        let read = self.normalized.read(text)?;
        if let Some(kept) = self.normalized.get(text, &read) {
            let translated = kept?;
            let values = translated.values(text, &read.spans)?;
            return Some(Found { translated, values, was_kept: true });
        }
        let seen = seen(connection, false).ok()?;
        let tables = SchemaTables::kept(connection, seen, &self.schemas);
        let NormalizedText { key, spans } = read;
        let sample = Arc::new(Sample::new(text.as_bytes(), &spans));
        let made = match TranslatedStatement::find_normalized(&tables, text, key, &sample) {
            // The table may be made later, so nothing is kept of the normalized query.
            Err(NotTranslated::Refused(_)) => return None,
            Err(NotTranslated::Sqlite) => None,
            Ok(made) => made.map(Arc::new),
        };
        self.normalized.set(key, sample, made.clone());
        let translated = made?;
        let values = translated.values(text, &spans)?;
        Some(Found { translated, values, was_kept: false })
    }

    /// Forgets a translation that is no longer valid.
    pub(crate) fn forget(&self, translated: &TranslatedStatement) {
        if let Some(bound) = &translated.bound {
            return self.normalized.forget(&bound.key);
        }
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
        Self::make(tables, text, given, &[]).map(|(made, _)| made)
    }

    /// Translates a text with its literals as parameters; none if that cannot be done.
    fn find_normalized(
        tables: &SchemaTables<'_>,
        text: &str,
        key: Key,
        sample: &Arc<Sample>,
    ) -> Result<Option<Self>, NotTranslated> {
        let (made, literals) = Self::make(tables, text, &[], sample.spans())?;
        let Some(literals) = literals.filter(|_| made.fails.is_none()) else { return Ok(None) };
        // The text tells apart what differs in the types of its values alone, as below.
        let sql = format!("{} /*={}*/", made.sql, letters(literals.iter().map(BoundLiteral::of)));
        let bound = Some(Bound { key, sample: sample.clone(), literals });
        Ok(Some(Self { sql, bound, ..made }))
    }

    /// Translates a text. Also returns how the literals at `spans` are bound, if all are.
    fn make(
        tables: &SchemaTables<'_>,
        text: &str,
        given: &[Option<Type>],
        spans: &[Span],
    ) -> Result<(Self, Option<Vec<BoundLiteral>>), NotTranslated> {
        let seen = Mutex::new(tables.seen().into_iter().collect());
        let version = tables.version();
        let translation = translate(text, tables, given, spans);
        // Without it, a table that could not be read would be one that does not exist.
        tables.check().map_err(unreadable)?;
        let Translation {
            mut sql,
            columns,
            parameters,
            fails,
            literals,
            follow_ups,
            locks,
            target,
        } = translation?;
        // The text is made unique by its types: the statement cache must not mix up two
        // translations that differ in their types alone.
        if !columns.is_empty() {
            let types = columns.iter().map(|column| (column.is, column.limit));
            sql.push_str(&format!(" /*{}*/", letters(types)));
        }
        let (text, given) = (text.to_owned(), given.to_vec());
        let made = Self {
            sql,
            columns,
            parameters,
            fails,
            follow_ups,
            locks,
            target,
            serial: SERIAL.fetch_add(1, Relaxed),
            text,
            given,
            bound: None,
            version,
            seen,
        };
        Ok((made, literals))
    }

    /// Returns the values of a text's literals; none if one has none.
    fn values(&self, text: &str, spans: &[Span]) -> Option<Vec<Decoded<'static>>> {
        let literals = &self.bound.as_ref()?.literals;
        let value = |(literal, span): (&BoundLiteral, &Span)| {
            literal.value(span.class, span.of(text.as_bytes()))
        };
        literals.iter().zip(spans).map(value).collect()
    }

    /// Checks that each constant has a value, as PostgreSQL does before it runs a statement.
    ///
    /// # Errors
    /// The error of the first constant that has none.
    pub(crate) fn compute(&self) -> Result<(), Failure> {
        self.fails.clone().map_or(Ok(()), Err)
    }

    /// True if it needs the right to write, whatever its first statement of SQLite's does.
    pub(crate) fn writes(&self) -> bool {
        self.locks.is_some() || !self.follow_ups.is_empty()
    }

    /// True if it was made for a schema that one transaction or session alone saw.
    pub(crate) fn is_alone(&self) -> bool {
        self.version.is_none()
    }

    /// True if it takes the values that another translation of the text takes.
    fn takes_values_of(&self, other: &Self) -> bool {
        let types = |it: &Self| {
            let literals = it.bound.iter().flat_map(|bound| &bound.literals);
            let literals = literals.map(|literal| Some(literal.of().0));
            it.parameters.iter().copied().chain(literals).collect::<Vec<_>>()
        };
        let (own, others) = (types(self), types(other));
        let same = |(one, other): (&Option<Type>, &Option<Type>)| match (one, other) {
            (Some(one), Some(other)) => one.is_unchanged(*other),
            (one, other) => one == other,
        };
        own.len() == others.len() && own.iter().zip(&others).all(same)
    }

    /// Returns true if the schema has changed so that the statement would be translated otherwise.
    ///
    /// # Errors
    /// The schema could not be read.
    pub(crate) fn is_stale(&self, connection: &Connection) -> Result<bool, Error> {
        let now = seen(connection, self.version.is_none())?;
        let mut known = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_some_and(|now| known.contains(&now)) {
            return Ok(false);
        }
        let tables = Attributes::of(connection);
        // The version is that of the main file's schema, and temporary objects hide others of it.
        if self.version.is_some() && !tables.has_temporary() && self.version == tables.version() {
            let full = known.len() == SEEN_MAX;
            known.drain(..usize::from(full));
            known.extend(now);
            return Ok(false);
        }
        drop(known);
        let tables = SchemaTables::of(connection);
        let now = match &self.bound {
            Some(bound) => Self::find_normalized(&tables, &self.text, bound.key, &bound.sample),
            None => Self::find(&tables, &self.text, &self.given).map(Some),
        };
        tables.check()?;
        Ok(match now {
            Ok(Some(now)) => now.sql != self.sql || !now.takes_values_of(self),
            Ok(None) | Err(_) => true,
        })
    }
}

/// Returns a letter for each type, and its length behind it.
fn letters(types: impl Iterator<Item = (Type, Option<u32>)>) -> String {
    let letter = |(is, limit): (Type, Option<u32>)| {
        let limit = limit.map(|limit| limit.to_string()).unwrap_or_default();
        format!("{}{limit}", is.mark())
    };
    types.map(letter).collect()
}

/// Returns a connection's number and its count of schema changes; none if it has to be checked each
/// time.
fn seen(connection: &Connection, alone: bool) -> Result<Option<(u64, u64)>, Error> {
    if alone {
        return Ok(None);
    }
    Ok(Some((connection.number(), connection.schema_epoch()?)))
}

/// Makes the error for a text that was not translated, as the schema could not be read. The error
/// has no position in the text.
fn unreadable(error: Error) -> NotTranslated {
    Failure { position: 0, ..Failure::from(error) }.into()
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
