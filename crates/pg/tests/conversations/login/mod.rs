//! One module for each file of `src/login`.

pub(crate) mod client;
pub(crate) mod console;
mod hba;
pub(crate) mod lookup;
mod opening;
mod server;
