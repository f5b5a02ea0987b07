//! What a client does: an endless random script of small units of the protocol.
//!
//! A unit ends in a place where a client can wait for its replies. The script does not look at replies: whatever the
//! server makes of a unit in the state it is in, the oracle makes the same. What it keeps away from is what no
//! proxy can get right, said where it does so.

use crate::feature::{FEATURES, Feature};
use crate::rng::Rng;
use crate::say::Say;

/// What a client says before it waits, or does not.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The messages.
    pub bytes: Vec<u8>,
    /// Whether it waits for all replies before it goes on.
    pub waits: bool,
}

/// What a script does and does not do, whatever it is about.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Whether it opens transaction blocks.
    pub blocks: bool,
    /// Whether it waits after each unit: in a COPY that a cancel may hit, the Sync behind it is ambiguous.
    pub patient: bool,
    /// Whether it resets settings.
    pub resets: bool,
    /// Whether its results may be longer than all buffers on the way together.
    pub floods: bool,
}

/// A client's script.
#[derive(Debug)]
pub struct Script {
    pub(crate) client: usize,
    request: u32,
    weights: [u64; FEATURES.len()],
    pub(crate) say: Say,
    /// Whether a block was begun and not ended, as far as the script knows.
    pub in_block: bool,
    /// Whether one ever was.
    pub opened_block: bool,
    pub(crate) habits: Habits,
    /// The messages of a COPY that waits for the server to be ready.
    pub(crate) later: Option<Vec<u8>>,
    /// Whether constants may be of types whose meaning settings change: not where the client changes those, since
    /// a server that lacks the statement is told of it under the client's later settings.
    pub(crate) freezes: bool,
}

impl Script {
    /// A script of a client.
    pub fn new(client: usize, weights: [u64; FEATURES.len()], habits: Habits) -> Self {
        let freezes = [Feature::Reported, Feature::Discards]
            .iter()
            .all(|f| weights[crate::plan::index(*f)] == 0);
        Self {
            client,
            request: 0,
            weights,
            say: Say(Vec::new(), client),
            in_block: false,
            opened_block: false,
            habits,
            later: None,
            freezes,
        }
    }

    pub(crate) fn tag(&mut self) -> String {
        self.request += 1;
        format!("c{}-{}", self.client, self.request)
    }

    /// The next unit.
    pub fn unit(&mut self, rng: &mut Rng) -> Unit {
        if let Some(bytes) = self.later.take() {
            return Unit { bytes, waits: true };
        }
        let total: u64 = self.weights.iter().sum();
        let mut at = rng.below(total);
        let mut feature = Feature::Simple;
        for (of, weight) in FEATURES.iter().zip(self.weights) {
            if at < weight {
                feature = *of;
                break;
            }
            at -= weight;
        }
        self.write(feature, rng);
        let waits = self.habits.patient || self.later.is_some() || rng.chance(600);
        Unit { bytes: std::mem::take(&mut self.say.0), waits }
    }

    /// What ends a block that is open.
    pub fn end_block(&mut self, rng: &mut Rng) -> Unit {
        self.in_block = false;
        self.say.query(if rng.chance(500) { "commit" } else { "rollback" });
        Unit { bytes: std::mem::take(&mut self.say.0), waits: true }
    }

    fn write(&mut self, feature: Feature, rng: &mut Rng) {
        match feature {
            Feature::Simple => self.simple(rng),
            Feature::Errors => self.errors(rng),
            Feature::Blocks => self.block(rng),
            Feature::Reported => self.reported(rng),
            Feature::Unreported => self.unreported(rng),
            Feature::Unnamed => self.unnamed(rng),
            Feature::Named => self.named(rng),
            Feature::Pipelines => self.pipeline(rng),
            Feature::Portals => self.portals(rng),
            Feature::Flushes => self.flushes(rng),
            Feature::Copies => self.copies(rng),
            Feature::SqlPrepare => self.sql_prepare(rng),
            Feature::Discards => self.discards(rng),
            Feature::Listens => self.listens(rng),
            Feature::Objects => self.objects(rng),
            Feature::Calls => self.calls(rng),
            Feature::Leaves => self.leaves(rng),
            Feature::Sleeps => self.sleeps(rng),
            Feature::Bulk => self.bulk(rng),
            Feature::Definitions => self.definitions(rng),
        }
    }
}
