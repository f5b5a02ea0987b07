//! The time between commands: a server that owes nothing goes back, if nothing keeps it.

use refrain_mysql_wire::command;
use refrain_pool::client::WaitingFor;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Purpose};
use crate::parts::{My, ServerSession, Transaction};

/// Goes on with a client and its server once a command is over. If the server owes nothing and is
/// outside of a transaction, it goes back.
pub(crate) fn settle(step: &mut Step<'_, My>, client: Conn, conn: Conn) {
    let Linked { client: c, server, core_state, ports, .. } = step.linked(client, conn);
    if !server.session.commands.is_empty() {
        return;
    }
    let waits = c.waiting_for() == WaitingFor::Replies;
    // Asking costs the client no time.
    if c.inbox.held() == 0 && asks_status(&mut server.session, ports.out(conn)) {
        return;
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
