//! The ground of all other folders: numbers, counters, and the errors that end sessions.

pub mod ids;
pub mod stats;
pub(crate) mod name;
pub(crate) mod reports;
pub(crate) mod schema;
pub(crate) mod server_state;
