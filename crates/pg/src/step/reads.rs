//! Reads: when Refrain finds out whether statements are reads and what they may change, and what it
//! makes of the answers.
//!
//! A core notices a statement at its fifth use, and its next tick looks at it, in pools that share
//! servers or whose writes may make kept replies wrong. About once a second ([`LOOK_US`]) the core
//! looks through its statements for those that are to be asked about again. So a query does no more
//! for this than to count. A job asks a server about several of them at a time, unless another pool
//! that logs in as the same user has asked already ([`crate::reads::answers`]). A host is asked
//! about one batch at a time, and for a small part of the time ([`crate::reads::pace`]).

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::effect::Effect;
use refrain_sql::hidden::{Hides, Words};
use refrain_sql::reads::{Objection, Unkept, may_be_read};

use crate::ground::ids::EnvId;
use crate::pipeline::job::JobError;
use crate::reads::answers::{AnswerSubject, ReadAnswer};
use crate::reads::findings::{Findings, Writes};
use crate::reads::hidden::hidden_in;
use crate::reads::queue::{Asked, Candidate};
use crate::state::core::CorePart;
use crate::state::options::{finds_changes, finds_reads};
use crate::state::parts::{Action, CoreState, Pool, Ports};
use crate::state::requests::{ReadCase, Request, TextFindings};
use crate::state::shared::SharedPart;
use crate::statements::of_core::CachedStatement;
use crate::statements::relations::Changes;
use crate::statements::statement::Statement;
use crate::statements::verdict::Read;

/// Time between two looks through a core's statements, in microseconds.
const LOOK_US: u64 = 1_000_000;
/// Most statements that one look finds again.
const AGAIN_MAX: usize = 64;

/// A pool in which Refrain finds something out about statements.
#[derive(Clone, Copy)]
struct ReadScope {
    pool: PoolId,
    schema_changes: u64,
    /// Whether it finds out what they may change as well.
    changes: bool,
}

impl ReadScope {
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

/// Looks for statements about which the parser thread or a server is to be asked. True if it was a
/// look at all of them, about once a second.
pub(crate) fn look_for_reads(now: Now, core_state: &mut CoreState, ports: &mut Ports) -> bool {
    let looked = std::mem::replace(&mut core_state.protocol.looked_for_reads, now);
    let again = now.0 / LOOK_US != looked.0 / LOOK_US;
    let mut due = core_state.protocol.statements.take_noticed();
    if due.is_empty() && !again {
        return false;
    }
    let scopes = core_state.pools().filter_map(ReadScope::of).map(|it| (it.pool, it));
    let scopes: HashMap<PoolId, ReadScope> = scopes.collect();
    if scopes.is_empty() {
        return false;
    }
    let scope = |it: &Statement| scopes.get(&it.pool).copied();
    due.retain(|it| {
        let wanted = |scope: ReadScope| may_be_read(&it.scan) || scope.wants_changes(it);
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
            ask_for_names(now, (&core_state.protocol, &mut *ports), statement, scope);
        }
    }
    again
}

/// Asks the parser thread what the text of a statement mentions.
fn ask_for_names(
    now: Now,
    (core, ports): (&CorePart, &mut Ports),
    statement: Statement,
    scope: ReadScope,
) {
    let (schema_changes, changes) = (scope.schema_changes, scope.wants_changes(&statement));
    let Some(settings) = core.settings_of(statement.env) else { return };
    // The grammar reads UTF-8, and takes a backslash in a string for a backslash.
    let plain = settings.reads.encoding.is_utf8() || statement.text().is_ascii();
    if !plain || settings.reads.backslash {
        statement.verdict.learn(Err(Objection::Encoding), schema_changes, now);
    } else if statement.begins_question(schema_changes, now) {
        let case = ReadCase { statement, settings, changes };
        ports.act(Action::Ask(Request::Read(Box::new(case))));
    }
}

/// Takes what the parser thread has found in the text of a statement.
pub(crate) fn text_read(now: Now, core_state: &mut CoreState, case: ReadCase, found: TextFindings) {
    let ReadCase { statement, settings, changes } = case;
    let Some(pool) = core_state.find_pool(statement.pool) else { return };
    let (objection, mentioned, targets) = match found {
        TextFindings { read: Ok(mentioned), .. } => (None, mentioned, changes.then(Vec::new)),
        TextFindings { read: Err(objection), effect } => {
            let schema_changes = pool.shared.protocol.schema_changes();
            statement.verdict.learn(Err(objection), schema_changes, now);
            pool.counters.protocol.reads_refused += 1;
            match effect {
                Some(Effect::Rows { targets, mentioned }) => {
                    // The question may get lost, or wait where no server is free.
                    statement.verdict.ask_soon(now);
                    (Some(objection), mentioned, Some(targets))
                }
                Some(Effect::Nothing) => {
                    return statement.learn_changes(Changes::Nothing, schema_changes);
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

/// Takes what other pools have found about statements, and says whether a server may be asked about
/// the others. If not, the pool asks none before it may.
pub(super) fn may_ask(shared: &SharedPart, pool: &mut Pool, now: Now) -> bool {
    if !pool.protocol.reads.has_due(now) {
        return false;
    }
    if !finds_changes(pool) || hidden_words(pool).is_some() {
        settle(shared, pool, now);
    }
    let next = shared.answers.paces.next(&host(pool), now);
    pool.protocol.reads.rest(next);
    pool.protocol.reads.has_due(now)
}

/// Begins a question about statements of which other pools have found nothing.
pub(super) fn begin(
    shared: &SharedPart,
    pool: &mut Pool,
    keeps: Option<EnvId>,
    now: Now,
) -> Option<Asked> {
    if !may_ask(shared, pool, now) {
        return None;
    }
    let turn = shared.answers.paces.begin(&host(pool), now)?;
    let schema_changes = pool.shared.protocol.schema_changes();
    let hidden =
        finds_changes(pool) && pool.shared.protocol.place().hidden.are_due(schema_changes, now);
    let asked = pool.protocol.reads.ask(keeps, schema_changes, turn, hidden)?;
    pool.counters.protocol.read_questions += 1;
    Some(asked)
}

/// Returns the words behind which the pool's database hides functions, if they are known.
fn hidden_words(pool: &Pool) -> Option<Arc<Words>> {
    let shared = &pool.shared.protocol;
    shared.place().hidden.words(shared.schema_changes())
}

fn host(pool: &Pool) -> String {
    pool.settings.host.to_string()
}

/// Returns what tells apart the sessions in which one text may mean different things, but for the
/// settings of clients.
fn login(pool: &Pool) -> Arc<str> {
    let (settings, shared) = (&pool.settings, &pool.shared);
    let user = settings.server.user.as_deref().unwrap_or(&shared.user);
    let place = settings.place(&shared.database);
    format!("{place} {user:?} {:?}", settings.server.parameters).into()
}

fn subject(login: &Arc<str>, candidate: &Candidate) -> AnswerSubject {
    let statement = &candidate.statement;
    AnswerSubject {
        login: login.clone(),
        env: statement.env,
        tail: statement.tail().into(),
        changes: candidate.targets.is_some(),
    }
}

/// Takes what other pools have found about the statements that wait.
pub(super) fn settle(shared: &SharedPart, pool: &mut Pool, now: Now) {
    let schema_changes = pool.shared.protocol.schema_changes();
    let mut queue = std::mem::take(&mut pool.protocol.reads);
    let login = login(pool);
    queue.settle(|candidate| {
        let answer = shared.answers.find(&subject(&login, candidate), schema_changes, now);
        let found = answer.filter(|_| !candidate.alone);
        found.inspect(|answer| learn(shared, pool, candidate, answer, now)).is_some()
    });
    pool.protocol.reads = queue;
}

/// True if Refrain is to find out once more whether a statement is a read, or what it may change.
/// Forgets what is no longer certain of a statement that is not used any more.
fn is_due_again(cached: &CachedStatement, scope: ReadScope, now: Now) -> bool {
    let verdict = &cached.statement.verdict;
    let known = verdict.known(scope.schema_changes);
    let (mut stays, mut voided) =
        (known.is_some_and(|known| known.is_err_and(Objection::is_of_text)), known.is_none());
    if scope.wants_changes(&cached.statement) {
        stays = false;
        voided |= cached.statement.relations().are_voided(scope.schema_changes);
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
    shared: &SharedPart,
    pool: &mut Pool,
    mut asked: Asked,
    refused: Option<JobError>,
    now: Now,
) {
    pool.protocol.reads.asking = false;
    let (mut schema_changes, login) = (asked.schema_changes, login(pool));
    asked.turn.ends(now);
    if let Some(identity) = asked.identity {
        pool.shared.protocol.place().is(identity);
    }
    if let Some(words) = asked.hidden.take_if(|_| refused.is_none()) {
        schema_changes = pool.shared.protocol.place().hides(words, schema_changes, now);
    }
    let several = asked.candidates.len() > 1;
    for (candidate, found) in asked.found() {
        match refused {
            Some(refused) if refused.passes => {}
            Some(_) if several => {
                pool.protocol.reads.push(Candidate { alone: true, ..candidate });
            }
            Some(_) => {
                learn_relations(shared, pool, &candidate, None, schema_changes);
                let read = Err(Objection::Server);
                learn_verdict(pool, &candidate, read, (schema_changes, now));
            }
            None => {
                let answer = ReadAnswer { found, schema_changes, at: now };
                learn(shared, pool, &candidate, &answer, now);
                shared.answers.learn(subject(&login, &candidate), answer);
            }
        }
    }
}

/// Records what a server has said about a statement of this pool or of another.
fn learn(
    shared: &SharedPart,
    pool: &mut Pool,
    candidate: &Candidate,
    answer: &ReadAnswer,
    now: Now,
) {
    let ReadAnswer { found, schema_changes, at } = answer;
    let hides = hides(pool, candidate, *schema_changes);
    learn_relations(shared, pool, candidate, Some((found, hides)), *schema_changes);
    learn_verdict(pool, candidate, judged(found.read(), hides), (*schema_changes, *at));
    if found.may_pass() {
        candidate.statement.verdict.ask_soon(now);
    }
}

/// Returns what a statement may hide, where replies are kept.
fn hides(pool: &Pool, candidate: &Candidate, schema_changes: u64) -> Hides {
    if !finds_changes(pool) {
        return Hides::Nothing;
    }
    let words = pool.shared.protocol.place().hidden.words(schema_changes);
    words.map_or(Hides::Writes, |words| hidden_in(&candidate.statement, &words))
}

/// Returns what follows for a read of what it may hide.
fn judged(read: Result<Read, Objection>, hides: Hides) -> Result<Read, Objection> {
    match (hides, read?) {
        (Hides::Nothing, read) => Ok(read),
        (Hides::Volatile, Read::Timeless) => Ok(Read::Unkept(Unkept::Hidden)),
        (Hides::Volatile, Read::Unkept(unkept)) => Ok(Read::Unkept(unkept.max(Unkept::Hidden))),
        (Hides::Writes, _) => Err(Objection::Hidden),
    }
}

/// Records whether a statement is a read, as of a count of schema changes and a time.
fn learn_verdict(
    pool: &mut Pool,
    candidate: &Candidate,
    read: Result<Read, Objection>,
    (schema_changes, at): (u64, Now),
) {
    candidate.statement.verdict.learn(read, schema_changes, at);
    if candidate.objection.is_some() {
        return;
    }
    match read {
        Ok(_) => pool.counters.protocol.reads_verified += 1,
        Err(_) => pool.counters.protocol.reads_refused += 1,
    }
}

/// Records which tables a statement reads and may change, as a server has found; `None` if no
/// server could say.
fn learn_relations(
    shared: &SharedPart,
    pool: &Pool,
    candidate: &Candidate,
    found: Option<(&Findings, Hides)>,
    schema_changes: u64,
) {
    let (place, statement) = (pool.shared.protocol.place(), &candidate.statement);
    let table = |(oid, name): (u32, String)| place.table(&shared.results, oid, name);
    if let Some((found, _)) = found {
        let above = found.below().into_iter().map(|oid| place.below(&shared.results, oid));
        let tables = found.relations().into_iter().map(table);
        statement.learn_reads(tables.collect(), above.collect());
    }
    if candidate.targets.is_some() {
        let known = found.filter(|(_, hides)| *hides < Hides::Writes).map(|(found, _)| found);
        let changes = match known.map_or(Writes::Anything, Findings::writes) {
            Writes::Nothing => Changes::Nothing,
            Writes::Anything => Changes::Anything,
            Writes::Relations(changed) => {
                let through = known.map(Findings::through).unwrap_or_default();
                let below = through.into_iter().map(|oid| place.below(&shared.results, oid));
                let tables = changed.into_iter().map(table).flat_map(|it| it.topics);
                Changes::Tables(tables.chain(below).collect())
            }
        };
        statement.learn_changes(changes, schema_changes);
    }
}
