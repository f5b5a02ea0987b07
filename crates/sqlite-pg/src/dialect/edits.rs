//! Changes of a table's CREATE statement, for what SQLite has no ALTER TABLE for.
//!
//! Such a change adds a CHECK that SQLite knows how to add ([`carrier`]). When that has run, the
//! table's definition in SQLite's schema becomes the new one ([`SchemaEdit`]), in the same
//! transaction, and SQLite drops the CHECK again: so it reads the new definition, and reads the old
//! one if the transaction is rolled back. Only changes are made so that leave the stored rows as
//! they are.

use std::ops::Range;

use refrain_sql::lex::{Lexer, TokenKind};

use super::value::name;

/// The new definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaEdit {
    pub(crate) table: String,
    /// Its CREATE statement, still with the CHECK that carried the change.
    pub(crate) definition: String,
    /// The statement that drops this CHECK.
    pub(crate) end: String,
    /// The name of a foreign key that its rows must satisfy.
    pub(crate) foreign_key: Option<String>,
}

/// The CHECK that carries a change.
const CARRIER: &str = "CONSTRAINT refrain_edit CHECK (1)";

/// Returns the statement that begins a change of a table.
pub(super) fn carrier(table: &str) -> String {
    format!("ALTER TABLE {table} ADD {CARRIER}")
}

impl SchemaEdit {
    /// Makes the change of a table to this definition; `sql` is the name of the table as SQL.
    pub(super) fn to(
        definition: &str,
        table: &str,
        sql: &str,
        foreign_key: Option<String>,
    ) -> Option<Self> {
        Some(Self {
            table: table.to_owned(),
            definition: with_constraint(definition, CARRIER)?,
            end: format!("ALTER TABLE {sql} DROP CONSTRAINT refrain_edit"),
            foreign_key,
        })
    }
}

/// Returns the places of the columns and constraints in the parentheses of a CREATE TABLE.
fn elements(sql: &str) -> Option<Vec<Range<usize>>> {
    let mut lexer = Lexer::new(sql.as_bytes(), false);
    let (mut depth, mut start, mut all) = (0_usize, 0, Vec::new());
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Open => {
                depth += 1;
                if depth == 1 {
                    start = token.end as usize;
                }
            }
            TokenKind::Close if depth == 1 => {
                all.push(start..token.start as usize);
                return Some(all);
            }
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Comma if depth == 1 => {
                all.push(start..token.start as usize);
                start = token.end as usize;
            }
            _ => {}
        }
    }
    None
}

/// Adds a constraint.
pub(super) fn with_constraint(sql: &str, constraint: &str) -> Option<String> {
    let end = elements(sql)?.last()?.end;
    Some(format!("{}, {constraint}{}", sql.get(..end)?, sql.get(end..)?))
}

/// Takes away the constraint of the table that has this name, unless it is a key.
pub(super) fn without_constraint(sql: &str, called: &str) -> Option<String> {
    let head = format!("CONSTRAINT {} ", name(called));
    let all = elements(sql)?;
    let found = all.iter().find(|place| {
        let rest = sql.get((*place).clone()).and_then(|text| text.trim().strip_prefix(&head));
        rest.is_some_and(|rest| rest.starts_with("FOREIGN KEY") || rest.starts_with("CHECK"))
    })?;
    // There is a comma in front of it: a table begins with a column.
    let comma = sql.get(..found.start)?.rfind(',')?;
    Some(format!("{}{}", sql.get(..comma)?, sql.get(found.end..)?))
}

/// Replaces a part of a column's definition.
pub(super) fn with_column(sql: &str, column: &str, from: &str, to: &str) -> Option<String> {
    let head = format!("{} ", name(column));
    let place = elements(sql)?.into_iter().find(|place| {
        sql.get(place.clone()).is_some_and(|text| text.trim_start().starts_with(&head))
    })?;
    let text = sql.get(place.clone())?;
    let (before, after) = text.split_once(from)?;
    if after.contains(from) {
        return None;
    }
    Some(format!("{}{before}{to}{after}{}", sql.get(..place.start)?, sql.get(place.end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_changed_in_its_place() {
        let sql = "CREATE TABLE \"t\" (\"a\" INTEGER, \"b\" VARCHAR(5) DEFAULT ('a,(') NOT NULL)";
        let key = "CONSTRAINT \"k\" FOREIGN KEY (\"a\") REFERENCES \"u\"";
        let with = with_constraint(sql, key).expect("a definition");
        assert!(with.ends_with(&format!(" NOT NULL, {key})")), "{with}");
        assert_eq!(without_constraint(&with, "k").as_deref(), Some(sql));
        assert_eq!(without_constraint(&with, "x"), None);
        let wide = with_column(sql, "b", " VARCHAR(5)", " VARCHAR(9)").expect("a definition");
        assert_eq!(wide, sql.replace("(5)", "(9)"));
        assert_eq!(with_column(sql, "a", " VARCHAR(5)", ""), None);
        let plain = with_column(sql, "b", " DEFAULT ('a,(')", "").expect("a definition");
        assert!(plain.ends_with("\"b\" VARCHAR(5) NOT NULL)"), "{plain}");
    }
}
