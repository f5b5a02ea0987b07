//! From a text to a statement of SQLite's: what it means, or as it is.

use std::sync::Arc;

use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sqlite::{Connection, Statement};

use crate::catalog;
use crate::dialect::NotTranslated;
use crate::failure::Failure;
use crate::text::Source;
use crate::translation_cache::{TranslatedStatement, TranslationCache, moved};
use crate::types::Type;

/// The first statement of a text, compiled.
pub(super) struct Compiled<'c> {
    /// None if there is nothing but blanks and comments.
    pub(super) statement: Option<Statement<'c>>,
    pub(super) length: usize,
    /// What was compiled, where it is not the client's text.
    pub(super) rewritten: Option<String>,
    /// What the text means, where it is PostgreSQL's.
    pub(super) translated: Option<Arc<TranslatedStatement>>,
}

/// A text as it came.
pub(super) struct Whole<'a> {
    /// What SQLite would get.
    pub(super) source: &'a Source,
    pub(super) client: &'a str,
    /// What the client said that its parameters are.
    pub(super) given: &'a [Option<Type>],
}

/// Compiles the statement that begins at `at` in a text: what PostgreSQL's grammar takes is translated, and SQLite gets the
/// rest as it is. `alone` says that the session may see another schema than others.
pub(super) fn compile<'c>(
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
        let (translated, was_kept) = match translations.get(connection, text, whole.given, alone) {
            Ok(found) => found,
            Err(NotTranslated::Refused(failure)) => {
                let before = whole.client.get(..at).unwrap_or_default();
                return Err(moved(failure, before));
            }
            Err(NotTranslated::Sqlite | NotTranslated::Catalog) => {
                return as_it_is(connection, whole.source, whole.client, at);
            }
        };
        match connection.prepare(translated.sql.as_str()) {
            Ok(prepared) => {
                let (statement, rewritten) = (prepared.statement, Some(translated.sql.clone()));
                return Ok(Compiled { statement, length, rewritten, translated: Some(translated) });
            }
            // The schema that it was made for is gone, maybe.
            Err(_) if was_kept => translations.forget(&translated),
            Err(error) => return Err(Failure { position: 0, ..Failure::of_sqlite(&error, b"") }),
        }
    }
}

/// How long the first statement of a text is, with its semicolon.
fn first_length(text: &str) -> usize {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    while let Some(token) = lexer.significant() {
        if token.kind == TokenKind::Semicolon {
            return token.end as usize;
        }
    }
    text.len()
}

/// Compiles what is SQLite's own. What does not compile and speaks of PostgreSQL's catalog is tried again with stand-ins for
/// that.
fn as_it_is<'c>(
    connection: &'c Connection,
    source: &Source,
    client: &str,
    at: usize,
) -> Result<Compiled<'c>, Failure> {
    let sql = utf8(source.bytes.get(at..).unwrap_or_default())?;
    let mut error = match connection.prepare(sql) {
        Ok(prepared) => {
            if let Some(trouble) = source.trouble(at, at + prepared.length) {
                return Err(trouble.clone());
            }
            let (statement, length) = (prepared.statement, prepared.length);
            return Ok(Compiled { statement, length, rewritten: None, translated: None });
        }
        Err(error) => error,
    };
    if let Some((rewritten, length)) = catalog::rewrite(client.get(at..).unwrap_or_default()) {
        let empty = || catalog::nothing(client.get(at..).unwrap_or_default());
        let tries = std::iter::once(rewritten).chain(std::iter::once_with(empty).flatten());
        for sql in tries {
            if let Ok(prepared) = connection.prepare(&*sql) {
                let statement = prepared.statement;
                let rewritten = Some(sql);
                return Ok(Compiled { statement, length, rewritten, translated: None });
            }
        }
    }
    error.offset = error.offset.map(|offset| at + offset);
    let end = error.offset.map_or(client.len(), |offset| offset + 1);
    let trouble = source.trouble(at, end).cloned();
    Err(trouble.unwrap_or_else(|| Failure::of_sqlite(&error, client.as_bytes())))
}

/// Where the first statement begins that is not empty.
pub(super) fn significant(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    loop {
        let token = lexer.significant()?;
        if token.kind != TokenKind::Semicolon {
            return Some(token.start as usize);
        }
    }
}

/// A text of the client's.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}
