//! Columns of joins.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{JoinType, Node};

use crate::failure::Failure;
use crate::types::Type;

use super::hints;
use super::scope::{Column, FromItem};
use super::sequence_calls::takes_numbers;
use super::value::{as_element, name};

/// Makes the column that USING merges from two (`buildMergedJoinVar` of the server). A column that
/// is converted is no longer the table's: parentheses mark it.
pub(super) fn merged(left: Column, right: &Column, is: Type, kind: JoinType) -> Column {
    let one = |column: &Column| match column.is == is {
        true => column.sql.clone(),
        false => format!("({})", column.sql),
    };
    let parts = |column: &Column| column.parts().to_vec();
    let (sql, of) = match kind {
        JoinType::JoinFull => (
            format!("coalesce({}, {})", left.sql, right.sql),
            [parts(&left), parts(right)].concat(),
        ),
        JoinType::JoinRight => (one(right), parts(right)),
        JoinType::JoinInner if left.is != is && right.is == is => (one(right), parts(right)),
        _ => (one(&left), parts(&left)),
    };
    Column { sql, of, is, merged: false, not_null: false, ..left }
}

/// Marks the column of this name as merged with another.
pub(super) fn merge(sources: &mut [FromItem], wanted: &str) -> Option<Column> {
    let mut columns = sources.iter_mut().flat_map(|source| &mut source.columns);
    let column = columns.find(|column| !column.merged && column.name == wanted)?;
    let found = column.clone();
    column.merged = true;
    Some(found)
}

/// Refuses an alias with more names than there are columns.
pub(super) fn too_many(renamed: &[String], columns: usize, called: &str) -> Result<(), Failure> {
    if renamed.len() <= columns {
        return Ok(());
    }
    let message = format!(
        "table \"{called}\" has {columns} columns available but {} columns specified",
        renamed.len()
    );
    Err(Failure::new("42P10", message))
}

/// Refuses a query that reads itself on a side of an outer join that may be NULL. The sides are the
/// items from `start` on and from `middle` on.
pub(super) fn no_recursion_within(
    sources: &[FromItem],
    kind: JoinType,
    start: usize,
    middle: usize,
) -> Result<(), Failure> {
    let (left, right) = (&sources[start..middle], &sources[middle..]);
    let nullable = match kind {
        JoinType::JoinLeft => [right, &[]],
        JoinType::JoinRight => [left, &[]],
        JoinType::JoinFull => [left, right],
        _ => [&[][..], &[]],
    };
    match nullable.into_iter().flatten().find(|source| source.recursive) {
        None => Ok(()),
        Some(source) => {
            let message = format!(
                "recursive reference to query \"{}\" must not appear within an outer join",
                source.alias
            );
            Err(Failure::new("42P19", message))
        }
    }
}

/// Returns the names of columns that both sides of a join have.
pub(super) fn natural(
    sources: &[FromItem],
    start: usize,
    middle: usize,
    joined: &[Column],
) -> Vec<String> {
    let names = |sources: &[FromItem]| -> Vec<String> {
        let columns = sources.iter().flat_map(|source| &source.columns);
        columns.filter(|column| !column.merged).map(|column| column.name.clone()).collect()
    };
    let mut left = names(&sources[start..middle]);
    left.extend(joined.iter().map(|column| column.name.clone()));
    let right = names(&sources[middle..]);
    left.into_iter().filter(|name| right.contains(name)).collect()
}

/// True if an item of FROM sees the items before it.
pub(super) fn is_lateral(node: &Node) -> bool {
    match &node.node {
        Some(NodeEnum::RangeSubselect(it)) => it.lateral,
        Some(NodeEnum::JoinExpr(it)) => {
            it.larg.as_deref().is_some_and(is_lateral) || it.rarg.as_deref().is_some_and(is_lateral)
        }
        _ => false,
    }
}

/// True if an item of FROM has a RIGHT or a FULL join.
pub(super) fn has_right(node: &Node) -> bool {
    match &node.node {
        Some(NodeEnum::JoinExpr(it)) => {
            let side = |side: &Option<Box<Node>>| side.as_deref().is_some_and(has_right);
            let right = matches!(it.jointype(), JoinType::JoinRight | JoinType::JoinFull);
            right || side(&it.larg) || side(&it.rarg)
        }
        _ => false,
    }
}

/// Writes a query that sees the items of FROM before it: an array of its rows, which are arrays.
/// SQLite computes the arguments of a function in FROM for each row of the items before it.
pub(super) fn lateral(sql: &str, called: &str, source: &mut FromItem) -> Result<String, Failure> {
    let refused = |column: &Column| column.is == Type::Bytea;
    if source.columns.iter().any(refused) || takes_numbers(sql) {
        return Err(hints::refuse("LATERAL"));
    }
    let mut row = Vec::new();
    for (place, column) in source.columns.iter_mut().enumerate() {
        row.push(as_element(&name(&column.name), column.is));
        column.sql = format!("({called}.value ->> {place})");
    }
    let row = row.join(", ");
    Ok(format!("json_each((SELECT json_group_array(json_array({row})) FROM ({sql}))) AS {called}"))
}
