//! An expression in SQLite's dialect, with the facts that PostgreSQL would know about it.

pub(super) use crate::sql_text::quoted as name;
use crate::types::Type;

/// The type of an expression, or the reason why it has none yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExprKind {
    /// An expression with a type.
    Typed(Type),
    /// A string, which gets the type that its place requires.
    Literal(String),
    /// NULL without a type.
    Null,
    /// A number with a fraction, or one too large for an integer: a `numeric`, unless its place
    /// requires another type of number.
    Number(String),
    /// A parameter without a type so far. The number counts from 0.
    Parameter(usize),
}

/// A column outside of aggregates: how many queries enclose its own, and its name for messages.
pub(super) type Bare = (usize, String);

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) sql: String,
    pub(super) kind: ExprKind,
    /// The name of a result column for it (`FigureColname` of the server).
    pub(super) name: Option<String>,
    /// True if a cast around it changes that name.
    pub(super) weak: bool,
    pub(super) bare: Vec<Bare>,
    /// True if it contains an aggregate of the query.
    pub(super) aggregate: bool,
    /// True for a `numeric` that is always an integer, as SQLite stores and compares it.
    pub(super) whole: bool,
    /// True if it is a column that is never NULL.
    pub(super) not_null: bool,
    /// The maximum length of its values, if it is a column or a cast with a length.
    pub(super) limit: Option<u32>,
    /// Its SQL as a constant, if it is made of constants alone.
    pub(super) constant: Option<String>,
}

impl Expr {
    /// Makes an expression of this type.
    pub(super) fn typed(sql: impl Into<String>, is: Type) -> Self {
        Self::of(sql, ExprKind::Typed(is))
    }

    pub(super) fn of(sql: impl Into<String>, kind: ExprKind) -> Self {
        let (sql, name, bare) = (sql.into(), None, Vec::new());
        Self {
            sql,
            kind,
            name,
            weak: false,
            bare,
            aggregate: false,
            whole: false,
            not_null: false,
            limit: None,
            constant: None,
        }
    }

    /// Makes a constant.
    pub(super) fn constant(sql: impl Into<String>, kind: ExprKind) -> Self {
        let made = Self::of(sql, kind);
        Self { constant: Some(made.sql.clone()), ..made }
    }

    /// Makes an expression from others.
    pub(super) fn made(sql: impl Into<String>, is: Type, of: &[&Expr]) -> Self {
        Self::typed(sql, is).with(of)
    }

    /// Makes an expression whose value depends on its parts alone: if they are constants, so is it.
    pub(super) fn pure(sql: impl Into<String>, is: Type, of: &[&Expr]) -> Self {
        let made = Self::made(sql, is, of);
        let all = !of.is_empty() && of.iter().all(|part| part.constant.is_some());
        Self { constant: all.then(|| made.sql.clone()), ..made }
    }

    /// Adds the facts about its parts.
    pub(super) fn with(mut self, parts: &[&Expr]) -> Self {
        for part in parts {
            self.bare.extend(part.bare.iter().cloned());
            self.aggregate |= part.aggregate;
        }
        self
    }

    /// Replaces its SQL and its type.
    pub(super) fn rewritten(mut self, sql: String, is: Type) -> Self {
        self.sql = sql;
        self.kind = ExprKind::Typed(is);
        self.not_null = false;
        self.whole = false;
        self.limit = None;
        self.constant = None;
        self
    }

    /// Sets its name.
    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self.weak = false;
        self
    }

    /// Sets a name that a cast around it changes.
    pub(super) fn named_weakly(self, name: impl Into<String>) -> Self {
        Self { weak: true, ..self.named(name) }
    }

    /// Returns its type, if it has one.
    pub(super) fn is(&self) -> Option<Type> {
        match &self.kind {
            ExprKind::Typed(is) => Some(*is),
            ExprKind::Number(_) => Some(Type::Numeric),
            _ => None,
        }
    }

    /// True if it is an array.
    pub(super) fn is_array(&self) -> bool {
        self.is().is_some_and(|is| is.element().is_some())
    }

    /// Returns the name of its type, for a message.
    pub(super) fn type_name(&self) -> &'static str {
        self.is().map_or("unknown", Type::name)
    }
}

/// Writes a text as SQL.
pub(super) fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes a value of GROUP BY or ORDER BY, where SQLite takes an integer for the place of a column.
pub(super) fn no_place(sql: &str) -> String {
    let digits = sql.trim_matches(['(', ')', '-', '+', ' ']);
    match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("({sql} + 0)"),
        false => sql.to_owned(),
    }
}

/// Writes a number as SQL of a float.
pub(super) fn real_literal(number: &str) -> String {
    let plain = number.contains(['.', 'e', 'E']);
    if plain { number.to_owned() } else { format!("{number}.0") }
}

/// The largest exponent that is written out: no double has a larger one.
const EXPONENT_MAX: usize = 400;

/// Writes a number with a fraction or an exponent as digits, as `numeric_in` does. Returns `None`
/// if its exponent is too large.
pub(super) fn digits(written: &str) -> Option<String> {
    let (number, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let exponent: isize = exponent.parse().ok()?;
    if exponent.unsigned_abs() > EXPONENT_MAX {
        return None;
    }
    let zeros = "0".repeat(exponent.unsigned_abs());
    let all = match exponent < 0 {
        true => format!("{zeros}{whole}{fraction}"),
        false => format!("{whole}{fraction:0<width$}", width = exponent.unsigned_abs()),
    };
    let scale = (fraction.len().cast_signed() - exponent).max(0).unsigned_abs();
    let (whole, fraction) = all.split_at_checked(all.len().checked_sub(scale)?)?;
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// Writes a value as an argument of `json_array`, which takes the result of SQLite's functions of
/// JSON for JSON and not for a text.
pub(super) fn as_element(sql: &str, is: Type) -> String {
    match is.is_text() || matches!(is, Type::Json | Type::Jsonb) {
        true => format!("({sql} || '')"),
        false => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_their_digits() {
        for (written, expected) in [
            ("1.50", "1.50"),
            (".5", "0.5"),
            ("5.", "5"),
            ("007.10", "7.10"),
            ("-1.5", "-1.5"),
            ("1e3", "1000"),
            ("1.50e1", "15.0"),
            ("1.5E+3", "1500"),
            ("12.5e-3", "0.0125"),
            ("100e-2", "1.00"),
            ("0e5", "0"),
        ] {
            assert_eq!(digits(written).as_deref(), Some(expected), "{written}");
        }
        assert_eq!(digits("1e300").unwrap().len(), 301);
        assert_eq!(digits("1e401"), None);
        assert_eq!(digits("1e99999999999999999999"), None);
    }
}
