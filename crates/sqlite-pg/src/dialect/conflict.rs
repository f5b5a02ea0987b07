//! ON CONFLICT.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Node, OnConflictAction, OnConflictClause};

use crate::failure::{Failure, state};
use crate::key_mark::GivenBy;

use super::scope::{Attribute, FromItem, Scope, Scoped};
use super::select::value_of;
use super::target_table::{TargetTable, Writer};
use super::value::name;
use super::{Translated, hints, strings};

impl Writer<'_, '_> {
    pub(super) fn conflict(
        &mut self,
        conflict: &OnConflictClause,
        into: &TargetTable,
    ) -> Translated<String> {
        let mut sql = " ON CONFLICT".to_owned();
        if let Some(infer) = &conflict.infer {
            if !infer.conname.is_empty() {
                return Err(hints::refuse("ON CONFLICT ON CONSTRAINT").into());
            }
            let mut columns = Vec::new();
            for node in &infer.index_elems {
                let Some(NodeEnum::IndexElem(element)) = &node.node else {
                    return Err(hints::unknown().into());
                };
                if element.expr.is_some() || !element.opclass.is_empty() {
                    return Err(hints::refuse("ON CONFLICT of an expression").into());
                }
                columns.push(name(&into.attribute(&element.name)?.name));
            }
            sql.push_str(&format!(" ({})", columns.join(", ")));
            if let Some(node) = &infer.where_clause {
                let scope = Scope::of_table(&into.alias, &into.attributes);
                let condition =
                    self.within(scope, |this| this.translator.condition(node, "WHERE"))?;
                sql.push_str(&format!(" WHERE {}", condition.sql));
            }
        }
        if conflict.action() == OnConflictAction::OnconflictUpdate && conflict.infer.is_none() {
            let message =
                "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(Failure::new(state::SYNTAX, message)
                .hint("For example, ON CONFLICT (column_name).")
                .into());
        }
        if conflict.action() == OnConflictAction::OnconflictNothing {
            sql.push_str(" DO NOTHING");
            return Ok(sql);
        }
        if into.alias == "excluded" {
            let message = "table reference \"excluded\" is ambiguous";
            return Err(Failure::new("42P09", message)
                .hint("give the table another name: INSERT INTO excluded AS t")
                .into());
        }
        let mut scope = Scope::default();
        scope.sources.push(FromItem::table(&into.alias, &into.attributes));
        scope.sources.push(FromItem::table("excluded", &into.attributes));
        // A plain name means the table's column.
        scope.joined = Scope::of_table(&into.alias, &into.attributes).sources.remove(0).columns;
        self.within(scope, |this| {
            let set = this.assignments(&conflict.target_list, into)?;
            sql.push_str(&format!(" DO UPDATE SET {set}"));
            if let Some(node) = &conflict.where_clause {
                let condition = this.translator.condition(node, "WHERE")?;
                sql.push_str(&format!(" WHERE {}", condition.sql));
            }
            Ok(sql)
        })
    }
}

/// Returns the columns of the ON CONFLICT target.
fn arbiters(conflict: &OnConflictClause) -> Vec<String> {
    let elements = conflict.infer.iter().flat_map(|infer| &infer.index_elems);
    let called = |node: &Node| match &node.node {
        Some(NodeEnum::IndexElem(element)) => Some(element.name.clone()),
        _ => None,
    };
    elements.filter_map(called).collect()
}

/// Wraps the rows of an INSERT with DO UPDATE so that a second row with the same key is an error:
/// PostgreSQL changes no row twice in one statement, while SQLite handles row after row. `source`
/// has the columns `column1`, `column2`…
pub(super) fn once(
    conflict: &OnConflictClause,
    into: &TargetTable,
    columns: &[Attribute],
    source: String,
) -> Result<String, Failure> {
    if conflict.action() != OnConflictAction::OnconflictUpdate {
        return Ok(source);
    }
    let arbiters = arbiters(conflict);
    if conflict.target_list.iter().any(|node| moves(node, &arbiters)) {
        return Err(hints::refuse("ON CONFLICT … SET key"));
    }
    let mut keys = String::new();
    for arbiter in &arbiters {
        let attribute = into.attribute(arbiter)?;
        let place = columns.iter().position(|column| column.name == attribute.name);
        match place {
            Some(place) => keys.push_str(&format!(", column{}", place + 1)),
            // A default is the same for all rows. A value that SQLite gives, or NULL, conflicts
            // with none.
            None if attribute.default.is_some() && attribute.given == GivenBy::Statement => {}
            None => return Ok(source),
        }
    }
    // LIMIT keeps SQLite from flattening the query: all rows have to pass one call.
    Ok(format!("SELECT * FROM (SELECT * FROM ({source}) LIMIT -1) WHERE refrain_once(0{keys})"))
}

/// True if an assignment gives a key another value than that of the conflicting row.
fn moves(node: &Node, arbiters: &[String]) -> bool {
    let Some(NodeEnum::ResTarget(target)) = &node.node else { return false };
    let same = |column: &str| column.eq_ignore_ascii_case(&target.name);
    let Some(arbiter) = arbiters.iter().find(|arbiter| same(arbiter)) else { return false };
    let value = value_of(node).and_then(|value| value.node.as_ref());
    let Some(NodeEnum::ColumnRef(value)) = value else { return true };
    let names = strings(&value.fields);
    let is_met = matches!(&names[..], [table, column]
        if table.eq_ignore_ascii_case("excluded") && column.eq_ignore_ascii_case(arbiter));
    !is_met
}
