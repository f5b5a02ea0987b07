//! The time between commands: a server that owes nothing goes back, if nothing keeps it.

use refrain_config::PoolMode;
use refrain_mysql_wire::Status;
use refrain_pool::client::{Client, WaitingFor};
use refrain_pool::pool::Pool;
use refrain_pool::server::Server;
use refrain_pool::{Conn, Linked, Step};

use crate::parts::{ClientSession, My, Postponed, ServerSession, Transaction, Untold};
use crate::train;

/// Goes on with a client and its server once a command is over. If the server owes nothing and is
/// outside of a transaction, it goes back.
pub(crate) fn settle(step: &mut Step<'_, My>, client: Conn, conn: Conn) {
    if step.linked(client, conn).server.session.postponed == Postponed::Killed {
        kill(step, client, conn);
    }
    let Linked { now, client: c, server, core_state, ports } = step.linked(client, conn);
    // Nothing else may be hit.
    if !server.session.commands.is_empty() || server.is_cancelled() {
        return;
    }
    if server.session.is_struck {
        let options = &core_state.pool_in_use(c.pool()).settings.options;
        let is_session = options.pool_mode == PoolMode::Session;
        if absorbs(&c.session, &server.session, is_session)
            && train::absorb(&mut server.session, ports.out(conn))
        {
            return;
        }
    }
    let waits = c.waiting_for() == WaitingFor::Replies;
    // Asking costs the client no time.
    if c.inbox.held() == 0 {
        if asks_status((&mut c.session, &mut server.session), ports.out(conn)) {
            return;
        }
        let pool = core_state.pool_in_use(c.pool());
        let hidden = &pool.shared.protocol.hidden;
        // With `autocommit` off, the question would begin a transaction. With NO_BACKSLASH_ESCAPES
        // MySQL 9.7 cannot read its own catalog.
        let status = c.session.status;
        let is_plain = status.has(Status::AUTOCOMMIT) && !status.has(Status::NO_BACKSLASH_ESCAPES);
        if hidden.is_wanted()
            && is_plain
            && may_ask(c, server)
            && let Some(asked) = hidden.ask(now)
        {
            return train::ask_catalog(&mut server.session, ports.out(conn), asked);
        }
        if asks_insert_id(pool, c, server) {
            return train::ask_insert_id(&mut server.session, ports.out(conn));
        }
    }
    if waits {
        let has_more = c.inbox.held() > 0 && !core_state.is_shutting_down();
        step.engine.connections.unblock(client);
        if has_more {
            return;
        }
    }
    let Linked { client: c, server, .. } = step.linked(client, conn);
    let ServerSession { transaction, untold, is_unasked, .. } = server.session;
    if transaction == Transaction::None && untold == Untold::Nothing && !is_unasked {
        let keeps = c.session.keeps();
        step.transaction_over(client, conn, keeps);
    }
    step.leave_if_ended(client);
}

/// Whether a KILL that may still come has to hit a statement that does nothing: the server is about
/// to go back. A client that keeps the server may ask about the statement that was ended, and its
/// next one may be hit, as it would be without Refrain.
fn absorbs(client: &ClientSession, server: &ServerSession, is_session: bool) -> bool {
    server.transaction == Transaction::None && !is_session && !client.keeps()
}

/// Ends what a client's server does for it: at once, or once no command of Refrain's own can be
/// hit. Does nothing if the server owes the client nothing, or if its statement is being ended.
pub(crate) fn kill(step: &mut Step<'_, My>, client: Conn, conn: Conn) {
    let Linked { server, .. } = step.linked(client, conn);
    let is_over = server.is_cancelled() || !server.session.commands.has_client_command();
    let ServerSession { commands, postponed, .. } = &mut server.session;
    let may_be_hit = commands.may_be_hit();
    if *postponed != Postponed::Collation {
        *postponed = if is_over || may_be_hit { Postponed::None } else { Postponed::Killed };
    }
    if may_be_hit && !is_over {
        step.cancel_server(conn);
    }
}

/// Asks a server that owes nothing what the replies before have not told, if that matters now.
/// Returns whether it did.
fn asks_status(
    (client, server): (&mut ClientSession, &mut ServerSession),
    out: &mut Vec<u8>,
) -> bool {
    // An OK packet of the transaction tells it, at the latest that of its end: in MySQL each one,
    // in MariaDB one that reports anything. The first read of a transaction is such a change, so
    // there is one in each transaction of a client without DEPRECATE_EOF.
    let is_open = server.transaction == Transaction::Open;
    let may_wait = match server.untold {
        Untold::Nothing => false,
        // A report on what is set back has to come behind it.
        Untold::SetBack => is_open && !server.base.is_mariadb(),
        Untold::Any => is_open,
    };
    !may_wait && asks((client, server), out)
}

/// Asks a server that owes nothing what the replies before have not told, if there is anything: an
/// error does not say whether a transaction is open, and neither an error nor an EOF packet what
/// has changed. Returns whether it did.
fn asks((client, server): (&mut ClientSession, &mut ServerSession), out: &mut Vec<u8>) -> bool {
    let is_unsure = server.transaction == Transaction::Unsure;
    if server.untold == Untold::Nothing && !server.is_unasked && !is_unsure {
        return false;
    }
    // The question sets the count to 0. Behind an error there is none.
    client.memory.counts &= is_unsure;
    train::ask(server, out);
    true
}

/// Whether a client has to wait until its server owes nothing and has told all that has changed.
/// Then it waits.
pub(crate) fn has_to_learn(step: &mut Step<'_, My>, client: Conn) -> bool {
    let Some(conn) = step.server_of(client) else { return false };
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    let owes = !server.session.commands.is_empty() || server.is_cancelled();
    let waits = owes || asks((&mut c.session, &mut server.session), ports.out(conn));
    if waits {
        c.await_replies();
    }
    waits
}

/// Whether a server is about to go back and may be asked a question, which would clear warnings.
fn may_ask(client: &Client<My>, server: &Server<My>) -> bool {
    let is_over = server.session.transaction == Transaction::None && !client.session.keeps();
    is_over && !client.session.left.warnings
}

/// Whether a server that is about to go back has to be asked for the number that LAST_INSERT_ID()
/// tells its client. The question would clear warnings, which the client may ask for.
fn asks_insert_id(pool: &Pool<My>, client: &mut Client<My>, server: &mut Server<My>) -> bool {
    let is_session = pool.settings.options.pool_mode == PoolMode::Session;
    let may_ask = may_ask(client, server) && !is_session;
    may_ask && train::insert_id(client, server).asks(&pool.shared.protocol.readers)
}
