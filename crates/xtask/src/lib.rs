//! Chores of the workspace, and what its tests need from outside: servers, runtimes, drivers.
//!
//! Tests of other crates use [`postgres::Cluster`] and [`proxy::Refrain`]: throwaway processes on
//! free ports that end with the process that started them. The rest is the `cargo xtask` program.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a chore talks to the person at the terminal")]

pub mod command;
pub mod workspace;
pub mod leash;
pub mod provision;
pub mod postgres;
pub mod proxy;
pub mod docs;
pub mod tidy;
pub mod drivers;
pub mod rounds;
pub mod bench;
pub mod soak;
pub mod regress;
pub mod dialect;
pub mod repro;
pub mod fuzz;
pub mod suite;
