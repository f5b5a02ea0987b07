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
    let holds = |client: &Client| !client.dead && client.holds.any();
    (0..clients.len()).filter(|at| clients[*at].as_ref().is_some_and(holds)).collect()
}

/// Returns the next step of an episode.
pub fn next(generator: &mut Generator, plan: &Plan, clients: &[Option<Client>]) -> Step {
    let holders = holders(clients);
    let full = holders.len() >= plan.pool_size;
    let gone = |client: &Option<Client>| client.as_ref().is_none_or(|client| client.dead);
    if let Some(client) = clients.iter().position(gone).filter(|_| !full) {
        return connect(generator, client);
    }
    let ready: Vec<usize> = (0..clients.len())
        .filter(|at| clients[*at].as_ref().is_some_and(|client| !client.dead))
        .filter(|at| !full || holders.contains(at))
        .collect();
    let client = *generator.rng().pick(&ready);
    if plan.features.has("reconnect") && generator.rng().below(1000) < 12 {
        return connect(generator, client);
    }
    let may_burst = plan.features.has("burst") && clients.len() > 1 && ready.len() == clients.len();
    if may_burst && clients.len() <= plan.pool_size && generator.rng().chance(15) {
        let sends = (0..clients.len()).filter_map(|at| send(generator, clients, at, Mode::Free));
        return Step::Send(sends.collect());
    }
    // A pinned client keeps its server for good, so at least one must be left for the others.
    let may_pin = clients.len() <= plan.pool_size || client + 1 < plan.pool_size;
    let mode = if may_pin && plan.features.has("pins") { Mode::Pinning } else { Mode::Free };
    Step::Send(send(generator, clients, client, mode).into_iter().collect())
}

fn connect(generator: &mut Generator, client: usize) -> Step {
    let polite = generator.rng().chance(60);
    Step::Connect { client, polite, login: generator.login(client) }
}

fn send(
    generator: &mut Generator,
    clients: &[Option<Client>],
    at: usize,
    mode: Mode,
) -> Option<(usize, Vec<crate::command::Command>)> {
    let client = clients[at].as_ref()?;
    Some((at, generator.step(at, client, mode)))
}
