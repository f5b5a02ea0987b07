//! NormalizedQuery and its variants: what is known of texts that differ only in their literals.

use std::rc::Rc;

use refrain_pool::Now;
use refrain_sql::normalize::{Key, Plan, Reason, Sample};

use crate::ground::ids::EnvId;
use crate::normalized::compare_times::{Draw, TimeComparison};
use crate::normalized::stored::StoredLiteral;
use crate::statements::of_core::CachedStatement;

/// Number of successful reruns after which a variant is refused.
const RERUNS_MAX: u32 = 3;
/// The same number if the errors said that the schema has changed, so that all variants were
/// verified again.
pub(crate) const CHANGES_MAX: u32 = 20;

/// Limits: how much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Times a text is seen before it is prepared.
    pub(crate) threshold: u32,
    /// Statements on a server.
    pub(crate) statements: usize,
    /// Bytes of all normalized queries.
    pub(crate) bytes: usize,
    /// Age at which a statement is prepared anew, in microseconds.
    pub(crate) age_us: u64,
}

impl Bounds {
    /// True if a text is prepared before it is run for the first time.
    pub(crate) fn is_eager(&self) -> bool {
        self.threshold == 1
    }

    /// Returns how many uses a statement must have had, for each server that has it, before one
    /// more server gets it. PostgreSQL plans a statement five times for its values before it
    /// considers a generic plan.
    pub(crate) fn uses_per_server(&self) -> u64 {
        4 * u64::from(self.threshold - 1)
    }
}

/// The normalized query and the variant of a text, and the reason for the way in which it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryPlace {
    /// The normalized query.
    pub(crate) key: Key,
    /// The variant; zero for none.
    pub(crate) variant: u64,
    /// How that was chosen: the comparison of times gets it together with the time that the text
    /// took.
    pub(crate) draw: Draw,
}

impl QueryPlace {
    /// Returns the same place, for a text that runs on a server that is new to the statement.
    pub(crate) fn on_new_server(self) -> Self {
        Self { draw: Draw::New(self.draw == Draw::Chance), ..self }
    }

    /// Returns the same place, for a text that must run by the simple protocol.
    pub(crate) fn without_choice(self) -> Self {
        Self { draw: Draw::None, ..self }
    }
}

/// Why a variant is not prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A rule of the grammar.
    Rule(&'static Reason),
    /// The server refused to prepare it, with this SQLSTATE.
    Server([u8; 5]),
    /// The prepared statement would return other columns.
    Shape,
    /// A parameter is an interval that is stored: PostgreSQL reads a literal for a column such as
    /// `interval day` by the fields of the column, and a parameter by itself.
    Interval,
    /// The target of its writes is no table, or has rules, whose results a prepared statement does
    /// not show.
    Rewritten,
    /// A parameter is of a domain: its constraints would be checked even where no row has the
    /// value.
    Domain,
    /// PostgreSQL would run an immutable function of the user's once, as it plans, and not each
    /// time.
    Folded,
    /// Code that the text reaches may ask for the text that the client sent, or for the time when
    /// it came.
    Reflects,
    /// A sequence would give a value before it is known whether a constant fits.
    Sequence,
    /// Its plan takes more of a server's memory than all statements may.
    Memory,
    /// It was slower prepared: the average times of a prepared and of a simple execution, in
    /// microseconds.
    Slower { prepared: u64, simple: u64 },
}

impl Refused {
    /// Returns the reason in a word, or the SQLSTATE of the server's error. The words of an error
    /// may have literals of clients in them, and are not kept.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Rule(reason) => reason.name.to_owned(),
            Self::Server(sqlstate) => {
                let is_code = sqlstate.iter().all(u8::is_ascii_alphanumeric);
                let code = if is_code { String::from_utf8_lossy(sqlstate) } else { "XX000".into() };
                format!("{code}: the server refused to prepare it")
            }
            Self::Shape => "shape".to_owned(),
            Self::Interval => "interval".to_owned(),
            Self::Rewritten => "rules".to_owned(),
            Self::Domain => "domain".to_owned(),
            Self::Folded => "folded".to_owned(),
            Self::Reflects => "reflects".to_owned(),
            Self::Sequence => "sequence".to_owned(),
            Self::Memory => "memory".to_owned(),
            Self::Slower { prepared, simple } => {
                format!("slower: {prepared} us on average, {simple} us as sent")
            }
        }
    }
}

/// How far the analysis of a normalized query has come.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It is counted.
    Counted,
    /// The parser thread is analysing it, since then.
    Analysed(Now),
    /// The analysis is done: the plan says which literals become parameters.
    Planned(Rc<Plan>),
    /// Its texts run by the simple protocol.
    Never(&'static Reason),
}

/// How far the verification of a variant has come.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// It is counted.
    Counted,
    /// It waits for a server that no client holds.
    Due,
    /// A server is being asked, since then.
    Asked { since: Now, cached: Rc<CachedStatement> },
    /// It is prepared on the servers that use it.
    Ready {
        cached: Rc<CachedStatement>,
        stored: Rc<[StoredLiteral]>,
        schema_version: u64,
        since: Now,
    },
    /// It runs by the simple protocol, until the schema changes or it is verified again.
    Never { why: Refused, schema_version: u64, since: Now },
}

/// A normalized query: all texts that differ only in their literals.
#[derive(Debug)]
pub(crate) struct NormalizedQuery {
    pub(crate) sample: Sample,
    pub(crate) state: State,
    /// Whether it is the text of clients' unnamed statements, and no simple query.
    pub(crate) unnamed: bool,
    /// Times one of its texts was run.
    pub(crate) seen: u64,
    /// The times of its texts that ran by the simple protocol.
    pub(crate) comparison: TimeComparison,
    pub(crate) variants: Vec<Variant>,
}

/// A variant of a normalized query: its texts with the same kept literals and settings.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) id: u64,
    pub(crate) env: EnvId,
    /// The kept literals, each with a zero byte behind it.
    pub(crate) kept: Box<[u8]>,
    pub(crate) seen: u64,
    /// The count of `seen` at which a server is asked.
    pub(crate) worth: u64,
    /// Times that the text failed prepared alone, with an error that did not say that the schema
    /// has changed.
    pub(crate) reruns: u32,
    /// The same, with such an error.
    pub(crate) changes: u32,
    pub(crate) stage: Stage,
    pub(crate) comparison: TimeComparison,
}

impl NormalizedQuery {
    pub(crate) fn bytes(&self) -> usize {
        self.sample.bytes() + self.variants.iter().map(Variant::bytes).sum::<usize>()
    }
}

impl Variant {
    /// Counts the variant anew, since no server could be asked now. Its text runs by the simple
    /// protocol at least once.
    pub(crate) fn recount(&mut self, bounds: &Bounds) {
        self.worth = self.seen + u64::from(bounds.threshold.max(2) - 1);
        self.stage = Stage::Counted;
    }

    /// Notes that the text failed prepared and not by the simple protocol. A server verifies the
    /// variant again, until this has happened [`RERUNS_MAX`] times; [`CHANGES_MAX`] times if the
    /// error said each time that the schema has `changed`.
    pub(crate) fn distrust(&mut self, why: Refused, changed: bool, schema_version: u64, now: Now) {
        let (count, most) = match changed {
            true => (&mut self.changes, CHANGES_MAX),
            false => (&mut self.reruns, RERUNS_MAX),
        };
        *count += 1;
        self.stage = match *count < most {
            true => Stage::Counted,
            false => Stage::Never { why, schema_version, since: now },
        };
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.kept.len()
    }

    /// Returns the schema version for which something is known of it.
    pub(crate) fn schema_version(&self) -> Option<u64> {
        match self.stage {
            Stage::Ready { schema_version, .. } | Stage::Never { schema_version, .. } => {
                Some(schema_version)
            }
            Stage::Counted | Stage::Due | Stage::Asked { .. } => None,
        }
    }
}

/// True if these literals, each with a zero byte behind it, are those that are kept.
pub(crate) fn is_kept<'a>(kept: &[u8], literals: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut rest = kept;
    for literal in literals {
        let Some(after) = rest.strip_prefix(literal).and_then(|rest| rest.strip_prefix(b"\0"))
        else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}
