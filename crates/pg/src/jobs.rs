//! Servers in the hands of jobs: what is sent, and what follows from the answers.
//!
//! A statement of ours is made and verified here and nowhere else: on a server that owes nothing and is outside of any
//! transaction, that no client holds or whose client waits for it, and whose settings are put right first. A text finds
//! the statement or is run as it was sent, so nothing of ours stands in front of it and nothing of ours can fail its
//! transaction (`docs/decisions/0027-jobs.md`).
//!
//! One template is asked about at a time, and a job waits for no lock longer than [`LOCK_TIMEOUT`]: what is locked for
//! long is locked by a migration, which clients that do not touch the same table must not feel.

use std::rc::Rc;
use std::sync::Arc;

use refrain_sql::Kind;
use refrain_wire::write;

use crate::catalog;
use crate::client::Blocked;
use crate::columns::{Columns, Found};
use crate::defaults;
use crate::engine::{Engine, Step};
use crate::hub::Hub;
use crate::ids::{Conn, EnvId};
use crate::job::{Admission, Finding, Job, Refusal, Wish};
use crate::ledger::{Entry, Fate, Owed, Purpose};
use crate::pool::Pool;
use crate::ports::Ports;
use crate::server::{Custody, Server};
use crate::settings::{Profile, Standing};
use crate::slots::{Served, Slot, Unnamed};
use crate::statement::{Identity, Statement};
use crate::stored;
use crate::template::{Refused, Stage};
use crate::templates::Due;
use crate::texts::Local;
use crate::time::Now;
use crate::undo::ServerUndo;

/// How long a job waits for a lock, for the transaction of its segment.
const LOCK_TIMEOUT: &[u8] = b"SELECT pg_catalog.set_config('lock_timeout','10ms',true)";
/// Refusals of statements that were found fit after which a variant is refused.
const REFUSALS_MAX: u32 = 3;

impl Step<'_> {
    /// Gives a server that owes nothing to a job, if there is one for it. `back` is the client whose session it is.
    pub(crate) fn begin_job(&mut self, conn: Conn, back: Option<Conn>) -> bool {
        let Engine { hub, roles, .. } = &mut *self.engine;
        // A session is under its client's settings, and stays so.
        let keeps = back.and_then(|client| roles.client(client)).map(|client| client.env());
        let Some(server) = roles.server(conn) else { return false };
        let wishes = std::mem::take(&mut server.wishes);
        let pool = hub.pool(server.pool);
        if !pool.autoprepares() || pool.templates.rests(self.now) {
            return false;
        }
        let mut desk = Desk { now: self.now, server, hub, ports: self.ports, keeps };
        let Some(job) = desk.give(wishes).or_else(|| desk.ask_what_is_due()) else {
            return false;
        };
        server.custody = Custody::Job(Box::new(Job { back, ..job }));
        server.since = self.now;
        true
    }

    /// A client waits for a job: lends it the client's server.
    pub(crate) fn lend_to_job(&mut self, client: Conn, server: Conn) {
        let begun = self.begin_job(server, Some(client));
        let now = self.now;
        let Some(c) = self.engine.roles.client(client) else { return };
        let pool = self.engine.hub.pool(c.pool);
        if begun {
            c.blocked = Blocked::Job;
        } else if pool.templates.asking {
            c.blocked = Blocked::Gate;
            pool.wait_for_news(client);
        } else {
            // There is nothing that it could wait for.
            pool.templates.rest(true, now);
            self.unblock(client);
        }
    }

    /// A session has ended a transaction and has nothing to say: its server may do a job meanwhile.
    pub(crate) fn lend_between(&mut self, client: Conn, server: Conn) {
        let Some(c) = self.engine.roles.client(client) else { return };
        let known = matches!(c.standing, Standing::Told) && !c.probe;
        let silent = c.blocked == Blocked::No && c.inbox.held() == 0;
        let wanted = self.has_job(server);
        if known && silent && wanted && self.begin_job(server, Some(client)) {
            let Some(c) = self.engine.roles.client(client) else { return };
            c.blocked = Blocked::Job;
        }
    }

    /// Whether there is something to do for us at a server.
    #[inline]
    pub(crate) fn has_job(&mut self, server: Conn) -> bool {
        let Some(s) = self.engine.roles.server(server) else { return false };
        !s.wishes.is_empty() || self.engine.hub.pool(s.pool).templates.has_due()
    }

    /// A server has done its job.
    pub(crate) fn job_ends(&mut self, conn: Conn) {
        let now = self.now;
        let Engine { hub, roles, .. } = &mut *self.engine;
        let Some(server) = roles.server(conn) else { return };
        let custody = std::mem::replace(&mut server.custody, Custody::Resetting);
        let Custody::Job(job) = custody else { return };
        (server.since, server.worked) = (now, true);
        let pool = hub.pool(server.pool);
        conclude(pool, &job, now);
        if job.admission.is_some() {
            server.slots.weigh_anew();
        }
        pool.wake();
        let woken = pool.take_woken();
        match job.back {
            Some(client) => {
                server.custody = Custody::Lent(client);
                // What the server has reported meanwhile, the client has not heard.
                self.talk(client, conn).put_right_if_need_be();
                self.unblock(client);
            }
            None => self.make_fit(conn),
        }
        self.look_again(woken);
    }
}

/// A server has gone amid its job.
pub(crate) fn lost(pool: &mut Pool, job: &Job) {
    let bounds = pool.bounds();
    if let Some(admission) = &job.admission {
        pool.templates.asking = false;
        if let Some(variant) = pool.templates.at(admission.place) {
            variant.recount(&bounds);
        }
    }
    pool.wake();
}

/// What follows from a job.
fn conclude(pool: &mut Pool, job: &Job, now: Now) {
    let locked = job.refused.is_some_and(|refusal| refusal.is_of_lock());
    pool.templates.rest(locked, now);
    if let Some(admission) = &job.admission {
        pool.templates.asking = false;
        conclude_admission(pool, admission, job.refused, now);
    }
    let Some(refusal) = job.refused.filter(|refusal| !refusal.passes) else { return };
    let epoch = pool.shared.upheavals();
    let given = job.gives.iter().find(|(id, _)| *id == refusal.statement);
    if let Some(variant) = given.and_then(|(_, place)| pool.templates.at(*place)) {
        variant.distrust(Refused::Server(refusal.sqlstate), REFUSALS_MAX, epoch, now);
    }
}

fn conclude_admission(pool: &mut Pool, admission: &Admission, refusal: Option<Refusal>, now: Now) {
    let bounds = pool.bounds();
    let finding = admission.finding(refusal);
    let epoch = admission.epoch;
    let stored = pool
        .templates
        .plan(admission.place.key)
        .and_then(|plan| stored::stored(&plan.mentions, &admission.table));
    if let Some(variant) = pool.templates.at(admission.place)
        && let Stage::Asked { local, .. } = &variant.stage
    {
        match finding {
            Finding::Fit => {
                local.statement.found_partitions(admission.partitions);
                if local.statement.memory() > bounds.bytes {
                    let why = Refused::Memory;
                    variant.stage = Stage::Never { why, epoch, since: now };
                    pool.counters.auto_refusals += 1;
                    return;
                }
                variant.stage = match stored {
                    Some(stored) => {
                        let (local, stored) = (local.clone(), stored.into());
                        Stage::Ready { local, stored, epoch, since: now }
                    }
                    None => Stage::Never { why: Refused::Sequence, epoch, since: now },
                };
            }
            Finding::Refused(why) => variant.stage = Stage::Never { why, epoch, since: now },
            Finding::Unknown => variant.recount(&bounds),
        }
    }
    match finding {
        Finding::Fit => pool.counters.auto_admissions += 1,
        Finding::Unknown | Finding::Refused(_) => pool.counters.auto_refusals += 1,
    }
}

/// A server that no client talks to, and what is needed to talk to it.
struct Desk<'a> {
    now: Now,
    server: &'a mut Server,
    hub: &'a mut Hub,
    ports: &'a mut Ports,
    /// The settings that the server has and is to keep, if it is to.
    keeps: Option<EnvId>,
}

impl Desk<'_> {
    fn out(&mut self) -> &mut Vec<u8> {
        self.ports.out(self.server.conn)
    }

    fn owe(&mut self, owed: Owed, purpose: Purpose, statement: u64) -> u64 {
        if self.server.ledger.is_empty() {
            self.server.asked = self.now;
        }
        let entry = Entry::new(owed, Fate::Swallow(purpose)).about(statement);
        self.server.ledger.push(entry).0
    }

    /// Gives the server those statements that it lacks.
    fn give(&mut self, wishes: Vec<Wish>) -> Option<Job> {
        let keeps = self.keeps;
        let lacks = |wish: &Wish, server: &mut Server| {
            let statement = &wish.statement;
            keeps.is_none_or(|env| statement.env == env) && server.has(statement).is_none()
        };
        let lacking = wishes.into_iter().filter(|wish| lacks(wish, self.server));
        let mut wishes: Vec<_> = lacking.collect();
        let first = wishes.first()?;
        let (env, profile) = (first.statement.env, first.profile.clone());
        wishes.retain(|wish| wish.statement.env == env);
        self.begin(&profile);
        for wish in &wishes {
            self.parse(&wish.statement);
        }
        self.end();
        let gives = wishes.iter().map(|wish| (wish.statement.id, wish.place)).collect();
        Some(Job { gives, ..Job::default() })
    }

    /// Asks about the template that has waited longest.
    fn ask_what_is_due(&mut self) -> Option<Job> {
        let keeps = self.keeps;
        let due = self.pool().templates.take_due(keeps)?;
        let place = due.place;
        let local = self.intern(&due);
        let shared = self.pool().shared.clone();
        let epoch = shared.upheavals();
        let statement = local.statement.clone();
        // What servers have of it may be older than what is to be found out now.
        if statement.follow(epoch) || due.anew {
            statement.begin_generation(statement.generation(), shared.epoch());
        }
        let now = self.now;
        self.pool().templates.at(place)?.stage = Stage::Asked { since: now, local };
        self.pool().templates.asking = true;
        self.begin(&due.profile);
        self.describe_as_sent(&due.text);
        if self.server.has(&statement).is_none() {
            self.parse(&statement);
        }
        let mut name = Vec::new();
        statement.write_name(&mut name, statement.generation());
        write::describe_statement(self.out(), &name);
        self.owe(Owed::DescribeStatement, Purpose::Admit, statement.id);
        let routes = statement.scan.kind == Kind::Insert;
        let question = catalog::question(&due.plan.mentions, &name, routes);
        self.aside(&question, Purpose::Admit);
        self.end();
        let admission = Admission {
            place,
            epoch,
            writes: !due.plan.mentions.writes.is_empty(),
            columns: None,
            same: false,
            partitions: 0,
            table: Vec::new(),
            refused: None,
        };
        Some(Job { admission: Some(admission), ..Job::default() })
    }

    /// The statement of a text, under the settings that it is read under.
    fn intern(&mut self, due: &Due) -> Rc<Local> {
        let tail = due.tail();
        let (env, profile) = (due.profile.env, &due.profile);
        let identity = Identity { pool: self.server.pool, env, tail: &tail };
        let shared = self.hub.shared.clone();
        let pool = self.hub.pool(self.server.pool);
        let epoch = pool.shared.epoch();
        let small = tail.len() <= pool.settings.options.max_cached_statement_bytes;
        let room = shared.registry.bytes() <= shared.options().general.max_statement_bytes;
        if !small || !room {
            pool.counters.uncached += 1;
            let statement = Arc::new(shared.registry.make(identity));
            statement.start_epoch(epoch);
            return Rc::new(Local::new(statement, profile));
        }
        let local = self.hub.texts.intern(&shared.registry, identity, profile);
        let statement = &local.statement;
        if statement.is_new() {
            statement.start_epoch(epoch);
        } else if statement.epoch() < epoch {
            statement.begin_generation(statement.generation(), epoch);
        }
        local
    }

    fn pool(&mut self) -> &mut Pool {
        self.hub.pool(self.server.pool)
    }

    /// Puts the server's settings right, as far as they change what a text means, and begins a segment.
    fn begin(&mut self, profile: &Arc<Profile>) {
        if self.keeps.is_none() && self.server.profile.env != profile.env {
            let (has, defaults) = (&self.server.profile, &self.server.defaults);
            let text = defaults::put_right(has, profile, defaults, |_| false);
            let (text, _) = text.expect("environments differ by a setting");
            write::query(self.out(), &text);
            self.owe(Owed::Query, Purpose::PutRight, 0);
            self.server.slots.unnamed = Unnamed::NONE;
            self.server.profile = profile.clone();
            self.server.stuck = true;
            self.pool().counters.put_right += 1;
        }
        self.aside(LOCK_TIMEOUT, Purpose::PutRight);
    }

    fn end(&mut self) {
        write::sync(self.out());
        self.owe(Owed::Sync, Purpose::Admit, 0);
    }

    /// Runs a query of ours, under a name that is gone when it has run.
    fn aside(&mut self, text: &[u8], purpose: Purpose) {
        let name = self.hub.shared.registry.aside();
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, &name);
        write::parse(out, &name, &[text, &[0; 3]].concat());
        write::bind(out, &name, &name);
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use Owed::{Bind, Close, Execute, Parse};
        for owed in [Close, Parse, Bind, Execute, Close, Close] {
            self.owe(owed, purpose, 0);
        }
    }

    /// Has the server describe a text as it was sent, under a name that is gone when it has.
    fn describe_as_sent(&mut self, text: &[u8]) {
        let name = self.hub.shared.registry.aside();
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, &name);
        write::parse(out, &name, &[text, &[0; 3]].concat());
        write::describe_statement(out, &name);
        write::close_statement(out, &name);
        for owed in [Owed::Close, Owed::Parse, Owed::DescribeStatement, Owed::Close] {
            self.owe(owed, Purpose::Admit, 0);
        }
    }

    /// Gives the server a statement, and makes room for it before.
    fn parse(&mut self, statement: &Arc<Statement>) {
        let (id, bytes) = (statement.id, statement.tail.len());
        if let Some(old) = self.server.slots.remove(id) {
            self.close(old);
        }
        let options = &self.hub.pool(self.server.pool).settings.options;
        let (count, most) = (options.max_server_statements, options.max_server_statement_bytes);
        let (autos, memory) = (options.autoprepare_limit, options.autoprepare_memory_limit);
        while let Some(old) = self
            .server
            .slots
            .evict(bytes, count, most)
            .or_else(|| self.server.slots.evict_auto(statement.memory(), autos, memory))
        {
            self.pool().counters.evictions += 1;
            self.close(old);
        }
        let generation = statement.generation();
        let mut name = Vec::new();
        statement.write_name(&mut name, generation);
        write::parse(self.out(), &name, &statement.tail);
        let seq = self.owe(Owed::Parse, Purpose::Admit, id);
        let segment = self.server.ledger.segment();
        let columns = if statement.returns {
            Columns::Of { server: self.server.serial, parse: seq }
        } else {
            Columns::Fixed
        };
        let found = Found { columns, ..Found::default() };
        let served = Served::new(statement.clone());
        self.server.slots.insert(Slot {
            served,
            generation,
            segment,
            doubtful: false,
            auto: true,
            found,
        });
        self.server.undos.push(seq, ServerUndo::Prepared(id));
        self.pool().counters.server_parses += 1;
    }

    fn close(&mut self, mut old: Slot) {
        old.doubtful |= self.server.ledger.is_unsettled(old.segment);
        let mut name = Vec::new();
        old.served.statement().write_name(&mut name, old.generation);
        write::close_statement(self.out(), &name);
        let seq = self.owe(Owed::Close, Purpose::Admit, 0);
        self.server.undos.push(seq, ServerUndo::Evicted(old));
    }
}
