//! Jobs that servers do for Refrain: what is sent, and what follows from the replies.
//!
//! Jobs alone verify autoprepare's statements and prepare them on servers, and find out which
//! statements are reads. The server has nothing outstanding and is outside of any transaction, no
//! client holds it or its client waits for the job, and its settings are synced first. A query
//! string finds the statement on its server, or runs by the simple protocol. So no request of
//! Refrain's stands in front of it, or can fail its transaction (`docs/decisions/0027-jobs.md`).
//!
//! A verification stands in the pool's line, among the clients that wait for a server. The
//! preparation of statements stands in no line: it concerns one server, which does it between two
//! clients.
//!
//! A pool verifies one normalized query at a time, and a job waits for no lock longer than
//! [`LIMITS`] says. A table that is locked for long is locked by a migration, and clients that do
//! not touch the table must not feel that.

use std::rc::Rc;
use std::sync::Arc;

use refrain_config::PoolMode;
use refrain_pg_wire::write;
use refrain_pool::Now;
use refrain_pool::client::WaitingFor;
use refrain_pool::ids::{Conn, PoolId};
use refrain_sql::Kind;

use crate::engine::Step;
use crate::ground::ids::EnvId;
use crate::normalized::due::Due;
use crate::normalized::query::{Refused, Stage};
use crate::normalized::{catalog, stored};
use crate::pipeline::job::{Finding, Job, JobError, Task, Verification, Wish};
use crate::pipeline::outstanding::{Purpose, ReplyAction, RequestKind};
use crate::relay::pipe::Pipeline;
use crate::settings::session::Settings;
use crate::state::options::{autoprepares, bounds, has_jobs};
use crate::state::parts::{Engine, Pool, Server};
use crate::state::shared::SharedPart;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::{Identity, Statement};
use crate::step::{lookups, primary, reads, refresh};

/// The query that limits how long a job waits for a lock and how long its queries take, in its
/// transaction, and that has none compiled, which takes longer than most run. PostgreSQL 10 does
/// not know that setting.
const LIMITS: &[u8] = include_bytes!("limits.sql");

impl Step<'_, '_> {
    /// Puts a job in the pool's line, if a normalized query is to be verified, a statement may be a
    /// read, a reply is to be fetched for the cache or a user to be looked up, and no job stands
    /// there. Which one it is, the server's turn decides: a client's own server may have verified
    /// the first one by then.
    #[inline]
    pub(crate) fn queue_what_is_due(&mut self, id: PoolId) {
        let Engine { core_state, .. } = &mut *self.step.engine;
        let (now, shared) = (self.step.now, core_state.shared.clone());
        let Some(pool) = core_state.find_pool(id) else { return };
        let rests = pool.protocol.normalized_queries.rests(now);
        let asks_about_reads = !rests && reads::may_ask(&shared.protocol, pool, now);
        let part = &pool.protocol;
        let asks = asks_about_reads || !rests && part.normalized_queries.has_due();
        let fetches = part.refreshes.has_due(pool.settings.options.pool_size);
        let looks_up = !part.lookups.are_done();
        let progress = &pool.shared.protocol.place().progress;
        let looks_up = looks_up || part.primary_due && progress.may_ask(now);
        if (asks || fetches || looks_up) && pool.waiting_jobs() == 0 {
            self.step.queue_job(id, Job::default());
        }
    }

    /// Starts the job whose turn in line has come; true if there is anything to ask or to fetch.
    pub(crate) fn do_what_is_due(&mut self, server: Conn) -> bool {
        // Clients in their login wait for a lookup; nobody does for the other jobs, or not as long.
        let one_of_many = self.begin_own(server, lookups::look_up)
            || self.begin_own(server, primary::ask_primary);
        if !one_of_many && self.begin_job(server, None, |pipe, _, keeps| pipe.ask(keeps)) {
            return true;
        }
        let begins = one_of_many || self.begin_own(server, |pipe| pipe.fetch_again());
        if begins && let Some(server) = self.step.engine.connections.server(server) {
            // Other servers may do others meanwhile.
            let pool = server.pool();
            self.queue_what_is_due(pool);
        }
        begins
    }

    /// Prepares on a server the statements that it lacked for its last clients; true if there are
    /// such statements.
    pub(crate) fn prepare_what_is_wished(&mut self, server: Conn) -> bool {
        self.begin_job(server, None, |pipe, wishes, keeps| pipe.give(wishes, keeps))
    }

    /// Starts a job for a client on the client's own server; true if there is one.
    fn begin_job_between(&mut self, client: Conn, server: Conn) -> bool {
        self.begin_job(server, Some(client), |pipe, wishes, keeps| {
            pipe.give(wishes, keeps).or_else(|| pipe.ask(keeps))
        })
    }

    /// Starts the job that `choose` finds, which needs nothing of the server's last client; true if
    /// there is one.
    fn begin_own(
        &mut self,
        conn: Conn,
        choose: impl FnOnce(&mut Pipeline<'_>) -> Option<Job>,
    ) -> bool {
        let Some(job) = self.pipe(conn).and_then(|mut pipe| choose(&mut pipe)) else {
            return false;
        };
        self.step.start_job(conn, job, None);
        true
    }

    /// Starts the job that `choose` finds, on a server on which nothing is outstanding; true if
    /// there is one. `back` is the client that gets the server back.
    fn begin_job(
        &mut self,
        conn: Conn,
        back: Option<Conn>,
        choose: impl FnOnce(&mut Pipeline<'_>, Vec<Wish>, Option<EnvId>) -> Option<Job>,
    ) -> bool {
        let Engine { core_state, connections, .. } = &mut *self.step.engine;
        // A server that goes back to its client keeps the client's settings.
        let keeps = back
            .and_then(|client| connections.client(client))
            .map(|client| client.session.settings.env());
        let Some(server) = connections.server(conn) else { return false };
        let wishes = server.session.wishes.take();
        let pool = core_state.pool_in_use(server.pool());
        if !has_jobs(pool) || pool.protocol.normalized_queries.rests(self.step.now) {
            return false;
        }
        let mut pipe = Pipeline { now: self.step.now, server, core_state, ports: self.step.ports };
        let Some(job) = choose(&mut pipe, wishes, keeps) else { return false };
        self.step.start_job(conn, job, back);
        true
    }

    /// Starts the job that a client waits for, on the client's own server.
    pub(crate) fn lend_to_job(&mut self, client: Conn, server: Conn) {
        if self.begin_job_between(client, server) {
            return;
        }
        let now = self.step.now;
        let Some(c) = self.step.engine.connections.client(client) else { return };
        let pool = self.step.engine.core_state.pool(c.pool());
        if pool.protocol.normalized_queries.asking {
            c.await_replies();
            pool.protocol.wait_for_news(client);
        } else {
            // No job has begun: the client must not wait for one.
            pool.protocol.normalized_queries.rest(true, now);
            self.step.engine.connections.unblock(client);
        }
    }

    /// Starts a job on the server of a session pool's client, which has ended a transaction and
    /// sent nothing since.
    pub(crate) fn lend_between(&mut self, client: Conn, server: Conn) {
        let Some(c) = self.step.engine.connections.client(client) else { return };
        let known = c.session.settings.are_known();
        let silent = c.waiting_for() == WaitingFor::Nothing && c.inbox.held() == 0;
        let wanted = self.has_job(server);
        if known && silent && wanted {
            self.begin_job_between(client, server);
        }
    }

    /// Whether a server lacked statements for its last clients.
    #[inline]
    pub(crate) fn has_wishes(&mut self, server: Conn) -> bool {
        let server = self.step.engine.connections.server(server);
        server.is_some_and(|server| !server.session.wishes.is_empty())
    }

    /// Whether there is a job for a server that a client keeps.
    #[inline]
    fn has_job(&mut self, server: Conn) -> bool {
        let Some(s) = self.step.engine.connections.server(server) else { return false };
        let part = &self.step.engine.core_state.pool_in_use(s.pool()).protocol;
        !s.session.wishes.is_empty()
            || part.normalized_queries.has_due()
            || part.reads.has_due(self.step.now)
    }

    /// Notes that a client has left whose server does a job: what the client left in the session
    /// has to be reset behind it.
    pub(crate) fn abandon_job(&mut self, conn: Conn) {
        let Some(server) = self.step.engine.connections.server(conn) else { return };
        let pool = self.step.engine.core_state.pool(server.pool());
        if pool.settings.options.pool_mode == PoolMode::Session {
            server.session.soil();
        }
    }

    /// Ends a job: records its result, and gives the server back.
    pub(crate) fn job_ends(&mut self, conn: Conn) {
        let now = self.step.now;
        let Some((job, back)) = self.step.finish_job(conn) else { return };
        let Job { task, refused } = *job;
        let Engine { core_state, connections, .. } = &mut *self.step.engine;
        let Some(server) = connections.server(conn) else { return };
        let shared = core_state.shared.clone();
        let pool = core_state.pool(server.pool());
        pool.protocol.wake();
        let id = pool.shared.id;
        let waiters = match task {
            Task::Fetch(mut refresh) => {
                let changes = &pool.shared.protocol.place().changes;
                refresh.comes_from(changes, server.session.origin);
                refresh::conclude(pool, *refresh, now)
            }
            Task::LookUp(lookup) => {
                let (waiters, wrong) = lookups::conclude(*lookup, now);
                lookups::note_wrong(&mut self.step.log(), id, wrong);
                waiters
            }
            task => {
                let verifies = matches!(task, Task::Verify(_));
                conclude(&shared.protocol, pool, task, refused, now);
                if verifies {
                    server.session.statements.weigh_anew();
                }
                Vec::new()
            }
        };
        self.wake_for_reply(waiters);
        // The next verification stands behind the clients that wait.
        self.queue_what_is_due(id);
        match back {
            Some(client) => {
                // The client has not got what the server reported during the job.
                self.sync_settings(client, conn);
                self.step.engine.connections.unblock(client);
            }
            None => self.step.make_fit(conn),
        }
        self.read_woken(id);
    }
}

/// Forgets the normalized queries of a pool, and starts a new schema version, so that statements
/// are prepared anew.
pub(crate) fn flush(pool: &mut Pool) {
    if autoprepares(pool) {
        pool.protocol.normalized_queries.clear();
        pool.shared.protocol.begin_schema_version();
        pool.counters.protocol.auto_flushes += 1;
    }
}

/// Ends the job of a server that has gone. Its normalized query will be verified another time.
pub(crate) fn lost(pool: &mut Pool, job: &Job) {
    let bounds = bounds(pool);
    match &job.task {
        Task::Verify(verification) => {
            pool.protocol.normalized_queries.asking = false;
            if let Some(variant) = pool.protocol.normalized_queries.at(verification.place) {
                variant.recount(&bounds);
            }
        }
        Task::FindReads(_) => pool.protocol.reads.asking = false,
        Task::Fetch(_) => pool.protocol.refreshes.ended(),
        // No server can be reached. Another server may look up the others if one is lost at work.
        Task::Open => pool.protocol.lookups.lose(),
        Task::AskPrimary(question) => primary::conclude(pool, question),
        Task::Prepare(_) | Task::LookUp(_) => {}
    }
    pool.protocol.refreshes.lose();
    pool.protocol.wake();
}

/// Records the result of a job that has verified, prepared or found something.
fn conclude(shared: &SharedPart, pool: &mut Pool, task: Task, refused: Option<JobError>, now: Now) {
    let locked = refused.is_some_and(|refusal| refusal.is_of_lock());
    pool.protocol.normalized_queries.rest(locked, now);
    match task {
        Task::Verify(verification) => {
            pool.protocol.normalized_queries.asking = false;
            conclude_verification(pool, &verification, refused, now);
        }
        Task::FindReads(asked) => reads::conclude(shared, pool, *asked, refused, now),
        Task::Prepare(given) => {
            let Some(refusal) = refused.filter(|refusal| !refusal.passes) else { return };
            let schema_version = pool.shared.protocol.schema_changes();
            let given = given.iter().find(|(id, _)| *id == refusal.statement);
            let queries = &mut pool.protocol.normalized_queries;
            if let Some(variant) = given.and_then(|(_, place)| queries.at(*place)) {
                let why = Refused::Server(refusal.sqlstate);
                variant.distrust(why, refusal.changed, schema_version, now);
            }
        }
        Task::AskPrimary(question) => primary::conclude(pool, &question),
        Task::Open | Task::Fetch(_) | Task::LookUp(_) => {}
    }
}

/// Records whether a normalized query may be prepared.
fn conclude_verification(
    pool: &mut Pool,
    verification: &Verification,
    refusal: Option<JobError>,
    now: Now,
) {
    let bounds = bounds(pool);
    let finding = verification.finding(refusal);
    let schema_version = verification.schema_version;
    let stored = pool
        .protocol
        .normalized_queries
        .plan(verification.place.key)
        .and_then(|plan| stored::stored(&plan.mentions, &verification.table));
    if let Some(variant) = pool.protocol.normalized_queries.at(verification.place)
        && let Stage::Asked { cached, .. } = &variant.stage
    {
        match finding {
            Finding::Fit => {
                cached.statement.found_partitions(verification.partitions);
                if cached.statement.memory() > bounds.bytes {
                    let why = Refused::Memory;
                    variant.stage = Stage::Never { why, schema_version, since: now };
                    pool.counters.protocol.auto_refusals += 1;
                    return;
                }
                variant.stage = match stored {
                    Some(stored) => {
                        let (cached, stored) = (cached.clone(), stored.into());
                        Stage::Ready { cached, stored, schema_version, since: now }
                    }
                    None => Stage::Never { why: Refused::Sequence, schema_version, since: now },
                };
            }
            Finding::Refused(why) => {
                variant.stage = Stage::Never { why, schema_version, since: now }
            }
            Finding::Unknown => variant.recount(&bounds),
        }
    }
    match finding {
        Finding::Fit => pool.counters.protocol.auto_verified += 1,
        Finding::Unknown | Finding::Refused(_) => pool.counters.protocol.auto_refusals += 1,
    }
}

impl Pipeline<'_> {
    /// Prepares those statements that the server lacks. All of one job have the same environment:
    /// `keeps`, if the server must keep the one of its client.
    fn give(&mut self, wishes: Vec<Wish>, keeps: Option<EnvId>) -> Option<Job> {
        let lacks = |wish: &Wish, server: &mut Server| {
            let statement = &wish.statement;
            keeps.is_none_or(|env| statement.env == env) && server.session.has(statement).is_none()
        };
        let lacking = wishes.into_iter().filter(|wish| lacks(wish, self.server));
        let mut wishes: Vec<_> = lacking.collect();
        let first = wishes.first()?;
        let (env, settings) = (first.statement.env, first.settings.clone());
        wishes.retain(|wish| wish.statement.env == env);
        self.begin_job(&settings, keeps);
        for wish in &wishes {
            self.prepare_unasked(&wish.statement);
        }
        self.end_segment(Purpose::Verify);
        let gives = wishes.iter().map(|wish| (wish.statement.id, wish.place)).collect();
        Some(Job::begun(Task::Prepare(gives)))
    }

    /// Asks the server about a normalized query, or else about statements that may be reads.
    fn ask(&mut self, keeps: Option<EnvId>) -> Option<Job> {
        self.ask_what_is_due(keeps).or_else(|| self.ask_about_reads(keeps))
    }

    /// Sends the verification of the normalized query that has waited longest.
    fn ask_what_is_due(&mut self, keeps: Option<EnvId>) -> Option<Job> {
        let due = self.pool().protocol.normalized_queries.take_due(keeps)?;
        let place = due.place;
        let cached = self.intern_due(&due);
        let shared = self.pool().shared.clone();
        let schema_version = shared.protocol.schema_changes();
        let statement = cached.statement.clone();
        // Servers may have copies of the statement from before a schema change. The new generation
        // replaces them.
        if statement.follow(schema_version) || due.anew {
            statement.begin_generation(statement.generation(), shared.protocol.schema_version());
        }
        let now = self.now;
        self.pool().protocol.normalized_queries.at(place)?.stage =
            Stage::Asked { since: now, cached };
        self.pool().protocol.normalized_queries.asking = true;
        self.begin_job(&due.settings, keeps);
        self.describe_as_sent(&due.as_sent());
        if self.server.session.has(&statement).is_none() {
            self.prepare_unasked(&statement);
        }
        let mut name = Vec::new();
        statement.write_name(&mut name, statement.generation());
        write::describe_statement(self.out(), &name);
        self.owe_us(RequestKind::DescribeStatement, Purpose::Verify, statement.id);
        let routes = statement.scan.kind == Kind::Insert;
        let question = catalog::question(&due.plan.mentions, &name, routes);
        self.run_question(&question);
        let verification = Verification {
            place,
            schema_version,
            unnamed: due.sent.is_some(),
            writes: !due.plan.mentions.writes.is_empty(),
            columns: None,
            same: false,
            partitions: 0,
            table: Vec::new(),
            refused: None,
        };
        Some(Job::begun(Task::Verify(Box::new(verification))))
    }

    /// Asks about statements that may be reads.
    fn ask_about_reads(&mut self, keeps: Option<EnvId>) -> Option<Job> {
        let (now, shared) = (self.now, self.core_state.shared.clone());
        let asked = reads::begin(&shared.protocol, self.pool(), keeps, now)?;
        self.begin_job(asked.settings()?, keeps);
        self.run_question(&asked.question());
        Some(Job::begun(Task::FindReads(Box::new(asked))))
    }

    /// Returns the statement of a normalized query, under the settings of the query.
    fn intern_due(&mut self, due: &Due) -> Rc<CachedStatement> {
        let tail = due.tail();
        let (env, settings) = (due.settings.env, &due.settings);
        let identity = Identity { pool: self.server.pool(), env, tail: &tail };
        let shared = self.core_state.shared.clone();
        let pool = self.core_state.pool(self.server.pool());
        let schema_version = pool.shared.protocol.schema_version();
        let small = tail.len() <= pool.settings.options.max_cached_statement_bytes;
        let room = shared.protocol.registry.bytes() <= shared.options().general.max_statement_bytes;
        if !small || !room {
            pool.counters.protocol.statements_not_kept += 1;
            let statement = shared.protocol.registry.make(identity);
            statement.start_schema_version(schema_version);
            return Rc::new(CachedStatement::new(statement, settings));
        }
        let cached = self.core_state.protocol.statements.intern(
            &shared.protocol.registry,
            identity,
            settings,
        );
        let statement = &cached.statement;
        if statement.is_new() {
            statement.start_schema_version(schema_version);
        } else if statement.schema_version() < schema_version {
            statement.begin_generation(statement.generation(), schema_version);
        }
        cached
    }

    /// Begins a segment. Syncs the server's settings first if they differ in one that changes what
    /// a text means.
    fn begin_job(&mut self, settings: &Arc<Settings>, keeps: Option<EnvId>) {
        if keeps.is_none()
            && let Some(text) = self.server.session.settings.sync_for_job(settings)
        {
            write::query(self.out(), &text);
            self.owe_us(RequestKind::Query, Purpose::SyncSettings, 0);
            self.server.session.statements.forget_unnamed();
            self.syncs_settings(settings);
        }
        self.name_mode(Purpose::SyncSettings);
        self.run_internal(LIMITS, Purpose::SyncSettings);
    }

    /// Sends a Describe of a text as the client sent it, under an internal name, and closes the
    /// name behind it. `tail` is the body of the Parse behind the name.
    fn describe_as_sent(&mut self, tail: &[u8]) {
        let name = self.core_state.shared.protocol.registry.internal();
        let out = self.ports.out(self.server.conn());
        write::close_statement(out, &name);
        write::parse(out, &name, tail);
        write::describe_statement(out, &name);
        write::close_statement(out, &name);
        use RequestKind::{Close, DescribeStatement, Parse};
        for kind in [Close, Parse, DescribeStatement, Close] {
            self.owe_us(kind, Purpose::Verify, 0);
        }
    }

    /// Prepares a statement that no client has asked this server for, behind the Closes that make
    /// room for it.
    fn prepare_unasked(&mut self, statement: &Statement) {
        self.make_room(statement.id, statement.tail().len(), Purpose::Verify);
        let options = &self.pool().settings.options;
        let (count, memory) = (options.autoprepare_limit, options.autoprepare_memory_limit);
        while let Some(old) =
            self.server.session.statements.evict_auto(statement.memory(), count, memory)
        {
            self.pool().counters.protocol.evictions += 1;
            self.send_close(old, Purpose::Verify);
        }
        self.send_parse_there(statement, ReplyAction::Skip(Purpose::Verify), true);
    }
}
