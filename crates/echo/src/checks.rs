//! Jobs, which a protocol need not have: checks whether a server still answers.

use refrain_pool::ids::PoolId;
use refrain_pool::pool::Pool;
use refrain_pool::{Background, Conn, Step, Supply};

use crate::lines::send;
use crate::parts::{Check, Echo};

impl Background for Echo {
    // A check has waited in line for a server. It is over if another has shown that all is well.
    fn begin_job(step: &mut Step<'_, Self>, server: Conn, job: Check) -> bool {
        job.is_needed && check(step, server, job, None)
    }

    // A check of this very server waits for no line.
    fn begin_own_job(step: &mut Step<'_, Self>, server: Conn) -> bool {
        check_if_due(step, server, None)
    }

    // The pool waits for the answer.
    const ASKS: bool = true;
    fn ask_server(supply: &mut Supply<'_, Self>, server: Conn) {
        let Some(s) = supply.connections.server(server) else { return };
        s.request_begins(supply.now);
        s.session.owed += 1;
        supply.ports.out(server).extend(b"there\n");
    }

    // The next job finds out what the lost job was to find out.
    fn lose_job(pool: &mut Pool<Self>, _job: &Check) {
        pool.protocol.lost += 1;
    }

    // The tests count the visits.
    fn tick_pool(step: &mut Step<'_, Self>, pool: PoolId) {
        step.engine.core_state.pool(pool).protocol.ticks += 1;
    }
}

/// Begins a check, if the pool has a server to be checked. True if it has.
pub(crate) fn check_if_due(step: &mut Step<'_, Echo>, server: Conn, back: Option<Conn>) -> bool {
    let Some(s) = step.engine.connections.server(server) else { return false };
    let checks = &mut step.engine.core_state.pool(s.pool()).protocol;
    let Some(due) = checks.due.checked_sub(1) else { return false };
    checks.due = due;
    check(step, server, Check { is_needed: true }, back)
}

/// Begins a check. A client that has the server gets it back afterwards.
fn check(step: &mut Step<'_, Echo>, server: Conn, job: Check, back: Option<Conn>) -> bool {
    send(step, server, b"check\n");
    step.start_job(server, job, back);
    true
}

/// Ends a check, and gives the server to its client or back to the pool.
pub(crate) fn checked(step: &mut Step<'_, Echo>, server: Conn) {
    let Some(s) = step.engine.connections.server(server) else { return };
    step.engine.core_state.pool(s.pool()).protocol.made += 1;
    match step.finish_job(server) {
        Some((_, Some(client))) => step.engine.connections.unblock(client),
        _ => step.make_fit(server),
    }
}
