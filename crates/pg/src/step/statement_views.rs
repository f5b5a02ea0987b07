//! Views of the statements, for the admin console, the page and the metrics.
//!
//! Texts are shown without literals: these are data of users.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::figures::{StatementFigures, SumOfFigures};
use refrain_pool::ids::PoolId;

use crate::results::texts::without_literals;
use crate::state::parts::{Engine, PoolShared, Shared};
use crate::state::snapshot::StatementView;
use crate::statements::statement::Statement;

/// Stands for the text of the statements of a pool that Refrain does not know.
pub const OTHERS: &str = "(not prepared)";

/// A core's part in the views of statements.
#[derive(Debug, Default)]
pub struct CoreStatementsView {
    /// The IDs of the statements that clients hold, each with the number of the clients.
    pub clients: Vec<(u64, u32)>,
    /// The figures of the statements.
    pub figures: StatementFigures,
}

/// Returns a core's part in the views of statements.
pub fn core_statements(engine: &Engine) -> CoreStatementsView {
    let core = &engine.core_state.protocol;
    CoreStatementsView { clients: core.statements.clients(), figures: core.figures.copy() }
}

/// Returns every statement, without the cores' parts, in the order of their IDs.
pub fn statements(shared: &Shared) -> Vec<StatementView> {
    let pools: HashMap<PoolId, Arc<PoolShared>> =
        shared.pools().into_iter().map(|pool| (pool.id, pool)).collect();
    let mut statements = Vec::new();
    // The registry is locked meanwhile: nothing is computed here.
    shared.protocol.registry.for_each(|statement| statements.push(statement.clone()));
    statements.sort_by_key(|statement| statement.id);
    let view = |statement: &Statement| {
        let pool = pools.get(&statement.pool)?;
        let (database, user) = (pool.database.clone(), pool.user.clone());
        let schema_changes = pool.protocol.schema_changes();
        let text = without_literals(statement.text());
        Some(StatementView::of(statement, text, (database, user), schema_changes))
    };
    statements.iter().filter_map(view).collect()
}

/// Returns every statement with its clients and figures at these cores. The last rows, whose ID is
/// zero, are those of the statements of each pool that are not known any more, or never were.
pub fn statements_at(shared: &Shared, cores: &[CoreStatementsView]) -> Vec<StatementView> {
    let (mut clients, mut figures) = (HashMap::new(), HashMap::new());
    for core in cores {
        SumOfFigures::add_core(&mut figures, &core.figures);
        for (id, count) in &core.clients {
            *clients.entry(*id).or_default() += count;
        }
    }
    let mut views = statements(shared);
    for view in &mut views {
        view.clients = clients.get(&view.id).copied().unwrap_or(0);
        view.figures = figures.remove(&view.id).unwrap_or_default();
    }
    // What is left is of statements that are not known any more, or never were.
    let mut others: HashMap<PoolId, SumOfFigures> = HashMap::new();
    for sum in figures.into_values() {
        others.entry(sum.pool).or_default().add(&sum);
    }
    let mut pools = shared.pools();
    pools.sort_by_key(|pool| pool.id);
    for pool in pools {
        let sum = others.remove(&pool.id).unwrap_or_default();
        if sum.counts.calls + sum.counts.errors > 0 {
            views.push(StatementView::of_others(&pool.database, &pool.user, OTHERS, sum));
        }
    }
    views
}
