//! Stand-ins for PostgreSQL's catalog, for psql's `\d` and the queries that drivers send when they
//! connect.
//!
//! A statement that SQLite does not compile and that reads the catalog is rewritten by a few rules
//! on tokens. In front of it stands a common table expression for each table of the catalog that it
//! names. So nothing is created, no connection is changed, and a statement that SQLite understands
//! stays as it is.
//!
//! A query of tables that are always empty here, with forms that have no counterpart (arrays), gets
//! an empty answer with the right number of columns.

mod tables;

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::tokens::unescaped;
use crate::types::Type;

use tables::{EMPTY, TABLES};

/// Functions that PostgreSQL calls without parentheses.
const BARE: &[&str] =
    &["current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"];

/// Functions that become a subquery of a stand-in, with their first argument as the OID.
const LOOKUPS: &[(&str, &str, &str)] = &[
    ("pg_get_indexdef", "refrain_index", "definition"),
    ("pg_get_viewdef", "refrain_view", "definition"),
];

/// Rewrites the first statement of a text for SQLite. Returns the result, and the length of the
/// statement in the text; `None` if the statement does not read the catalog, or cannot be
/// rewritten.
pub(crate) fn rewrite(text: &str) -> Option<(String, usize)> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut tokens = Vec::new();
    let mut length = text.len();
    while let Some(token) = lexer.significant() {
        if token.kind == TokenKind::Semicolon {
            length = token.end as usize;
            break;
        }
        tokens.push(token);
    }
    let mut writer =
        Writer { text, tokens, at: 0, out: String::new(), tables: Vec::new(), changed: false };
    writer.statement();
    let Writer { out, tables, changed, .. } = writer;
    let first = out.trim_start().get(..6)?.to_ascii_lowercase();
    if !changed || (first != "select" && !first.starts_with("with")) {
        return None;
    }
    Some((with_tables(&out, &tables), length))
}

/// Returns a query without rows, if the first statement of a text reads tables that are always
/// empty. An empty table on the right side of a LEFT JOIN does not empty the result.
pub(crate) fn nothing(text: &str) -> Option<String> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let (mut depth, mut width, mut listing, mut empty) = (0_usize, 1, true, false);
    let (mut optional, mut behind_dot) = (false, false);
    while let Some(token) = lexer.significant() {
        let qualified = std::mem::replace(&mut behind_dot, token.kind == TokenKind::Dot);
        let word = String::from_utf8_lossy(token.of(text.as_bytes())).to_ascii_lowercase();
        match token.kind {
            TokenKind::Semicolon if depth == 0 => break,
            TokenKind::Open | TokenKind::OpenBracket => depth += 1,
            TokenKind::Close | TokenKind::CloseBracket => depth = depth.saturating_sub(1),
            TokenKind::Comma if depth == 0 && listing => width += 1,
            // psql names the schema of each function except some `pg_get_…`. Other functions
            // without a schema are unknown here.
            TokenKind::Word
                if word.starts_with("pg_")
                    && !word.starts_with("pg_get_")
                    && !qualified
                    && is_call(&lexer) =>
            {
                return None;
            }
            TokenKind::Word if depth == 0 && word == "from" => listing = false,
            TokenKind::Word if depth == 0 && !listing => {
                optional = word == "left" || optional && !matches!(word.as_str(), "on" | "using");
                empty |= !optional && EMPTY.contains(&word.as_str());
            }
            _ => {}
        }
    }
    let columns = vec!["NULL"; width].join(", ");
    empty.then(|| format!("SELECT {columns} WHERE 0"))
}

/// Prefix of the stand-ins for tables of `information_schema`.
const STANDARD: &str = "information_schema_";

/// True if the next token is an open parenthesis.
fn is_call(lexer: &Lexer<'_>) -> bool {
    lexer.clone().significant().is_some_and(|token| token.kind == TokenKind::Open)
}

/// Marks of types after the names of columns.
const MARKS: [char; 6] = ['?', '#', '+', '%', '@', '~'];

/// Returns the columns of a stand-in, with their types.
pub(crate) fn columns(table: &str) -> Vec<(String, Option<Type>)> {
    let is = |name: &str| name == table || name.strip_prefix(STANDARD) == Some(table);
    let Some((_, columns, _)) = TABLES.iter().find(|(name, ..)| is(name)) else {
        return Vec::new();
    };
    let column = |written: &str| {
        let is = match written.trim().chars().last() {
            Some('?') => Type::Bool,
            Some('#') => Type::Oid,
            Some('+') => Type::Int8,
            Some('%') => Type::Int4,
            Some('@') => Type::Name,
            Some('~') => Type::Varchar,
            _ => Type::Text,
        };
        (written.trim().trim_end_matches(MARKS).to_owned(), Some(is))
    };
    columns.split(',').map(column).collect()
}

/// Returns the stand-in for a table of `information_schema`, with its columns.
pub(crate) fn standard(schema: &str, table: &str) -> Option<(&'static str, Vec<(String, Type)>)> {
    let is = |name: &str| name.strip_prefix(STANDARD) == Some(table);
    let (name, ..) = TABLES.iter().find(|(name, ..)| is(name))?;
    let columns = columns(name).into_iter().map(|(name, is)| (name, is.unwrap_or(Type::Text)));
    (schema == "information_schema").then(|| (*name, columns.collect()))
}

/// Puts the stand-ins in front of a statement.
pub(crate) fn with_tables(statement: &str, named: &[String]) -> String {
    let mut needed: Vec<&str> = Vec::new();
    for name in named {
        need(name, &mut needed);
    }
    if needed.is_empty() {
        return statement.to_owned();
    }
    let table = |name: &&str| TABLES.iter().find(|(known, ..)| known == name);
    let tables = needed.iter().filter_map(table);
    let tables: Vec<_> = tables
        .map(|(name, columns, query)| {
            format!("{name}({}) AS ({query})", columns.replace(MARKS, ""))
        })
        .collect();
    let tables = tables.join(", ");
    let statement = statement.trim_start();
    let rest = |word: &str| {
        let start = statement.get(..word.len())?;
        start.eq_ignore_ascii_case(word).then(|| statement.get(word.len()..)).flatten()
    };
    if let Some(rest) = rest("WITH RECURSIVE ") {
        format!("WITH RECURSIVE {tables}, {rest}")
    } else if let Some(rest) = rest("WITH ") {
        format!("WITH {tables}, {rest}")
    } else {
        format!("WITH {tables} {statement}")
    }
}

/// Adds a stand-in after the stand-ins that its query reads.
fn need<'a>(name: &'a str, needed: &mut Vec<&'a str>) {
    let Some((name, _, query)) = TABLES.iter().find(|(known, ..)| *known == name) else { return };
    for (other, ..) in TABLES {
        let used = other != name
            && query.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *other);
        if used {
            need(other, needed);
        }
    }
    if !needed.contains(name) {
        needed.push(name);
    }
}

struct Writer<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    out: String,
    /// The catalog's tables that the statement names.
    tables: Vec<String>,
    changed: bool,
}

impl Writer<'_> {
    fn bytes(&self, ahead: usize) -> &str {
        let token = self.tokens.get(self.at + ahead);
        token
            .and_then(|token| self.text.get(token.start as usize..token.end as usize))
            .unwrap_or("")
    }

    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    fn is(&self, ahead: usize, word: &str) -> bool {
        self.bytes(ahead).eq_ignore_ascii_case(word)
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push(' ');
    }

    /// Writes `text` in the place of the next tokens.
    fn replace(&mut self, tokens: usize, text: &str) {
        self.at += tokens;
        self.changed = true;
        if !text.is_empty() {
            self.put(text);
        }
    }

    fn statement(&mut self) {
        while self.at < self.tokens.len() {
            self.token();
        }
    }

    fn token(&mut self) {
        let word = self.bytes(0).to_ascii_lowercase();
        let Some(kind) = self.kind(0) else { return };
        match kind {
            TokenKind::Word if word == "pg_catalog" && self.kind(1) == Some(TokenKind::Dot) => {
                self.replace(2, "");
            }
            TokenKind::Word
                if word == "information_schema" && self.kind(1) == Some(TokenKind::Dot) =>
            {
                let name = format!("{STANDARD}{}", self.bytes(2).to_ascii_lowercase());
                if !TABLES.iter().any(|(table, ..)| *table == name) {
                    return self.name(&word);
                }
                self.tables.push(name.clone());
                self.replace(3, &name);
            }
            TokenKind::Word if word == "operator" && self.is(6, "any") && self.is(8, "array") => {
                // OPERATOR ( pg_catalog . = ) ANY ( ARRAY [ … ] )
                self.replace(10, "IN (");
                while !matches!(self.kind(0), None | Some(TokenKind::CloseBracket)) {
                    self.token();
                }
                self.replace(1, "");
            }
            TokenKind::Word if word == "operator" && self.kind(1) == Some(TokenKind::Open) => {
                // OPERATOR ( pg_catalog . ~ )
                let operator = operator(self.bytes(4));
                self.replace(6, &operator);
            }
            TokenKind::Word if word == "collate" && self.is(1, "pg_catalog") => self.replace(4, ""),
            TokenKind::Operator if matches!(word.as_str(), "~" | "!~" | "~~" | "!~~") => {
                let operator = operator(&word);
                self.replace(1, &operator);
            }
            TokenKind::Cast => {
                self.at += 1;
                self.type_name();
                self.changed = true;
            }
            TokenKind::Parameter => {
                let number = format!("?{}", word.trim_start_matches('$'));
                self.at += 1;
                self.put(&number);
            }
            TokenKind::EscapeText => {
                let inside = word_inside(self.bytes(0));
                let plain = inside.unwrap_or_default().replace('\'', "''");
                self.replace(1, &format!("'{plain}'"));
            }
            TokenKind::Word => self.name(&word),
            _ => {
                let text = self.bytes(0).to_owned();
                self.at += 1;
                // A qualified name is written without blanks around its dots.
                self.put(&text);
            }
        }
    }

    fn name(&mut self, word: &str) {
        let called = self.kind(1) == Some(TokenKind::Open);
        let qualified = self.at > 0
            && self.tokens[self.at - 1].kind == TokenKind::Dot
            && self.out.trim_end().ends_with('.');
        if BARE.contains(&word) && !called && !qualified && self.kind(1) != Some(TokenKind::Dot) {
            return self.replace(1, &format!("{word}()"));
        }
        if let Some((_, table, column)) = LOOKUPS.iter().find(|(name, ..)| called && *name == word)
        {
            return self.lookup(table, column);
        }
        if !called && !qualified && TABLES.iter().any(|(table, ..)| *table == word) {
            self.tables.push(word.to_owned());
            self.changed = true;
        }
        let text = self.bytes(0).to_owned();
        self.at += 1;
        self.put(&text);
    }

    /// Rewrites a call `f(x, …)` as a subquery.
    fn lookup(&mut self, table: &str, column: &str) {
        self.at += 2;
        self.put(&format!("(SELECT {table}.{column} FROM {table} WHERE {table}.oid ="));
        let (mut depth, mut first) = (0_usize, true);
        while let Some(kind) = self.kind(0) {
            match kind {
                TokenKind::Close if depth == 0 => break,
                TokenKind::Comma if depth == 0 => first = false,
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                _ => {}
            }
            if first {
                self.token();
            } else {
                self.at += 1;
            }
        }
        self.tables.push(table.to_owned());
        self.replace(1, ")");
    }

    /// Skips the name of a type.
    fn type_name(&mut self) {
        while self.kind(1) == Some(TokenKind::Dot) {
            self.at += 2;
        }
        self.at += 1;
        while self.kind(0) == Some(TokenKind::OpenBracket) {
            self.at += 2;
        }
    }
}

fn operator(written: &str) -> String {
    let sqlite = match written {
        "~" => "REGEXP",
        "!~" => "NOT REGEXP",
        "~~" => "LIKE",
        "!~~" => "NOT LIKE",
        other => other,
    };
    sqlite.to_owned()
}

/// Returns the value of `E'…'`.
fn word_inside(written: &str) -> Option<String> {
    unescaped(written.get(2..written.len().checked_sub(1)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_the_catalog_are_written_anew() {
        let text = "SELECT c.oid::regclass, current_user FROM pg_catalog.pg_namespace c \
                    WHERE c.nspname OPERATOR(pg_catalog.~) E'^(a\\\\b)$' COLLATE pg_catalog.default; x";
        let (sql, length) = rewrite(text).unwrap();
        assert!(sql.starts_with("WITH pg_namespace("), "{sql}");
        assert!(sql.contains("SELECT c . oid , current_user() FROM pg_namespace c"), "{sql}");
        assert!(sql.ends_with("nspname REGEXP '^(a\\b)$' "), "{sql}");
        assert_eq!(length, text.len() - 2);
        assert_eq!(rewrite("SELECT 1 FROM nosuch"), None);
        assert_eq!(rewrite("INSERT INTO t VALUES (current_user)"), None);
    }

    #[test]
    fn empty_tables_have_empty_answers() {
        let text = "SELECT a, f(b, c), ARRAY[1, 2] FROM pg_catalog.pg_policy p";
        assert_eq!(nothing(text).unwrap(), "SELECT NULL, NULL, NULL WHERE 0");
        assert_eq!(nothing("SELECT a FROM t"), None);
        assert_eq!(nothing("SELECT pg_describe(a) FROM pg_catalog.pg_policy p"), None);
        // pgbench sends this query, and an answer without rows would mean that there is no table.
        let left =
            "SELECT a FROM pg_class c LEFT JOIN pg_catalog.pg_inherits i ON c.oid = i.inhparent";
        assert_eq!(nothing(left), None);
        assert!(nothing(&format!("{left} JOIN pg_policy p ON p.x = c.y")).is_some());
    }
}
