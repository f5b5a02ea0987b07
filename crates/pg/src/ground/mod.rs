//! What everything stands on: numbers of connections, moments, endings, counters, unread input.

pub mod ids;
pub mod time;
pub mod disconnect;
pub mod stats;
pub(crate) mod inbox;
