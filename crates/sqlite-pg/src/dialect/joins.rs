//! Columns of joins.

use refrain_grammar::protobuf::JoinType;

use crate::failure::Failure;
use crate::types::Type;

use super::scope::{Column, FromItem};

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
