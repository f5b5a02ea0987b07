//! A session of the model server: its connection, its work, and the clients that it has served.

use std::collections::BTreeSet;

use refrain_pg::auth::Proving;

use crate::frames::Frames;
use crate::net::LinkId;
use crate::session::Session;

/// The stage of a session of the model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Opening,
    Serving,
    /// The server has refused the login.
    Refused,
    Over,
}

/// A session of the model server, with its connection.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) link: LinkId,
    /// The number of its host.
    pub(crate) host: usize,
    pub(crate) stage: Stage,
    pub(crate) input: Frames,
    pub(crate) session: Session,
    pub(crate) pid: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) user: String,
    /// The settings of its startup packet.
    pub(crate) settings: Vec<(String, String)>,
    /// The login that is under way, if the server asks for a password.
    pub(crate) proving: Option<Proving>,
    /// The message in work: tag, body, and whether a cancel request has hit it.
    pub(crate) current: Option<(u8, Vec<u8>, bool)>,
    /// Whether a cancel request has ever hit the session.
    pub(crate) cancelled: bool,
    /// Number of the last appointment. Earlier appointments have no effect.
    pub(crate) number: u32,
    pub(crate) waits: bool,
    /// Whether the message in work waits for the lock of another session.
    pub(crate) waits_for_lock: bool,
    /// The client that sent the last message with a client's tag.
    pub(crate) owner: Option<usize>,
    /// The client of the current segment, if a message of the segment has a client's tag.
    pub(crate) segment: Option<usize>,
    /// The clients whose messages came while the server worked for another one.
    pub(crate) behind: BTreeSet<usize>,
    /// Whether another server has begun the request of the current segment before this one.
    pub(crate) is_late: bool,
    /// State of a client that was left in the session after the last segment, in words.
    pub(crate) left: String,
}

impl Backend {
    /// Whether a cancel request would hit a message.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Whether the login is over and the session has not ended.
    pub(crate) fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Whether the session has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether this is a session of the user of the database.
    pub(crate) fn is_of(&self, database: &str, user: &str) -> bool {
        self.user == user && self.session.database == database
    }

    /// Whether the startup packet has not come yet.
    pub(crate) fn is_new(&self) -> bool {
        self.stage == Stage::Opening && self.user.is_empty()
    }
}
