//! Sessions of standbys: their answer to the engine's question, and a check of their messages.
//!
//! The check: *no client's message reaches a session of a standby*. Sessions of a host end when the
//! host is the primary no more, as PostgreSQL's do, so a server has told the engine before that it
//! is a standby.

use refrain_pg_wire::front::query_text;
use refrain_pg_wire::tag::front;

use crate::backend::Backend;
use crate::hosts::Hosts;
use crate::plant::Plant;

/// The beginning of the query by which the engine asks a server for its state.
const ASKS_FOR_STATE: &[u8] = b"SELECT pg_catalog.pg_is_in_recovery()";

/// Answers the engine's question for the state of a server. Returns false if a message is another
/// one.
pub(crate) fn tells_state(
    hosts: &Hosts,
    backend: &mut Backend,
    (tag, body): (u8, &[u8]),
    plant: Option<Plant>,
) -> bool {
    let asks = query_text(body).is_ok_and(|text| text.starts_with(ASKS_FOR_STATE));
    if tag != front::QUERY || !asks {
        return false;
    }
    let is_standby = hosts.primary() != Some(backend.host);
    // The bug: the engine takes a standby for a primary.
    let hides = plant == Some(Plant::HideStandby);
    backend.session.tell_state(if is_standby && !hides { "on" } else { "off" });
    true
}

/// Checks that a server that gets a message of a client is at the primary.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_host(hosts: &Hosts, backend: &Backend, client: usize) -> Result<(), String> {
    let (host, number) = (backend.host, backend.session.number);
    match hosts.primary() {
        Some(primary) if primary == host => Ok(()),
        _ => Err(format!("client {client} got session {number} at host {host}, a standby")),
    }
}
