//! The protocol of MySQL and MariaDB for a pool: logins, and the replies that a server owes.
//!
//! This is the beginning of what `pg` is for PostgreSQL. It decides and does no I/O.

#![forbid(unsafe_code)]

mod table;
mod reply;
pub mod errors;
pub mod login;
mod variant;
mod settings;
mod pins;
mod text;
mod commands;
mod row;
mod wishes;
pub mod parts;
mod train;
mod learn;
mod entering;
mod preparing;
mod probe;
mod settle;
mod own;
mod replies;
mod answers;
mod requests;
mod release;
mod protocol;

pub use reply::{PREFIX_BYTES, Part, Reply, Taken, UnexpectedPacket};
pub use table::Kind;
