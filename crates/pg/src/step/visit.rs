//! Reads on standbys: which of a client's requests run there, and how they are sent.
//!
//! A request that is one read, outside of a transaction block, is sent to a server of the pool of
//! standbys beside the client's own pool ([`crate::state::standbys`]), if it is certain that the
//! standby has all that the client has written ([`crate::standbys::progress`]). The client has that
//! server for this request alone: it is read on when the request is answered.
//!
//! Where anything is in doubt, the request runs on the primary: it is not known to be a read, or
//! its result may depend on more than rows, parameters and settings; no standby is there, or free,
//! or has other default settings; the client has settings that a server may refuse. A read waits
//! for no standby.

use std::rc::Rc;
use std::time::Duration;

use refrain_pool::ids::{Conn, PoolId};
use refrain_pool::{Now, REQUEST_BYTES_MAX, Rated};

use crate::engine::Step;
use crate::pipeline::outstanding::Purpose;
use crate::relay::link::{Link, Stop};
use crate::relay::replayed::{ask_replayed, forget_unproven};
use crate::relay::turn::drop_answered_parse;
use crate::standbys::away::Away;
use crate::standbys::position::Position;
use crate::standbys::progress::Needs;
use crate::state::client::ClientSession;
use crate::state::options::reads_on_standbys;
use crate::state::parts::{Client, CoreState, Engine};
use crate::state::server::ServerSession;
use crate::state::standbys::STANDBYS;
use crate::statements::of_core::CachedStatement;
use crate::step::shared_read::shared_read;

/// Time for which a statement runs on the primary that could not be sent to a standby at once: it
/// lacked the statement, or the client has settings that it may refuse.
const REST: Duration = Duration::from_millis(100);
const REST_WITH_SETTINGS: Duration = Duration::from_secs(10);

/// Whether reads of a client's pool run on standbys.
#[inline]
pub(crate) fn may_visit(step: &mut Step<'_, '_>, conn: Conn) -> bool {
    let Engine { connections, core_state, .. } = &mut *step.step.engine;
    let client = connections.client(conn);
    client.is_some_and(|client| reads_on_standbys(core_state.pool_in_use(client.pool())))
}

/// Sends a client's input to a standby, if it is one read that may run there. True if the client
/// has to wait for the reply.
#[cold]
pub(crate) fn visit(step: &mut Step<'_, '_>, conn: Conn, input: &[u8]) -> bool {
    let now = step.step.now;
    let Engine { connections, core_state, .. } = &mut *step.step.engine;
    let Some(client) = connections.client(conn) else { return false };
    let Some(read) = timeless_read(now, core_state, client, input) else { return false };
    let needs = needs(now, core_state, client);
    let standbys = needs.and_then(|_| standbys(now, core_state, client));
    let Some((needs, standbys)) = needs.zip(standbys) else { return false };
    let pool = step.step.engine.core_state.pool_in_use(standbys);
    let changed = pool.shared.protocol.defaults_changed();
    let defaults = pool.shared.protocol.place().defaults.changed();
    let rates = |client: &ClientSession, server: &ServerSession| {
        let (own, theirs) = (client.settings.defaults(), server.settings.defaults());
        if theirs.since < changed || !theirs.are(own) && theirs.since < own.since {
            return Rated::Outdated;
        }
        let rated = server.replayed.rates(&needs, defaults, now).filter(|_| theirs.are(own));
        rated.map_or(Rated::Unfit, Rated::As)
    };
    let Some(server) = step.step.lend_elsewhere(standbys, conn, rates) else { return false };
    send(step, (conn, server), input, (read, needs));
    true
}

/// Has the primary asked how far it is, if a read of a client's pool needs that.
pub(crate) fn ask_if_due(step: &mut Step<'_, '_>, conn: Conn) {
    let Engine { connections, core_state, .. } = &mut *step.step.engine;
    let Some(home) = connections.client(conn).map(|client| client.pool()) else { return };
    if core_state.find_pool(home).is_some_and(|pool| pool.protocol.primary_due) {
        step.queue_what_is_due(home);
    }
}

/// Returns the read that a client's input is, if it may run on a standby.
fn timeless_read(
    now: Now,
    core_state: &mut CoreState,
    client: &mut Client,
    input: &[u8],
) -> Option<Rc<CachedStatement>> {
    // A reply that is to be kept comes from the primary, and so does that to a read that a standby
    // has sent back.
    if client.is_resent() || client.session.results.is_awaited() {
        return None;
    }
    // The pool keeps a copy of what is sent to a standby.
    if input.len() > REQUEST_BYTES_MAX {
        return None;
    }
    let read = shared_read(now, core_state, client, input).ok()?.cached;
    let away = client.session.away.as_ref();
    if away.is_some_and(|away| away.rests(read.statement.id, now)) {
        return None;
    }
    let shared = &core_state.pool_in_use(client.pool()).shared.protocol;
    let schema_changes = shared.schema_changes();
    let known = shared.place().hidden.words(schema_changes).is_some();
    (known && read.statement.verdict.is_timeless(schema_changes)).then_some(read)
}

/// Returns what a standby has to have for a client's read, if that is known.
fn needs(now: Now, core_state: &mut CoreState, client: &mut Client) -> Option<Position> {
    let pool = core_state.pool_in_use(client.pool());
    let max_lag = pool.settings.server.max_lag;
    let shared = pool.shared.clone();
    let progress = &shared.protocol.place().progress;
    let session = &mut client.session;
    let as_of = (session.results.writes(), shared.protocol.schema_changes());
    let away = session.away.get_or_insert_with(|| Box::new(Away::new(progress.written(as_of))));
    if away.written.as_of != as_of {
        away.written = progress.written(as_of);
    }
    let (needs, asks) = progress.needs(&mut away.written, now, max_lag);
    pool.protocol.primary_due |= asks;
    match needs {
        Needs::Position(position) => {
            away.needs = Some(position);
            Some(position)
        }
        Needs::Answer => {
            pool.counters.protocol.standby_reads_unproven += 1;
            None
        }
    }
}

/// Returns the pool of standbys beside a client's pool, which this core has open from now on.
fn standbys(now: Now, core_state: &mut CoreState, client: &Client) -> Option<PoolId> {
    let pool = core_state.pool_in_use(client.pool());
    let (known, shared) = (pool.protocol.standbys, pool.shared.clone());
    let open = known.filter(|id| core_state.peek_pool(*id).is_some());
    let id = match open {
        Some(id) => id,
        None => {
            let all = core_state.shared.clone();
            let standbys = all.pool_of_variant(&shared.database, client.user(), STANDBYS)?;
            core_state.open_pool(&standbys, now);
            core_state.pool_in_use(client.pool()).protocol.standbys = Some(standbys.id);
            standbys.id
        }
    };
    let standbys = core_state.pool_in_use(id);
    if standbys.idle().is_empty() {
        // What clients have proved serves at the standbys as well.
        let (secret, _) = shared.protocol.secret();
        let theirs = &standbys.shared.protocol;
        if !theirs.secret().0.is_same(&secret) && theirs.learn_secret(&secret) {
            standbys.shared.login_changes();
        }
    }
    Some(id)
}

/// Sends a read to the standby that its client has got, in front of it the question how much that
/// has replayed, if the answer is not known.
fn send(
    step: &mut Step<'_, '_>,
    (conn, server): (Conn, Conn),
    input: &[u8],
    (read, needs): (Rc<CachedStatement>, Position),
) {
    let mut link = step.linked(conn, server);
    link.pipe.server.session.replayed.visit(link.client.pool());
    let defaults = link.pipe.pool().shared.protocol.place().defaults.changed();
    // A server whose defaults are old is asked as well: the answer says whether new ones are there.
    let has = link.pipe.server.session.replayed.rates(&needs, defaults, link.pipe.now) == Some(0);
    let syncs = link.pipe.server.session.outstanding.quiescent().is_none();
    if !has {
        ask_replayed(&mut link.pipe);
    }
    let (used, stop) = link.requests(input);
    let owes = link.pipe.server.session.outstanding.quiescent().is_none();
    let is_sent = used == input.len() && stop == Stop::More && owes;
    let statement = read.statement.id;
    link.client.session.begin_read(read);
    if is_sent {
        link.client.session.results.go_away();
        link.pipe.pool().counters.protocol.standby_reads += 1;
    }
    step.step.sharing().await_turn(conn, input);
    let link = step.linked(conn, server);
    if has && !syncs {
        // Behind requests of Refrain's own the client's Parse is one that the standby answers.
        drop_answered_parse(link.client, &link.pipe.server.session.outstanding);
    }
    if is_sent {
        step.step.push_back_on_client(conn, server);
    } else {
        if !has {
            forget_unproven(&mut step.linked(conn, server).pipe);
        }
        leave(step, (conn, server), statement, syncs);
    }
}

/// Takes a standby from a client whose read would have to wait there. The read runs on the primary.
/// The standby has the statement by the next time. If it `syncs` settings for the client, nobody
/// reads what it makes of them.
fn leave(step: &mut Step<'_, '_>, (conn, server): (Conn, Conn), statement: u64, syncs: bool) {
    let now = step.step.now;
    let Link { mut pipe, client } = step.linked(conn, server);
    if let Some(away) = &mut client.session.away {
        away.rest(statement, now, if syncs { REST_WITH_SETTINGS } else { REST });
    }
    pipe.server.session.front.end();
    if pipe.server.session.outstanding.is_open() {
        pipe.end_segment(Purpose::Prepare);
    }
    let owes = !pipe.server.session.outstanding.is_empty();
    if syncs {
        pipe.server.session.soil();
    }
    step.step.sharing().give_turn_up(conn, server);
    if !owes {
        step.step.make_fit(server);
    }
}
