//! The replication streams of databases whose rules of the cache depend on all commits: one thread
//! for each, with a kernel driver of its own and two connections.
//!
//! `refrain_pg::changes::Follower` decides everything. The thread connects, logs in and carries
//! bytes. It voids replies itself, by the topics that all cores look at, so a core has no part in
//! this.

mod session;
mod connection;
mod follow;
mod streams;

pub(crate) use streams::start;
