//! Listings of `SHOW`: columns, each with the function that returns its value.
//!
//! A column's name, type and value stand together, so that they always fit each other.

use refrain_config::PgBouncerVersion;

use super::view::View;
use crate::console::{Heading, Kind, Table};

/// A column of rows made from `T`.
pub(super) struct Column<T> {
    name: &'static str,
    value: Value<T>,
    /// Whether versions of PgBouncer before 1.26 have no such column.
    is_new: bool,
}

enum Value<T> {
    Text(fn(&T) -> String),
    Nullable(fn(&T) -> Option<String>),
    Number(Kind, fn(&T) -> u64),
    NullableNumber(fn(&T) -> Option<u64>),
    Signed(fn(&T) -> i64),
}

pub(super) const fn text<T>(name: &'static str, value: fn(&T) -> String) -> Column<T> {
    Column { name, value: Value::Text(value), is_new: false }
}

pub(super) const fn nullable<T>(name: &'static str, value: fn(&T) -> Option<String>) -> Column<T> {
    Column { name, value: Value::Nullable(value), is_new: false }
}

pub(super) const fn int<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Kind::Int4, value), is_new: false }
}

pub(super) const fn bigint<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Kind::Int8, value), is_new: false }
}

pub(super) const fn nullable_bigint<T>(
    name: &'static str,
    value: fn(&T) -> Option<u64>,
) -> Column<T> {
    Column { name, value: Value::NullableNumber(value), is_new: false }
}

/// Makes a column of a number that may be negative.
pub(super) const fn signed<T>(name: &'static str, value: fn(&T) -> i64) -> Column<T> {
    Column { name, value: Value::Signed(value), is_new: false }
}

pub(super) const fn numeric<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Kind::Numeric, value), is_new: false }
}

/// Makes a column of a number that PgBouncer shows from version 1.26 on.
pub(super) const fn new_numeric<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Kind::Numeric, value), is_new: true }
}

/// Whether a version has what is new in 1.26.
pub(super) fn has_news(version: PgBouncerVersion) -> bool {
    match version {
        PgBouncerVersion::V24 | PgBouncerVersion::V25 => false,
        PgBouncerVersion::V26 => true,
    }
}

impl<T> Column<T> {
    /// Whether a version of PgBouncer has the column.
    fn is_in(&self, version: PgBouncerVersion) -> bool {
        !self.is_new || has_news(version)
    }

    fn heading(&self) -> Heading {
        let kind = match self.value {
            Value::Text(_) | Value::Nullable(_) => Kind::Text,
            Value::Number(kind, _) => kind,
            Value::NullableNumber(_) | Value::Signed(_) => Kind::Int8,
        };
        Heading { name: self.name.into(), kind }
    }

    fn show(&self, row: &T) -> Option<String> {
        match &self.value {
            Value::Text(value) => Some(value(row)),
            Value::Nullable(value) => value(row),
            Value::Number(_, value) => Some(value(row).to_string()),
            Value::NullableNumber(value) => value(row).map(|number| number.to_string()),
            Value::Signed(value) => Some(value(row).to_string()),
        }
    }
}

/// A listing of any kind of rows.
pub(super) trait Show: Sync {
    /// Returns the listing's rows.
    fn show(&self, view: &View<'_>) -> Table;

    /// Returns the names of the columns, for tests.
    #[cfg(test)]
    fn names(&self, version: PgBouncerVersion) -> Vec<&'static str>;
}

/// A listing of rows of `T`: its columns, and the function that returns the rows.
pub(super) struct Listing<T: 'static> {
    pub(super) columns: &'static [Column<T>],
    pub(super) rows: fn(&View<'_>) -> Vec<T>,
}

impl<T> Show for Listing<T> {
    fn show(&self, view: &View<'_>) -> Table {
        let version = view.options.general.pgbouncer_version;
        let columns: Vec<_> = self.columns.iter().filter(|it| it.is_in(version)).collect();
        table_of(&columns, &(self.rows)(view))
    }

    #[cfg(test)]
    fn names(&self, version: PgBouncerVersion) -> Vec<&'static str> {
        self.columns.iter().filter(|it| it.is_in(version)).map(|column| column.name).collect()
    }
}

/// Returns the values of the columns of all rows.
pub(super) fn table<T>(columns: &[Column<T>], rows: &[T]) -> Table {
    table_of(&columns.iter().collect::<Vec<_>>(), rows)
}

fn table_of<T>(columns: &[&Column<T>], rows: &[T]) -> Table {
    let values = |row| columns.iter().map(|column| column.show(row)).collect();
    Table {
        columns: columns.iter().map(|column| column.heading()).collect(),
        rows: rows.iter().map(values).collect(),
    }
}

/// A name with a value, for listings that have nothing else.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

impl Pair {
    pub(super) fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// Returns the share of hits with four digits, or nothing if there were neither hits nor misses.
pub(super) fn ratio(hits: u64, misses: u64) -> String {
    match hits.saturating_add(misses) {
        0 => String::new(),
        all => format!("{:.4}", hits as f64 / all as f64),
    }
}
