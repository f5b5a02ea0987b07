//! The names of relations, which have the names of their schemas in front.
//!
//! `app.t` is SQLite's table "app.t". Before a text is parsed, a name with a schema in front
//! becomes one name; the translation then knows the table by this name, and by its own name as a
//! qualifier.

use refrain_grammar::protobuf::RangeVar;
use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::failure::Failure;
use crate::sql_text::{name_of, object_name};

use super::value::name;
use super::{Catalog, Translated, text_of};

/// Words with which a statement begins that may name a table that is not there.
const DEFINITIONS: &[&str] = &["create", "drop", "alter", "comment", "truncate"];

/// Joins the names of schemas and of what is in them. None if the text has none.
pub(super) fn joined(text: &str, catalog: &dyn Catalog) -> Option<String> {
    if !text.contains('.') {
        return None;
    }
    let schemas = catalog.schemas();
    if schemas.is_empty() {
        return None;
    }
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let tokens: Vec<Token> = std::iter::from_fn(|| lexer.significant()).collect();
    let first = tokens.first().map(|token| text_of(text, token).to_ascii_lowercase());
    let defines = first.is_some_and(|first| DEFINITIONS.contains(&first.as_str()));
    let is_name = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
    let called = |token: &Token| match token.kind {
        TokenKind::Word => text_of(text, token).to_lowercase(),
        _ => name_of(text, token),
    };
    let (mut made, mut at, mut place) = (String::new(), 0, 0);
    while let Some(token) = tokens.get(place) {
        place += 1;
        let behind_dot = place > 1 && tokens[place - 2].kind == TokenKind::Dot;
        let [dot, inside, ..] = &tokens[place..] else { continue };
        if behind_dot || !is_name(token) || dot.kind != TokenKind::Dot || !is_name(inside) {
            continue;
        }
        let schema = called(token);
        let full = format!("{schema}.{}", called(inside));
        // Otherwise the first name may be that of a table, and the second that of its column.
        if schemas.contains(&schema) && (defines || catalog.is_taken(&full)) {
            made.push_str(text.get(at..token.start as usize)?);
            made.push_str(&name(&full));
            at = inside.end as usize;
            place += 2;
        }
    }
    (at > 0).then(|| format!("{made}{}", text.get(at..).unwrap_or_default()))
}

/// Returns the schema of a table and a dot, and the name without them.
pub(super) fn split<'n>(catalog: &dyn Catalog, called: &'n str) -> (&'n str, &'n str) {
    let schema = called.split_once('.').map(|(schema, _)| schema);
    match schema.filter(|schema| catalog.schemas().iter().any(|known| known == schema)) {
        Some(schema) => called.split_at(schema.len() + 1),
        None => ("", called),
    }
}

/// Returns a name in the schema of a table.
pub(super) fn beside(catalog: &dyn Catalog, table: &str, called: &str) -> String {
    let (schema, _) = split(catalog, table);
    match called.starts_with(schema) {
        true => called.to_owned(),
        false => format!("{schema}{called}"),
    }
}

/// Returns SQLite's schema for one that a text names; `None` for the empty name.
///
/// # Errors
/// 3F000 for any other schema: the tables of those have them in front of their names.
pub(super) fn of_sqlite(schema: &str) -> Result<Option<&'static str>, Failure> {
    match schema {
        "" => Ok(None),
        "public" | "main" => Ok(Some("main")),
        "temp" | "pg_temp" => Ok(Some("temp")),
        schema => Err(missing(schema)),
    }
}

/// Returns 3F000: there is no such schema.
pub(super) fn missing(schema: &str) -> Failure {
    let message = format!("schema \"{schema}\" does not exist");
    Failure::new("3F000", message).hint("CREATE SCHEMA makes a schema")
}

/// Returns the name of a relation that is to be made.
pub(super) fn new_name(relation: &RangeVar) -> Translated<String> {
    match of_sqlite(&relation.schemaname)? {
        Some("temp") => Err(missing(&relation.schemaname).into()),
        _ => Ok(relation.relname.clone()),
    }
}

/// Makes a name that is none in the file yet of those of a table and of columns
/// (`ChooseRelationName` of the server): a number behind the ending makes it another.
pub(super) fn free_name(catalog: &dyn Catalog, table: &str, columns: &str, ending: &str) -> String {
    let mut called = object_name(table, columns, ending);
    let mut number = 0;
    while !is_free(catalog, &called) {
        number += 1;
        called = object_name(table, columns, &format!("{ending}{number}"));
    }
    called
}

/// True if neither an object of the file nor the index of a constraint has this name.
pub(super) fn is_free(catalog: &dyn Catalog, called: &str) -> bool {
    !catalog.is_taken(called) && catalog.constrained(called).is_none()
}

/// Splits the SQL of a table's name: SQLite wants the schema in front of an index alone.
pub(super) fn of_index(table: &str) -> (&str, &str) {
    let schema = ["temp.", "main."].into_iter().find(|schema| table.starts_with(schema));
    table.split_at(schema.map_or(0, str::len))
}

/// Returns the SQL of an object's name. SQLite looks for a plain name among temporary objects
/// first.
pub(super) fn qualified(catalog: &dyn Catalog, schema: Option<&str>, called: &str) -> String {
    match schema {
        Some("main") if catalog.table(Some("temp"), called).is_none() => name(called),
        Some(schema) => format!("{schema}.{}", name(called)),
        None => name(called),
    }
}
