//! What a server does for us while no client holds it.
//!
//! A job is one segment of ours, outside of any transaction: it asks about a template, or gives the server statements
//! that texts could have used. What the server answers is gathered here; what follows from it is decided in `jobs`.

use std::sync::Arc;

use refrain_wire::back::{self as read, Fields};
use refrain_wire::tag::back;

use crate::catalog;
use crate::ids::Conn;
use crate::ledger::{Entry, Fate, Owed, Purpose};
use crate::registry::Registry;
use crate::run::is_passing;
use crate::settings::Profile;
use crate::statement::Statement;
use crate::stored::Column;
use crate::template::{Place, Refused};

/// Type `interval`.
const INTERVAL: u32 = 1186;

/// A statement that a text could have used, had the server had it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) place: Place,
    pub(crate) statement: Arc<Statement>,
    /// Settings under which it is to be prepared.
    pub(crate) profile: Arc<Profile>,
}

/// What a server does for us.
#[derive(Debug, Default)]
pub(crate) struct Job {
    /// The client whose session the server is: it waits, and has it back.
    pub(crate) back: Option<Conn>,
    /// The template that is asked about.
    pub(crate) admission: Option<Admission>,
    /// The statements that the server gets, by ID.
    pub(crate) gives: Vec<(u64, Place)>,
    /// What failed.
    pub(crate) refused: Option<Refusal>,
}

/// An error in a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The statement it is about; zero for none.
    pub(crate) statement: u64,
    pub(crate) sqlstate: [u8; 5],
    /// Whether it says nothing of the statement: something was locked, or ran out.
    pub(crate) passes: bool,
}

/// A server is asked about a template.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) place: Place,
    /// The schema epoch when it was asked.
    pub(crate) epoch: u64,
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

/// What was found out about a template.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finding {
    /// It may be prepared.
    Fit,
    /// The server could not say: it is asked another time.
    Unknown,
    /// The template is refused.
    Refused(Refused),
}

impl Job {
    /// A reply to one of its messages.
    pub(crate) fn hears(&mut self, registry: &Registry, entry: &Entry, tag: u8, body: &[u8]) {
        let Some(admission) = &mut self.admission else { return };
        if entry.fate != Fate::Swallow(Purpose::Admit) {
            return;
        }
        match (tag, entry.owed) {
            (back::PARAMETER_DESCRIPTION, _) => admission.parameters(entry, body),
            (back::ROW_DESCRIPTION | back::NO_DATA, Owed::DescribeStatement) => {
                let hash = registry.hash_bytes(body) ^ u64::from(tag);
                if entry.statement == 0 {
                    admission.columns = Some(hash);
                } else {
                    admission.same = admission.columns == Some(hash);
                }
            }
            (back::DATA_ROW, _) => {
                let why = read::columns(body).next().flatten().unwrap_or_default();
                admission.refused = catalog::objection(why).or(admission.refused);
                admission.table.extend(Column::read(why));
                admission.partitions = catalog::plan_bytes(why).unwrap_or(admission.partitions);
            }
            _ => {}
        }
    }

    /// One of its messages has failed, and all behind it was skipped.
    pub(crate) fn fails(&mut self, entry: &Entry, fields: &Fields<'_>) {
        let sqlstate = fields.sqlstate().first_chunk().copied().unwrap_or_default();
        // What the text is refused for as it was sent is not the template's fault.
        let passes = entry.statement == 0 || is_passing(fields);
        self.refused = Some(Refusal { statement: entry.statement, sqlstate, passes });
    }
}

impl Refusal {
    /// Whether something was locked for longer than a job waits.
    pub(crate) fn is_of_lock(&self) -> bool {
        self.sqlstate == *b"55P03"
    }
}

impl Admission {
    fn parameters(&mut self, entry: &Entry, body: &[u8]) {
        let interval = |oid: &[u8; 4]| u32::from_be_bytes(*oid) == INTERVAL;
        let types = body.get(2..).unwrap_or_default();
        if entry.statement != 0 && self.writes && types.as_chunks().0.iter().any(interval) {
            self.refused = Some(Refused::Interval);
        }
    }

    /// What was found out, if nothing failed but `refusal`.
    pub(crate) fn finding(&self, refusal: Option<Refusal>) -> Finding {
        match (refusal, self.refused) {
            (Some(refusal), _) if refusal.passes => Finding::Unknown,
            (Some(refusal), _) => Finding::Refused(Refused::Server(refusal.sqlstate)),
            (None, Some(why)) => Finding::Refused(why),
            (None, None) if self.same => Finding::Fit,
            (None, None) => Finding::Refused(Refused::Shape),
        }
    }
}
