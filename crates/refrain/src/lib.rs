//! The program: threads, sockets, signals, console and metrics around the engine.
//!
//! Each core is a thread with a kernel driver, an engine and nothing shared on the way of a query:
//! `core` is the loop, and with the engine it is the whole hot path. Everything else runs on
//! helper threads and reaches the cores by mail (`mail`), so that no slow thing (a name server, a
//! scraper, a full log pipe, a PAUSE that waits for servers) can stall a client.
//!
//! The loop knows no protocol: it is compiled for each protocol that the program serves (`served`),
//! and a core serves one. What the program does for PostgreSQL alone is in the folders `pg` and
//! `admin/pg`, and for MySQL in `mysql`; the rest of the console, and the metrics, show the figures
//! of all cores.
//!
//! ```text
//!  signals ──► supervisor ┐                 ┌── core 0 (also accepts)
//!  console ──► desk ──────┼──► mailboxes ──►├── core 1
//!  scraper ──► metrics ───┤                 └── …
//!  queries ──► parser ────┘
//! ```
//!
//! Modules stand in the order in which they build on each other. Decisions about clients, servers
//! and statements are in `refrain-pg`, and options in `refrain-config`.

#![forbid(unsafe_code)]

pub mod clock;
mod quoted;
mod random;
mod tls;
mod inherit;
mod systemd;
mod listen;
mod served;
mod scene;
pub mod log;
mod balance;
mod dns;
mod resolve;
mod mail;
mod machine;
mod descriptors;
mod dial;
mod loads;
mod cores;
mod state;
mod watchdog;
mod source;
mod exposure;
mod core_files;
mod pid_file;
mod supervisor;
mod takeover;
mod silence;
mod worker_state;
mod worker_tls;
mod worker_events;
mod core;
mod signals;
mod http;
mod opened;
mod workers;
mod console;
mod pg;
mod mysql_console;
mod mysql;
mod sum;
mod metrics;
mod running;
mod advise;
mod publication;
mod admin;
mod dashboard;
mod check;
mod ready;
mod place;
mod program;
mod pgbouncer;
mod manual;
pub mod cli;
#[cfg(test)]
mod echo;

pub use program::{Program, start};
pub use source::{Overrides, Source};
pub use supervisor::SupervisorCommand;
