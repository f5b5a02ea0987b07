//! The program: threads, sockets, signals, console and metrics around the engine.
//!
//! Each core is a thread with a kernel driver, an engine and nothing shared on the way of a query:
//! `core` is the loop, and with the engine it is the whole hot path. Everything else runs on
//! helper threads and reaches the cores by mail (`mail`), so that no slow thing (a name server, a
//! scraper, a full log pipe, a PAUSE that waits for servers) can stall a client.
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
mod scene;
pub mod log;
mod sqlite_session;
mod balance;
mod tls;
mod mail;
mod resolve;
mod machine;
mod parser;
mod descriptors;
mod dial;
mod round;
mod sqlite_host;
mod loads;
mod listen;
mod state;
mod sum;
mod source;
mod exposure;
mod core_files;
mod supervisor;
mod admin;
mod worker_state;
mod worker_tls;
mod worker_events;
mod core;
mod signals;
mod metrics;
mod http;
mod check;
mod advise;
mod random;
mod program;
pub mod cli;

pub use program::{Program, start};
pub use source::{Overrides, Source};
pub use supervisor::SupervisorCommand;
