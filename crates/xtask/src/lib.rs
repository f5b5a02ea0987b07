//! Commands of the workspace, and the servers, runtimes and drivers that its tests need.
//!
//! Tests of other crates use [`postgres::Cluster`], [`mysql::Server`] and [`proxy::Refrain`]:
//! throwaway processes on free ports or sockets that end with the process that started them. The
//! rest is the program `cargo xtask`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports on standard output")]

pub mod command;
mod turns;
pub mod workspace;
pub mod leash;
pub mod provision;
pub mod certificates;
pub mod records;
pub mod channel;
mod scratch;
pub mod ports;
pub mod postgres;
pub mod mysql;
pub mod proxy;
pub mod pooler;
pub mod watching;
pub mod docs;
pub mod tidy;
pub mod drivers;
pub mod rounds;
pub mod mysql_drivers;
pub mod vendor;
pub mod instructions;
pub mod bench;
pub mod soak;
pub mod regress;
pub mod dialect;
pub mod repro;
pub mod fuzz;
pub mod encrypted;
pub mod dist;
pub mod suite;
