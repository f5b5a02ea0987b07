//! The differential test of MySQL and MariaDB: random commands, through a proxy and directly.
//!
//! Each client of an episode has two sessions, one through the proxy and one straight to the same
//! server, and sends the same commands on both. The direct replies are the right ones: the proxied
//! replies must be the same packets, save for the rules in [`mask`] and [`passes`]. The proxied
//! clients share a user, and so a pool. The direct clients are another user with schemas of its
//! own, whose names are as long. Each client writes to its own tables, so no client waits for
//! another.
//!
//! A run is a series of episodes. Each has fresh sessions and tables and its own seed, so an
//! episode that fails can be repeated alone and shortened.
//!
//! Always holds: no command depends on time, on the proxy, or on which replies came first. The
//! encoder and decoder of this crate share no code with the proxy's, and so no mistakes either.
//! Deliberately absent: passwords, TLS, KILL, and waiting for locks.

#![forbid(unsafe_code)]

pub mod packet;
pub mod capability;
pub mod side;
pub mod command;
pub mod reply;
pub mod conn;
pub mod greeting;
pub mod mask;
pub mod passes;
pub mod holds;
pub mod client;
pub mod setup;
pub mod features;
pub mod plan;
pub mod generate;
pub mod schedule;
pub mod episode;
pub mod options;
