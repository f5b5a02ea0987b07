//! A model client: its script, its oracle, and where it is in its life.

use refrain_config::PoolMode;
use refrain_wire::startup;

use crate::frames::Frames;
use crate::net::LinkId;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::script::{Habits, Script};

/// Where a client is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not there.
    Away,
    /// Waits for the answer to SSLRequest.
    AsksForTls,
    /// Waits to be let in.
    LogsIn,
    /// At work.
    Works,
    /// Has said goodbye.
    Leaves,
    /// Gone for good.
    Done,
}

/// A client: one after the other in its slot.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: usize,
    pub(crate) slot: usize,
    pub(crate) link: Option<LinkId>,
    pub(crate) stage: Stage,
    pub(crate) oracle: Oracle,
    pub(crate) script: Script,
    pub(crate) rng: Rng,
    pub(crate) input: Frames,
    /// What is still to be said of the unit under way.
    pub(crate) outbox: Vec<u8>,
    pub(crate) units: u64,
    pub(crate) waits: bool,
    /// Whether an appointment to act stands; its number.
    pub(crate) armed: bool,
    pub(crate) number: u32,
    /// What a cancel request must show.
    pub(crate) key: Option<(u32, Vec<u8>)>,
    pub(crate) minor: u16,
    pub(crate) user: String,
    pub(crate) settings: Vec<(String, String)>,
    /// Whether it has been told why its session ends.
    pub(crate) told: bool,
    /// Whether it has said goodbye, and goes on reading.
    pub(crate) goodbye: bool,
    pub(crate) sessions: usize,
}

impl Client {
    /// A client that has not come yet.
    pub(crate) fn new(id: usize, slot: usize, plan: &Plan, rng: &mut Rng) -> Self {
        let habits = Habits {
            // Who may cancel waits for replies first.
            patient: plan.rates.cancel > 0 && rng.chance(700),
            blocks: plan.mode != PoolMode::Statement || rng.chance(50),
            resets: !plan.startup_settings,
            floods: plan.room >= 4_096,
        };
        let script = Script::new(id, plan.weights, habits);
        let mut settings = Vec::new();
        if plan.startup_settings && rng.chance(700) {
            let all =
                [("application_name", "app"), ("timezone", "Asia/Tokyo"), ("work_mem", "7MB")];
            settings.extend(
                all.iter()
                    .filter(|_| rng.chance(500))
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
            );
            if rng.chance(50) {
                settings.push(("timezone".to_owned(), "bad".to_owned()));
            }
        }
        Self {
            id,
            slot,
            link: None,
            stage: Stage::Away,
            oracle: Oracle::begin(&settings),
            script,
            input: Frames::default(),
            outbox: Vec::new(),
            units: rng.range(1, plan.units),
            waits: false,
            armed: false,
            number: 0,
            key: None,
            minor: *rng.pick(&[0, 0, 2]),
            user: format!("u{}", rng.index(plan.users)),
            settings,
            told: false,
            goodbye: false,
            sessions: rng.index(plan.sessions),
            rng: rng.fork(7),
        }
    }

    /// Whether it will not be seen again.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// What it is at, in words.
    pub(crate) fn status(&self) -> String {
        format!("client {} {:?}: {}", self.id, self.stage, self.oracle.awaits())
    }

    pub(crate) fn startup(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut parameters = vec![("user", self.user.as_str()), ("database", "d")];
        parameters.extend(self.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        let parameters = parameters.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        startup::write(&mut out, self.minor, parameters);
        out
    }
}
