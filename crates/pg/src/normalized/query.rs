//! A normalized query and its variants: what is known of texts that differ in their literals only.

use std::rc::Rc;

use refrain_sql::normalize::{Key, Plan, Reason, Sample};

use crate::ground::ids::EnvId;
use crate::ground::time::Now;
use crate::normalized::compare_times::{Draw, TimeComparison};
use crate::normalized::stored::Stored;
use crate::statements::of_core::CachedStatement;

/// What may be kept, and for how long.
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
    /// Whether a text is prepared before it is run for the first time.
    pub(crate) fn is_eager(&self) -> bool {
        self.threshold == 1
    }

    /// Uses that a statement must have found for each server that has it before one more gets it. A server plans a
    /// statement five times before it has a plan to keep.
    pub(crate) fn uses_per_server(&self) -> u64 {
        4 * u64::from(self.threshold - 1)
    }
}

/// Where a text's normalized query and variant are kept, and why the text goes its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The normalized query.
    pub(crate) key: Key,
    /// The variant; zero for none.
    pub(crate) variant: u64,
    /// How its way was chosen: the guard hears of that with the time it took.
    pub(crate) draw: Draw,
}

impl Place {
    /// The same for a text that runs on a server that is new to the statement.
    pub(crate) fn on_new_server(self) -> Self {
        Self { draw: Draw::New(self.draw == Draw::Chance), ..self }
    }

    /// The same for a text that goes as it was sent because there is no choice.
    pub(crate) fn without_choice(self) -> Self {
        Self { draw: Draw::None, ..self }
    }
}

/// Why a variant is not prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A rule.
    Rule(&'static Reason),
    /// The server refused to prepare it, with this SQLSTATE.
    Server([u8; 5]),
    /// The result would have another shape.
    Shape,
    /// A string becomes an interval of fewer fields as it is written, which only a literal does.
    Interval,
    /// What it writes to is no table, or has rules, whose results a prepared statement does not show.
    Rewritten,
    /// A parameter is of a domain, whose constraints would be looked at even where no row has the value.
    Domain,
    /// A function of the user's would be run once, as it is planned, and not each time.
    Folded,
    /// Code that the text comes to may ask for the text that was sent, or for when it was.
    Reflects,
    /// A sequence would give a value before it is known whether a constant fits.
    Sequence,
    /// Its plan takes more of a server's memory than all statements may.
    Memory,
    /// It was slower prepared: what an execution took on average, and one as it was sent, in microseconds.
    Slower { prepared: u64, simple: u64 },
}

impl Refused {
    /// The reason in a word, or the SQLSTATE.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Rule(reason) => reason.name.to_owned(),
            Self::Server(sqlstate) => String::from_utf8_lossy(sqlstate).into_owned(),
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

/// How far a normalized query has come.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It is counted.
    Counted,
    /// It is being judged, since then.
    Analysed(Now),
    /// It is known what becomes of its literals.
    Planned(Rc<Plan>),
    /// Its texts are run as they are sent.
    Never(&'static Reason),
}

/// How far a variant has come.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// It is counted.
    Counted,
    /// It waits for a server that no client holds.
    Due,
    /// A server is being asked, since then.
    Asked { since: Now, cached: Rc<CachedStatement> },
    /// It is prepared where it is used.
    Ready { cached: Rc<CachedStatement>, stored: Rc<[Stored]>, schema_version: u64, since: Now },
    /// It is run as it is sent, until the schema changes or it is looked at anew.
    Never { why: Refused, schema_version: u64, since: Now },
}

/// All texts that differ in nothing but their literals.
#[derive(Debug)]
pub(crate) struct NormalizedQuery {
    pub(crate) sample: Sample,
    pub(crate) state: State,
    /// Times one of its texts was run.
    pub(crate) seen: u64,
    /// What its texts took as they were sent.
    pub(crate) comparison: TimeComparison,
    pub(crate) variants: Vec<Variant>,
}

/// Those of them whose kept literals are the same, and the settings under which they are read.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) id: u64,
    pub(crate) env: EnvId,
    /// The kept literals, each with a zero byte behind it.
    pub(crate) kept: Box<[u8]>,
    pub(crate) seen: u64,
    /// As often it is to be seen before a server is asked.
    pub(crate) worth: u64,
    /// Reruns that succeeded.
    pub(crate) reruns: u32,
    pub(crate) stage: Stage,
    pub(crate) comparison: TimeComparison,
}

impl NormalizedQuery {
    pub(crate) fn bytes(&self) -> usize {
        self.sample.bytes() + self.variants.iter().map(Variant::bytes).sum::<usize>()
    }
}

impl Variant {
    /// It was no time to ask a server about it: it is counted anew, and runs once as it is sent at least.
    pub(crate) fn recount(&mut self, bounds: &Bounds) {
        self.worth = self.seen + u64::from(bounds.threshold.max(2) - 1);
        self.stage = Stage::Counted;
    }

    /// It failed as a statement and not as it was sent: a server is asked again, but for `most` times only.
    pub(crate) fn distrust(&mut self, why: Refused, most: u32, schema_version: u64, now: Now) {
        self.reruns += 1;
        self.stage = match self.reruns {
            reruns if reruns < most => Stage::Counted,
            _ => Stage::Never { why, schema_version, since: now },
        };
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.kept.len()
    }

    /// The schema version of what is known of it.
    pub(crate) fn schema_version(&self) -> Option<u64> {
        match self.stage {
            Stage::Ready { schema_version, .. } | Stage::Never { schema_version, .. } => {
                Some(schema_version)
            }
            Stage::Counted | Stage::Due | Stage::Asked { .. } => None,
        }
    }
}

/// Whether these literals, each with a zero byte behind it, are those that are kept.
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
