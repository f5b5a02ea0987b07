//! Waiting reads: the statements that wait until a server can be asked whether they are reads, and
//! when Refrain looks after them.

use refrain_pool::Now;
use refrain_pool::ids::PoolId;

use crate::state::parts::CoreState;
use crate::step::reads;

/// Most statements that wait for a server for which one look sees what other pools have found,
/// those of the last pool aside.
const WAITING_MAX: usize = 1000;

/// Takes what other pools have found about the statements that wait. Returns the pools whose
/// servers it is time to ask about the others. No event of such a pool does: it may have to wait
/// for what other pools and cores do. One look after the other begins where the last one has ended.
pub(crate) fn look_for_answers(core_state: &mut CoreState, now: Now) -> Vec<PoolId> {
    let waiting = core_state.pools().filter(|pool| pool.protocol.reads.waiting() > 0);
    let mut waiting: Vec<PoolId> = waiting.map(|pool| pool.shared.id).collect();
    let begin = core_state.protocol.looked_for_answers % waiting.len().max(1);
    waiting.rotate_left(begin);
    let (shared, mut statements, mut looked) = (core_state.shared.clone(), 0, 0);
    let mut due = Vec::new();
    for id in waiting {
        let Some(pool) = core_state.find_pool(id) else { continue };
        looked += 1;
        statements += pool.protocol.reads.waiting();
        if pool.protocol.reads.has_due(now) {
            due.push(id);
        } else {
            reads::settle(&shared.protocol, pool, now);
        }
        if statements >= WAITING_MAX {
            break;
        }
    }
    core_state.protocol.looked_for_answers = begin + looked;
    due
}
