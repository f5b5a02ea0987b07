//! The PostgreSQL frontend/backend protocol, version 3 (3.0 and 3.2), as frames on borrowed bytes.
//!
//! All functions read from a slice that the caller received, or append to a buffer that the caller
//! sends. They do not block, readers do not allocate, and no message of a peer makes them panic. An
//! incomplete message is `None`; one that can never become valid is [`Malformed`].
//!
//! Sources: chapter "Frontend/Backend Protocol" of the PostgreSQL manual (message formats, 3.0 and
//! 3.2), and `src/include/libpq/protocol.h` for the tags. The names are the manual's.
//!
//! Not here: the meaning of a message for a session, the order in which messages may be sent, and
//! their destination.

#![forbid(unsafe_code)]

pub mod tag;
mod malformed;
pub mod frame;
pub mod startup;
pub mod front;
pub mod back;
pub mod write;
pub mod replication;

pub use frame::Header;
pub use malformed::Malformed;
