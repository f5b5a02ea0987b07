//! The time between commands: a server that owes nothing goes back, if nothing keeps it.

use refrain_mysql_wire::command;
use refrain_pool::client::WaitingFor;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Purpose};
use crate::parts::{My, Transaction};

/// Goes on with a client and its server once a command is over. If the server owes nothing and is
/// outside of a transaction, it goes back.
pub(crate) fn settle(step: &mut Step<'_, My>, client: Conn, conn: Conn) {
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    if !server.session.commands.is_empty() {
        return;
    }
    let waits = c.waiting_for() == WaitingFor::Replies;
    let is_untold = server.session.has_untold && server.session.transaction == Transaction::None;
    let is_unsure = server.session.transaction == Transaction::Unsure;
    if (is_unsure || is_untold) && c.inbox.held() == 0 {
        // An error does not say whether a transaction is open, and an EOF packet not what has
        // changed. Asking costs the client no time.
        let (commands, out) = (&mut server.session.commands, ports.out(conn));
        commands::send(commands, out, (command::PING, b""), Purpose::Ping);
        return;
    }
    if waits {
        let has_more = c.inbox.held() > 0;
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
