//! Expressions of constants, which PostgreSQL computes before it runs a statement: one that fails
//! is an error, whether or not a row would ever ask for it (`eval_const_expressions` of the
//! server). It does so behind Parse and Describe, which know nothing of the error: it stands by the
//! translation.

use super::value::{Expr, ExprKind};
use super::{Translated, Translator};

impl Translator<'_> {
    /// An expression with `constant` for what it is in constants, where its parts have such words:
    /// computed, if it may fail. The first that does is remembered.
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

    /// Runs `make` for what may never be asked for: nothing in it is computed ahead.
    pub(super) fn unless<T>(
        &mut self,
        settled: bool,
        make: impl FnOnce(&mut Self) -> Translated<T>,
    ) -> Translated<T> {
        self.unfolded += usize::from(settled);
        let made = make(self);
        self.unfolded -= usize::from(settled);
        made
    }

    /// What a condition is, if it is known before any row is read; NULL is false.
    pub(super) fn known(&self, condition: &Expr) -> Option<bool> {
        let constant = condition.constant.as_ref()?;
        self.holds(&format!("coalesce({constant}, 0) <> 0"))
    }

    /// Whether a value is a constant that is not NULL.
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

    /// The first of several values that is not NULL, if that is known before any row is read.
    pub(super) fn first_given(&self, all: &[Expr]) -> Option<String> {
        let known = all.iter().find(|value| value.constant.is_none() || self.is_given(value));
        known.map_or_else(|| Some("NULL".to_owned()), |value| value.constant.clone())
    }

    /// What CASE takes, if that is known before any row is read: the result behind the first
    /// condition that is true. The one behind ELSE is the last.
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

/// Two constants as `make` writes them together.
pub(super) fn of_both(
    left: &Expr,
    right: &Expr,
    make: impl FnOnce(&str, &str) -> String,
) -> Option<String> {
    Some(make(left.constant.as_ref()?, right.constant.as_ref()?))
}
