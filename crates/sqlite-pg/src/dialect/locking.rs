//! FOR UPDATE, FOR SHARE and the like.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Alias, LockClauseStrength, Node, SelectStmt, SetOperation};

use crate::failure::Failure;

use super::hints;
use super::scope::Catalog;
use super::targets::Target;
use super::value::name;

/// Checks FOR UPDATE and the like, and returns a table of it as SQL. Such a query gets the right to
/// write, which one transaction has at a time, so that no other one changes the rows before it
/// ends.
pub(super) fn locking(
    catalog: &dyn Catalog,
    select: &SelectStmt,
) -> Result<Option<String>, Failure> {
    let mut locks = None;
    for node in &select.locking_clause {
        let Some(NodeEnum::LockingClause(clause)) = &node.node else {
            return Err(hints::unknown());
        };
        let word = match clause.strength() {
            LockClauseStrength::LcsForupdate => "UPDATE",
            LockClauseStrength::LcsFornokeyupdate => "NO KEY UPDATE",
            LockClauseStrength::LcsForkeyshare => "KEY SHARE",
            _ => "SHARE",
        };
        let refused = [
            (select.op() != SetOperation::SetopNone, "UNION/INTERSECT/EXCEPT"),
            (!select.values_lists.is_empty(), "VALUES"),
            (!select.distinct_clause.is_empty(), "DISTINCT clause"),
            (!select.group_clause.is_empty(), "GROUP BY clause"),
            (select.having_clause.is_some(), "HAVING clause"),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(has, _)| *has) {
            return Err(locks_no_rows(word, &format!("with {what}")));
        }
        let of = |node: &Node| match &node.node {
            Some(NodeEnum::RangeVar(relation)) => Some(relation.relname.clone()),
            _ => None,
        };
        for table in clause.locked_rels.iter().filter_map(of) {
            if !select.from_clause.iter().any(|item| has_alias(item, &table)) {
                let message =
                    format!("relation \"{table}\" in FOR {word} clause not found in FROM clause");
                return Err(Failure::new("42P01", message).hint("name a table of FROM"));
            }
        }
        let table = select.from_clause.iter().find_map(|item| locked(catalog, item));
        locks = locks.or(table);
    }
    Ok(locks)
}

/// Refuses to lock the rows of a query that are none of a table.
pub(super) fn locks_rows(
    windowed: bool,
    select: &SelectStmt,
    targets: &[Target],
) -> Result<(), Failure> {
    let aggregate = targets.iter().any(|target| target.expr.aggregate);
    if select.locking_clause.is_empty() || !aggregate && !windowed {
        return Ok(());
    }
    let what = if aggregate { "with aggregate functions" } else { "with window functions" };
    Err(locks_no_rows("UPDATE", what))
}

/// Returns a table in an item of FROM, as SQL.
fn locked(catalog: &dyn Catalog, item: &Node) -> Option<String> {
    match item.node.as_ref()? {
        NodeEnum::RangeVar(relation) => {
            let columns = catalog.table(None, &relation.relname)?;
            let is_table = columns.iter().all(|column| column.writable);
            is_table.then(|| name(&relation.relname))
        }
        NodeEnum::JoinExpr(join) => {
            let side = |side: &Option<Box<Node>>| locked(catalog, side.as_deref()?);
            side(&join.larg).or_else(|| side(&join.rarg))
        }
        NodeEnum::RangeSubselect(query) => match query.subquery.as_ref()?.node.as_ref()? {
            NodeEnum::SelectStmt(select) => {
                select.from_clause.iter().find_map(|item| locked(catalog, item))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns 0A000: the rows of such a query are none of a table.
fn locks_no_rows(word: &str, what: &str) -> Failure {
    Failure::unsupported(format!("FOR {word} is not allowed {what}"))
        .hint("lock the rows of the tables in a query of its own")
}

/// True if an item of FROM has this alias, or a part of it has.
fn has_alias(item: &Node, called: &str) -> bool {
    let named = |alias: Option<&Alias>| alias.is_some_and(|alias| alias.aliasname == called);
    match &item.node {
        Some(NodeEnum::RangeVar(it)) => match &it.alias {
            Some(alias) => alias.aliasname == called,
            None => it.relname == called,
        },
        Some(NodeEnum::RangeSubselect(it)) => named(it.alias.as_ref()),
        Some(NodeEnum::RangeFunction(it)) => named(it.alias.as_ref()),
        Some(NodeEnum::JoinExpr(it)) => {
            let side = |side: &Option<Box<Node>>| {
                side.as_deref().is_some_and(|item| has_alias(item, called))
            };
            named(it.alias.as_ref()) || side(&it.larg) || side(&it.rarg)
        }
        _ => false,
    }
}
