//! The checker of shared servers: what is no read has a server to itself, and runs once.
//!
//! A server is shared if messages of a client come while it works for another one: without sharing
//! the engine lends a server to the next client only when it owes nothing.

use std::collections::HashSet;

use refrain_pg::ClientView;
use refrain_pg_wire::tag::front;

use crate::backend::Backend;
use crate::frames::Frames;
use crate::lang::{self, Statement};
use crate::net::Way;
use crate::plant::Plant;
use crate::world::{Happening, World};

/// Time between two ticks of an engine.
const TICK: u64 = 100_000;
/// Time in which an engine learns what a server has answered.
const SLACK: u64 = 100_000;

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

impl World {
    /// Plans a look at a server that works on a message for so long that nobody may wait behind it.
    pub(crate) fn watch_patience(&mut self, number: usize, takes: u64) {
        let bound = self.plan.patience + TICK + SLACK;
        if self.plan.shares && takes > bound {
            let appointment = self.backends[number].number;
            self.later(bound, Happening::Patience(number, appointment));
        }
    }

    /// Checks that no client waits behind a message on which a server has worked for long.
    pub(crate) fn check_patience(&mut self, number: usize, appointment: u32) {
        let backend = &self.backends[number];
        if backend.number != appointment || !backend.is_busy() || !backend.is_serving() {
            return;
        }
        let (pid, now) = (backend.pid, self.clock());
        let same = |other: &&Backend| other.pid == pid && other.is_serving();
        if self.backends.iter().filter(same).count() > 1 {
            return;
        }
        let view = self.workers[self.links[backend.link.0].core].engine.snapshot(now);
        let Some(server) = view.servers.iter().find(|server| server.pid == pid) else { return };
        let waits = |client: &&ClientView| {
            client.server == Some(server.serial) && server.client != Some(client.serial)
        };
        if let Some(client) = view.clients.iter().find(waits) {
            let holder = server.client;
            self.violate("patience", || {
                format!("{:?} still waits behind {holder:?} on server {number}", client.serial)
            });
        }
    }

    /// Has a client get the replies to a request from a second server too, if that is the bug.
    /// Returns true if replies before these are to be sent now.
    pub(crate) fn plant_late_replies(&mut self, number: usize, tag: u8) -> bool {
        if self.plant != Some(Plant::LateReplies) {
            return false;
        }
        let backend = &mut self.backends[number];
        match tag {
            front::BIND => {
                // The Execute of the unnamed portal.
                let bound = backend.session.bound(&[0; 5]);
                let Some(request) = bound.and_then(|(_, values)| values.first().cloned()) else {
                    return false;
                };
                backend.is_late = *self.first.entry(request).or_insert(number) != number;
                backend.is_late
            }
            front::SYNC if std::mem::take(&mut backend.is_late) => {
                let replies = backend.session.out.clone();
                let client = backend.segment.and_then(|client| self.clients[client].link);
                if let Some(link) = client {
                    self.links[link.0].down.send(&replies);
                    self.pump(link, Way::Down);
                }
                false
            }
            _ => false,
        }
    }
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
