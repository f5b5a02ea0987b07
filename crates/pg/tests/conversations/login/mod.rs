//! One module for each file of `src/login`.

mod client;
mod opening;
mod server;
