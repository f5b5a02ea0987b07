//! Jobs: the work that a server does for Refrain while no client holds the server.
//!
//! A job is one segment of Refrain's own, outside of any transaction: it verifies a normalized
//! query, or asks which statements are reads, or fetches a reply for the cache, or looks up a user,
//! or prepares statements that simple queries could have used. This file gathers the server's
//! answers; `step/jobs.rs`, `step/refresh.rs` and `step/lookups.rs` decide what follows from them.

use std::sync::Arc;

use refrain_pg_wire::back::{self as read, Fields};
use refrain_pg_wire::tag::back;

use crate::normalized::catalog;
use crate::normalized::query::{QueryPlace, Refused};
use crate::normalized::run::is_passing;
use crate::normalized::stored::Column;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::reads::queue::Asked;
use crate::results::refresh::Refresh;
use crate::settings::session::Settings;
use crate::standbys::position::Position;
use crate::standbys::progress::PrimaryQuestion;
use crate::statements::registry::Registry;
use crate::statements::statement::{Statement, is_stale};
use crate::users::lookup::Lookup;

/// OID of the type `interval`.
const INTERVAL: u32 = 1186;
/// Number of statements noted for a server.
const WISHES_MAX: usize = 16;

/// A statement that a simple query could have used, if the server had had it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) place: QueryPlace,
    pub(crate) statement: Statement,
    /// Settings under which it is to be prepared.
    pub(crate) settings: Arc<Settings>,
}

/// The statements that query strings could have used, had the server had them. The server prepares
/// them once no client holds it.
#[derive(Debug, Default)]
pub(crate) struct Wishes(Vec<Wish>);

impl Wishes {
    /// Notes a statement, unless it is noted already, or as many as [`WISHES_MAX`] are: the rest is
    /// noted another time.
    pub(crate) fn add(
        &mut self,
        place: QueryPlace,
        statement: &Statement,
        settings: &Arc<Settings>,
    ) {
        let wished = self.0.iter().any(|wish| wish.statement.id == statement.id);
        if !wished && self.0.len() < WISHES_MAX {
            let (statement, settings) = (statement.clone(), settings.clone());
            self.0.push(Wish { place, statement, settings });
        }
    }

    /// Takes all of them, to be prepared.
    pub(crate) fn take(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.0)
    }

    /// Drops them: the server goes to another core, whose normalized queries are others.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// True if there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One job of a server.
#[derive(Debug, Default)]
pub struct Job {
    pub(crate) task: Task,
    /// The error, if a message of the job has failed.
    pub(crate) refused: Option<JobError>,
}

/// The task of a job.
#[derive(Debug, Default)]
pub(crate) enum Task {
    /// The job stands in line: its server's turn decides what the server does.
    #[default]
    Open,
    /// The server verifies a normalized query.
    Verify(Box<Verification>),
    /// The server prepares statements; with their IDs.
    Prepare(Vec<(u64, QueryPlace)>),
    /// The server says which statements are reads.
    FindReads(Box<Asked>),
    /// The server fetches a reply for the cache.
    Fetch(Box<Refresh>),
    /// The server says what it knows about a user.
    LookUp(Box<Lookup>),
    /// The server, a primary, says how far it is.
    AskPrimary(Box<PrimaryQuestion>),
}

/// An error in a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobError {
    /// ID of the statement that the error is about; zero for none.
    pub(crate) statement: u64,
    pub(crate) sqlstate: [u8; 5],
    /// Whether the error says nothing of the statement: something was locked, or ran out.
    pub(crate) passes: bool,
    /// Whether the error says that the schema has changed.
    pub(crate) changed: bool,
}

/// The verification of a normalized query: whether it may be prepared.
#[derive(Debug)]
pub(crate) struct Verification {
    pub(crate) place: QueryPlace,
    /// The schema version when the server was asked.
    pub(crate) schema_version: u64,
    /// Whether the text is that of an unnamed statement, which has the same parameters prepared:
    /// nothing but the time of planning differs.
    pub(crate) unnamed: bool,
    /// Whether the text writes anything.
    pub(crate) writes: bool,
    /// A hash of the columns of the text as the client sent it.
    pub(crate) columns: Option<u64>,
    /// Whether the normalized query returns the same columns.
    pub(crate) same: bool,
    /// Memory of the server that a plan takes for partitions, in bytes.
    pub(crate) partitions: usize,
    /// The columns of the table, if a sequence gives values to its rows.
    pub(crate) table: Vec<Column>,
    /// Why it may not be prepared, if an answer says so.
    pub(crate) refused: Option<Refused>,
}

/// The result of a verification.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finding {
    /// The normalized query may be prepared.
    Fit,
    /// The server could not say: Refrain asks again another time.
    Unknown,
    /// The normalized query is refused.
    Refused(Refused),
}

impl Job {
    /// Makes a job that a server begins now.
    pub(crate) fn begun(task: Task) -> Self {
        Self { task, refused: None }
    }

    /// Whether a primary is to say how far it is.
    pub(crate) fn asks_primary(&self) -> bool {
        matches!(self.task, Task::AskPrimary(_))
    }

    /// Whether it asks for settings of its own, and has to know what the server made of them.
    pub(crate) fn syncs_settings(&self) -> bool {
        matches!(self.task, Task::Fetch(_) | Task::LookUp(_))
    }

    /// Takes a reply to one of the job's messages.
    pub(crate) fn hears(
        &mut self,
        registry: &Registry,
        entry: &OutstandingRequest,
        tag: u8,
        body: &[u8],
    ) {
        if entry.action != ReplyAction::Skip(Purpose::Verify) {
            return;
        }
        match &mut self.task {
            Task::LookUp(lookup) => lookup.hears(tag, body),
            Task::Fetch(refresh) => {
                let describes = entry.kind == RequestKind::DescribeStatement;
                refresh.hears(registry, describes, tag, body);
            }
            Task::FindReads(asked) if tag == back::DATA_ROW => {
                asked.hears(read::columns(body).next().flatten().unwrap_or_default());
            }
            Task::Verify(verification) => verification.hears(registry, entry, tag, body),
            Task::AskPrimary(question) if tag == back::DATA_ROW => {
                question.answer = Position::of_primary(body);
            }
            Task::Open | Task::Prepare(_) | Task::FindReads(_) | Task::AskPrimary(_) => {}
        }
    }

    /// Notes that the server says or has what keeps a reply from being kept: a notice, or other
    /// defaults than were known.
    pub(crate) fn object(&mut self) {
        if let Task::Fetch(refresh) = &mut self.task {
            refresh.object();
        }
    }

    /// Notes that the reply to the job was this old when the server gave it, in microseconds.
    pub(crate) fn note_age(&mut self, age: u64) {
        if let Task::Fetch(refresh) = &mut self.task {
            refresh.note_age(age);
        }
    }

    /// Notes that a message of the job has failed; the server skips all behind it.
    pub(crate) fn fails(&mut self, entry: &OutstandingRequest, fields: &Fields<'_>) {
        match &mut self.task {
            Task::Fetch(refresh) => refresh.fails(fields),
            Task::LookUp(lookup) => lookup.fails(fields),
            Task::AskPrimary(question) => question.answer = None,
            Task::Open | Task::Verify(_) | Task::Prepare(_) | Task::FindReads(_) => {}
        }
        let sqlstate = fields.sqlstate().first_chunk().copied().unwrap_or_default();
        // A text that fails as the client sent it says nothing of the normalized query.
        let reads = matches!(self.task, Task::FindReads(_));
        let passes = entry.statement == 0 && !reads || is_passing(fields);
        let changed = is_stale(fields);
        self.refused = Some(JobError { statement: entry.statement, sqlstate, passes, changed });
    }
}

impl JobError {
    /// True if something was locked for longer than a job waits.
    pub(crate) fn is_of_lock(&self) -> bool {
        self.sqlstate == *b"55P03"
    }
}

impl Verification {
    /// Takes a reply to one of the job's messages.
    fn hears(&mut self, registry: &Registry, entry: &OutstandingRequest, tag: u8, body: &[u8]) {
        match (tag, entry.kind) {
            (back::PARAMETER_DESCRIPTION, _) => self.parameters(entry, body),
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribeStatement) => {
                let hash = registry.hash_bytes(body) ^ u64::from(tag);
                if entry.statement == 0 {
                    self.columns = Some(hash);
                } else {
                    self.same = self.columns == Some(hash);
                }
            }
            (back::DATA_ROW, _) => {
                let why = read::columns(body).next().flatten().unwrap_or_default();
                self.object(catalog::objection(why));
                self.table.extend(Column::read(why));
                self.partitions = catalog::plan_bytes(why).unwrap_or(self.partitions);
            }
            _ => {}
        }
    }

    /// Notes an objection of the catalog. To an unnamed statement all but one mean nothing: they
    /// are about literals that become parameters, and about query strings.
    fn object(&mut self, why: Option<Refused>) {
        let why = why.filter(|why| !self.unnamed || *why == Refused::Folded);
        self.refused = why.or(self.refused);
    }

    /// Refuses a statement that writes and has a parameter of type `interval`: PostgreSQL reads a
    /// literal for a column such as `interval day` by the fields of the column, and a parameter by
    /// itself.
    fn parameters(&mut self, entry: &OutstandingRequest, body: &[u8]) {
        let interval = |oid: &[u8; 4]| u32::from_be_bytes(*oid) == INTERVAL;
        let types = body.get(2..).unwrap_or_default();
        if entry.statement != 0
            && self.writes
            && !self.unnamed
            && types.as_chunks().0.iter().any(interval)
        {
            self.refused = Some(Refused::Interval);
        }
    }

    /// Returns what was found out, `refusal` being the error of the job.
    pub(crate) fn finding(&self, refusal: Option<JobError>) -> Finding {
        match (refusal, self.refused) {
            (Some(refusal), _) if refusal.passes => Finding::Unknown,
            (Some(refusal), _) => Finding::Refused(Refused::Server(refusal.sqlstate)),
            (None, Some(why)) => Finding::Refused(why),
            (None, None) if self.same => Finding::Fit,
            (None, None) => Finding::Refused(Refused::Shape),
        }
    }
}
