//! The PostgreSQL frontend/backend protocol, version 3 (3.0 and 3.2), as frames on borrowed bytes.
//!
//! Everything here reads from a slice that somebody else received, or appends to a buffer that
//! somebody else sends. Nothing blocks, nothing allocates on the way in, and nothing panics on what
//! a peer can send: a message that is not all there yet is `None`, one that can never be right is
//! [`Malformed`].
//!
//! Sources: chapter "Frontend/Backend Protocol" of the PostgreSQL manual (message formats, 3.0 and
//! 3.2), and `src/include/libpq/protocol.h` for the tags. The names are the manual's.
//!
//! Not here: what a message means to a session, who may send it when, and where it goes.

#![forbid(unsafe_code)]

pub mod tag;
mod malformed;
pub mod frame;
pub mod startup;
pub mod front;
pub mod back;
pub mod write;

pub use frame::Header;
pub use malformed::Malformed;
