//! A model client: its script, its oracle and its stage.

use refrain_sim::net::LinkId;
use refrain_sim::rng::Rng;

use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::script::Script;
use crate::wire::{Frames, cap};

/// The stage of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not connected yet.
    Away,
    /// Waits for the greeting.
    Listens,
    /// Waits for the end of its login.
    LogsIn,
    /// Runs its script.
    Works,
    /// Has sent QUIT, or its login was refused.
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
    /// Bytes that are not sent yet.
    pub(crate) outbox: Vec<u8>,
    pub(crate) units: u64,
    /// Whether there is an appointment to act.
    pub(crate) armed: bool,
    /// Number of the last appointment. Earlier ones have no effect.
    pub(crate) number: u32,
    /// The number that its greeting has named.
    pub(crate) greeted: u32,
    pub(crate) agreed: u32,
    pub(crate) collation: u8,
    pub(crate) user: String,
    pub(crate) schema: Option<String>,
    /// Whether the client has got an error that ends its session.
    pub(crate) got_fatal: bool,
    pub(crate) sessions: usize,
}

/// The capabilities that clients have.
const USUAL: u32 = 1
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::PLUGIN_AUTH
    | cap::MULTI_RESULTS
    | cap::PS_MULTI_RESULTS
    | cap::LOCAL_FILES
    | cap::SESSION_TRACK
    | cap::DEPRECATE_EOF;

impl Client {
    /// Makes a client that is not connected yet.
    pub(crate) fn new(id: usize, slot: usize, plan: &Plan, rng: &mut Rng) -> Self {
        let schema = rng.chance(900).then(|| (*rng.pick(&["d0", "d0", "d1", "d2"])).to_owned());
        let schema = if rng.chance(20) { Some("nowhere".to_owned()) } else { schema };
        let several = if rng.chance(500) { cap::MULTI_STATEMENTS } else { 0 };
        let mut agreed = USUAL | several;
        if schema.is_some() {
            agreed |= cap::CONNECT_WITH_DB;
        }
        if plan.varies {
            for one in [cap::SESSION_TRACK, cap::DEPRECATE_EOF, cap::LOCAL_FILES] {
                agreed &= if rng.chance(300) { !one } else { u32::MAX };
            }
            agreed |= if rng.chance(200) { cap::FOUND_ROWS } else { 0 };
        }
        Self {
            id,
            slot,
            link: None,
            stage: Stage::Away,
            oracle: Oracle::default(),
            script: Script::new(id, plan.weights, plan.row, rng.fork(8)),
            input: Frames::default(),
            outbox: Vec::new(),
            units: rng.range(1, plan.units),
            armed: false,
            number: 0,
            greeted: 0,
            agreed,
            collation: *rng.pick(&[255, 255, 45, 46, 8]),
            user: format!("u{}", rng.index(plan.users)),
            schema,
            got_fatal: false,
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
}
