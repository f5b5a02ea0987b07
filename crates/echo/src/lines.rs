//! Lines: where they end, and what follows from sending one to a server.

use refrain_pool::{Conn, Step};

use crate::parts::Echo;

/// Returns the first line of some input, with its end.
pub(crate) fn first_line(input: &[u8]) -> Option<&[u8]> {
    let end = input.iter().position(|&byte| byte == b'\n')?;
    Some(&input[..=end])
}

/// Sends a line to a server, which owes it back from now on. True if it owes nothing else.
pub(crate) fn send(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) -> bool {
    step.request_begins(server);
    step.ports.out(server).extend(line);
    let Some(s) = step.engine.connections.server(server) else { return false };
    s.session.owed += 1;
    s.session.owed == 1 && !s.session.in_transaction
}
