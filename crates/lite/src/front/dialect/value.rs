//! An expression in SQLite's words, with what PostgreSQL would know of it.

use crate::front::types::Type;

/// What PostgreSQL takes an expression for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// It has a type.
    Typed(Type),
    /// A string whose place gives it a type.
    Literal(String),
    /// NULL without a type.
    Null,
    /// A number with a fraction, or too large for an integer: `numeric`, and any other number where one is wanted.
    Number(String),
    /// A parameter without a type so far, by its number less one.
    Parameter(usize),
}

/// A column outside of aggregates: how many queries stand around its own, and what to call it.
pub(super) type Bare = (usize, String);

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) sql: String,
    pub(super) kind: Kind,
    /// What a column of a result is called that has no name (`FigureColname` of the server).
    pub(super) name: Option<String>,
    /// Whether a cast around it gives another name.
    pub(super) weak: bool,
    pub(super) bare: Vec<Bare>,
    /// Whether an aggregate of the query is in it.
    pub(super) aggregate: bool,
    /// Whether it is a column that is never NULL.
    pub(super) not_null: bool,
    /// How long its values may be, where it is a column or a cast to such a type.
    pub(super) limit: Option<u32>,
}

impl Expr {
    /// An expression of this type.
    pub(super) fn typed(sql: impl Into<String>, is: Type) -> Self {
        Self::of(sql, Kind::Typed(is))
    }

    pub(super) fn of(sql: impl Into<String>, kind: Kind) -> Self {
        let (sql, name, bare) = (sql.into(), None, Vec::new());
        Self { sql, kind, name, weak: false, bare, aggregate: false, not_null: false, limit: None }
    }

    /// An expression made of others.
    pub(super) fn made(sql: impl Into<String>, is: Type, of: &[&Expr]) -> Self {
        Self::typed(sql, is).with(of)
    }

    /// The same with what is known of its parts.
    pub(super) fn with(mut self, parts: &[&Expr]) -> Self {
        for part in parts {
            self.bare.extend(part.bare.iter().cloned());
            self.aggregate |= part.aggregate;
        }
        self
    }

    /// The same in other words.
    pub(super) fn rewritten(mut self, sql: String, is: Type) -> Self {
        self.sql = sql;
        self.kind = Kind::Typed(is);
        self.not_null = false;
        self.limit = None;
        self
    }

    /// The same under a name.
    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self.weak = false;
        self
    }

    /// The same under a name that a cast around it replaces.
    pub(super) fn named_weakly(self, name: impl Into<String>) -> Self {
        Self { weak: true, ..self.named(name) }
    }

    /// Its type, if it has one.
    pub(super) fn is(&self) -> Option<Type> {
        match &self.kind {
            Kind::Typed(is) => Some(*is),
            Kind::Number(_) => Some(Type::Numeric),
            _ => None,
        }
    }

    /// Its type, for a message.
    pub(super) fn type_name(&self) -> &'static str {
        self.is().map_or("unknown", Type::name)
    }
}

/// A text as SQLite writes it.
pub(super) fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQLite writes it.
pub(super) fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A number as SQLite writes one that is no integer.
pub(super) fn real_literal(number: &str) -> String {
    let plain = number.contains(['.', 'e', 'E']);
    if plain { number.to_owned() } else { format!("{number}.0") }
}
