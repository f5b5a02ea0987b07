//! Reads: when Refrain finds out whether statements are reads, and what it makes of the answers.
//!
//! A core notices a statement at its fifth use, and its next tick looks at it, in pools that share
//! servers. About once a second ([`LOOK_US`]) the core looks through its statements for those that
//! are to be asked about again. So a query does no more for this than to count. A job asks a server
//! about several of them at a time, and a pool asks about one batch at a time.

use std::sync::Arc;

use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::reads::{Mentioned, Objection, may_be_read};

use crate::engine::Step;
use crate::pipeline::job::JobError;
use crate::reads::queue::{Asked, Candidate};
use crate::state::options::finds_reads;
use crate::state::parts::{Action, Pool};
use crate::state::requests::{ReadCase, Request};
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Statement;

/// Time between two looks through a core's statements, in microseconds.
const LOOK_US: u64 = 1_000_000;
/// Most statements that one look finds again.
const AGAIN_MAX: usize = 64;

impl Step<'_, '_> {
    /// Looks for statements about which the parser thread or a server is to be asked.
    pub(crate) fn look_for_reads(&mut self) {
        let (now, core_state) = (self.step.now, &mut self.step.engine.core_state);
        let looked = std::mem::replace(&mut core_state.protocol.looked_for_reads, now);
        let again = now.0 / LOOK_US != looked.0 / LOOK_US;
        let mut due = core_state.protocol.statements.take_noticed();
        if due.is_empty() && !again {
            return;
        }
        let version = |pool: &Pool| (pool.shared.id, pool.shared.protocol.schema_changes());
        let sharing: Vec<(PoolId, u64)> =
            core_state.pools().filter(|pool| finds_reads(pool)).map(version).collect();
        if sharing.is_empty() {
            return;
        }
        let version = |id: PoolId| sharing.iter().find(|(pool, _)| *pool == id).map(|(_, it)| *it);
        due.retain(|it| {
            version(it.pool).is_some() && !it.verdict.was_asked() && may_be_read(&it.scan)
        });
        if again {
            let found = core_state.protocol.statements.iter().filter(|cached| {
                let schema_changes = version(cached.statement.pool);
                schema_changes
                    .is_some_and(|schema_changes| is_due_again(cached, schema_changes, now))
            });
            due.extend(found.take(AGAIN_MAX).map(|cached| cached.statement.clone()));
        }
        for statement in due {
            let schema_changes = version(statement.pool).unwrap_or_default();
            self.ask_for_names(statement, schema_changes);
        }
    }

    /// Asks the parser thread what the text of a statement mentions.
    fn ask_for_names(&mut self, statement: Arc<Statement>, schema_changes: u64) {
        let (now, core) = (self.step.now, &self.step.engine.core_state.protocol);
        let Some(settings) = core.settings_of(statement.env) else { return };
        // The grammar reads UTF-8, and takes a backslash in a string for a backslash.
        let plain = settings.reads.encoding.is_utf8() || statement.text().is_ascii();
        if !plain || settings.reads.backslash {
            statement.verdict.learn(Err(Objection::Encoding), schema_changes, now);
        } else if statement.verdict.begin(schema_changes, now) {
            let case = ReadCase { statement, settings };
            self.step.ports.act(Action::Ask(Request::Read(Box::new(case))));
        }
    }

    /// Takes what the parser thread has found in the text of a statement.
    pub(crate) fn text_read(&mut self, case: ReadCase, found: Result<Mentioned, Objection>) {
        let ReadCase { statement, settings } = case;
        let Some(pool) = self.step.engine.core_state.find_pool(statement.pool) else { return };
        match found {
            Ok(mentioned) => {
                let alone = false;
                pool.protocol.reads.push(Candidate { statement, settings, mentioned, alone });
            }
            Err(objection) => {
                let schema_changes = pool.shared.protocol.schema_changes();
                statement.verdict.learn(Err(objection), schema_changes, self.step.now);
                pool.counters.protocol.reads_refused += 1;
            }
        }
    }
}

/// True if Refrain is to find out once more whether a statement is a read. Forgets what is no
/// longer certain of a statement that is not used any more.
fn is_due_again(cached: &CachedStatement, schema_changes: u64, now: Now) -> bool {
    let verdict = &cached.statement.verdict;
    let known = verdict.known(schema_changes);
    let stays = known.is_some_and(|known| known.is_err_and(Objection::is_of_text));
    if stays || !verdict.was_asked() || known.is_some() && !verdict.is_due(now) {
        return false;
    }
    let used = cached.is_in_use();
    if !used {
        verdict.forget();
    }
    used
}

/// Records what a server has said about statements. If it refused, `refused` is its error, and a
/// server is asked about each of them alone; an error that says nothing of them has the question
/// asked again another time.
pub(super) fn conclude(pool: &mut Pool, asked: Asked, refused: Option<JobError>, now: Now) {
    pool.protocol.reads.asking = false;
    let schema_changes = asked.schema_changes;
    let several = asked.candidates.len() > 1;
    for (candidate, found) in asked.found() {
        let found = match refused {
            Some(refused) if refused.passes => continue,
            Some(_) if several => {
                pool.protocol.reads.push(Candidate { alone: true, ..candidate });
                continue;
            }
            Some(_) => Err(Objection::Server),
            None => found.read(),
        };
        candidate.statement.verdict.learn(found, schema_changes, now);
        match found {
            Ok(_) => pool.counters.protocol.reads_verified += 1,
            Err(_) => pool.counters.protocol.reads_refused += 1,
        }
    }
}
