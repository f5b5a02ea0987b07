//! The client/server protocol of MySQL and MariaDB, as packets on borrowed bytes.
//!
//! All functions read from a slice that the caller received, or append to a buffer that the caller
//! sends. They do not block, readers do not allocate, and no packet of a peer makes them panic.
//!
//! A packet has a header and a payload ([`packet`]). The payload has no kind of its own: its first
//! byte means one thing behind one command and another thing behind another, and the capabilities
//! that both sides agreed on at login decide which fields it has. So a caller knows which reader a
//! payload is for, and hands the capabilities over. Readers and writers are for whole payloads,
//! except where they say otherwise; a payload that ends before its last field is [`Malformed`].
//!
//! Sources: chapter "Client/Server Protocol" of MySQL's "Source Code Documentation", and chapter
//! "Client/Server Protocol" of MariaDB's documentation. The docs of items name the page in quotes,
//! after the name of the server: (MySQL, "OK_Packet"). The names are MySQL's, and MariaDB's for
//! what MySQL lacks. Where the two servers and their pages differ, tests with the servers decided.
//!
//! Not here: the order in which packets may come, which reply a command has, compressed packets,
//! replication, and the values of rows.

#![forbid(unsafe_code)]

pub mod capability;
pub mod command;
pub mod status;
pub mod error_code;
mod malformed;
mod fields;
pub mod packet;
pub mod track;
pub mod reply;
pub mod handshake;
pub mod auth;
pub mod value;
pub mod column;
pub mod row;
pub mod prepared;
pub mod request;

pub use capability::Capabilities;
pub use malformed::Malformed;
pub use packet::Header;
pub use status::Status;
