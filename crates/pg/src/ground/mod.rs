//! Below everything else: numbers, counters, and the errors of endings.

pub mod ids;
pub mod stats;
pub(crate) mod reports;
