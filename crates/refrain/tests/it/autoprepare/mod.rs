//! Autoprepare: simple queries that Refrain prepares by itself.

mod rules;
mod stale;
mod jobs;
mod errors;
mod limits;
