//! UPDATE and DELETE.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{DeleteStmt, Node, ReturningClause, UpdateStmt};

use super::NotTranslated;
use super::scope::{FromItem, Scope, Scoped};
use super::select::Output;
use super::target_table::{TargetTable, Writer};
use super::value::name;
use super::write::Written;
use super::write_target::{END_OF_ROWS, WriteTarget, WriteVerb};
use super::{Translated, hints};

impl Writer<'_, '_> {
    pub(super) fn update(&mut self, update: &UpdateStmt) -> Translated<Written> {
        self.behind_with(update.with_clause.as_ref(), |this| {
            this.within(Scope::default(), |this| this.update_table(update))
        })
    }

    fn update_table(&mut self, update: &UpdateStmt) -> Translated<Written> {
        let into = self.target_table(update.relation.as_ref())?;
        self.see(&into);
        let mut bare = Vec::new();
        let from = self.translator.from(&update.from_clause, &mut bare)?;
        let set = self.assignments(&update.target_list, &into)?;
        let mut sql = format!("UPDATE {} SET {set}", into.sql());
        if !from.is_empty() {
            sql.push_str(&format!(" FROM {from}"));
        }
        self.filtered(update.where_clause.as_deref(), &mut sql)?;
        *self.target =
            Some(WriteTarget { table: into.table.clone(), verb: WriteVerb::Update, key: None });
        let others = !update.from_clause.is_empty();
        let columns =
            self.returning_of(update.returning_clause.as_ref(), &into, others, &mut sql)?;
        Ok(Written { sql, columns })
    }

    pub(super) fn delete(&mut self, delete: &DeleteStmt) -> Translated<Written> {
        self.behind_with(delete.with_clause.as_ref(), |this| {
            this.within(Scope::default(), |this| this.delete_from(delete))
        })
    }

    fn delete_from(&mut self, delete: &DeleteStmt) -> Translated<Written> {
        let into = self.target_table(delete.relation.as_ref())?;
        self.see(&into);
        let mut sql = format!("DELETE FROM {}", into.sql());
        if delete.using_clause.is_empty() {
            self.filtered(delete.where_clause.as_deref(), &mut sql)?;
        } else {
            let using = self.translator.from(&delete.using_clause, &mut Vec::new())?;
            // SQLite has three names for a row's number; a column may have one of them.
            let is_column = |called: &&&str| {
                into.attributes.iter().any(|column| column.name.eq_ignore_ascii_case(called))
            };
            let rowid = ["rowid", "_rowid_", "oid"].iter().find(|called| !is_column(called));
            let rowid = rowid.ok_or_else(hints::unknown)?;
            let row = format!("{}.{rowid}", name(&into.alias));
            sql.push_str(&format!(" WHERE {row} IN (SELECT {row} FROM {}, {using}", into.sql()));
            self.filtered(delete.where_clause.as_deref(), &mut sql)?;
            sql.push(')');
        }
        let verb = WriteVerb::Delete { alias: into.alias.clone(), head: "DELETE ".len() };
        *self.target = Some(WriteTarget { table: into.table.clone(), verb, key: None });
        if delete.returning_clause.is_some() {
            sql.push_str(END_OF_ROWS);
        }
        let others = !delete.using_clause.is_empty();
        let columns =
            self.returning_of(delete.returning_clause.as_ref(), &into, others, &mut sql)?;
        Ok(Written { sql, columns })
    }

    /// Translates RETURNING of a statement that may have other tables beside its own.
    ///
    /// # Errors
    /// 0A000 if it reads them: SQLite does not show them there.
    fn returning_of(
        &mut self,
        returning: Option<&ReturningClause>,
        into: &TargetTable,
        others: bool,
        sql: &mut String,
    ) -> Translated<Vec<Output>> {
        let is_star = |node: &Node| match &node.node {
            Some(NodeEnum::ResTarget(target)) => {
                let value = target.val.as_deref().and_then(|value| value.node.as_ref());
                matches!(value, Some(NodeEnum::ColumnRef(it)) if it.fields.len() == 1
                    && matches!(it.fields[0].node, Some(NodeEnum::AStar(_))))
            }
            _ => false,
        };
        let refusal = hints::refuse("RETURNING of other tables");
        if others && returning.is_some_and(|it| it.exprs.iter().any(is_star)) {
            return Err(refusal.into());
        }
        match self.returning(returning, into, sql) {
            Err(NotTranslated::Refused(failure)) if others && failure.sqlstate == "42P01" => {
                Err(refusal.into())
            }
            returned => returned,
        }
    }

    fn see(&mut self, into: &TargetTable) {
        if let Some(scope) = self.translator.scopes.open.last_mut() {
            scope.sources.push(FromItem::table(&into.alias, &into.attributes));
        }
    }

    fn filtered(&mut self, node: Option<&Node>, sql: &mut String) -> Translated<()> {
        let Some(node) = node else { return Ok(()) };
        let condition = self.translator.condition(node, "WHERE")?;
        if condition.aggregate {
            return Err(hints::aggregate("WHERE").into());
        }
        sql.push_str(&format!(" WHERE {}", condition.sql));
        Ok(())
    }
}
