//! The checker of turns: first come, first served among the clients that wait for a server.
//!
//! In a world of one core, a client that gets a server passes those that still wait and came
//! earlier. Where servers are shared, some may: whenever a read gets a server, reads that wait join
//! it, past requests that share none. The next free server is the first one's in line all the same.
//! So a client is passed by as many as fit behind each of those in front of it, and no more.

use std::collections::{HashMap, HashSet};

use refrain_pg::{ClientView, Snapshot};
use refrain_pool::ClientSerial;

/// Clients as the checker knows them.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The time of the last look at them.
    seen: u64,
    /// Clients that waited then, and since when.
    waited: HashMap<ClientSerial, u64>,
    /// Clients that had a server.
    had: HashSet<ClientSerial>,
    /// The number of clients that have passed one that waits.
    passed: HashMap<ClientSerial, u64>,
}

impl Turns {
    /// Looks at the clients again. Returns two clients if one has passed the other more often than
    /// `most` clients may.
    pub(crate) fn look(
        &mut self,
        view: &Snapshot,
        most: u64,
    ) -> Option<(ClientSerial, ClientSerial)> {
        let served = view.clients.iter().filter(|client| client.server.is_some());
        let waiting = view.clients.iter().filter_map(|client| Some((client, client.waiting?.0)));
        let waits = waiting.clone().map(|(client, since)| (client.serial, since)).collect();
        let waited = std::mem::replace(&mut self.waited, waits);
        let had =
            std::mem::replace(&mut self.had, served.clone().map(|client| client.serial).collect());
        self.passed.retain(|client, _| self.waited.get(client) == waited.get(client));
        let mut out_of_turn = None;
        for client in served.filter(|client| !had.contains(&client.serial)) {
            // One that did not wait then has come since.
            let came = waited.get(&client.serial).copied().unwrap_or(self.seen);
            let same = |other: &ClientView| {
                (&other.database, &other.user) == (&client.database, &client.user)
            };
            for (other, _) in waiting.clone().filter(|(other, since)| same(other) && *since < came)
            {
                let passed = self.passed.entry(other.serial).or_default();
                *passed += 1;
                if *passed > most {
                    out_of_turn = Some((client.serial, other.serial));
                }
            }
        }
        self.seen = view.now.0;
        out_of_turn
    }
}
