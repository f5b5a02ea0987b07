//! A model client: its script, its oracle and its stage.

use refrain_config::PoolMode;
use refrain_pg_wire::startup;

use crate::exchange::Exchange;
use crate::frames::Frames;
use crate::net::LinkId;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::script::{Habits, Script};

/// The stage of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not connected yet.
    Away,
    /// Waits for the reply to SSLRequest.
    AsksForTls,
    /// Waits for the end of its login.
    LogsIn,
    /// Runs its script.
    Works,
    /// Has sent Terminate, or its login was refused.
    Leaves,
    /// Disconnected.
    Done,
}

/// A client. Clients of one slot come one after the other.
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
    /// The reads of rows to which the client may not have got the reply: their tags, or the rows,
    /// and when it has asked.
    pub(crate) asked: Vec<(String, u64)>,
    /// Bytes of the current unit that are not sent yet.
    pub(crate) outbox: Vec<u8>,
    pub(crate) units: u64,
    pub(crate) waits: bool,
    /// Whether there is an appointment to act.
    pub(crate) armed: bool,
    /// Number of the last appointment. Earlier appointments have no effect.
    pub(crate) number: u32,
    /// The process ID and key for cancel requests.
    pub(crate) key: Option<(u32, Vec<u8>)>,
    pub(crate) minor: u16,
    pub(crate) user: String,
    pub(crate) database: String,
    /// Its login, where clients have passwords.
    pub(crate) exchange: Exchange,
    pub(crate) settings: Vec<(String, String)>,
    /// Whether the client has got a FATAL error.
    pub(crate) got_fatal: bool,
    /// Whether the client has sent Terminate. It goes on reading.
    pub(crate) goodbye: bool,
    pub(crate) sessions: usize,
}

impl Client {
    /// Creates a client that is not connected yet.
    pub(crate) fn new(id: usize, slot: usize, plan: &Plan, rng: &mut Rng) -> Self {
        // A client that may cancel waits for replies. So does one that is to share servers.
        let waits = if plan.shares { 850 } else { 700 };
        let habits = Habits {
            patient: (plan.rates.cancel > 0 || plan.shares) && rng.chance(waits),
            blocks: plan.mode != PoolMode::Statement || rng.chance(50),
            writes: plan.standbys.is_none() || rng.chance(600),
            floods: plan.room >= 4_096,
        };
        let script = Script::new(id, plan.weights, habits);
        let script = script.with_reads_alike(plan.cached.is_some());
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
            asked: Vec::new(),
            outbox: Vec::new(),
            units: rng.range(1, plan.units),
            waits: false,
            armed: false,
            number: 0,
            key: None,
            minor: *rng.pick(&[0, 0, 2]),
            user: user(plan, rng),
            database: database(plan, rng),
            exchange: Exchange::default(),
            settings,
            got_fatal: false,
            goodbye: false,
            sessions: rng.index(plan.sessions),
            rng: rng.fork(7),
        }
    }

    /// Whether the client has left for good.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Returns the client's stage and expectation in words.
    pub(crate) fn status(&self) -> String {
        format!("client {} {:?}: {}", self.id, self.stage, self.oracle.awaits())
    }

    pub(crate) fn startup(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut parameters =
            vec![("user", self.user.as_str()), ("database", self.database.as_str())];
        parameters.extend(self.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        let parameters = parameters.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        startup::write(&mut out, self.minor, parameters);
        out
    }
}

/// Draws the user of a client.
fn user(plan: &Plan, rng: &mut Rng) -> String {
    match plan.logins {
        Some(_) => (*rng.pick(&["u0", "u0", "u1", "u1", "ghost"])).to_owned(),
        None => format!("u{}", rng.index(plan.users)),
    }
}

/// Draws the database of a client.
fn database(plan: &Plan, rng: &mut Rng) -> String {
    plan.logins.as_ref().map_or("d", |logins| *rng.pick(logins.databases)).to_owned()
}
