//! Databases that must be drained for a text: no other session may be connected to them.
//!
//! What: [`databases_to_drain`] names the databases to which no other session may be connected when
//! the statements of a text run.
//!
//! Why: DROP DATABASE, ALTER DATABASE … RENAME TO or SET TABLESPACE, and CREATE DATABASE (for its
//! template) wait five seconds for other sessions to end, and then fail with 55006
//! (`CountOtherDBBackends`). The idle sessions of a pooler do not end unless the pooler is told.
//!
//! What it does not do: read names written as `U&"…"`.

use std::borrow::Cow;

use crate::ahead::Ahead;
use crate::lex::{Lexer, TokenKind};
use crate::name::fold;

/// The template of a CREATE DATABASE that names none.
const USUAL_TEMPLATE: &[u8] = b"template1";

/// Iterates over the databases that must have no other connections for the statements of `text`, by
/// their names at the server.
pub fn databases_to_drain(text: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut lexer = Lexer::new(text, false);
    std::iter::from_fn(move || {
        while let Some(first) = lexer.significant() {
            let database = of_statement(first.of(text), Ahead::new(&lexer));
            if first.kind != TokenKind::Semicolon {
                skip_statement(&mut lexer);
            }
            if database.is_some() {
                return database;
            }
        }
        None
    })
}

fn skip_statement(lexer: &mut Lexer<'_>) {
    while lexer.significant().is_some_and(|token| token.kind != TokenKind::Semicolon) {}
}

/// Returns the database that must have no other connections for a statement; `ahead` stands after
/// its first word.
fn of_statement<'a>(first: &[u8], mut ahead: Ahead<'a>) -> Option<Cow<'a, [u8]>> {
    let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
    if !(is("drop") || is("alter") || is("create")) || !ahead.take_word(&["database"]) {
        return None;
    }
    if is("drop") && ahead.take_word(&["if"]) {
        ahead.take_word(&["exists"]);
    }
    let name = ahead.take_name()?;
    let name = fold(ahead.of(name));
    if is("drop") {
        return Some(name);
    }
    if is("alter") {
        let renames = ahead.take_word(&["rename"]) && ahead.take_word(&["to"]);
        let moves = ahead.take_word(&["set"]) && ahead.take_word(&["tablespace"]);
        return (renames || moves).then_some(name);
    }
    Some(template(ahead))
}

/// Returns the template among the options of CREATE DATABASE.
fn template(mut ahead: Ahead<'_>) -> Cow<'_, [u8]> {
    while ahead.peek().is_some() && !ahead.take_word(&["template"]) {
        ahead.take();
    }
    if ahead.peek().is_some_and(|token| ahead.of(token) == b"=") {
        ahead.take();
    }
    match ahead.take() {
        Some(token) if token.kind == TokenKind::Text => {
            let written = ahead.of(token);
            Cow::Borrowed(written.get(1..written.len() - 1).unwrap_or_default())
        }
        Some(token) if ahead.of(token).eq_ignore_ascii_case(b"default") => {
            Cow::Borrowed(USUAL_TEMPLATE)
        }
        Some(token) => fold(ahead.of(token)),
        None => Cow::Borrowed(USUAL_TEMPLATE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_that_must_be_left() {
        let rows: &[(&str, &[&str])] = &[
            ("DROP DATABASE app", &["app"]),
            ("/* x */ drop database if exists \"My App\" with (force);", &["My App"]),
            ("DROP DATABASE App (FORCE)", &["app"]),
            ("select 1; alter database a rename to b", &["a"]),
            ("alter database a set tablespace fast", &["a"]),
            ("alter database a set work_mem = 1; drop database b", &["b"]),
            ("create database b", &["template1"]),
            ("create database b with owner = me template = A encoding 'UTF8'", &["a"]),
            ("create database b template 'A'", &["A"]),
            ("create database b template default", &["template1"]),
            ("drop table database; select 'drop database x'", &[]),
            ("drop database", &[]),
            ("drop database U&\"a\"", &[]),
        ];
        for (text, databases) in rows {
            let found: Vec<_> = databases_to_drain(text.as_bytes()).collect();
            let found: Vec<_> = found.iter().map(|name| String::from_utf8_lossy(name)).collect();
            assert_eq!(found, *databases, "{text}");
            let says = crate::scan(text.as_bytes()).traits.contains(crate::Traits::DRAINS);
            assert!(says || databases.is_empty(), "{text}");
        }
    }
}
