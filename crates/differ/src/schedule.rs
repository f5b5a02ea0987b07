//! The schedule: which client acts next, and how.
//!
//! If a pool is smaller than the number of clients, a client waits while other clients hold all
//! servers. The test has one thread, so it chooses only clients that need not wait. The state of
//! the direct sessions says which clients hold a server.

use crate::client::Client;
use crate::generate::{Generator, Mode};
use crate::plan::{Plan, Step};

/// Returns the clients that hold a server of the proxy's pool, or may do so.
#[must_use]
pub fn holders(clients: &[Option<Client>]) -> Vec<usize> {
    let holds = |client: &Client| !client.dead && (client.pinned || client.ledger.holds_server());
    (0..clients.len()).filter(|at| clients[*at].as_ref().is_some_and(holds)).collect()
}

/// Returns a client without a session that is to begin one. A login may need a server.
#[must_use]
pub fn without_session(plan: &Plan, clients: &[Option<Client>]) -> Option<usize> {
    let gone = |client: &Option<Client>| client.as_ref().is_none_or(|client| client.dead);
    if holders(clients).len() >= plan.pool_size { None } else { clients.iter().position(gone) }
}

/// Returns the next step of an episode.
pub fn next(generator: &mut Generator, plan: &Plan, clients: &[Option<Client>]) -> Step {
    if let Some(client) = without_session(plan, clients) {
        return connect(generator, client);
    }
    let holders = holders(clients);
    let full = holders.len() >= plan.pool_size;
    let ready: Vec<usize> =
        (0..clients.len()).filter(|client| !full || holders.contains(client)).collect();
    let client = *generator.rng().pick(&ready);
    if plan.features.has("reconnect") && generator.rng().below(1000) < 6 {
        return connect(generator, client);
    }
    if plan.features.has("outside") && holders.is_empty() && generator.rng().below(1000) < 15 {
        return Step::Outside(generator.outside(client));
    }
    let may_burst = plan.features.has("burst") && clients.len() > 1 && generator.rng().chance(12);
    if may_burst && clients.len() <= plan.pool_size {
        return burst(generator, clients, Mode::Free);
    }
    if may_burst && holders.is_empty() {
        return burst(generator, clients, Mode::Closed);
    }
    let mode = mode(plan, clients.len(), client);
    Step::Send(send(generator, clients, client, mode).into_iter().collect())
}

/// Returns the mode of a client's step. A pinned client keeps its server for good, so at least one
/// server must be left for the other clients.
fn mode(plan: &Plan, clients: usize, client: usize) -> Mode {
    let may_pin = clients <= plan.pool_size || client + 1 < plan.pool_size;
    if may_pin && plan.features.has("pins") { Mode::Pinning } else { Mode::Free }
}

fn connect(generator: &mut Generator, client: usize) -> Step {
    let polite = generator.rng().chance(60);
    Step::Connect { client, polite, params: generator.startup() }
}

fn burst(generator: &mut Generator, clients: &[Option<Client>], mode: Mode) -> Step {
    Step::Send(
        (0..clients.len()).filter_map(|client| send(generator, clients, client, mode)).collect(),
    )
}

fn send(
    generator: &mut Generator,
    clients: &[Option<Client>],
    client: usize,
    mode: Mode,
) -> Option<(usize, Vec<crate::msg::Msg>)> {
    let ledger = &clients[client].as_ref()?.ledger;
    Some((client, generator.step(client, ledger, mode)))
}
