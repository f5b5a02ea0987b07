//! Filling: a reply that is to be kept, while a server gives it.
//!
//! A client may be getting the reply at the same time, or a job of Refrain's own has asked for it
//! ([`crate::results::refresh`]). Whatever becomes of it, those that wait for it are told.

use std::borrow::Cow;
use std::sync::Arc;

use refrain_cache::{Bug, Fill, Kept, Terms, Waiter};
use refrain_pool::Now;

use crate::ground::ids::ServerOrigin;
use crate::ground::stats::RuleCounters;
use crate::results::changes::DatabaseChanges;
use crate::results::reply::{Body, Progress, progress};
use crate::results::rule::{Promise, Rule};
use crate::results::store::ResultStore;
use crate::statements::columns::Columns;

/// A reply that is to be kept.
#[derive(Debug)]
pub(crate) struct Filling {
    store: Arc<ResultStore>,
    /// `None` once the fill has ended.
    fill: Option<Box<Fill>>,
    terms: Terms,
    /// Bytes of the reply, at most.
    most: usize,
    /// Whether the request has a Parse of its own: then its columns are kept with the reply.
    parses: bool,
    /// How many statements it runs.
    statements: usize,
    /// The part of the reply that has come.
    sent: Vec<u8>,
    /// How many bytes of it count for the store.
    held: usize,
    /// The age that the reply had when the server gave it, in microseconds: the server may be
    /// another Refrain.
    age: u64,
    /// The promise of the rule, and whether the reply is of a server for which it does not hold.
    promise: Promise,
    is_elsewhere: bool,
}

/// Reads the age of a reply, which a server has reported in milliseconds. Returns microseconds.
pub(crate) fn reported_age(value: Option<&[u8]>) -> u64 {
    let number = value.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
    // An age that cannot be read is the greatest: the reply is not given to others.
    number.map_or(u64::MAX, |number| number.saturating_mul(1000))
}

/// The fate of a reply that was to be kept.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// More of it is to come.
    Pending,
    /// It is kept, or was out of date when it came.
    Ended(Kept, Vec<Waiter>),
    /// It cannot be kept.
    Refused(Vec<Waiter>),
}

impl Outcome {
    /// Counts it for its rule.
    pub(crate) fn count(&self, counters: &mut RuleCounters) {
        match self {
            Self::Pending => {}
            Self::Ended(Kept::Yes, _) => counters.fills += 1,
            Self::Ended(Kept::Changed, _) => counters.fills_outdated += 1,
            Self::Ended(Kept::Large, _) | Self::Refused(_) => counters.fills_refused += 1,
        }
    }
}

impl Filling {
    /// Begins to keep a reply by a rule. The request runs so many statements, and `parses` says
    /// whether it has a Parse of its own: then its columns are kept with the reply.
    pub(crate) fn new(
        store: &Arc<ResultStore>,
        fill: Box<Fill>,
        rule: &Rule,
        (statements, parses): (usize, bool),
    ) -> Self {
        let (store, fill) = (store.clone(), Some(fill));
        Self {
            store,
            fill,
            terms: rule.terms,
            most: rule.most,
            parses,
            statements,
            sent: Vec::new(),
            held: 0,
            age: 0,
            promise: rule.promise,
            is_elsewhere: matches!(rule.promise, Promise::Commits { .. }),
        }
    }

    /// Takes the bytes that come next. `ready` says whether a server has just become ready, and
    /// `columns` which columns the statement has that the request's Parse has made.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        ready: bool,
        columns: Option<Columns>,
        now: Now,
    ) -> Outcome {
        // RowDescription and the like come on top of what counts.
        if self.sent.len() + bytes.len() > self.most {
            return self.refuse();
        }
        // Most replies come in one piece, which need not be copied to be looked at.
        let sent = match std::mem::take(&mut self.sent) {
            none if none.is_empty() => Cow::Borrowed(bytes),
            mut before => {
                before.extend_from_slice(bytes);
                Cow::Owned(before)
            }
        };
        let keeps_errors = self.store.cache.has(Bug::KeptError);
        match if ready { progress(&sent, self.statements, keeps_errors) } else { Progress::More } {
            Progress::More => {
                self.sent = sent.into_owned();
                if self.hold() { Outcome::Pending } else { self.give_up() }
            }
            Progress::Other => self.give_up(),
            Progress::Whole(body) => self.keep(&sent, body, columns, now),
        }
    }

    /// Notes that the reply was this old when the server gave it.
    pub(crate) fn note_age(&mut self, age: u64) {
        self.age = self.age.max(age);
    }

    /// Notes which server gives the reply. The reply may not be kept if its rule depends on the
    /// replication stream, and the stream is not of that server.
    pub(crate) fn comes_from(&mut self, changes: &DatabaseChanges, server: Option<ServerOrigin>) {
        if let Promise::Commits { fallback, .. } = self.promise {
            self.is_elsewhere = !changes.may_keep(server, fallback.is_some());
        }
    }

    /// Counts what has come so far. False if the replies under way have too many bytes.
    fn hold(&mut self) -> bool {
        let more = self.sent.len() - self.held;
        self.held += more;
        self.store.hold(more)
    }

    /// Keeps a part of what has come.
    fn keep(&mut self, sent: &[u8], body: Body, columns: Option<Columns>, now: Now) -> Outcome {
        let mut kept = Cow::Borrowed(sent.get(body.bytes).unwrap_or_default());
        match columns {
            _ if !self.parses => {}
            Some(Columns::Known(columns)) => columns.write(kept.to_mut()),
            _ => return self.give_up(),
        }
        if self.is_elsewhere {
            return self.give_up();
        }
        let Some(mut fill) = self.fill.take() else { return self.give_up() };
        let took = now.0.saturating_sub(fill.asked());
        fill.is_older_by(self.age);
        let cache = &self.store.cache;
        let (kept, waiters) = cache.store(&fill, &kept, &self.terms, took, body.empty);
        Outcome::Ended(kept, waiters)
    }

    /// Ends without a reply, by `end`.
    fn end(&mut self, end: impl FnOnce(&ResultStore, &Fill) -> Vec<Waiter>) -> Outcome {
        let waiters = self.fill.take().map(|fill| end(&self.store, &fill));
        Outcome::Refused(waiters.unwrap_or_default())
    }

    /// Does not keep the reply: it is too long.
    fn refuse(&mut self) -> Outcome {
        let terms = self.terms;
        self.end(|store, fill| store.cache.refuse(fill, &terms))
    }

    /// Does not keep the reply, which says nothing of the next one.
    fn give_up(&mut self) -> Outcome {
        self.end(|store, fill| store.cache.abandon(fill))
    }

    /// Has no reply. With `keeps_old` set the one from before may be given in its place.
    pub(crate) fn fail(&mut self, keeps_old: bool) -> Outcome {
        self.end(|store, fill| store.cache.fail(fill, keeps_old))
    }

    /// Has no reply, and nobody to tell those that wait: a tick will.
    pub(crate) fn lose(&mut self) {
        if let Some(fill) = self.fill.take() {
            self.store.fail(&fill);
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.store.release(self.held);
        if let Some(fill) = &self.fill {
            self.store.abandon(fill);
        }
    }
}
