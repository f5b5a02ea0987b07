//! Sessions of standbys: their answer to the engine's question, and a check of their messages.
//!
//! The check: *no client's message reaches a session of a standby*. Sessions of a host end when the
//! host is the primary no more, as PostgreSQL's do, so a server has told the engine before that it
//! is a standby.

use refrain_wire::front::query_text;
use refrain_wire::tag::front;

use crate::plant::Plant;
use crate::world::World;

/// The beginning of the query by which the engine asks a server for its state.
const ASKS_FOR_STATE: &[u8] = b"SELECT pg_catalog.pg_is_in_recovery()";

impl World {
    /// Answers the engine's question for the state of a server. Returns false if a message is
    /// another one.
    pub(crate) fn tells_state(&mut self, number: usize, tag: u8, body: &[u8]) -> bool {
        let asks = query_text(body).is_ok_and(|text| text.starts_with(ASKS_FOR_STATE));
        if tag != front::QUERY || !asks {
            return false;
        }
        let is_standby = self.hosts.primary() != Some(self.backends[number].host);
        // The bug: the engine takes a standby for a primary.
        let hides = self.plant == Some(Plant::HideStandby);
        let value = if is_standby && !hides { "on" } else { "off" };
        self.backends[number].session.tell_state(value);
        true
    }

    /// Checks that a server that gets a message of a client is at the primary.
    pub(crate) fn check_host(&mut self, number: usize, client: usize) {
        let host = self.backends[number].host;
        if self.hosts.primary() != Some(host) {
            self.violate("hosts", || {
                format!("client {client} got server {number} at host {host}, a standby")
            });
        }
    }
}
