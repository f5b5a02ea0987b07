//! Sessions at the admin console: the protocol around its commands, which the program carries out.
//!
//! A session has prepared statements, portals and a transaction block as at a server, so drivers
//! may send commands in any way. It is a function of its messages: it knows no connection.

pub mod reply;
mod block;
pub mod split;
mod bound;
pub(crate) mod session;
