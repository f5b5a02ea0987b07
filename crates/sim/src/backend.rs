//! A session of the model server and its connection, with what is known of the clients that it served.

use crate::frames::Frames;
use crate::net::LinkId;
use crate::session::Session;

/// What a session of the model server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Opening,
    Serving,
    Over,
}

/// A session of the model server, and the connection it has.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) link: LinkId,
    pub(crate) stage: Stage,
    pub(crate) input: Frames,
    pub(crate) session: Session,
    pub(crate) pid: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) user: String,
    /// The message that is being worked on, and whether a cancel request has hit it.
    pub(crate) current: Option<(u8, Vec<u8>, bool)>,
    /// Whether a cancel request has ever come for it.
    pub(crate) cancelled: bool,
    /// Numbers the appointments to go on; only the last counts.
    pub(crate) number: u32,
    pub(crate) waits: bool,
    /// The client whose messages came last, and the one of the segment under way.
    pub(crate) owner: Option<usize>,
    pub(crate) segment: Option<usize>,
    /// What was left when the segment began.
    pub(crate) left: String,
}

impl Backend {
    /// Whether a cancel request would hit something.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Whether it serves anybody.
    pub(crate) fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Whether it is, or may become, a user's.
    pub(crate) fn is_of(&self, user: &str) -> bool {
        self.stage != Stage::Over && self.user == user
    }

    /// Whether it has not been told yet what it is for.
    pub(crate) fn is_new(&self) -> bool {
        self.stage == Stage::Opening && self.user.is_empty()
    }
}
