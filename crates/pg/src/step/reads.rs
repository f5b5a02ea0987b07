//! Reads: when Refrain finds out whether statements are reads and what they may change, and what it
//! makes of the answers.
//!
//! A core notices a statement at its fifth use, and its next tick looks at it, in pools that share
//! servers or whose writes may make kept replies wrong. About once a second ([`LOOK_US`]) the core
//! looks through its statements for those that are to be asked about again. So a query does no more
//! for this than to count. A job asks a server about several of them at a time, and a pool asks
//! about one batch at a time.

use std::sync::Arc;

use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::effect::Effect;
use refrain_sql::reads::{Objection, may_be_read};

use crate::engine::Step;
use crate::pipeline::job::JobError;
use crate::reads::findings::{Findings, Writes};
use crate::reads::queue::{Asked, Candidate};
use crate::results::store::ResultStore;
use crate::state::options::{finds_changes, finds_reads};
use crate::state::parts::{Action, Pool};
use crate::state::requests::{ReadCase, Request, TextFindings};
use crate::statements::of_core::CachedStatement;
use crate::statements::relations::Changes;
use crate::statements::statement::Statement;

/// Time between two looks through a core's statements, in microseconds.
const LOOK_US: u64 = 1_000_000;
/// Most statements that one look finds again.
const AGAIN_MAX: usize = 64;

/// A pool in which Refrain finds something out about statements.
#[derive(Clone, Copy)]
struct Scope {
    pool: PoolId,
    schema_changes: u64,
    /// Whether it finds out what they may change as well.
    changes: bool,
}

impl Scope {
    fn of(pool: &Pool) -> Option<Self> {
        finds_reads(pool).then(|| Self {
            pool: pool.shared.id,
            schema_changes: pool.shared.protocol.schema_changes(),
            changes: finds_changes(pool),
        })
    }

    /// Whether what a statement may change is of interest.
    fn wants_changes(self, statement: &Statement) -> bool {
        self.changes && statement.writes
    }
}

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
        let scopes: Vec<Scope> = core_state.pools().filter_map(Scope::of).collect();
        if scopes.is_empty() {
            return;
        }
        let scope = |it: &Statement| scopes.iter().find(|scope| scope.pool == it.pool).copied();
        due.retain(|it| {
            let wanted = |scope: Scope| may_be_read(&it.scan) || scope.wants_changes(it);
            !it.verdict.was_asked() && scope(it).is_some_and(wanted)
        });
        if again {
            let found = core_state.protocol.statements.iter().filter(|cached| {
                scope(&cached.statement).is_some_and(|scope| is_due_again(cached, scope, now))
            });
            due.extend(found.take(AGAIN_MAX).map(|cached| cached.statement.clone()));
        }
        for statement in due {
            if let Some(scope) = scope(&statement) {
                self.ask_for_names(statement, scope);
            }
        }
    }

    /// Asks the parser thread what the text of a statement mentions.
    fn ask_for_names(&mut self, statement: Arc<Statement>, scope: Scope) {
        let (schema_changes, changes) = (scope.schema_changes, scope.wants_changes(&statement));
        let (now, core) = (self.step.now, &self.step.engine.core_state.protocol);
        let Some(settings) = core.settings_of(statement.env) else { return };
        // The grammar reads UTF-8, and takes a backslash in a string for a backslash.
        let plain = settings.reads.encoding.is_utf8() || statement.text().is_ascii();
        if !plain || settings.reads.backslash {
            statement.verdict.learn(Err(Objection::Encoding), schema_changes, now);
        } else if statement.begins_question(schema_changes, now) {
            let case = ReadCase { statement, settings, changes };
            self.step.ports.act(Action::Ask(Request::Read(Box::new(case))));
        }
    }

    /// Takes what the parser thread has found in the text of a statement.
    pub(crate) fn text_read(&mut self, case: ReadCase, found: TextFindings) {
        let ReadCase { statement, settings, changes } = case;
        let Some(pool) = self.step.engine.core_state.find_pool(statement.pool) else { return };
        let (objection, mentioned, targets) = match found {
            TextFindings { read: Ok(mentioned), .. } => (None, mentioned, changes.then(Vec::new)),
            TextFindings { read: Err(objection), effect } => {
                let schema_changes = pool.shared.protocol.schema_changes();
                statement.verdict.learn(Err(objection), schema_changes, self.step.now);
                pool.counters.protocol.reads_refused += 1;
                match effect {
                    Some(Effect::Rows { targets, mentioned }) => {
                        // The question may get lost, or wait where no server is free.
                        statement.verdict.ask_soon(self.step.now);
                        (Some(objection), mentioned, Some(targets))
                    }
                    Some(Effect::Nothing) => {
                        return statement.relations.learn_changes(Changes::Nothing, schema_changes);
                    }
                    // What is not known may change anything.
                    Some(Effect::Anything) | None => return,
                }
            }
        };
        let alone = false;
        let candidate = Candidate { statement, settings, objection, mentioned, targets, alone };
        pool.protocol.reads.push(candidate);
    }
}

/// True if Refrain is to find out once more whether a statement is a read, or what it may change.
/// Forgets what is no longer certain of a statement that is not used any more.
fn is_due_again(cached: &CachedStatement, scope: Scope, now: Now) -> bool {
    let Statement { verdict, relations, .. } = &*cached.statement;
    let known = verdict.known(scope.schema_changes);
    let (mut stays, mut voided) =
        (known.is_some_and(|known| known.is_err_and(Objection::is_of_text)), known.is_none());
    if scope.wants_changes(&cached.statement) {
        stays = false;
        voided |= relations.are_voided(scope.schema_changes);
    }
    if stays || !verdict.was_asked() || !voided && !verdict.is_due(now) {
        return false;
    }
    let used = cached.is_in_use();
    if !used {
        verdict.forget_if_due(now);
    }
    used
}

/// Records what a server has said about statements. If it refused, `refused` is its error, and a
/// server is asked about each of them alone; an error that says nothing of them has the question
/// asked again another time.
pub(super) fn conclude(
    store: &ResultStore,
    pool: &mut Pool,
    asked: Asked,
    refused: Option<JobError>,
    now: Now,
) {
    pool.protocol.reads.asking = false;
    let schema_changes = asked.schema_changes;
    if let Some(identity) = asked.identity {
        pool.shared.protocol.place().is(identity);
    }
    let several = asked.candidates.len() > 1;
    for (candidate, found) in asked.found() {
        let read = match refused {
            Some(refused) if refused.passes => continue,
            Some(_) if several => {
                pool.protocol.reads.push(Candidate { alone: true, ..candidate });
                continue;
            }
            Some(_) => Err(Objection::Server),
            None => found.read(),
        };
        learn_relations(
            store,
            pool,
            &candidate,
            refused.is_none().then_some(&found),
            schema_changes,
        );
        candidate.statement.verdict.learn(read, schema_changes, now);
        if found.may_pass() {
            candidate.statement.verdict.ask_soon(now);
        }
        if candidate.objection.is_some() {
            continue;
        }
        match read {
            Ok(_) => pool.counters.protocol.reads_verified += 1,
            Err(_) => pool.counters.protocol.reads_refused += 1,
        }
    }
}

/// Records which tables a statement reads and may change, as a server has found; `None` if no
/// server could say.
fn learn_relations(
    store: &ResultStore,
    pool: &Pool,
    candidate: &Candidate,
    found: Option<&Findings>,
    schema_changes: u64,
) {
    let (place, relations) = (pool.shared.protocol.place(), &candidate.statement.relations);
    let table = |(oid, name): (u32, String)| place.table(store, oid, name);
    if let Some(found) = found {
        let above = found.below().into_iter().map(|oid| place.below(store, oid));
        let tables = found.relations().into_iter().map(table);
        relations.learn_reads(tables.collect(), above.collect());
    }
    if candidate.targets.is_some() {
        let changes = match found.map_or(Writes::Anything, Findings::writes) {
            Writes::Nothing => Changes::Nothing,
            Writes::Anything => Changes::Anything,
            Writes::Relations(changed) => {
                let through = found.map(Findings::through).unwrap_or_default();
                let below = through.into_iter().map(|oid| place.below(store, oid));
                let tables = changed.into_iter().map(table).flat_map(|it| it.topics);
                Changes::Tables(tables.chain(below).collect())
            }
        };
        relations.learn_changes(changes, schema_changes);
    }
}
