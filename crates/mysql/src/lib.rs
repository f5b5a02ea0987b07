//! The protocol of MySQL and MariaDB for a pool: which replies a server owes, and where they end.
//!
//! This is the beginning of what `pg` is for PostgreSQL. It decides and does no I/O.

#![forbid(unsafe_code)]

mod table;
mod reply;
pub mod parts;
mod protocol;

pub use reply::{PREFIX_BYTES, Part, Reply, Taken, UnexpectedPacket};
pub use table::Kind;
