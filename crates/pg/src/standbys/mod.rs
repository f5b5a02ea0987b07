//! Standbys: what makes it certain that a standby has all that a client has written.

pub(crate) mod bug;
pub(crate) mod position;
pub(crate) mod defaults;
mod patience;
pub(crate) mod refusals;
pub(crate) mod replayed;
pub(crate) mod progress;
pub(crate) mod away;
