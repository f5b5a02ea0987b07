//! The admin console in MySQL's messages: the form of its replies, what client libraries ask before
//! anybody asks for a listing, and the session of a client.
//!
//! The program answers commands, as it does for PostgreSQL's clients. Nothing here waits for it or
//! knows a connection: that is in `admin`.

pub mod reply;
mod opening;
mod session;

pub(crate) use opening::About;
pub(crate) use reply::COMMAND_BYTES_MAX;
pub(crate) use session::{ConsoleSession, NextStep};

use refrain_pool::ids::ClientSerial;
use std::sync::Arc;

/// A command of a client of the console, for the program.
#[derive(Debug)]
pub struct Request {
    /// The client.
    pub client: ClientSerial,
    /// The client's user.
    pub user: Arc<str>,
    /// Whether the user may run commands that change something.
    pub admin: bool,
    /// The command.
    pub query: String,
    /// The form in which the client needs the reply.
    pub form: reply::Form,
}

/// The reply of the program.
#[derive(Debug)]
pub struct Answer {
    /// The client.
    pub client: ClientSerial,
    /// The reply, in the form that the request had.
    pub reply: reply::ConsoleReply,
}
