//! A value of a parameter or of a column.
//!
//! Text is bytes: SQLite stores the bytes that it gets and checks no encoding, and a proxy passes
//! on the bytes that it finds. Values borrow; nothing here allocates.

/// A value in one of SQLite's five storage classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit float. NaN becomes NULL in SQLite.
    Real(f64),
    /// Text, as UTF-8 unless a client stored other bytes.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// The storage class of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// SQL NULL.
    Null,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

impl Value<'_> {
    /// Returns the storage class.
    pub fn kind(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Integer(_) => Type::Integer,
            Value::Real(_) => Type::Real,
            Value::Text(_) => Type::Text,
            Value::Blob(_) => Type::Blob,
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Blob(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
