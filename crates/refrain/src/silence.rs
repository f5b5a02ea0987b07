//! Servers that have gone silent: their machine or the network between is gone, and nobody tells
//! Refrain.
//!
//! The kernel sends unacknowledged bytes again for a quarter of an hour. `TCP_USER_TIMEOUT` would
//! end that earlier, and end connections to servers as well that acknowledge everything, but are
//! too busy to read on (`docs/decisions/0113-silent-servers.md`). So Refrain looks once a second
//! whether the servers at work acknowledge what they are sent.

use std::collections::HashMap;
use std::time::Duration;

use refrain_pool::{Conn, Engine, Now, Parts};

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// The servers of a core that owe an acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    looked: Now,
    /// When each was first found to owe one, by the server's number.
    since: HashMap<u64, Now>,
}

impl Silence {
    /// Returns the servers that have owed an acknowledgement for this long, and have sent none
    /// since.
    ///
    /// `unacknowledged` returns the time since a server has last acknowledged anything, if it owes
    /// an acknowledgement.
    pub(crate) fn look<P: Parts>(
        &mut self,
        engine: &Engine<P>,
        mut unacknowledged: impl FnMut(Conn) -> Option<Duration>,
        now: Now,
        limit: Option<Duration>,
    ) -> Vec<Conn> {
        let mut silent = Vec::new();
        let mut before = std::mem::take(&mut self.since);
        let Some(limit) = limit else { return silent };
        for server in engine.connections.busy_servers() {
            let Some(acknowledged) = unacknowledged(server.conn()) else { continue };
            // One that acknowledged anything meanwhile is slow, or loses packets.
            let since = before.remove(&server.serial());
            let since = since.filter(|since| now.since(*since) <= micros(acknowledged));
            let since = since.unwrap_or(now);
            if since.after(limit) <= now {
                silent.push(server.conn());
            } else {
                self.since.insert(server.serial(), since);
            }
        }
        silent
    }

    /// Whether it is time for the next look.
    pub(crate) fn is_due(&mut self, now: Now) -> bool {
        let is_due = self.looked.after(PAUSE) <= now;
        if is_due {
            self.looked = now;
        }
        is_due
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
