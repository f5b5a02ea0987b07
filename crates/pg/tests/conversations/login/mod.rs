//! One module for each file of `src/login`.

mod client;
pub(crate) mod lookup;
mod opening;
mod server;
