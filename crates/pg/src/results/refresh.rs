//! Refresh: a reply that a job of Refrain's own fetches, while clients get the one from before.
//!
//! The job runs what the client sent, under the client's settings: the text as a statement of its
//! own, whose columns have to be those that the clients of the reply know. So it needs nothing that
//! the client has, and the client may leave.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pg_wire::back::{Fields, RowShape, Status, row_shape};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::Now;

use crate::ground::ids::ServerOrigin;
use crate::normalized::run::is_passing;
use crate::results::changes::DatabaseChanges;
use crate::results::filling::{Filling, Outcome};
use crate::results::rule::Rule;
use crate::settings::defaults::Defaults;
use crate::settings::session::Settings;
use crate::statements::columns::{Columns, Shape, of_parameters};
use crate::statements::registry::Registry;

/// Most refreshes of a pool that wait on a core. Replies beyond those are fetched by the clients
/// that ask for them.
const DUE_MAX: usize = 256;
/// Most bytes of a request that is run again.
const BYTES_MAX: usize = 64 * 1024;
/// One part in this number of a pool's servers does such jobs at the same time, and at least one.
const SERVERS_PART: u32 = 4;

/// A client's request.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The body of a Parse behind the name.
    pub(crate) tail: Box<[u8]>,
    /// The body of a Bind behind the names.
    pub(crate) values: Box<[u8]>,
    /// Whether the reply tells the columns.
    pub(crate) describes: bool,
    /// The columns and parameters that the client's statement has.
    pub(crate) known: Option<KnownShape>,
}

/// Hashes of what a client knows of its statement; zero for what it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownShape {
    pub(crate) columns: Shape,
    pub(crate) parameters: u32,
}

impl KnownShape {
    /// Whether a server's statement is the same, as far as is known.
    fn fits(self, found: Self) -> bool {
        let fits = |known: u32, found: u32| known == 0 || known == found;
        (self.columns.types == 0 || self.columns.types == found.columns.types)
            && fits(self.columns.whole, found.columns.whole)
            && fits(self.parameters, found.parameters)
    }
}

impl Sent {
    /// Whether it is short enough to be kept until a server runs it.
    pub(crate) fn is_short(&self) -> bool {
        self.tail.len() + self.values.len() <= BYTES_MAX
    }
}

/// The reason why a job fetches no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoReply {
    /// An error that passes: the reply from before may be given.
    Passing,
    /// Another error, or something that keeps the reply from being kept.
    Lasting,
}

/// A reply that a job fetches.
#[derive(Debug)]
pub(crate) struct Refresh {
    filling: Filling,
    /// The name of the rule.
    pub(crate) rule: String,
    pub(crate) sent: Sent,
    /// The settings under which it runs, and the defaults that a server has to have.
    pub(crate) settings: Arc<Settings>,
    pub(crate) defaults: Defaults,
    /// The columns and parameters that the server has found.
    found: KnownShape,
    /// Set once there will be no reply.
    failed: Option<NoReply>,
    /// Set once the reply cannot be kept.
    ended: Option<Outcome>,
}

impl Refresh {
    /// Makes a refresh of what a client sent, which runs under these settings.
    pub(crate) fn new(
        filling: Filling,
        rule: &Rule,
        sent: Sent,
        settings: &Arc<Settings>,
        defaults: &Defaults,
    ) -> Self {
        Self {
            filling,
            rule: rule.name().to_owned(),
            sent,
            settings: settings.clone(),
            defaults: defaults.clone(),
            found: KnownShape { columns: Shape::default(), parameters: 0 },
            failed: None,
            ended: None,
        }
    }

    /// Takes a message of the answer.
    pub(crate) fn hears(&mut self, registry: &Registry, described: bool, tag: u8, body: &[u8]) {
        let hash = |what: RowShape| {
            let mut rows = Vec::new();
            row_shape(&mut rows, body, what);
            registry.hash_bytes(&rows)
        };
        match tag {
            back::PARAMETER_DESCRIPTION => {
                self.found.parameters = of_parameters(registry.hash_bytes(body))
            }
            back::ROW_DESCRIPTION if described => {
                self.found.columns =
                    Shape::of_statement(hash(RowShape::Types), hash(RowShape::Modifiers));
            }
            back::ROW_DESCRIPTION | back::DATA_ROW | back::COMMAND_COMPLETE => {
                self.keep(tag, body);
            }
            _ => {}
        }
    }

    /// Keeps a message of the reply.
    fn keep(&mut self, tag: u8, body: &[u8]) {
        let mut message = Vec::with_capacity(body.len() + 5);
        write::message(&mut message, tag, |out| out.extend_from_slice(body));
        let outcome = self.filling.take(&message, false, None, Now(0));
        if !matches!(outcome, Outcome::Pending) {
            self.ended.get_or_insert(outcome);
        }
    }

    /// Notes that there will be no reply that can be kept.
    pub(crate) fn object(&mut self) {
        self.failed = Some(NoReply::Lasting);
    }

    /// Notes which server gives the reply.
    pub(crate) fn comes_from(&mut self, changes: &DatabaseChanges, server: Option<ServerOrigin>) {
        self.filling.comes_from(changes, server);
    }

    /// Notes that the reply was this old when the server gave it.
    pub(crate) fn note_age(&mut self, age: u64) {
        self.filling.note_age(age);
    }

    /// Notes an error.
    pub(crate) fn fails(&mut self, fields: &Fields<'_>) {
        self.failed = Some(match is_passing(fields) {
            true => NoReply::Passing,
            false => NoReply::Lasting,
        });
    }

    /// Ends it when the server has become ready. Returns those that wait for the reply.
    pub(crate) fn end(mut self, now: Now) -> Outcome {
        let fits = self.sent.known.is_none_or(|known| known.fits(self.found));
        match (self.ended.take(), self.failed) {
            (Some(outcome), _) => return outcome,
            (None, Some(why)) => return self.filling.fail(why == NoReply::Passing),
            (None, None) if !fits => return self.filling.fail(false),
            (None, None) => {}
        }
        let mut ready = Vec::new();
        write::ready(&mut ready, Status::Idle);
        let columns = Columns::Known(self.found.columns);
        match self.filling.take(&ready, true, Some(columns), now) {
            // Nothing came that could be kept: a client is to see what does.
            Outcome::Pending => self.filling.fail(false),
            outcome => outcome,
        }
    }
}

impl Drop for Refresh {
    fn drop(&mut self) {
        self.filling.lose();
    }
}

/// The refreshes of a pool on a core.
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    due: VecDeque<Box<Refresh>>,
    /// How many servers do one.
    under_way: u32,
}

impl Refreshes {
    /// Whether another may wait.
    pub(crate) fn have_room(&self) -> bool {
        self.due.len() < DUE_MAX
    }

    /// Adds one, behind those that wait.
    pub(crate) fn push(&mut self, refresh: Box<Refresh>) {
        self.due.push_back(refresh);
    }

    /// Whether none waits.
    pub(crate) fn are_done(&self) -> bool {
        self.due.is_empty()
    }

    /// Whether a server of a pool of this size is to do one.
    pub(crate) fn has_due(&self, pool_size: u32) -> bool {
        !self.due.is_empty() && self.under_way < (pool_size / SERVERS_PART).max(1)
    }

    /// Begins the one that has waited longest.
    pub(crate) fn begin(&mut self) -> Option<Box<Refresh>> {
        let refresh = self.due.pop_front()?;
        self.under_way += 1;
        Some(refresh)
    }

    /// Notes that a server does one no more.
    pub(crate) fn ended(&mut self) {
        self.under_way -= 1;
    }

    /// Drops those that wait, since servers are being lost: the replies from before are given.
    pub(crate) fn lose(&mut self) {
        self.due.clear();
    }
}
