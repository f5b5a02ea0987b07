//! Effect: what a statement may change, by its tree.
//!
//! What: [`effect`] finds the relations that INSERT, UPDATE, DELETE, MERGE, TRUNCATE, COPY FROM and
//! REFRESH MATERIALIZED VIEW name, at any depth of WITH, and everything about which the catalog has
//! to say more.
//!
//! What always holds: a kind of statement that is not listed here may change anything, and so may
//! one with a kind of expression that the walk does not know.

use pg_query::NodeEnum;
use pg_query::protobuf::{CopyStmt, DropBehavior, ExplainStmt, Node, TransactionStmtKind};
use refrain_sql::effect::{Effect, Way};
use refrain_sql::reads::Objection;

use crate::parse::statement;
use crate::reads::{Walk, Walked};

/// Returns what a text may change, as far as it shows. The thread needs a stack of
/// [`crate::STACK`] bytes.
pub fn effect(text: &str) -> Effect {
    statement(text).map_or(Effect::Anything, |tree| of_node(&tree))
}

fn of_node(tree: &Node) -> Effect {
    let Some(node) = &tree.node else { return Effect::Anything };
    match node {
        // A cursor's query changes rows when it is fetched: in the same transaction.
        NodeEnum::DeclareCursorStmt(it) => of_maybe(it.query.as_deref()),
        NodeEnum::ExplainStmt(it) if !runs(it) => Effect::Nothing,
        NodeEnum::ExplainStmt(it) => of_maybe(it.query.as_deref()),
        NodeEnum::TransactionStmt(it)
            if it.kind() == TransactionStmtKind::TransStmtCommitPrepared =>
        {
            Effect::Anything
        }
        NodeEnum::TransactionStmt(_)
        | NodeEnum::VariableSetStmt(_)
        | NodeEnum::VariableShowStmt(_)
        | NodeEnum::LockStmt(_)
        | NodeEnum::ListenStmt(_)
        | NodeEnum::NotifyStmt(_)
        | NodeEnum::UnlistenStmt(_)
        | NodeEnum::DiscardStmt(_)
        | NodeEnum::FetchStmt(_)
        | NodeEnum::ClosePortalStmt(_)
        | NodeEnum::ConstraintsSetStmt(_)
        | NodeEnum::PrepareStmt(_)
        | NodeEnum::DeallocateStmt(_)
        | NodeEnum::CheckPointStmt(_)
        | NodeEnum::VacuumStmt(_) => Effect::Nothing,
        _ => of_rows(node),
    }
}

fn of_maybe(tree: Option<&Node>) -> Effect {
    tree.map_or(Effect::Anything, of_node)
}

/// True if EXPLAIN may run the statement.
fn runs(explain: &ExplainStmt) -> bool {
    explain.options.iter().any(|option| match &option.node {
        Some(NodeEnum::DefElem(it)) => it.defname == "analyze",
        _ => true,
    })
}

fn of_rows(node: &NodeEnum) -> Effect {
    let mut walk = Walk::writing();
    let walked = match node {
        NodeEnum::TruncateStmt(it) => {
            let cascades = it.behavior() == DropBehavior::DropCascade;
            let way = if cascades { Way::TruncateCascade } else { Way::Truncate };
            it.relations.iter().try_for_each(|relation| truncates(&mut walk, relation, way))
        }
        NodeEnum::RefreshMatViewStmt(it) => {
            walk.target(it.relation.as_ref(), &[Way::Refresh]);
            Ok(())
        }
        NodeEnum::CopyStmt(it) => copy(&mut walk, it),
        NodeEnum::SelectStmt(_)
        | NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_)
        | NodeEnum::MergeStmt(_) => walk.statement(node),
        _ => return Effect::Anything,
    };
    match walked {
        Ok(()) => {
            let (targets, mentioned) = walk.finish();
            Effect::Rows { targets, mentioned }
        }
        Err(_) => Effect::Anything,
    }
}

fn truncates(walk: &mut Walk, relation: &Node, way: Way) -> Walked {
    let Some(NodeEnum::RangeVar(relation)) = &relation.node else { return Err(Objection::Form) };
    walk.target(Some(relation), &[way]);
    Ok(())
}

fn copy(walk: &mut Walk, copy: &CopyStmt) -> Walked {
    if copy.is_from {
        walk.target(copy.relation.as_ref(), &[Way::Insert]);
        return walk.maybe(&copy.where_clause);
    }
    // A program may do anything.
    if copy.is_program {
        return Err(Objection::Form);
    }
    let relation = copy.relation.clone().map(|it| Node { node: Some(NodeEnum::RangeVar(it)) });
    walk.nodes(&relation)?;
    match copy.query.as_deref().and_then(|query| query.node.as_ref()) {
        Some(query) => walk.statement(query),
        None => Ok(()),
    }
}
