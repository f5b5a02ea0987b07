//! Reads: which prepared statements may run on a server that others use at the same time, and may
//! run twice.
//!
//! A statement that is used often, and whose text may be that of a read, goes to the parser thread,
//! which finds what the text mentions. A server then says what the catalog has against the names.
//! The result is the statement's [`crate::statements::verdict`]. All of this happens only where the
//! option `share_servers` says so, and never on the way of a query: see [`crate::step::reads`].

pub mod question;
pub mod findings;
pub(crate) mod hidden;
pub(crate) mod pace;
pub(crate) mod answers;
pub(crate) mod queue;
