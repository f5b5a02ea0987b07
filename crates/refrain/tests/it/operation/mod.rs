//! Operating the program: its start and its end, options, listings, the log.

mod timeouts;
mod options;
pub(crate) mod console;
mod set;
mod kernels;
pub(crate) mod metrics;
mod dashboard;
mod log;
mod statements;
mod start;
mod samples;
mod ini;
mod shutdown;
mod systemd;
mod takeover;
mod capacity;
