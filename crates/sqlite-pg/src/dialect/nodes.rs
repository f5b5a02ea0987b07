//! Parts of expressions that need no translation of others.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Node, SqlValueFunction, SqlValueFunctionOp as Value};

use crate::failure::Failure;
use crate::types::Type;

use super::value::{Expr, ExprKind};
use super::{Translated, hints, string};

/// Splits the right side of a LIKE: the pattern, and the ESCAPE, which the grammar passes as a
/// function call.
pub(super) fn like_escape(node: &Node) -> (&Node, Option<&Node>) {
    match &node.node {
        Some(NodeEnum::FuncCall(call))
            if names(&call.funcname).ends_with(&["like_escape".to_owned()]) =>
        {
            match &call.args[..] {
                [pattern, escape] => (pattern, Some(escape)),
                _ => (node, None),
            }
        }
        _ => (node, None),
    }
}

/// Translates the functions that are called without parentheses.
pub(super) fn value_function(it: &SqlValueFunction) -> Translated<Expr> {
    if let (Value::SvfopCurrentTimestampN | Value::SvfopLocaltimestampN, digits @ 0..=6) =
        (it.op(), it.typmod)
    {
        let (sql, is, name) = match it.op() {
            Value::SvfopCurrentTimestampN => ("now()", Type::Timestamptz, "current_timestamp"),
            _ => ("refrain_zoneless(now())", Type::Timestamp, "localtimestamp"),
        };
        let sql = format!("refrain_fit({}, {sql}, {digits}, 1)", is.oid());
        return Ok(Expr::typed(sql, is).named(name));
    }
    let (sql, is, name) = match it.op() {
        Value::SvfopCurrentDate => {
            ("substr(refrain_zoneless(now()), 1, 10)", Type::Date, "current_date")
        }
        Value::SvfopCurrentTimestamp => ("now()", Type::Timestamptz, "current_timestamp"),
        Value::SvfopLocaltime => ("substr(refrain_zoneless(now()), 12)", Type::Time, "localtime"),
        Value::SvfopLocaltimestamp => {
            ("refrain_zoneless(now())", Type::Timestamp, "localtimestamp")
        }
        Value::SvfopCurrentRole => ("current_role()", Type::Name, "current_role"),
        Value::SvfopCurrentUser => ("current_user()", Type::Name, "current_user"),
        Value::SvfopUser => ("user()", Type::Name, "user"),
        Value::SvfopSessionUser => ("session_user()", Type::Name, "session_user"),
        Value::SvfopCurrentCatalog => ("current_catalog()", Type::Name, "current_catalog"),
        Value::SvfopCurrentSchema => ("current_schema()", Type::Name, "current_schema"),
        _ => return Err(hints::refuse("CURRENT_TIME").into()),
    };
    Ok(Expr::typed(sql, is).named(name))
}

/// Returns the strings in a list of nodes.
pub(super) fn names(nodes: &[Node]) -> Vec<String> {
    nodes.iter().filter_map(string).collect()
}

/// Returns the parts of a row.
pub(super) fn row(node: &Node) -> Option<&[Node]> {
    match &node.node {
        Some(NodeEnum::RowExpr(row)) => Some(&row.args),
        _ => None,
    }
}

/// Checks that a pattern of LIKE does not end with its escape character, given as SQL.
///
/// # Errors
/// 22025.
pub(super) fn is_pattern(pattern: &ExprKind, escape: &str) -> Result<(), Failure> {
    let ExprKind::Literal(text) = pattern else { return Ok(()) };
    let letter = escape.chars().nth(1);
    let last = text.chars().rev().take_while(|known| Some(*known) == letter).count();
    if last.is_multiple_of(2) {
        return Ok(());
    }
    let message = "LIKE pattern must not end with escape character";
    Err(Failure::new("22025", message).hint("write the character twice"))
}
