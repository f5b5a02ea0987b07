//! Users from the database: the jobs that ask for them, and the logins that wait for an answer.

use std::sync::Arc;

use refrain_cache::Waiter;
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::ids::PoolId;
use refrain_pool::{Log, Now};

use crate::pipeline::job::{Job, Task};
use crate::pipeline::outstanding::{Purpose, RequestKind};
use crate::relay::pipe::Pipeline;
use crate::state::parts::{Pg, Shared};
use crate::users::known::Terms;
use crate::users::lookup::Lookup;

/// Ends the job of looking up a user. Returns the logins that wait for the answer, and the words
/// for the log if the query is at fault.
pub(crate) fn conclude(lookup: Lookup, now: Now) -> (Vec<Waiter>, Option<String>) {
    let user = lookup.key().user.clone();
    let (waiters, wrong) = lookup.end(now);
    (waiters, wrong.map(|wrong| format!("auth_query for user \"{user}\": {wrong}")))
}

/// Tells the log that the query for a user is at fault, if it is.
pub(crate) fn note_wrong(log: &mut Log<'_, Pg>, pool: PoolId, wrong: Option<String>) {
    if let Some(words) = wrong {
        log.note_pool(pool, Level::Error, DisconnectReason::UserLookup, words);
    }
}

/// Returns the logins that have waited long enough for an answer.
pub(crate) fn tick(shared: &Shared, now: Now) -> Vec<Waiter> {
    let terms = Terms::of(&shared.options().general);
    shared.protocol.known_users().tick(&terms, now)
}

/// Starts to look up a user, if there is one to look up.
pub(crate) fn look_up(pipe: &mut Pipeline<'_>) -> Option<Job> {
    let pool = pipe.core_state.pool(pipe.server.pool());
    let lookup = pool.protocol.lookups.next()?;
    send_lookup(pipe, &lookup);
    Some(Job::begun(Task::LookUp(lookup)))
}

/// Sends the query for a user, under the server's own settings: those of the last client could give
/// the names in the query another meaning.
fn send_lookup(pipe: &mut Pipeline<'_>, lookup: &Lookup) {
    let defaults = pipe.server.session.settings.defaults().clone();
    let settings = Arc::clone(&defaults.settings);
    pipe.give_settings(&settings, &defaults, false);
    let key = lookup.key();
    let name = pipe.core_state.shared.protocol.registry.internal();
    let out = pipe.out();
    // An earlier one that failed half-way may have left its statement.
    write::close_statement(out, &name);
    write::parse(out, &name, &[key.source.query.as_bytes(), &[0; 3]].concat());
    write::message(out, front::BIND, |out| {
        write::string(out, &name);
        write::string(out, &name);
        let user = key.user.as_bytes();
        let length = u32::try_from(user.len()).unwrap_or_default();
        // No formats, one value, no formats of columns: all is text.
        out.extend_from_slice(&[0, 0, 0, 1]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(user);
        out.extend_from_slice(&[0, 0]);
    });
    write::execute(out, &name);
    write::close_portal(out, &name);
    write::close_statement(out, &name);
    use RequestKind::{Bind, Close, Execute, Parse};
    for kind in [Close, Parse, Bind, Execute, Close, Close] {
        pipe.owe_us(kind, Purpose::Verify, 0);
    }
    pipe.end_segment(Purpose::Verify);
}
