//! A session of the model server, and what has come for it.

use refrain_sim::net::LinkId;

use crate::session::Session;
use crate::wire::Frames;

/// A session of the model server.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) link: LinkId,
    pub(crate) session: Session,
    pub(crate) input: Frames,
    /// Whether it works on a command, and takes no other one.
    pub(crate) is_busy: bool,
    /// Whether it has ended.
    pub(crate) is_over: bool,
    /// Whether KILL QUERY has come while it had a command to work on.
    pub(crate) is_killed: bool,
    /// Whether it breaks the protocol.
    pub(crate) lies: bool,
}

impl Backend {
    /// Whether it has let the engine in, and lives.
    pub(crate) fn is_serving(&self) -> bool {
        self.session.agreed.is_some() && !self.is_over
    }
}
