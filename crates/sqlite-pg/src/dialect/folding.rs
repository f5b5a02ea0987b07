//! Evaluates constant expressions, as PostgreSQL does before it runs a statement: one that fails is
//! an error, whether or not the statement would evaluate it for any row (`eval_const_expressions`
//! of the server). PostgreSQL does so after Parse and Describe, which do not raise the error, so
//! the translation keeps the error.

use super::typing::Typing;
use super::value::{Expr, ExprKind};

impl Typing<'_> {
    /// Sets the constant SQL of an expression, if its parts are constants. Evaluates it if it may
    /// fail, and remembers the first error.
    pub(super) fn folded(&mut self, made: Expr, constant: Option<String>) -> Expr {
        let constant = match constant {
            Some(sql) if self.unfolded == 0 => self.value_of(&sql),
            other => other,
        };
        Expr { constant, ..made }
    }

    fn value_of(&mut self, sql: &str) -> Option<String> {
        let computed = self.catalog.computed(sql);
        computed.map_err(|failure| self.fails.get_or_insert(failure)).ok()
    }

    /// Returns the value of a condition if that is known before any row is read; NULL is false.
    pub(super) fn known(&self, condition: &Expr) -> Option<bool> {
        let constant = condition.constant.as_ref()?;
        self.holds(&format!("coalesce({constant}, 0) <> 0"))
    }

    /// True if a value is a constant that is not NULL.
    pub(super) fn is_given(&self, expr: &Expr) -> bool {
        let Some(constant) = &expr.constant else { return false };
        match expr.kind {
            ExprKind::Null => false,
            ExprKind::Literal(_) | ExprKind::Number(_) => true,
            _ => self.holds(&format!("({constant}) IS NOT NULL")) == Some(true),
        }
    }

    fn holds(&self, condition: &str) -> Option<bool> {
        Some(self.catalog.computed(condition).ok()? != "(0)")
    }

    /// Returns the first of several values that is not NULL, if that is known before any row is
    /// read.
    pub(super) fn first_given(&self, all: &[Expr]) -> Option<String> {
        let known = all.iter().find(|value| value.constant.is_none() || self.is_given(value));
        known.map_or_else(|| Some("NULL".to_owned()), |value| value.constant.clone())
    }

    /// Returns the result that CASE chooses, if that is known before any row is read: the one after
    /// the first condition that is true. The last result is that of ELSE.
    pub(super) fn taken(&self, conditions: &[Expr], results: &[Expr]) -> Option<String> {
        for (condition, result) in conditions.iter().zip(results) {
            if self.known(condition)? {
                return result.constant.clone();
            }
        }
        let otherwise = results.get(conditions.len());
        otherwise.map_or_else(|| Some("NULL".to_owned()), |result| result.constant.clone())
    }
}

/// Returns what `make` writes for two constants, if both values are constants.
pub(super) fn of_both(
    left: &Expr,
    right: &Expr,
    make: impl FnOnce(&str, &str) -> String,
) -> Option<String> {
    Some(make(left.constant.as_ref()?, right.constant.as_ref()?))
}
