//! One step of the engine, by subject. A step handles one event and queues the actions that follow
//! from that event.

pub(crate) mod notes;
pub(crate) mod share;
pub(crate) mod flow;
pub(crate) mod leave;
pub(crate) mod grow;
pub(crate) mod close;
pub(crate) mod logins;
pub(crate) mod orders;
pub(crate) mod lending;
pub(crate) mod sessions;
pub(crate) mod lend;
pub(crate) mod side;
pub(crate) mod travel;
pub(crate) mod input;
pub(crate) mod control;
pub(crate) mod tick;
pub(crate) mod view;
pub(crate) mod check;
pub(crate) mod dispatch;
