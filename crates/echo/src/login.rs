//! Logins of clients and to servers. What authenticates whom is left out.

use refrain_pool::client::Phase;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::lobby::Counted;
use refrain_pool::{Conn, Protocol, Step};

use crate::parts::Echo;

/// Greets a client.
pub fn greet(step: &mut Step<'_, Echo>, client: Conn) {
    let Some(c) = step.engine.connections.client(client) else { return };
    let number = c.session.count_line().expect("this client's lines are counted");
    step.ports.out(client).extend(format!("hello {number}\n").bytes());
}

/// Reads a client's first line: the names of a database and a user, or a request to cancel.
pub(crate) fn open(step: &mut Step<'_, Echo>, client: Conn, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["cancel", pid, key] => {
            step.cancel_request(pid.parse().unwrap_or(0), key.as_bytes());
            step.remove_client(client, false);
        }
        [database, user] => enter(step, client, database, user),
        _ => step.end_client(client, DisconnectReason::ClientProtocol),
    }
}

/// Gives a client to its pool, which lets the client in or tells it why not.
fn enter(step: &mut Step<'_, Echo>, client: Conn, database: &str, user: &str) {
    let shared = step.engine.core_state.shared.clone();
    let Some(pool) = shared.pool(database, user) else {
        return step.end_client(client, DisconnectReason::UnknownDatabase);
    };
    if !step.count_as(client, Counted::Client) || shared.counts.admit_client(&pool).is_err() {
        return step.end_client(client, DisconnectReason::TooManyClients);
    }
    if let Some(c) = step.engine.connections.client(client) {
        c.session.phase = Phase::Entering;
    }
    step.enter(client, &pool);
}

/// Ends the login to a server, which sends `welcome` and its key, or an error.
pub(crate) fn answered(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let ["welcome", pid, key] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Echo::connect_failed(step, server, line.trim_end());
    };
    if let Some(s) = step.engine.connections.server(server) {
        s.set_cancel_key(pid.parse().unwrap_or(0), key.as_bytes());
    }
    step.logged_in(server, false);
}
