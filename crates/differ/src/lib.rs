//! The differential test: random segments of protocol messages, through a proxy and directly.
//!
//! Each client of an episode has two sessions, one through the proxy and one of its own straight
//! to the same PostgreSQL server, and is told the same on both. Whatever PostgreSQL answers
//! directly is right; what comes through the proxy must be the same bytes, save for the rules in
//! [`mask`]. The proxied clients share a database and user, and so a pool; the direct ones share
//! another database with the same contents. Clients write to their own tables only, so none waits
//! for another.
//!
//! A run is a series of episodes, each with fresh sessions and tables and with a seed of its own:
//! an episode that fails can be repeated alone, and is then [shrunk](shrink).
//!
//! Always holds: nothing sent depends on time, on the proxy, or on which replies came first. The
//! encoder and decoder here are written apart from the proxy's, so as not to share its mistakes.
//! Deliberately absent: passwords, TLS, cancel requests, COPY BOTH, and waiting on locks.

#![forbid(unsafe_code)]

pub mod rng;
pub mod msg;
pub mod reply;
pub mod ledger;
pub mod guard;
pub mod mask;
pub mod conn;
pub mod late;
pub mod features;
pub mod passes;
pub mod generate;

pub mod client;
pub mod setup;
pub mod plan;
pub mod schedule;
pub mod queries;
pub mod episode;
pub mod shrink;
pub mod options;
