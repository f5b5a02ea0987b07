//! Replies that are fetched for the cache: the jobs that do so, and those that wait for a reply.

use refrain_cache::{Kept, Waiter};
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_pool::Now;
use refrain_pool::ids::PoolId;

use crate::pipeline::job::{Job, Task};
use crate::pipeline::outstanding::{Purpose, RequestKind};
use crate::relay::pipe::Pipeline;
use crate::results::filling::Outcome;
use crate::results::refresh::{KnownShape, Refresh, Sent};
use crate::results::segment::Form;
use crate::state::parts::{Client, CoreState, Pool};
use crate::statements::columns::{Columns, Shape};

/// Returns what a client has sent, so that a job can send it again.
pub(crate) fn sent(client: &mut Client, form: Form<'_>) -> Option<Sent> {
    let Form::Extended { parse, name, values, describes } = form else {
        let Form::Query(text) = form else { return None };
        let tail = [text, &[0; 3]].concat().into();
        return Some(Sent { tail, values: [0; 6].into(), describes: true, known: None });
    };
    let (tail, known) = match parse {
        Some(tail) => (tail.into(), None),
        None => {
            let own = client.session.statements.get(name)?;
            let columns = match own.columns {
                Columns::Known(columns) => columns,
                Columns::Fixed | Columns::Of { .. } => Shape::default(),
            };
            let known = KnownShape { columns, parameters: own.parameters };
            (own.held.cached().statement.tail()[..].into(), Some(known))
        }
    };
    Some(Sent { tail, values: values.into(), describes, known })
}

/// Counts the end of a reply that was to be kept. Returns those that wait for it.
pub(crate) fn count(pool: &mut Pool, outcome: Outcome) -> Vec<Waiter> {
    let counters = &mut pool.counters.protocol;
    match outcome {
        Outcome::Pending => Vec::new(),
        Outcome::Ended(kept, waiters) => {
            match kept {
                Kept::Yes => counters.cache_fills += 1,
                Kept::Changed => counters.cache_fills_outdated += 1,
                Kept::Large => counters.cache_fills_refused += 1,
            }
            waiters
        }
        Outcome::Refused(waiters) => {
            counters.cache_fills_refused += 1;
            waiters
        }
    }
}

/// Ends the job of fetching a reply. Returns those that wait for it.
pub(crate) fn conclude(pool: &mut Pool, refresh: Refresh, now: Now) -> Vec<Waiter> {
    pool.protocol.refreshes.ended();
    pool.counters.protocol.cache_refreshes += 1;
    let rule = refresh.rule.clone();
    let outcome = refresh.end(now);
    let results = pool.protocol.results.as_ref();
    if let Some(counts) = results.and_then(|results| results.counts(&rule)) {
        let counters = &mut counts.borrow_mut().counters;
        counters.refreshes += 1;
        outcome.count(counters);
    }
    count(pool, outcome)
}

/// Drops the refreshes of a pool on whose servers no job begins: those who wait for them get the
/// replies from before, or ask for themselves.
pub(crate) fn lose_in_vain(core_state: &mut CoreState, id: PoolId, now: Now) {
    let leaves = core_state.leaves(id, now);
    if let Some(pool) = core_state.find_pool(id).filter(|pool| leaves || pool.is_paused()) {
        pool.protocol.refreshes.lose();
    }
}

impl Pipeline<'_> {
    /// Sends the request of the refresh that has waited longest. One for clients with other
    /// defaults than the server's is dropped: their settings are out of date.
    pub(crate) fn fetch_again(&mut self) -> Option<Job> {
        let changed = self.pool().shared.protocol.defaults_changed();
        let size = self.pool().settings.options.pool_size;
        while self.pool().protocol.refreshes.has_due(size) {
            let refresh = self.pool().protocol.refreshes.begin()?;
            let defaults = self.server.session.settings.defaults();
            if defaults.are(&refresh.defaults) && defaults.since >= changed {
                self.send_refresh(&refresh);
                return Some(Job::begun(Task::Fetch(refresh)));
            }
            self.pool().protocol.refreshes.ended();
        }
        None
    }

    /// Sends a client's request as one of Refrain's own.
    fn send_refresh(&mut self, refresh: &Refresh) {
        self.give_settings(&refresh.settings, &refresh.defaults, false);
        let Sent { tail, values, describes, .. } = &refresh.sent;
        let name = self.core_state.shared.protocol.registry.internal();
        let out = self.out();
        // An earlier one that failed half-way may have left its statement.
        write::close_statement(out, &name);
        write::parse(out, &name, tail);
        write::describe_statement(out, &name);
        write::message(out, front::BIND, |out| {
            write::string(out, &name);
            write::string(out, &name);
            out.extend_from_slice(values);
        });
        if *describes {
            write::describe_portal(out, &name);
        }
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use RequestKind::{Bind, Close, DescribePortal, DescribeStatement, Execute, Parse};
        for kind in [Close, Parse, DescribeStatement, Bind, DescribePortal, Execute, Close, Close] {
            if *describes || kind != DescribePortal {
                self.owe_us(kind, Purpose::Verify, 0);
            }
        }
        self.end_segment(Purpose::Verify);
    }
}
