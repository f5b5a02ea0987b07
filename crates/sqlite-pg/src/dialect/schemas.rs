//! Schemas: the name of a schema is a prefix of the names of its tables.
//!
//! `app.t` is SQLite's table "app.t". CREATE SCHEMA makes a table without rows, "app.", which says
//! that the schema is there. Before a text is parsed, a name with a schema in front becomes one
//! name; the translation then knows the table by this name, and by its own name as a qualifier.

use refrain_grammar::protobuf::{CreateSchemaStmt, DropBehavior, DropStmt};
use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::failure::Failure;
use crate::sql_text::name_of;

use super::edits::NOTHING;
use super::value::name;
use super::{Catalog, Translated, Translator, hints, string, text_of};

/// The comment that makes a table a schema.
pub(crate) const MARK: &str = "/*refrain schema*/";

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

impl Translator<'_> {
    /// Returns the schema of a table and a dot, and the name without them.
    pub(super) fn split<'n>(&self, called: &'n str) -> (&'n str, &'n str) {
        let schema = called.split_once('.').map(|(schema, _)| schema);
        match schema.filter(|schema| self.catalog.schemas().iter().any(|known| known == schema)) {
            Some(schema) => called.split_at(schema.len() + 1),
            None => ("", called),
        }
    }

    /// Returns a name in the schema of a table.
    pub(super) fn beside(&self, table: &str, called: &str) -> String {
        let (schema, _) = self.split(table);
        match called.starts_with(schema) {
            true => called.to_owned(),
            false => format!("{schema}{called}"),
        }
    }

    pub(super) fn create_schema(&mut self, it: &CreateSchemaStmt) -> Translated<String> {
        if !it.schema_elts.is_empty() || it.schemaname.is_empty() {
            return Err(hints::refuse("CREATE SCHEMA").into());
        }
        let called = &it.schemaname;
        let known = ["public", "pg_catalog", "information_schema"].contains(&called.as_str());
        if known || self.catalog.schemas().contains(called) {
            if it.if_not_exists {
                return Ok(NOTHING.to_owned());
            }
            let message = format!("schema \"{called}\" already exists");
            return Err(Failure::new("42P06", message).into());
        }
        if called.starts_with("pg_") {
            let message = format!("unacceptable schema name \"{called}\"");
            let detail = "The prefix \"pg_\" is reserved for system schemas.";
            return Err(Failure::new("42939", message).detail(detail).into());
        }
        let refused = called.contains('.') || ["main", "temp"].contains(&called.as_str());
        if refused || self.catalog.is_taken(&format!("{called}.")) {
            return Err(hints::refuse("CREATE SCHEMA").into());
        }
        Ok(format!("CREATE TABLE {} (\"schema\" {MARK} INT)", name(&format!("{called}."))))
    }

    pub(super) fn drop_schema(&mut self, drop: &DropStmt) -> Translated<String> {
        let cascade = drop.behavior() == DropBehavior::DropCascade;
        let mut parts = Vec::new();
        for called in drop.objects.iter().filter_map(string) {
            if !self.catalog.schemas().contains(&called) {
                if ["public", "pg_catalog", "information_schema"].contains(&called.as_str()) {
                    return Err(hints::refuse("CREATE SCHEMA").into());
                }
                if drop.missing_ok {
                    continue;
                }
                let message = format!("schema \"{called}\" does not exist");
                return Err(Failure::new("3F000", message).into());
            }
            let inside = self.catalog.inside(&called);
            if !inside.is_empty() && !cascade {
                let message =
                    format!("cannot drop schema {called} because other objects depend on it");
                let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                return Err(Failure::new("2BP01", message).hint(hint).into());
            }
            for inside in self.dependents_first(inside) {
                let word = match self.catalog.definition(&inside) {
                    Some(sql) if crate::sequences::Sequence::read(&sql).is_some() => "SEQUENCE",
                    Some(_) => "TABLE",
                    None => "VIEW",
                };
                parts.push(format!("DROP {word} IF EXISTS {} CASCADE", name(&inside)));
            }
            parts.push(format!("DROP TABLE {}", name(&format!("{called}."))));
        }
        match &parts[..] {
            [] => Ok(NOTHING.to_owned()),
            _ => self.sequence(parts),
        }
    }
}
