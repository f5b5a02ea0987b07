//! Servers whose clients have left: they finish what they owe, and are made as new if a client has
//! left something behind.

use refrain_config::PoolMode;
use refrain_pool::client::Client;
use refrain_pool::protocol::Fitness;
use refrain_pool::{Conn, Step};

use crate::parts::{My, Postponed, Reading, Transaction, Untold};
use crate::settings::edit;
use crate::train;
use crate::variant::Variant;

/// Takes a server from a client that has left.
pub(crate) fn take_back(step: &mut Step<'_, My>, conn: Conn, left: &Client<My>) -> Fitness {
    let Some(server) = step.engine.connections.server(conn) else { return Fitness::Unfit };
    let id = server.pool();
    let pool = step.engine.core_state.pool(id);
    let is_cancelled = server.is_cancelled();
    let session = &mut server.session;
    // The server waits for the rest of a command or of a file, or is about to leave.
    if session.is_released || left.session.reading != Reading::Commands {
        return Fitness::Unfit;
    }
    // A session that has a schema cannot be without one again.
    let is_without = Variant(pool.shared.variant).is_without_schema();
    let has_schema = session.settings.schema.is_some() || session.commands.has_client_command();
    if is_without && has_schema {
        return Fitness::Unfit;
    }
    let is_session = pool.settings.options.pool_mode == PoolMode::Session;
    // What replies that are still to come report is not followed any more. A reset leaves the
    // schema; no name is empty, so the next command's train names one.
    let owes = !session.commands.is_empty();
    if owes && !is_without {
        edit(&mut session.settings, |settings| settings.schema = Some(Box::default()));
    }
    // Nobody reads the rest of its rows.
    let is_amid = session.commands.may_be_hit() && left.session.place.has_begun;
    let untold = std::mem::take(&mut session.untold);
    let is_unasked = std::mem::take(&mut session.is_unasked);
    let caller = session.caller.take();
    let leaves = caller
        .is_some_and(|caller| train::leaves(&mut step.engine.core_state, id, caller.may, step.now));
    let is_unlearnt = std::mem::take(&mut session.postponed) == Postponed::Collation;
    session.is_dirty = is_session
        || is_unlearnt
        || is_unasked
        || owes
        || leaves
        || left.session.keeps()
        || session.slots.pending.is_some()
        || untold != Untold::Nothing;
    session.commands.forsake();
    session.dropped = 0;
    let fitness = if session.commands.is_empty() { Fitness::Fit } else { Fitness::Busy };
    if is_amid && !is_cancelled {
        step.cancel_server(conn);
    }
    fitness
}

/// Makes a server fit that owes nothing.
pub(crate) fn make_fit(step: &mut Step<'_, My>, conn: Conn) -> Fitness {
    let Some(server) = step.engine.connections.server(conn) else { return Fitness::Unfit };
    let is_cancelled = server.is_cancelled();
    let session = &mut server.session;
    if !session.commands.is_empty() {
        return Fitness::Busy;
    }
    if is_cancelled {
        session.postponed = Postponed::Left;
        return Fitness::Busy;
    }
    let out = step.ports.out(conn);
    if session.transaction != Transaction::None || session.is_dirty {
        train::renew(session, out);
        return Fitness::Busy;
    }
    if train::absorb(session, out) { Fitness::Busy } else { Fitness::Fit }
}
