//! The type that several values have in common.

use crate::failure::{Failure, state};
use crate::types::Type;

use super::Translated;
use super::coerce::{Wanted, is_implicit};
use super::typing::Typing;
use super::value::Expr;

/// Types with a common type, in the order in which PostgreSQL prefers them.
const FAMILIES: &[&[Type]] = &[
    &[Type::Int2, Type::Int4, Type::Int8, Type::Numeric, Type::Float4, Type::Float8],
    &[Type::Date, Type::Timestamp, Type::Timestamptz],
    &[Type::Char, Type::Bpchar, Type::Name, Type::Varchar, Type::Text],
    &[
        Type::Int2,
        Type::Int4,
        Type::Regclass,
        Type::Regtype,
        Type::Regproc,
        Type::Regprocedure,
        Type::Regnamespace,
        Type::Oid,
    ],
    &[Type::Oid, Type::Int8],
];

/// Returns the type of a result for which operators and aggregates of `text` serve: `varchar` has
/// none of its own.
pub(super) fn plain_text(is: Type) -> Type {
    if is == Type::Varchar { Type::Text } else { is }
}

/// Returns the common type of two types, if there is one.
pub(super) fn common(left: Type, right: Type) -> Option<Type> {
    if left == right {
        return Some(left);
    }
    let family =
        FAMILIES.iter().find(|family| family.contains(&left) && family.contains(&right))?;
    let place = |is: Type| family.iter().position(|other| *other == is);
    let wider = if place(left) > place(right) { left } else { right };
    // PostgreSQL computes float4 with an integer or a numeric as float8.
    let wider = if wider == Type::Float4 { Type::Float8 } else { wider };
    let wider = if wider.is_reg() { Type::Oid } else { wider };
    let text = wider.is_text() && !matches!(wider, Type::Bpchar | Type::Name);
    let text = text || wider == Type::Name && (left == Type::Char || right == Type::Char);
    let wider = if text { Type::Text } else { wider };
    let reached = is_implicit(left, wider) && is_implicit(right, wider);
    reached.then_some(wider)
}

/// Returns the common type of values in a list, from the type so far and the next
/// (`select_common_type` of the server): the first type into which PostgreSQL converts the other,
/// but none beyond the preferred type of its kind.
pub(super) fn chosen(known: Type, next: Type) -> Option<Type> {
    if known == next {
        return Some(known);
    }
    FAMILIES.iter().find(|family| family.contains(&known) && family.contains(&next))?;
    let preferred = matches!(known, Type::Float8 | Type::Timestamptz | Type::Text);
    let moves = !preferred && is_implicit(known, next) && !is_implicit(next, known);
    let is = if moves { next } else { known };
    (is_implicit(known, is) && is_implicit(next, is)).then_some(is)
}

impl Typing<'_> {
    /// Gives values a common type (`select_common_type` of the server).
    pub(super) fn unified(&mut self, all: Vec<Expr>, word: &str) -> Translated<(Vec<Expr>, Type)> {
        let mut is = None;
        for expr in &all {
            let Some(next) = expr.is() else { continue };
            is = match is {
                None => Some(next),
                Some(known) => Some(chosen(known, next).ok_or_else(|| {
                    let message = format!(
                        "{word} types {} and {} cannot be matched",
                        known.name(),
                        next.name()
                    );
                    Failure::new(state::WRONG_TYPE, message)
                })?),
            };
        }
        let is = is.unwrap_or(Type::Text);
        let made: Result<Vec<_>, Failure> =
            all.into_iter().map(|expr| self.coerce(expr, is, Wanted::Implicit)).collect();
        Ok((made?, is))
    }
}
