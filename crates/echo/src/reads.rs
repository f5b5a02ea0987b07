//! Shared servers, which a protocol need not have: reads of several clients under way on one.

use refrain_pool::server::Server;
use refrain_pool::{Conn, Step, Views};

use crate::lines::{first_line, send};
use crate::parts::{Echo, ServerSession};

impl Views for Echo {
    // What a server owes says how many requests it has got.
    fn check_server(server: &Server<Self>) -> Result<(), String> {
        let (owed, behind) = (server.session.owed as usize, server.requests_behind());
        match behind > 0 && owed != behind + 1 {
            true => Err(format!("{owed} requests, and {behind} are behind the first")),
            false => Ok(()),
        }
    }
}

/// Whether input is one line that asks for something and changes nothing.
fn is_read(input: &[u8]) -> bool {
    input.starts_with(b"get ") && first_line(input) == Some(input)
}

/// Returns the microseconds that a read is known to take: the number behind its name, if any.
fn takes_us(input: &[u8]) -> u32 {
    let words = std::str::from_utf8(input).unwrap_or_default().split_whitespace();
    words.last().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Sends the input of a client without a server to one that works for others, if it is a read and
/// there is one.
pub(crate) fn share(step: &mut Step<'_, Echo>, client: Conn, input: &[u8]) -> bool {
    if !is_read(input) {
        return false;
    }
    let fits = |_: &_, server: &ServerSession| !server.in_transaction;
    let Some(server) = step.sharing().join(client, takes_us(input), fits) else { return false };
    send(step, server, input);
    step.sharing().await_turn(client, input);
    true
}

/// Lets other clients join at a client's server, if a read is `all` that the server owes.
pub(crate) fn invite(
    step: &mut Step<'_, Echo>,
    client: Conn,
    server: Conn,
    request: &[u8],
    all: bool,
) {
    match all && is_read(request) && step.sharing().may_open_line(client, request) {
        true => step.open_line(client, server, request, takes_us(request)),
        false => step.sharing().close_line(server),
    }
}
