//! The checker of shared servers: what is no read has a server to itself, and runs once.
//!
//! A server is shared if messages of a client come while it works for another one: without sharing
//! the engine lends a server to the next client only when it owes nothing.

use refrain_wire::tag::front;

use crate::frames::Frames;
use crate::lang::{self, Statement};
use crate::world::World;

impl World {
    /// Checks a message that a server begins to handle, unless a cancel request has hit it.
    pub(crate) fn check_read(&mut self, number: usize, tag: u8, body: &[u8], hit: bool) {
        let backend = &mut self.backends[number];
        let Some(client) = backend.segment else { return };
        let input = backend.input.clone();
        backend.behind.extend(clients_in(input).filter(|other| *other != client));
        if hit {
            return;
        }
        let (is_read, run) = match tag {
            front::EXECUTE => match backend.session.bound(body) {
                Some((statement, values)) => (statement.is_read(), values.first().cloned()),
                None => return,
            },
            front::QUERY => {
                let end = body.len().saturating_sub(1);
                let statements = lang::parse(&String::from_utf8_lossy(&body[..end]));
                (statements.iter().all(Statement::is_read), None)
            }
            _ => return,
        };
        if is_read {
            return;
        }
        let behind = backend.behind.clone();
        if !behind.is_empty() {
            self.violate("reads", || {
                format!("client {client} runs no read on server {number}, shared by {behind:?}")
            });
        }
        if let Some(run) = run
            && !self.ran.insert(run.clone())
        {
            self.violate("reads", || format!("what {run} asked for ran twice, and is no read"));
        }
    }
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
