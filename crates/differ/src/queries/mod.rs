//! Random queries: templates that clients run again and again with other literals.
//!
//! A mistake of autoprepare shows in the second, sixth or twentieth run of a normalized query,
//! within or outside of a transaction, with a value that does not fit. So each client has a few
//! templates and runs them in random order, with new literals each time. Half of the queries run in
//! a transaction, and half under `plan_cache_mode = force_generic_plan`. Most are simple queries,
//! some use the extended protocol.
//!
//! Always holds: rows have one possible order (every text with more than one row sorts by a key or
//! by all its columns), and no text depends on time, on chance, or on another client.

mod holes;
mod template;

use self::template::Template;
use crate::client::Client;
use crate::msg::{Bind, Msg};
use crate::plan::Step;
use crate::rng::Rng;
use crate::schedule::holders;

/// Number of templates that a client uses at a time.
const TEMPLATES: usize = 4;

/// Makes the steps of one episode.
#[derive(Debug)]
pub struct Queries {
    rng: Rng,
    templates: Vec<Template>,
    /// The number of the client that owns each template.
    owners: Vec<usize>,
}

impl Queries {
    /// Creates a generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed ^ 0x5155_4552), templates: Vec::new(), owners: Vec::new() }
    }

    /// Returns the next step.
    pub fn next(&mut self, clients: &[Option<Client>], pool_size: usize) -> Step {
        if let Some(client) =
            clients.iter().position(|client| client.as_ref().is_none_or(|client| client.dead))
        {
            return Step::Connect { client, polite: true, params: Vec::new() };
        }
        let holders = holders(clients);
        let full = holders.len() >= pool_size;
        let ready: Vec<usize> =
            (0..clients.len()).filter(|client| !full || holders.contains(client)).collect();
        let client = *self.rng.pick(&ready);
        let status = clients[client].as_ref().map_or(b'I', |client| client.ledger.status());
        Step::Send(vec![(client, self.messages(client, status))])
    }

    fn messages(&mut self, client: usize, status: u8) -> Vec<Msg> {
        let control = match (status, self.rng.below(100)) {
            (b'E', 0..70) => "rollback",
            (b'E', 70..75) => "rollback to savepoint a",
            (b'T', 0..8) => "commit",
            (b'T', 8..14) => "rollback",
            (b'T', 14..18) => "savepoint a",
            (b'I', 0..12) => "begin",
            (b'I', 12..14) => "set plan_cache_mode = force_generic_plan",
            (b'I', 14..16) => "reset plan_cache_mode",
            _ => return self.query(client),
        };
        vec![Msg::Query(control.as_bytes().to_vec())]
    }

    fn query(&mut self, client: usize) -> Vec<Msg> {
        let text = self.text(client).into_bytes();
        if !self.rng.chance(8) {
            return vec![Msg::Query(text)];
        }
        vec![
            Msg::Parse(Vec::new(), text, Vec::new()),
            Msg::Bind(Bind::default()),
            Msg::DescribePortal(Vec::new()),
            Msg::Execute(Vec::new(), 0),
            Msg::Sync,
        ]
    }

    /// Returns the text of a template with new literals, mostly of a template already in use.
    fn text(&mut self, client: usize) -> String {
        let number = client + 1;
        let known: Vec<usize> =
            (0..self.templates.len()).filter(|at| self.owners[*at] == number).collect();
        if known.len() < TEMPLATES || self.rng.chance(4) {
            let template = template::random(&mut self.rng, &format!("c{number}"));
            if known.len() >= TEMPLATES {
                self.templates[known[0]] = template;
                let at = known[0];
                return self.templates[at].clone().fill(&mut self.rng);
            }
            self.templates.push(template);
            self.owners.push(number);
        }
        let known: Vec<usize> =
            (0..self.templates.len()).filter(|at| self.owners[*at] == number).collect();
        let at = *self.rng.pick(&known);
        self.templates[at].clone().fill(&mut self.rng)
    }
}
