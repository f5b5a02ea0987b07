//! Listings of `SHOW`: columns, each with the function that returns its value.
//!
//! A column's name, type and value stand together, so that they always fit each other.

use refrain_wire::tag::back;
use refrain_wire::write;

use super::view::View;

/// A column of rows made from `T`.
pub(super) struct Column<T> {
    name: &'static str,
    value: Value<T>,
}

enum Value<T> {
    Text(fn(&T) -> String),
    Nullable(fn(&T) -> Option<String>),
    Number(Number, fn(&T) -> u64),
    Signed(fn(&T) -> i64),
}

/// The types of numbers, by their OID in PostgreSQL.
#[derive(Clone, Copy)]
enum Number {
    Int8 = 20,
    Int4 = 23,
    Numeric = 1700,
}

const TEXT_OID: u32 = 25;

pub(super) const fn text<T>(name: &'static str, value: fn(&T) -> String) -> Column<T> {
    Column { name, value: Value::Text(value) }
}

pub(super) const fn nullable<T>(name: &'static str, value: fn(&T) -> Option<String>) -> Column<T> {
    Column { name, value: Value::Nullable(value) }
}

pub(super) const fn int<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Number::Int4, value) }
}

pub(super) const fn bigint<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Number::Int8, value) }
}

/// Makes a column of a number that may be negative.
pub(super) const fn signed<T>(name: &'static str, value: fn(&T) -> i64) -> Column<T> {
    Column { name, value: Value::Signed(value) }
}

pub(super) const fn numeric<T>(name: &'static str, value: fn(&T) -> u64) -> Column<T> {
    Column { name, value: Value::Number(Number::Numeric, value) }
}

impl<T> Column<T> {
    fn oid_and_size(&self) -> (u32, i16) {
        match self.value {
            Value::Text(_) | Value::Nullable(_) => (TEXT_OID, -1),
            Value::Number(Number::Int8, _) | Value::Signed(_) => (Number::Int8 as u32, 8),
            Value::Number(Number::Int4, _) => (Number::Int4 as u32, 4),
            Value::Number(Number::Numeric, _) => (Number::Numeric as u32, -1),
        }
    }

    fn show(&self, row: &T) -> Option<String> {
        match &self.value {
            Value::Text(value) => Some(value(row)),
            Value::Nullable(value) => value(row),
            Value::Number(_, value) => Some(value(row).to_string()),
            Value::Signed(value) => Some(value(row).to_string()),
        }
    }
}

/// A listing of any kind of rows.
pub(super) trait Show: Sync {
    /// Appends the listing's RowDescription and DataRows.
    fn show(&self, view: &View<'_>, out: &mut Vec<u8>);

    /// Returns the names of the columns, for tests.
    #[cfg(test)]
    fn names(&self) -> Vec<&'static str>;
}

/// A listing of rows of `T`: its columns, and the function that returns the rows.
pub(super) struct Listing<T: 'static> {
    pub(super) columns: &'static [Column<T>],
    pub(super) rows: fn(&View<'_>) -> Vec<T>,
}

impl<T> Show for Listing<T> {
    fn show(&self, view: &View<'_>, out: &mut Vec<u8>) {
        put(self.columns, &(self.rows)(view), out);
    }

    #[cfg(test)]
    fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.name).collect()
    }
}

/// Appends a RowDescription and DataRows.
pub(super) fn put<T>(columns: &[Column<T>], rows: &[T], out: &mut Vec<u8>) {
    describe(columns, out);
    for row in rows {
        let values: Vec<_> = columns.iter().map(|column| column.show(row)).collect();
        write::text_row(out, values.iter().map(Option::as_deref));
    }
}

fn describe<T>(columns: &[Column<T>], out: &mut Vec<u8>) {
    write::message(out, back::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&u16::try_from(columns.len()).unwrap_or(0).to_be_bytes());
        for column in columns {
            let (oid, size) = column.oid_and_size();
            write::string(out, column.name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table, no column of it
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes()); // no modifier
            out.extend_from_slice(&0_u16.to_be_bytes()); // as text
        }
    });
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
