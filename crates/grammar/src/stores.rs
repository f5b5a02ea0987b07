//! Finds the literals that an INSERT stores as they are written.
//!
//! A sequence that gives a column its value has advanced for good, even if the row is not inserted.
//! For a literal that does not fit its column, an INSERT of literals fails while it is planned,
//! before the sequence advances; a prepared INSERT fails as it runs, after that. So the engine
//! checks the literals of such an INSERT itself, and knows how to check the literals found here by
//! their columns.

use pg_query::NodeEnum;
use pg_query::protobuf::{AConst, InsertStmt, Node};
use refrain_sql::normalize::{Store, StoredIn};

use crate::slots::Slots;
use crate::tree::{built_in, constant, string, type_name};

/// Returns the literals among the parameters that are stored as they are, and true if there are
/// other parameters.
pub(crate) fn stores(insert: &InsertStmt, slots: &Slots<'_>) -> (Vec<Store>, bool) {
    let source = insert.select_stmt.as_ref().and_then(|it| it.node.as_ref());
    let Some(NodeEnum::SelectStmt(source)) = source else {
        return (Vec::new(), slots.parameters() > 0);
    };
    let (mut stores, mut sequences) = (Vec::new(), 0);
    for row in &source.values_lists {
        let Some(NodeEnum::List(row)) = &row.node else { continue };
        for (at, value) in row.items.iter().enumerate() {
            let literal = stored(value).and_then(|it| slots.parameter_at(it));
            match (literal, column(insert, at)) {
                (Some(literal), Some(column)) => stores.push(Store { literal, column }),
                (Some(_), None) => {}
                (None, _) => {
                    let name = sequence(value).and_then(|it| slots.parameter_at(it));
                    sequences += usize::from(name.is_some());
                }
            }
        }
    }
    let computes = slots.parameters() > stores.len() + sequences;
    (stores, computes)
}

/// Returns the column for the value at this place of a row, if the value is for a whole column.
fn column(insert: &InsertStmt, at: usize) -> Option<StoredIn> {
    if insert.cols.is_empty() {
        return Some(StoredIn::At(at + 1));
    }
    match insert.cols.get(at)?.node.as_ref()? {
        NodeEnum::ResTarget(it) if it.indirection.is_empty() => {
            Some(StoredIn::Named(it.name.clone()))
        }
        _ => None,
    }
}

/// Types from which casts to other types do not fail, except for the length: a string that is cast
/// to such a type is as good as one that is not.
const TAKEN: [&str; 5] = ["bool", "jsonb", "text", "uuid", "varchar"];

/// Returns the literal that a value is, or that the value casts to a type of [`TAKEN`].
fn stored(value: &Node) -> Option<&AConst> {
    match value.node.as_ref()? {
        NodeEnum::TypeCast(it) => {
            let to = it.type_name.as_ref().filter(|to| to.typmods.is_empty())?;
            string(it.arg.as_deref()?)
                .filter(|_| type_name(to).is_some_and(|it| TAKEN.contains(&it)))
        }
        _ => constant(value),
    }
}

/// Returns the name of the sequence if a value is a call of `nextval`.
fn sequence(value: &Node) -> Option<&AConst> {
    let Some(NodeEnum::FuncCall(call)) = &value.node else { return None };
    let [argument] = &*call.args else { return None };
    string(argument).filter(|_| built_in(&call.funcname) == Some("nextval"))
}
