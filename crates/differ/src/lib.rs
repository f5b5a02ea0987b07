//! The differential test: random segments of protocol messages, through a proxy and directly.
//!
//! Each client of an episode has two sessions, one through the proxy and one straight to the same
//! PostgreSQL server, and sends the same messages on both. PostgreSQL's direct replies are the
//! right ones: the proxied replies must be the same bytes, save for the rules in [`mask`] and
//! [`passes`]. The proxied clients share a database and user, and so a pool. The direct clients
//! share another database with the same contents. Each client writes to its own tables, so no
//! client waits for another.
//!
//! A run is a series of episodes. Each has fresh sessions and tables and its own seed, so an
//! episode that fails can be repeated alone and [shortened](shrink).
//!
//! Always holds: no message depends on time, on the proxy, or on which replies came first. The
//! encoder and decoder of this crate share no code with the proxy's, and so no mistakes either.
//! Deliberately absent: passwords, TLS, cancel requests, COPY BOTH, and waiting for locks.

#![forbid(unsafe_code)]

pub mod rng;
pub mod outcome;
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
pub mod console;
pub mod shrink;
pub mod report;
pub mod plan;
pub mod schedule;
pub mod queries;
pub mod reads;
pub mod episode;
pub mod options;
