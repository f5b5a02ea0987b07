//! Logins of clients and to servers. What authenticates whom is left out.

use refrain_pool::client::Phase;
use refrain_pool::disconnect::{ConnectFailure, DisconnectReason, FailureKind};
use refrain_pool::event::TlsPeer;
use refrain_pool::lobby::Counted;
use refrain_pool::{Conn, Protocol, Step};

use crate::parts::Echo;

/// The line of a host that speaks first, and that is asked for TLS.
pub(crate) const HOST_WITH_TLS: &[u8] = b"host tls\n";
/// The database whose servers speak first.
const SECURE: &str = "secure";
/// The line that asks for TLS.
pub(crate) const TLS: &[u8] = b"tls\n";

/// Has the loop encrypt a client's connection if the client asks for it. Returns the number of
/// bytes handled, the beginning of the handshake among them.
pub(crate) fn asks_for_tls(step: &mut Step<'_, Echo>, client: Conn, input: &[u8]) -> Option<usize> {
    if let Some(early) = step.ports.starting(client) {
        early.extend_from_slice(input);
        return Some(input.len());
    }
    let early = input.strip_prefix(TLS)?;
    step.ports.start_tls(client, TlsPeer::Client, early.to_vec());
    Some(input.len())
}

/// The line of a server that is not in the state that its pool wants.
pub(crate) const UNSUITED: &[u8] = b"unsuited\n";
/// The line of a server that has no room for one more session.
const FULL: &[u8] = b"full\n";
/// The line of a server that may not be in that state.
pub(crate) const DOUBTFUL: &[u8] = b"doubtful\n";

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
    if !step.count_as(client, Counted::Client) || shared.admit_client(&pool, user).is_err() {
        return step.end_client(client, DisconnectReason::TooManyClients);
    }
    if let Some(c) = step.engine.connections.client(client) {
        c.session.phase = Phase::Entering;
    }
    step.enter(client, &pool, user);
}

/// Begins the login to a server that is connected, unless it speaks first.
pub(crate) fn begin(step: &mut Step<'_, Echo>, server: Conn) {
    let Some(s) = step.engine.connections.server(server) else { return };
    if &*step.engine.core_state.pool(s.pool()).shared.database != SECURE {
        hello(step, server);
    }
}

/// Sends a server the first line of a login, which names its client.
pub(crate) fn hello(step: &mut Step<'_, Echo>, server: Conn) {
    let Some(s) = step.engine.connections.server(server) else { return };
    let pool = &step.engine.core_state.pool(s.pool()).shared;
    let hello = format!("hello {} {}\n", pool.database, pool.user);
    step.ports.out(server).extend(hello.bytes());
}

/// Ends the login to a server, which sends `welcome` and its key, or an error. A server that speaks
/// first is asked for TLS.
pub(crate) fn answered(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) {
    if line == HOST_WITH_TLS {
        step.ports.out(server).extend(TLS);
        return step.start_tls(server);
    }
    let kind = match line {
        UNSUITED => Some(FailureKind::Unsuited),
        FULL => Some(FailureKind::Full),
        _ => None,
    };
    if let Some(kind) = kind {
        let Some(id) = step.engine.connections.server(server).map(|s| s.pool()) else { return };
        let (cause, why) = (DisconnectReason::ServerLogin, "not now");
        let mut supply = step.supply();
        if supply.drop_failed(server, &ConnectFailure { cause, why, kind, refusal: None }) {
            supply.fail_waiting(id, (cause, why), |_, _| None);
        }
        return;
    }
    let line = String::from_utf8_lossy(line);
    let ["welcome", pid, key] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Echo::connect_failed(step, server, line.trim_end());
    };
    if let Some(s) = step.engine.connections.server(server) {
        s.set_cancel_key(pid.parse().unwrap_or(0), key.as_bytes());
    }
    step.logged_in(server, false);
}
