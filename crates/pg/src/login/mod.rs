//! Logins: of clients to Refrain, and of Refrain to servers.

pub(crate) mod lookup;
pub(crate) mod server;
pub(crate) mod opening;
pub(crate) mod hba;
pub(crate) mod console;
pub(crate) mod client;
