//! One module for each file of `src/login`.

pub(crate) mod client;
mod hba;
pub(crate) mod lookup;
mod opening;
mod server;
