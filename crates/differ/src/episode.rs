//! An episode: fresh sessions, fresh tables, a sequence of steps.

use crate::client::{Client, Difference, Stop, Tally};
use crate::generate::{Generator, opens_transaction, pins};
use crate::guard::{executed_names, harms, resets_amid, resets_unseen, resets_unseen_amid};
use crate::msg::Msg;
use crate::plan::{Plan, Step};
use crate::queries::Queries;
use crate::reads::Reads;
use crate::rng::Rng;
use crate::schedule;
use crate::setup::{Admin, Servers};
use crate::shrink::Failed;
use std::time::Duration;

/// The longest that the proxy may take until it knows whether a statement is a read.
const PAUSE: Duration = Duration::from_millis(1300);

/// The result of an episode.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The steps that ran. If one failed, it is the last.
    pub steps: Vec<Step>,
    /// Segments sent.
    pub segments: u64,
    /// Messages sent.
    pub messages: u64,
    /// Why the episode ended early.
    pub stop: Option<Stop>,
    /// Counts of masks, passes and replies.
    pub tally: Tally,
}

/// An episode while it runs.
pub struct Episode<'a> {
    plan: &'a Plan,
    admin: &'a mut Admin,
    /// The clients, by number; `None` before they have connected.
    pub clients: Vec<Option<Client>>,
    cuts: Rng,
    outcome: Outcome,
}

/// Runs the episode of this seed.
///
/// # Errors
/// If the tables cannot be put back to their start.
pub fn generate(plan: &Plan, admin: &mut Admin, seed: u64) -> Result<Outcome, String> {
    let mut generator = Generator::new(seed, plan.features.clone());
    let mut queries = Queries::new(seed);
    let mut reads = plan.features.has("reads").then(|| Reads::new(seed, &plan.features));
    let clients = 1 + generator.rng().below(plan.clients);
    admin.reset(plan.clients, plan.servers)?;
    let mut episode = Episode::new(plan, admin, clients, seed);
    while episode.outcome.stop.is_none() && episode.outcome.segments < plan.length {
        let step = match &mut reads {
            Some(reads) => reads.next(plan, &episode.clients),
            None if plan.queries => queries.next(&episode.clients, plan.pool_size),
            None => schedule::next(&mut generator, plan, &episode.clients),
        };
        episode.run(step);
    }
    Ok(episode.finish())
}

/// Runs these steps, and leaves out each that is not possible.
///
/// # Errors
/// If the tables cannot be put back to their start.
pub fn replay(
    plan: &Plan,
    admin: &mut Admin,
    seed: u64,
    steps: &[Step],
) -> Result<Outcome, String> {
    admin.reset(plan.clients, plan.servers)?;
    let mut episode = Episode::new(plan, admin, plan.clients, seed);
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
    fn new(plan: &'a Plan, admin: &'a mut Admin, clients: usize, seed: u64) -> Self {
        Self {
            plan,
            admin,
            clients: (0..clients).map(|_| None).collect(),
            cuts: Rng::new(!seed),
            outcome: Outcome::default(),
        }
    }

    fn run(&mut self, step: Step) {
        let result = match &step {
            Step::Connect { client, polite, params } => {
                self.connect(*client, *polite, params).map(|()| true)
            }
            Step::Send(sends) => self.send(sends),
            Step::Outside(sql) => self.outside(sql),
            Step::Pause => {
                std::thread::sleep(PAUSE);
                Ok(true)
            }
        };
        let ran = !matches!(result, Ok(false));
        if ran {
            self.outcome.steps.push(step);
        }
        self.outcome.stop = result.err();
    }

    fn connect(
        &mut self,
        client: usize,
        polite: bool,
        params: &[(String, String)],
    ) -> Result<(), Stop> {
        if let Some(old) = self.clients[client].take() {
            old.close(polite)?;
        }
        let (tally, features) = (&mut self.outcome.tally, &self.plan.features);
        self.clients[client] = Some(Client::open(&self.plan.peers, params, tally, features)?);
        Ok(())
    }

    /// Runs DDL by a third connection. Returns false, and runs nothing, while a client holds a
    /// server: its transaction may hold a lock that the command would wait for.
    fn outside(&mut self, sql: &[u8]) -> Result<bool, Stop> {
        if !schedule::holders(&self.clients).is_empty() {
            return Ok(false);
        }
        self.admin.outside(sql).map(|()| true).map_err(Stop::Broken)
    }

    /// Sends the messages of a step and compares the replies. Returns false, and sends nothing, if
    /// the step cannot be run in the clients' present state.
    fn send(&mut self, sends: &[(usize, Vec<Msg>)]) -> Result<bool, Stop> {
        if !self.may_run(sends) {
            return Ok(false);
        }
        let mut envs = Vec::new();
        for (client, msgs) in sends {
            if !self.plan.features.has("resets") && msgs.iter().any(resets_amid) {
                return Ok(false);
            }
            let Some(client) = &mut self.clients[*client] else { return Ok(false) };
            if resets_unseen_amid(msgs) || resets_unseen(msgs) && client.went_to_default() {
                return Ok(false);
            }
            let frozen = self.plan.features.has("frozen") && !harms(&client.ledger, msgs);
            match client.guard.check(&client.ledger, msgs) {
                Some(list) => envs.push(list),
                None if frozen => envs.push(vec![0; msgs.len()]),
                None => return Ok(false),
            }
        }
        let sends: Vec<_> = sends.iter().map(|(client, msgs)| (*client, msgs.as_slice())).collect();
        for ((client, msgs), envs) in sends.iter().zip(envs) {
            if let Some(client) = &mut self.clients[*client] {
                client.note(msgs, &envs);
            }
            self.outcome.messages += msgs.len() as u64;
            self.outcome.segments += msgs.iter().filter(|msg| ends_segment(msg)).count() as u64;
        }
        if sends.len() > self.free(&sends) {
            self.exchange_crowded(&sends)?;
        } else {
            // The proxy gets the messages of all clients first, so that it has them all at once.
            self.send_proxied(&sends)?;
            self.send_directly(&sends)?;
            self.settle(&sends)?;
        }
        Ok(true)
    }

    /// Sends the messages of more clients than there are servers.
    ///
    /// The replies of the direct side say which clients keep a server. Those are the last whose
    /// messages the proxy gets, since the others would wait for their servers.
    fn exchange_crowded(&mut self, sends: &[Sent<'_>]) -> Result<(), Stop> {
        self.send_directly(sends)?;
        let (stay, leave): (Vec<Sent<'_>>, Vec<_>) = sends.iter().partition(|sent| !leaves(sent));
        for (client, _) in &stay {
            if let Some(client) = &mut self.clients[*client] {
                client.read_direct()?;
            }
        }
        let holders = schedule::holders(&self.clients);
        let (last, mut first): (Vec<_>, Vec<_>) =
            stay.into_iter().partition(|(client, _)| holders.contains(client));
        if last.len() > self.free(sends) {
            return Err(Stop::Passed);
        }
        first.extend(leave);
        for sends in [first, last] {
            self.send_proxied(&sends)?;
            self.settle(&sends)?;
        }
        Ok(())
    }

    fn send_proxied(&mut self, sends: &[Sent<'_>]) -> Result<(), Stop> {
        for (client, msgs) in sends {
            let cuts = self.plan.peers.fragment.then_some(&mut self.cuts);
            if let Some(client) = &mut self.clients[*client] {
                client.send(msgs, cuts)?;
            }
        }
        Ok(())
    }

    fn send_directly(&mut self, sends: &[Sent<'_>]) -> Result<(), Stop> {
        for (client, msgs) in sends {
            if let Some(client) = &mut self.clients[*client] {
                client.send_directly(msgs)?;
            }
        }
        Ok(())
    }

    /// Compares the replies to what has been sent.
    fn settle(&mut self, sends: &[Sent<'_>]) -> Result<(), Stop> {
        for sent @ (client, _) in sends {
            if leaves(sent) {
                self.clients[*client] = None;
            } else if let Some(client) = &mut self.clients[*client] {
                client.settle(&mut self.outcome.tally, &self.plan.features)?;
            }
        }
        Ok(())
    }

    /// Returns the number of servers that no client holds but these.
    fn free(&self, sends: &[Sent<'_>]) -> usize {
        let holders = schedule::holders(&self.clients);
        let others = holders.iter().filter(|holder| sends.iter().all(|send| send.0 != **holder));
        self.plan.pool_size.saturating_sub(others.count())
    }

    /// Whether the pool has enough servers for all clients of this step until the step is over.
    fn may_run(&self, sends: &[(usize, Vec<Msg>)]) -> bool {
        let alive = sends
            .iter()
            .all(|(client, _)| self.clients[*client].as_ref().is_some_and(|client| !client.dead));
        let holders = schedule::holders(&self.clients);
        let sent: Vec<_> = sends.iter().map(|(client, msgs)| (*client, msgs.as_slice())).collect();
        let free = self.free(&sent);
        let all_held = sends.iter().all(|send| holders.contains(&send.0));
        let closed = || sends.iter().all(|(client, msgs)| self.is_closed(*client, msgs));
        let idle = sends.iter().all(|send| !holders.contains(&send.0));
        alive && (sends.len() <= free || all_held || (free > 0 && idle && closed()))
    }

    /// True if the session is as idle after these messages as before.
    fn is_closed(&self, client: usize, msgs: &[Msg]) -> bool {
        let Some(client) = &self.clients[client] else { return false };
        let opens =
            |name: &[u8]| client.ledger.stmt(name).is_some_and(|stmt| opens_transaction(&stmt.sql));
        let harmless = |msg: &Msg| match msg {
            Msg::Bind(bind) => !opens(&bind.stmt),
            msg => {
                let is_harmless =
                    |sql| !opens_transaction(sql) && !executed_names(sql).any(|name| opens(&name));
                text_of(msg).is_none_or(is_harmless) && !pins(msg)
            }
        };
        let msgs = match msgs {
            [msgs @ .., Msg::Leave { .. }] => msgs,
            msgs => msgs,
        };
        let ended = matches!(msgs.last(), Some(Msg::Sync | Msg::Query(_) | Msg::FunctionCall(..)));
        ended && msgs.iter().all(harmless)
    }

    fn finish(mut self) -> Outcome {
        for client in self.clients.into_iter().flatten() {
            let closed = client.close(true);
            if self.outcome.stop.is_none() {
                self.outcome.stop = closed.err();
            }
        }
        self.outcome
    }
}

/// A client, and its messages in a step.
type Sent<'a> = (usize, &'a [Msg]);

fn leaves((_, msgs): &Sent<'_>) -> bool {
    matches!(msgs.last(), Some(Msg::Leave { .. }))
}

fn text_of(msg: &Msg) -> Option<&[u8]> {
    match msg {
        Msg::Parse(_, sql, _) | Msg::Query(sql) => Some(sql),
        _ => None,
    }
}

fn ends_segment(msg: &Msg) -> bool {
    matches!(msg, Msg::Sync | Msg::Query(_) | Msg::FunctionCall(..) | Msg::Flush)
}
