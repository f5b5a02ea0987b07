//! The tests' own tools: sessions, the environment, the language of conversations.

pub(crate) mod reply;
pub(crate) mod transport;
pub(crate) mod session;
pub(crate) mod world;
pub(crate) mod known;
pub(crate) mod script;
pub(crate) mod relay;
pub(crate) mod talk;
pub(crate) mod twin;
