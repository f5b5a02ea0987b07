//! A protocol of lines, made up for tests: those of the pool, without I/O, and those of the
//! program's loop, over sockets.
//!
//! `crates/pool/tests/least.rs` shows the least that a protocol has to provide. `parts` and
//! `protocol` show what most have, with the lines of a login in `login`. `checks`,
//! `sides` and `reads` show what else a protocol may provide: jobs, side connections and shared
//! servers.

#![forbid(unsafe_code)]

pub mod parts;
mod lines;
pub mod login;
mod checks;
mod sides;
mod reads;
mod protocol;

pub use parts::Echo;
