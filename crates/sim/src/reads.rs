//! The checker of shared servers: what is no read has a server to itself, and runs once.
//!
//! A server is shared if messages of a client come while it works for another one: without sharing
//! the engine lends a server to the next client only when it owes nothing.

use std::collections::HashSet;

use refrain_pg::{ClientView, Snapshot};
use refrain_pg_wire::tag::front;

use crate::backend::Backend;
use crate::frames::Frames;
use crate::lang::{self, Statement};
use crate::plant::Plant;

/// Checks a message that a server begins to handle, unless a cancel request has hit it. `ran` has
/// the tags with which statements have run that are no reads.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_read(
    backend: &mut Backend,
    ran: &mut HashSet<String>,
    (tag, body, hit): (u8, &[u8], bool),
    plant: Option<Plant>,
) -> Result<(), String> {
    // The data of a COPY that has failed arrives when the server has another client.
    if matches!(tag, front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL) {
        return Ok(());
    }
    let Some(client) = backend.segment else { return Ok(()) };
    let input = backend.input.clone();
    backend.behind.extend(clients_in(input).filter(|other| *other != client));
    if hit {
        return Ok(());
    }
    let (is_read, run) = match tag {
        front::EXECUTE => match backend.session.bound(body) {
            Some((statement, values)) => (statement.is_read(), values.first().cloned()),
            None => return Ok(()),
        },
        front::QUERY => {
            let end = body.len().saturating_sub(1);
            let statements = lang::parse(&String::from_utf8_lossy(&body[..end]));
            (statements.iter().all(Statement::is_read), None)
        }
        _ => return Ok(()),
    };
    if is_read {
        return Ok(());
    }
    let (behind, session) = (&backend.behind, backend.session.number);
    let ran_before = run.as_ref().is_some_and(|run| !ran.insert(run.clone()));
    if !behind.is_empty() && plant != Some(Plant::RunTwice) {
        return Err(format!("client {client} runs no read in session {session}, with {behind:?}"));
    }
    match run.filter(|_| ran_before) {
        Some(run) => Err(format!("what {run} asked for ran twice, and is no read")),
        None => Ok(()),
    }
}

/// Checks that no client waits behind a message on which a server has worked for long, by a look at
/// the server's core.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_patience(
    backends: &[Backend],
    number: usize,
    view: &Snapshot,
) -> Result<(), String> {
    let pid = backends[number].pid;
    let same = |other: &&Backend| other.pid == pid && other.is_serving();
    if backends.iter().filter(same).count() > 1 {
        return Ok(());
    }
    let Some(server) = view.servers.iter().find(|server| server.pid == pid) else { return Ok(()) };
    let waits = |client: &&ClientView| {
        client.server == Some(server.serial) && server.client != Some(client.serial)
    };
    let holder = server.client;
    view.clients.iter().find(waits).map_or(Ok(()), |client| {
        Err(format!("{:?} still waits behind {holder:?} on server {number}", client.serial))
    })
}

/// Returns the process ID and key of a server that works for another client, and has this client's
/// request too.
pub(crate) fn server_behind_other(backends: &[Backend], client: usize) -> Option<(u32, Vec<u8>)> {
    let found = backends.iter().find(|backend| {
        let other = backend.segment.is_some_and(|other| other != client);
        let waits = || clients_in(backend.input.clone()).any(|waiting| waiting == client);
        backend.is_serving() && backend.is_busy() && other && waits()
    });
    found.map(|backend| (backend.pid, backend.key.clone()))
}

/// Returns the clients of the messages that a server has not read yet.
fn clients_in(mut input: Frames) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || input.take()).filter_map(|(tag, body)| client_in(tag, &body))
}

/// Returns the client whose tag a message carries.
pub(crate) fn client_in(tag: u8, body: &[u8]) -> Option<usize> {
    if !matches!(
        tag,
        front::QUERY | front::PARSE | front::BIND | front::FUNCTION_CALL | front::COPY_DATA
    ) {
        return None;
    }
    // Refrain prepares texts of several clients in one job of its own.
    if tag == front::PARSE && body.starts_with(b"_r") {
        return None;
    }
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    for (at, _) in body.iter().enumerate().filter(|(_, b)| **b == b'c') {
        let inside = at > 0 && is_word(&body[at - 1]);
        let rest = &body[at + 1..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let ends = matches!(rest.get(digits), Some(b'-' | b'_'));
        if !inside && digits > 0 && ends {
            return std::str::from_utf8(&rest[..digits]).ok()?.parse().ok();
        }
    }
    None
}
