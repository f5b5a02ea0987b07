//! Waiting reads: the statements that wait until a server can be asked whether they are reads, and
//! when Refrain looks after them.

use refrain_pool::ids::PoolId;

use crate::engine::Step;
use crate::step::reads;

/// Most statements that wait for a server for which one look sees what other pools have found,
/// those of the last pool aside.
const WAITING_MAX: usize = 1000;

impl Step<'_, '_> {
    /// Takes what other pools have found about the statements that wait, and has servers asked
    /// about the others if it is time. No event of such a pool does: it may have to wait for what
    /// other pools and cores do. One look after the other begins where the last one has ended.
    pub(crate) fn look_for_answers(&mut self) {
        let (now, core_state) = (self.step.now, &mut self.step.engine.core_state);
        let waiting = core_state.pools().filter(|pool| pool.protocol.reads.waiting() > 0);
        let mut waiting: Vec<PoolId> = waiting.map(|pool| pool.shared.id).collect();
        let begin = core_state.protocol.looked_for_answers % waiting.len().max(1);
        waiting.rotate_left(begin);
        let (shared, mut statements, mut looked) = (core_state.shared.clone(), 0, 0);
        for id in waiting {
            let Some(pool) = self.step.engine.core_state.find_pool(id) else { continue };
            looked += 1;
            statements += pool.protocol.reads.waiting();
            if pool.protocol.reads.has_due(now) {
                self.queue_what_is_due(id);
            } else {
                reads::settle(&shared.protocol, pool, now);
            }
            if statements >= WAITING_MAX {
                break;
            }
        }
        self.step.engine.core_state.protocol.looked_for_answers = begin + looked;
    }
}
