//! Compiles a client's text into a statement of SQLite's, translated or as it is.

use std::sync::Arc;

use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sqlite::{Connection, Statement};

use crate::decode::Decoded;
use crate::dialect::NotTranslated;
use crate::failure::{Failure, state};
use crate::text::Source;
use crate::translation_cache::{Found, TranslatedStatement, TranslationCache, moved};
use crate::types::Type;

use super::Stop;
use super::access::Access;

/// The first statement of a text, compiled.
pub(super) struct Compiled<'c> {
    /// None if the text has nothing but blanks and comments.
    pub(super) statement: Option<Statement<'c>>,
    pub(super) length: usize,
    /// The compiled text, where it is not the client's.
    pub(super) rewritten: Option<String>,
    /// The translation, if the text is PostgreSQL's dialect.
    pub(super) translated: Option<Arc<TranslatedStatement>>,
    /// The values of the text's literals, where they are parameters of the statement.
    pub(super) values: Vec<Decoded<'static>>,
}

/// A client's text.
pub(super) struct Whole<'a> {
    /// The text as SQLite would get it.
    pub(super) source: &'a Source,
    pub(super) client: &'a str,
    /// The types that the client gave its parameters.
    pub(super) given: &'a [Option<Type>],
}

/// Compiles the statement that begins at `at`. A statement that PostgreSQL's grammar accepts is
/// translated; SQLite gets any other one unchanged.
pub(super) fn compile<'c>(
    connection: &'c Connection,
    access: &Access,
    whole: &Whole<'_>,
    at: usize,
) -> Result<Compiled<'c>, Stop> {
    let made = first(connection, &access.pool.translations, access.sees_alone(), whole, at);
    made.map_err(|failure| access.not_compiled(connection, failure))
}

fn first<'c>(
    connection: &'c Connection,
    translations: &TranslationCache,
    alone: bool,
    whole: &Whole<'_>,
    at: usize,
) -> Result<Compiled<'c>, Failure> {
    let rest = whole.client.get(at..).unwrap_or_default();
    let length = first_length(rest);
    let text = rest.get(..length).unwrap_or_default();
    loop {
        let found = translations.get(connection, text, whole.given, alone);
        let Found { translated, values, was_kept } = match found {
            Ok(found) => found,
            Err(NotTranslated::Refused(failure)) => {
                let before = whole.client.get(..at).unwrap_or_default();
                return Err(moved(failure, before));
            }
            Err(NotTranslated::Sqlite) => {
                return as_it_is(connection, whole.source, whole.client, at);
            }
        };
        match connection.prepare(translated.sql.as_str()) {
            Ok(prepared) => {
                let (statement, rewritten) = (prepared.statement, Some(translated.sql.clone()));
                let translated = Some(translated);
                return Ok(Compiled { statement, length, rewritten, translated, values });
            }
            // The kept translation may be for a schema that is gone: it is made again once.
            Err(_) if was_kept => translations.forget(&translated),
            Err(error) => return Err(Failure { position: 0, ..Failure::of_sqlite(&error, b"") }),
        }
    }
}

/// Returns the length of the first statement of a text, with its semicolon.
fn first_length(text: &str) -> usize {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    while let Some(token) = lexer.significant() {
        if token.kind == TokenKind::Semicolon {
            return token.end as usize;
        }
    }
    text.len()
}

/// Compiles a text of SQLite's own dialect.
fn as_it_is<'c>(
    connection: &'c Connection,
    source: &Source,
    client: &str,
    at: usize,
) -> Result<Compiled<'c>, Failure> {
    let sql = utf8(source.bytes.get(at..).unwrap_or_default())?;
    let mut error = match connection.prepare(sql) {
        Ok(prepared) => {
            if let Some(refusal) = source.refusal(at, at + prepared.length) {
                return Err(refusal.clone());
            }
            let (statement, length) = (prepared.statement, prepared.length);
            return Ok(untranslated(statement, length, None));
        }
        Err(error) => error,
    };
    error.offset = error.offset.map(|offset| at + offset);
    let end = error.offset.map_or(client.len(), |offset| offset + 1);
    let refusal = source.refusal(at, end).cloned();
    Err(refusal.unwrap_or_else(|| Failure::of_sqlite(&error, client.as_bytes())))
}

fn untranslated(
    statement: Option<Statement<'_>>,
    length: usize,
    rewritten: Option<String>,
) -> Compiled<'_> {
    Compiled { statement, length, rewritten, translated: None, values: Vec::new() }
}

/// Returns where the first statement begins that is not empty.
pub(super) fn significant(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    loop {
        let token = lexer.significant()?;
        if token.kind != TokenKind::Semicolon {
            return Some(token.start as usize);
        }
    }
}

/// Returns the bytes as text, or error 22021.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

/// Refuses a statement with parameters that SQLite reads as names.
pub(super) fn check_names(statement: &Statement<'_>) -> Result<(), Failure> {
    let named = (1..=statement.parameter_count())
        .filter_map(|index| statement.parameter_name(index))
        .any(|name| !name.starts_with('?'));
    if named {
        return Err(Failure::new(state::SYNTAX, "parameters are written $1, $2, …"));
    }
    Ok(())
}

/// Refuses a text with more than one statement.
pub(super) fn only_one(rest: &str) -> Result<(), Failure> {
    if significant(rest).is_none() {
        return Ok(());
    }
    let message = "cannot insert multiple commands into a prepared statement";
    Err(Failure::new(state::SYNTAX, message))
}
