//! Settings of sessions: those that a client expects, those that a server has, and how to make the
//! server's the same.

pub(crate) mod encoding;
pub(crate) mod value;
pub(crate) mod placeholders;
pub(crate) mod refusals;
pub(crate) mod session;
pub(crate) mod switches;
pub(crate) mod queries;
pub(crate) mod reported;
pub(crate) mod guard;
pub(crate) mod interned;
pub(crate) mod defaults;
pub(crate) mod of_server;
