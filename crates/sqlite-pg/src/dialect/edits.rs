//! Changes of a table's CREATE statement, for what SQLite has no ALTER TABLE for.
//!
//! Such a change adds a CHECK that SQLite knows how to add (`CARRIER`). Then the table's definition
//! in SQLite's schema becomes the new one ([`SchemaEdit`]), in the same transaction, and SQLite
//! drops the CHECK again: so it reads the new definition, and reads the old one if the transaction
//! is rolled back. Only changes are made so that leave the stored rows as they are.

use std::ops::Range;

use refrain_grammar::protobuf::RangeVar;
use refrain_sql::lex::{Lexer, TokenKind};

use crate::comments;
use crate::failure::Failure;
use crate::standard;

use super::basis::Basis;
use super::relabel::Relabel;
use super::scope::Catalog;
use super::value::name;
use super::{Translated, hints};

/// A statement that does nothing.
pub(super) const NOTHING: &str = "SELECT 1 FROM sqlite_schema WHERE 0";

/// A part of a statement that runs behind SQLite's first statement, in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowUp {
    /// A table gets a new definition.
    Edit(Box<SchemaEdit>),
    /// A statement of PostgreSQL's dialect.
    Statement(String),
    /// A statement of SQLite's, which no client may send.
    Sqlite(String),
}

/// A new definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaEdit {
    pub(crate) table: String,
    pub(crate) change: SchemaChange,
    /// The statement that adds the CHECK which carries the change.
    pub(crate) begin: String,
    /// The statement that drops this CHECK.
    pub(crate) end: String,
    /// The name of a foreign key that its rows must satisfy.
    pub(crate) foreign_key: Option<String>,
    /// The error if the definition has no place for the change.
    pub(crate) refusal: Failure,
    /// New labels of an enum, for all definitions that have the old ones.
    pub(crate) relabel: Option<Relabel>,
}

/// A change of a CREATE TABLE statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaChange {
    /// A constraint of the table, as SQL.
    Add(String),
    /// A primary key of these columns, under a name.
    AddKey { called: String, columns: Vec<String> },
    /// A constraint that is not the row's number, by its name in PostgreSQL.
    Drop { table: String, constraint: String },
    /// A part of a column's definition becomes another.
    Column { column: String, from: Vec<String>, to: String },
    /// The table or a column gets another comment; an empty text stands for none.
    Comment { column: Option<String>, text: String },
    /// Each constraint gets its name in the definition.
    Names { table: String },
    /// A column gets a further part at its end.
    Append { column: String, part: String },
}

impl SchemaChange {
    /// Returns the CREATE statement with the change; none if it has no place for the change.
    pub(crate) fn apply(&self, sql: &str) -> Option<String> {
        match self {
            Self::Add(constraint) => with_constraint(sql, constraint),
            Self::AddKey { called, columns } => {
                let listed: Vec<String> = columns.iter().map(|column| name(column)).collect();
                let listed = listed.join(", ");
                let constraint = format!("CONSTRAINT {} PRIMARY KEY ({listed})", name(called));
                let [only] = &columns[..] else { return with_constraint(sql, &constraint) };
                // SQLite would take a key of this type for the row's number.
                let place = column_of(sql, only)?;
                let (head, rest) = (name(only), sql.get(place.clone())?.trim_start());
                let behind = rest.get(head.len() + 1..)?;
                let is_integer =
                    behind.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("integer"))
                        && behind.get(7..8).is_none_or(|next| next == " ");
                let sql = match is_integer {
                    true => {
                        let (before, after) = (sql.get(..place.start)?, sql.get(place.end..)?);
                        format!("{before} {head} INT{}{after}", behind.get(7..)?)
                    }
                    false => sql.to_owned(),
                };
                let made = with_constraint(&sql, &constraint);
                made.filter(|made| standard::row_number(made).is_none())
            }
            Self::Drop { table, constraint } => standard::without(sql, table, constraint),
            Self::Column { column, from, to } => {
                from.iter().find_map(|from| with_column(sql, column, from, to))
            }
            Self::Comment { column, text } => {
                let place = match column {
                    Some(column) => column_of(sql, column)?,
                    None => elements(sql)?.last()?.end + 1..sql.len(),
                };
                let old = sql.get(place.clone())?;
                let plain = match old.split_once(comments::COMMENT) {
                    Some((before, rest)) => {
                        format!("{}{}", before.trim_end(), rest.split_once("*/")?.1)
                    }
                    None => old.trim_end().to_owned(),
                };
                let made = if text.is_empty() { String::new() } else { comments::comment(text) };
                Some(format!("{}{plain}{made}{}", sql.get(..place.start)?, sql.get(place.end..)?))
            }
            Self::Names { table } => standard::names::with_names(sql, table),
            Self::Append { column, part } => {
                let place = column_of(sql, column)?;
                let text = sql.get(place.clone())?.trim_end();
                // A comment would take in the new part.
                let plain = !text.contains("--");
                let end = place.start + text.len();
                plain.then(|| format!("{}{part}{}", &sql[..end], &sql[end..]))
            }
        }
    }
}

/// The CHECK that carries a change.
const CARRIER: &str = "refrain_edit";

impl SchemaEdit {
    /// Makes a change of a table; `sql` is the name of the table as SQL.
    pub(super) fn of(
        table: &str,
        sql: &str,
        change: SchemaChange,
        foreign_key: Option<String>,
        refusal: Failure,
    ) -> Self {
        Self {
            table: table.to_owned(),
            change,
            begin: format!("ALTER TABLE {sql} ADD CONSTRAINT {CARRIER} CHECK (1)"),
            end: format!("ALTER TABLE {sql} DROP CONSTRAINT {CARRIER}"),
            foreign_key,
            refusal,
            relabel: None,
        }
    }
}

/// The translation of a definition that needs the names of no query: it changes definitions, drops
/// what is there, or makes what has no expressions.
pub(super) struct Edits<'a> {
    pub(super) basis: Basis<'a>,
    /// The parts that run behind the statement, in its transaction.
    pub(super) follow_ups: Vec<FollowUp>,
}

impl Edits<'_> {
    /// Makes a statement that gives a table a new definition.
    pub(super) fn edit(
        &mut self,
        relation: &RangeVar,
        foreign_key: Option<String>,
        change: SchemaChange,
        form: &str,
    ) -> Translated<String> {
        let (table, _) = self.basis.table(relation)?;
        let refusal = hints::refuse(form);
        is_permanent(self.basis.catalog, &relation.relname, &refusal)?;
        let old = self.basis.catalog.definition(&relation.relname);
        old.and_then(|old| change.apply(&old)).ok_or_else(|| refusal.clone())?;
        let edit = SchemaEdit::of(&relation.relname, &table, change, foreign_key, refusal);
        self.follow_ups.push(FollowUp::Edit(Box::new(edit)));
        Ok(format!("DELETE FROM {table} WHERE 0"))
    }
}

/// Refuses a change of a temporary table, which may hide a permanent one of its name.
pub(super) fn is_permanent(
    catalog: &dyn Catalog,
    table: &str,
    refusal: &Failure,
) -> Translated<()> {
    match catalog.table(Some("temp"), table) {
        Some(_) => Err(refusal.clone().into()),
        None => Ok(()),
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
fn with_constraint(sql: &str, constraint: &str) -> Option<String> {
    let end = elements(sql)?.last()?.end;
    Some(format!("{}, {constraint}{}", sql.get(..end)?, sql.get(end..)?))
}

/// Replaces a part of a column's definition.
fn with_column(sql: &str, column: &str, from: &str, to: &str) -> Option<String> {
    let place = column_of(sql, column)?;
    let text = sql.get(place.clone())?;
    let (before, after) = text.split_once(from)?;
    if after.contains(from) {
        return None;
    }
    Some(format!("{}{before}{to}{after}{}", sql.get(..place.start)?, sql.get(place.end..)?))
}

/// Returns the place of a column's definition.
fn column_of(sql: &str, column: &str) -> Option<Range<usize>> {
    let head = format!("{} ", name(column));
    elements(sql)?.into_iter().find(|place| {
        sql.get(place.clone()).is_some_and(|text| text.trim_start().starts_with(&head))
    })
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
        let drop = |constraint: &str| SchemaChange::Drop {
            table: "t".to_owned(),
            constraint: constraint.to_owned(),
        };
        assert_eq!(drop("k").apply(&with).as_deref(), Some(sql));
        assert_eq!(drop("x").apply(&with), None);
        let wide = with_column(sql, "b", " VARCHAR(5)", " VARCHAR(9)").expect("a definition");
        assert_eq!(wide, sql.replace("(5)", "(9)"));
        assert_eq!(with_column(sql, "a", " VARCHAR(5)", ""), None);
        let plain = with_column(sql, "b", " DEFAULT ('a,(')", "").expect("a definition");
        assert!(plain.ends_with("\"b\" VARCHAR(5) NOT NULL)"), "{plain}");
        let column = |column: &str| SchemaChange::Append {
            column: column.to_owned(),
            part: " DEFAULT (7)".to_owned(),
        };
        let seven = column("a").apply(sql).expect("a definition");
        assert_eq!(seven, sql.replace("INTEGER,", "INTEGER DEFAULT (7),"));
        assert_eq!(column("c").apply(sql), None);
    }
}
