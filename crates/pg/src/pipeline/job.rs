//! What a server does for us while no client holds it.
//!
//! A job is one segment of ours, outside of any transaction: it asks about a normalized query, or gives the server statements
//! that texts could have used. What the server answers is gathered here; what follows from it is decided in `jobs`.

use std::sync::Arc;

use refrain_wire::back::{self as read, Fields};
use refrain_wire::tag::back;

use crate::ground::ids::Conn;
use crate::normalized::catalog;
use crate::normalized::query::{Place, Refused};
use crate::normalized::run::is_passing;
use crate::normalized::stored::Column;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::settings::session::Settings;
use crate::statements::registry::Registry;
use crate::statements::statement::Statement;

/// Type `interval`.
const INTERVAL: u32 = 1186;

/// A statement that a text could have used, had the server had it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) place: Place,
    pub(crate) statement: Arc<Statement>,
    /// Settings under which it is to be prepared.
    pub(crate) settings: Arc<Settings>,
}

/// What a server does for us.
#[derive(Debug, Default)]
pub(crate) struct Job {
    /// The client whose session the server is: it waits, and has it back.
    pub(crate) back: Option<Conn>,
    /// The normalized query that is asked about.
    pub(crate) verification: Option<Verification>,
    /// The statements that the server gets, by ID.
    pub(crate) gives: Vec<(u64, Place)>,
    /// What failed.
    pub(crate) refused: Option<JobError>,
}

/// An error in a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobError {
    /// The statement it is about; zero for none.
    pub(crate) statement: u64,
    pub(crate) sqlstate: [u8; 5],
    /// Whether it says nothing of the statement: something was locked, or ran out.
    pub(crate) passes: bool,
}

/// A server is asked about a normalized query.
#[derive(Debug)]
pub(crate) struct Verification {
    pub(crate) place: Place,
    /// The schema schema version when it was asked.
    pub(crate) schema_version: u64,
    /// Whether the text writes anything.
    pub(crate) writes: bool,
    /// A hash of the columns of the text as it was sent.
    pub(crate) columns: Option<u64>,
    /// Whether those of the statement are the same.
    pub(crate) same: bool,
    /// What a plan takes of the server's memory for partitions, in bytes.
    pub(crate) partitions: usize,
    /// The columns of the table, if a sequence gives its rows values.
    pub(crate) table: Vec<Column>,
    /// What the server said against it.
    pub(crate) refused: Option<Refused>,
}

/// What was found out about a normalized query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finding {
    /// It may be prepared.
    Fit,
    /// The server could not say: it is asked another time.
    Unknown,
    /// The normalized query is refused.
    Refused(Refused),
}

impl Job {
    /// A reply to one of its messages.
    pub(crate) fn hears(
        &mut self,
        registry: &Registry,
        entry: &OutstandingRequest,
        tag: u8,
        body: &[u8],
    ) {
        let Some(verification) = &mut self.verification else { return };
        if entry.action != ReplyAction::Skip(Purpose::Verify) {
            return;
        }
        match (tag, entry.kind) {
            (back::PARAMETER_DESCRIPTION, _) => verification.parameters(entry, body),
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribeStatement) => {
                let hash = registry.hash_bytes(body) ^ u64::from(tag);
                if entry.statement == 0 {
                    verification.columns = Some(hash);
                } else {
                    verification.same = verification.columns == Some(hash);
                }
            }
            (back::DATA_ROW, _) => {
                let why = read::columns(body).next().flatten().unwrap_or_default();
                verification.refused = catalog::objection(why).or(verification.refused);
                verification.table.extend(Column::read(why));
                verification.partitions =
                    catalog::plan_bytes(why).unwrap_or(verification.partitions);
            }
            _ => {}
        }
    }

    /// One of its messages has failed, and all behind it was skipped.
    pub(crate) fn fails(&mut self, entry: &OutstandingRequest, fields: &Fields<'_>) {
        let sqlstate = fields.sqlstate().first_chunk().copied().unwrap_or_default();
        // What the text is refused for as it was sent is not the normalized query's fault.
        let passes = entry.statement == 0 || is_passing(fields);
        self.refused = Some(JobError { statement: entry.statement, sqlstate, passes });
    }
}

impl JobError {
    /// Whether something was locked for longer than a job waits.
    pub(crate) fn is_of_lock(&self) -> bool {
        self.sqlstate == *b"55P03"
    }
}

impl Verification {
    fn parameters(&mut self, entry: &OutstandingRequest, body: &[u8]) {
        let interval = |oid: &[u8; 4]| u32::from_be_bytes(*oid) == INTERVAL;
        let types = body.get(2..).unwrap_or_default();
        if entry.statement != 0 && self.writes && types.as_chunks().0.iter().any(interval) {
            self.refused = Some(Refused::Interval);
        }
    }

    /// What was found out, if nothing failed but `refusal`.
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
