//! The program with real PostgreSQL: what a client sees through it is what it would see directly.
//!
//! *Conversations* are scripts in `talks/`, each held twice at the same time: by a session
//! straight to PostgreSQL and by one through the program. Their replies must be the same. What
//! cannot be said so (what dies, waits, is cancelled, or is huge) is a test in Rust.
//!
//! Cases E1 to E96 are those of the catalogue of edge cases; the name of what tests a case carries
//! its number, and [`coverage`] sees to it that none is left out. Nothing depends on how long
//! something takes, but for a limit on waiting that only a hang reaches.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]
#![allow(clippy::print_stdout, reason = "what is known to fail is printed")]

mod reply;
mod session;
mod world;
mod known;
mod script;
mod talk;
mod twin;

mod talks;
mod cancel;
mod lifecycle;
mod removed;
mod login;
mod trust;
mod settings;
mod pins;
mod functions;
mod looks;
mod defaults;
mod unmanaged;
mod modes;
mod bulk;
mod timeouts;
mod options;
mod console;
mod kernels;
mod metrics;
mod log;
mod start;
mod statements;
mod syncs;
mod last_words;
mod canonical;
mod notifications;
mod sqlite;
mod files;
mod beneath;
mod forgotten;
mod autoprepare_rules;
mod autoprepare_stale;
mod autoprepare_jobs;
mod autoprepare_errors;
mod autoprepare_limits;
mod coverage;
mod door;
