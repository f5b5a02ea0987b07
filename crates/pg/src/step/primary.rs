//! How far the primary is: the jobs that ask it, for reads on standbys.

use crate::pipeline::job::{Job, Task};
use crate::pipeline::outstanding::Purpose;
use crate::relay::pipe::Pipeline;
use crate::standbys::position::OF_PRIMARY;
use crate::standbys::progress::PrimaryQuestion;
use crate::state::parts::Pool;

/// Asks a primary how far it is, if a read needs that.
pub(crate) fn ask_primary(pipe: &mut Pipeline<'_>) -> Option<Job> {
    let now = pipe.now;
    let pool = pipe.pool();
    if !std::mem::take(&mut pool.protocol.primary_due) {
        return None;
    }
    // Begun before anything is sent: what is answered up to now is in front of the position.
    let question = pool.shared.protocol.place().progress.ask(now)?;
    pipe.name_mode(Purpose::SyncSettings);
    pipe.run_internal(OF_PRIMARY, Purpose::Verify);
    pipe.end_segment(Purpose::Verify);
    Some(Job::begun(Task::AskPrimary(Box::new(question))))
}

/// Takes in what a primary has said; nothing, if it could not say.
pub(crate) fn conclude(pool: &Pool, question: &PrimaryQuestion) {
    let max_lag = pool.settings.server.max_lag;
    pool.shared.protocol.place().progress.learn(question, max_lag);
}
