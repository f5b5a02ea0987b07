//! The time between commands: a server that owes nothing goes back, if nothing keeps it.

use refrain_config::PoolMode;
use refrain_mysql_wire::command;
use refrain_pool::client::{Client, WaitingFor};
use refrain_pool::pool::Pool;
use refrain_pool::server::Server;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Purpose};
use crate::parts::{My, ServerSession, Transaction};
use crate::train;

/// Goes on with a client and its server once a command is over. If the server owes nothing and is
/// outside of a transaction, it goes back.
pub(crate) fn settle(step: &mut Step<'_, My>, client: Conn, conn: Conn) {
    let Linked { client: c, server, core_state, ports, .. } = step.linked(client, conn);
    if !server.session.commands.is_empty() {
        return;
    }
    let waits = c.waiting_for() == WaitingFor::Replies;
    // Asking costs the client no time.
    if c.inbox.held() == 0 {
        if asks_status(&mut server.session, ports.out(conn)) {
            return;
        }
        let pool = core_state.pool(c.pool());
        if asks_insert_id(pool, c, server) {
            return train::ask_insert_id(&mut server.session, ports.out(conn));
        }
    }
    if waits {
        let has_more = c.inbox.held() > 0 && !core_state.is_shutting_down();
        step.unblock(client);
        if has_more {
            return;
        }
    }
    let Linked { client: c, server, .. } = step.linked(client, conn);
    if server.session.transaction == Transaction::None && !server.session.has_untold {
        let keeps = c.session.keeps();
        step.transaction_over(client, conn, keeps);
    }
    step.leave_if_ended(client);
}

/// Asks a server that owes nothing what the replies before have not told: an error does not say
/// whether a transaction is open, and an EOF packet not what has changed. Returns whether it did.
pub(crate) fn asks_status(session: &mut ServerSession, out: &mut Vec<u8>) -> bool {
    let is_untold = session.has_untold && session.transaction == Transaction::None;
    let asks = is_untold || session.transaction == Transaction::Unsure;
    if asks {
        commands::send(&mut session.commands, out, (command::PING, b""), Purpose::Ping);
    }
    asks
}

/// Whether a server that is about to go back has to be asked for the number that LAST_INSERT_ID()
/// tells its client. The question would clear warnings, which the client may ask for.
fn asks_insert_id(pool: &Pool<My>, client: &mut Client<My>, server: &mut Server<My>) -> bool {
    let is_over = server.session.transaction == Transaction::None && !client.session.keeps();
    let has_warnings = client.session.left.warnings;
    let is_session = pool.settings.options.pool_mode == PoolMode::Session;
    let may_ask = is_over && !has_warnings && !is_session;
    may_ask && train::insert_id(client, server).asks(&pool.shared.protocol.readers)
}
