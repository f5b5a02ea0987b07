//! One module for each file of `src/login`.

mod client;
mod hba;
mod opening;
mod server;
