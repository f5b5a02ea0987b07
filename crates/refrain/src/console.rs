//! Questions of clients at the console, whatever protocol the clients speak.

use std::sync::Arc;

use refrain_pool::ids::{ClientSerial, Core};

/// A query of a client of the console.
#[derive(Debug)]
pub(crate) struct Question {
    /// The core that serves the client.
    pub(crate) core: Core,
    pub(crate) client: ClientSerial,
    pub(crate) user: Arc<str>,
    /// True if the user may run commands that change something.
    pub(crate) admin: bool,
    pub(crate) query: String,
}
