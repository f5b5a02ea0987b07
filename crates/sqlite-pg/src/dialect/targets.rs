//! The columns of a result, and the names and numbers by which ORDER BY refers to them.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Node, a_const::Val};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::strings;
use super::value::Expr;

/// A column of a result.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) expr: Expr,
}

/// A value of an ORDER BY.
pub(super) struct Sorted {
    pub(super) value: Expr,
    /// The column of the result that it is, by its place.
    pub(super) target: Option<usize>,
    /// SQLite's words behind it.
    pub(super) tail: String,
}

impl Sorted {
    /// Writes the value by which rows are ordered; `column` is the SQL of the value.
    pub(super) fn by(&self, column: &str) -> String {
        match self.value.is() {
            Some(Type::Enum(of)) => of.place(column),
            _ => column.to_owned(),
        }
    }

    /// True if the rows are not ordered by the value as it is stored.
    pub(super) fn is_by_place(&self) -> bool {
        matches!(self.value.is(), Some(Type::Enum(_)))
    }
}

/// The most columns of a result (`MaxTupleAttributeNumber` of the server).
const TARGETS_MAX: usize = 1664;

/// Checks the number of a result's columns.
///
/// # Errors
/// 54011.
pub(super) fn few_enough(targets: usize) -> Result<(), Failure> {
    match targets <= TARGETS_MAX {
        true => Ok(()),
        false => {
            let message = format!("target lists can have at most {TARGETS_MAX} entries");
            Err(Failure::new("54011", message))
        }
    }
}

/// Returns the column of the result to which ORDER BY refers by a number or a name.
pub(super) fn sorted_target(node: &Node, targets: &[Target]) -> Result<Option<usize>, Failure> {
    match &node.node {
        Some(NodeEnum::AConst(constant)) if !targets.is_empty() => {
            let Some(Val::Ival(number)) = &constant.val else {
                return Err(Failure::new(state::SYNTAX, "non-integer constant in ORDER BY"));
            };
            let place = usize::try_from(number.ival).ok().and_then(|place| place.checked_sub(1));
            let place = place.filter(|place| *place < targets.len());
            place.map(Some).ok_or_else(|| {
                let message = format!("ORDER BY position {} is not in select list", number.ival);
                Failure::new("42P10", message)
            })
        }
        Some(NodeEnum::ColumnRef(column)) if column.fields.len() == 1 => {
            let wanted = strings(&column.fields).pop().unwrap_or_default();
            let mut found = targets.iter().enumerate().filter(|(_, target)| target.name == wanted);
            let first = found.next();
            if let Some((_, first)) = first
                && found.any(|(_, other)| other.expr.sql != first.expr.sql)
            {
                let message = format!("ORDER BY \"{wanted}\" is ambiguous");
                return Err(Failure::new("42702", message));
            }
            Ok(first.map(|(place, _)| place))
        }
        _ => Ok(None),
    }
}

/// Checks that DISTINCT has a column for each value of ORDER BY.
pub(super) fn sorted_by_targets(sorted: &[Expr], targets: &[Target]) -> Result<(), Failure> {
    let number = |expr: &Expr| expr.sql.bytes().all(|byte| byte.is_ascii_digit());
    let known =
        |expr: &Expr| number(expr) || targets.iter().any(|target| target.expr.sql == expr.sql);
    match sorted.iter().all(known) {
        true => Ok(()),
        false => Err(Failure::new(
            "42P10",
            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
        )),
    }
}
