//! The tables that a text names, and the types of their columns.

use std::cell::RefCell;

use refrain_sql::lex::{Token, TokenKind};

use crate::types::Type;

use super::ENDS;

/// The facts about tables that inference needs.
pub(crate) trait ColumnLookup {
    /// Returns the columns of a table or view in order, with their declared types. The list is
    /// empty if it does not exist.
    fn columns(&self, table: &str) -> Vec<(String, Option<Type>)>;
}

/// Returns a name as SQLite compares it: without quotes, in lower case.
pub(crate) fn plain_name(written: &[u8]) -> String {
    let text = String::from_utf8_lossy(written);
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inside {
        Some(inside) => inside.replace("\"\"", "\"").to_ascii_lowercase(),
        None => text.to_ascii_lowercase(),
    }
}

/// A table, by its name and alias in the text.
struct NamedTable {
    table: String,
    alias: Option<String>,
}

/// The columns of a table.
type Columns = Vec<(String, Option<Type>)>;

/// The tables of a text.
pub(super) struct NamedTables<'a> {
    named: Vec<NamedTable>,
    schema: &'a dyn ColumnLookup,
    known: RefCell<Vec<(String, Columns)>>,
}

impl<'a> NamedTables<'a> {
    /// Finds the names in the places of tables, in any subquery.
    pub(super) fn find(text: &[u8], tokens: &[Token], schema: &'a dyn ColumnLookup) -> Self {
        let mut named = Vec::new();
        let mut walk = Walk { text, tokens, at: 0 };
        while walk.at < tokens.len() {
            let into = walk.is_word(&["into", "update"]);
            let from = walk.is_word(&["from", "join"]);
            walk.at += 1;
            if into {
                while walk.is_word(&["or", "rollback", "abort", "replace", "fail", "ignore"]) {
                    walk.at += 1;
                }
            }
            if into || from {
                walk.tables(&mut named);
            }
        }
        Self { named, schema, known: RefCell::new(Vec::new()) }
    }

    /// Returns the type of a column, of the table called `qualifier` or of any.
    pub(super) fn column(&self, qualifier: Option<&str>, name: &str) -> Option<Type> {
        let called = |named: &&NamedTable| match (qualifier, &named.alias) {
            (None, _) => true,
            // In ON CONFLICT, `excluded` is the row of the INSERT.
            (Some("excluded"), _) => true,
            (Some(wanted), Some(alias)) => alias == wanted || named.table == wanted,
            (Some(wanted), None) => named.table == wanted,
        };
        let mut tables = self.named.iter().filter(called);
        tables.find_map(|named| self.of(&named.table, name)).flatten()
    }

    /// Returns the types of a table's columns in order.
    pub(super) fn columns(&self, table: &str) -> Vec<Option<Type>> {
        self.with(table, |columns| columns.iter().map(|(_, is)| *is).collect())
    }

    /// Returns the types of the table's columns, if the text names one table.
    pub(super) fn only(&self) -> Vec<Option<Type>> {
        match &self.named[..] {
            [only] => self.columns(&only.table),
            _ => Vec::new(),
        }
    }

    fn of(&self, table: &str, column: &str) -> Option<Option<Type>> {
        let is_it = |(name, _): &&(String, Option<Type>)| name.eq_ignore_ascii_case(column);
        let found = self.with(table, |columns| columns.iter().find(is_it).map(|(_, is)| *is));
        let rowid = matches!(column, "rowid" | "oid" | "_rowid_");
        found.or_else(|| {
            let is_table = self.with(table, |columns| !columns.is_empty());
            (rowid && is_table).then_some(Some(Type::Int8))
        })
    }

    fn with<R>(&self, table: &str, read: impl FnOnce(&[(String, Option<Type>)]) -> R) -> R {
        let mut known = self.known.borrow_mut();
        if let Some((_, columns)) = known.iter().find(|(name, _)| name == table) {
            return read(columns);
        }
        known.push((table.to_owned(), self.schema.columns(table)));
        read(known.last().map_or(&[], |(_, columns)| columns))
    }
}

struct Walk<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
    at: usize,
}

impl Walk<'_> {
    fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn bytes(&self) -> &[u8] {
        self.tokens.get(self.at).map_or(b"", |token| token.of(self.text))
    }

    fn is_word(&self, words: &[&str]) -> bool {
        self.kind() == Some(TokenKind::Word)
            && words.iter().any(|word| self.bytes().eq_ignore_ascii_case(word.as_bytes()))
    }

    fn name(&mut self) -> Option<String> {
        let is_name = matches!(self.kind(), Some(TokenKind::Word | TokenKind::Quoted));
        if !is_name || self.is_word(ENDS) {
            return None;
        }
        let name = plain_name(self.bytes());
        self.at += 1;
        Some(name)
    }

    /// Reads table names with commas between them.
    fn tables(&mut self, named: &mut Vec<NamedTable>) {
        while let Some(mut table) = self.name() {
            if self.kind() == Some(TokenKind::Dot) {
                self.at += 1;
                table = self.name().unwrap_or_default();
            }
            if self.is_word(&["as"]) {
                self.at += 1;
            }
            let alias = self.name();
            named.push(NamedTable { table, alias });
            if self.kind() != Some(TokenKind::Comma) {
                return;
            }
            self.at += 1;
        }
    }
}
