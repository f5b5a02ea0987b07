//! An episode: fresh sessions, fresh tables, a sequence of steps.

use crate::client::{Client, Difference, Stop, Tally};
use crate::command::Command;
use crate::generate::Generator;
use crate::plan::{Plan, Step};
use crate::schedule;
use crate::setup::Admin;
use refrain_differ::rng::Rng;
use refrain_differ::setup::Servers;
use refrain_differ::shrink::Failed;
use std::time::Duration;

/// The result of an episode.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The steps that ran. If one failed, it is the last.
    pub steps: Vec<Step>,
    /// Commands sent.
    pub commands: u64,
    /// Why the episode ended early.
    pub stop: Option<Stop>,
    /// Counts of masks, passes and replies.
    pub tally: Tally,
}

/// An episode while it runs.
struct Episode<'a> {
    plan: &'a Plan,
    /// The clients, by number; `None` before they have connected.
    clients: Vec<Option<Client>>,
    cuts: Rng,
    outcome: Outcome,
}

/// Runs the episode of this seed.
///
/// # Errors
/// If the tables cannot be put back to their start.
pub fn generate(plan: &Plan, admin: &mut Admin, seed: u64) -> Result<Outcome, String> {
    let mut generator = Generator::new(seed, plan.features.clone(), &admin.version);
    let clients = 1 + generator.rng().below(plan.clients);
    admin.reset(plan.clients, plan.servers)?;
    let mut episode = Episode::new(plan, clients, seed);
    while episode.outcome.stop.is_none() && episode.outcome.commands < plan.length {
        let step = schedule::next(&mut generator, plan, &episode.clients);
        episode.run(step);
    }
    Ok(episode.finish())
}

/// Runs these steps, and leaves out each that is not possible.
fn replay(plan: &Plan, admin: &mut Admin, seed: u64, steps: &[Step]) -> Result<Outcome, String> {
    admin.reset(plan.clients, plan.servers)?;
    let mut episode = Episode::new(plan, plan.clients, seed);
    for step in steps {
        if episode.outcome.stop.is_none() {
            episode.run(step.clone());
        }
    }
    Ok(episode.finish())
}

/// An episode that has failed, for the search for a shorter one.
pub struct Failure<'a> {
    plan: Plan,
    admin: &'a mut Admin,
    seed: u64,
    what: String,
}

impl<'a> Failure<'a> {
    /// Makes it of what an episode ran with, and of the words about its difference.
    pub fn new(plan: &Plan, admin: &'a mut Admin, seed: u64, what: &str) -> Self {
        let mut plan = plan.clone();
        plan.peers.limit = plan.peers.limit.min(Duration::from_secs(2));
        Self { plan, admin, seed, what: what.to_owned() }
    }
}

impl Failed for Failure<'_> {
    type Step = Step;
    type Difference = Difference;

    fn again(&mut self, steps: &[Step], servers: Servers) -> Option<(Vec<Step>, Difference)> {
        self.plan.servers = servers;
        let outcome = replay(&self.plan, self.admin, self.seed, steps).ok()?;
        match outcome.stop {
            Some(Stop::Differs(difference)) if difference.what == self.what => {
                Some((outcome.steps, *difference))
            }
            _ => None,
        }
    }
}

impl<'a> Episode<'a> {
    fn new(plan: &'a Plan, clients: usize, seed: u64) -> Self {
        Self {
            plan,
            clients: (0..clients).map(|_| None).collect(),
            cuts: Rng::new(!seed),
            outcome: Outcome::default(),
        }
    }

    fn run(&mut self, step: Step) {
        let result = match &step {
            Step::Connect { client, polite, login } => {
                if let Some(old) = self.clients[*client].take() {
                    old.close(*polite);
                }
                let opened = Client::open(&self.plan.peers, login, &mut self.outcome.tally);
                opened.map(|opened| self.clients[*client] = Some(opened)).map(|()| true)
            }
            Step::Send(sends) => self.send(sends),
        };
        if !matches!(result, Ok(false)) {
            self.outcome.steps.push(step);
        }
        self.outcome.stop = result.err();
    }

    /// Sends the commands of a step and compares the replies. Returns false, and sends nothing, if
    /// the step cannot be run in the clients' present state.
    fn send(&mut self, sends: &[(usize, Vec<Command>)]) -> Result<bool, Stop> {
        if !self.may_run(sends) {
            return Ok(false);
        }
        // The proxy gets the commands of all clients first, so that it has them all at once.
        for (at, commands) in sends {
            let cuts = self.plan.peers.fragment.then_some(&mut self.cuts);
            if let Some(client) = &mut self.clients[*at] {
                client.note(commands);
                client.send(commands, cuts)?;
            }
            self.outcome.commands += commands.len() as u64;
        }
        for (at, commands) in sends {
            if let Some(client) = &mut self.clients[*at] {
                client.send_directly(commands)?;
            }
        }
        for (at, _) in sends {
            if let Some(client) = &mut self.clients[*at] {
                client.settle(&mut self.outcome.tally)?;
            }
        }
        Ok(true)
    }

    /// Whether the pool has enough servers for all clients of this step until the step is over.
    fn may_run(&self, sends: &[(usize, Vec<Command>)]) -> bool {
        let mut holders = schedule::holders(&self.clients);
        let alive = |at: usize| self.clients[at].as_ref().is_some_and(|client| !client.dead);
        holders.extend(sends.iter().map(|(at, _)| *at));
        holders.sort_unstable();
        holders.dedup();
        sends.iter().all(|(at, _)| alive(*at)) && holders.len() <= self.plan.pool_size
    }

    fn finish(self) -> Outcome {
        for client in self.clients.into_iter().flatten() {
            client.close(true);
        }
        self.outcome
    }
}
