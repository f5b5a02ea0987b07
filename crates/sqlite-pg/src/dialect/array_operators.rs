//! Operators of arrays, in SQLite's dialect.

use crate::types::Type;

use super::value::Expr;

/// The operators by which sets of elements are compared.
pub(super) const CONTAINS: &[&str] = &["@>", "<@", "&&"];

/// Writes `@>`, `<@` or `&&`. As in the server, NULLs among the elements equal nothing.
pub(super) fn contained(operator: &str, left: &Expr, right: &Expr) -> Expr {
    let (whole, part) = match operator {
        "<@" => (&right.sql, &left.sql),
        _ => (&left.sql, &right.sql),
    };
    let known = format!("(SELECT value FROM json_each({whole}) WHERE value IS NOT NULL)");
    let found = match operator {
        "&&" => format!("EXISTS (SELECT 1 FROM json_each({part}) WHERE value IN {known})"),
        _ => format!(
            "NOT EXISTS (SELECT 1 FROM json_each({part}) WHERE value IS NULL \
             OR value NOT IN {known})"
        ),
    };
    let sql = format!("(CASE WHEN {whole} IS NOT NULL AND {part} IS NOT NULL THEN {found} END)");
    Expr::made(sql, Type::Bool, &[left, right])
}

/// Writes an array of the elements of two; one that is NULL counts as none.
pub(super) fn joined_arrays(left: &Expr, right: &Expr, is: Type) -> Expr {
    let (one, other) = (&left.sql, &right.sql);
    let sql = format!(
        "(CASE WHEN {one} IS NULL OR {one} = '[]' THEN coalesce({other}, {one}) \
         WHEN {other} IS NULL OR {other} = '[]' THEN {one} \
         ELSE substr({one}, 1, length({one}) - 1) || ',' || substr({other}, 2) END)"
    );
    Expr::made(sql, is, &[left, right])
}

/// Writes an array with one more element, in front or behind. An array that is NULL is empty.
pub(super) fn with_one(array: &Expr, element: &Expr, is: Type, in_front: bool) -> Expr {
    let (array_sql, one) = (&array.sql, format!("json_array({})", element.sql));
    let (first, last) = if in_front { (&one, array_sql) } else { (array_sql, &one) };
    let sql = format!(
        "(CASE WHEN {array_sql} IS NULL OR {array_sql} = '[]' THEN {one} \
         ELSE substr({first}, 1, length({first}) - 1) || ',' || substr({last}, 2) END)"
    );
    Expr::made(sql, is, &[array, element])
}
