//! The program with real PostgreSQL: a client sees the same through Refrain as directly.
//!
//! *Conversations* are scripts in `talks/`. Each is held twice at the same time: by a session
//! straight to PostgreSQL and by one through Refrain. Their replies must be the same. Cases that a
//! script cannot express (a server that dies, a client that waits, a cancel, huge messages) are
//! tests in Rust.
//!
//! Cases E1 to E96 are those of the catalogue of edge cases. The name of a test has the numbers of
//! its cases, and [`coverage`] checks that none is missing. No test depends on times, except for a
//! limit on waiting that only a hang reaches.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]
#![allow(clippy::print_stdout, reason = "known failures are printed")]

mod reply;
mod transport;
mod session;
mod values;
mod world;
mod known;
mod script;
mod relay;
mod talk;
mod twin;

mod talks;
mod cancel;
mod lifecycle;
mod removed;
mod moved;
mod room;
mod hosts;
mod login;
mod auth_query;
mod trust;
mod tls;
mod hba;
mod mysql_logins;
mod hba_tls;
mod talks_tls;
mod cuts;
mod records;
mod settings;
mod refused;
mod parameters;
mod pins;
mod functions;
mod looks;
mod defaults;
mod unmanaged;
mod unread;
mod modes;
mod bulk;
mod timeouts;
mod options;
mod start_up;
mod console;
mod kernels;
mod meanings;
mod metrics;
mod log;
mod start;
mod ini;
mod statements;
mod reads;
mod sharing;
mod shutdown;
mod silence;
mod systemd;
mod takeover;
mod catalog;
mod cache;
mod cache_advice;
mod cache_chain;
mod cache_old;
mod cache_pipelines;
mod cache_rules;
mod cache_cluster;
mod cache_told;
mod cache_volatile;
mod cache_logins;
mod cache_hidden;
mod syncs;
mod last_words;
mod copy_ended;
mod canonical;
mod notifications;
mod sqlite;
mod files;
mod beneath;
mod capacity;
mod forgotten;
mod autoprepare_rules;
mod autoprepare_stale;
mod autoprepare_jobs;
mod autoprepare_errors;
mod autoprepare_limits;
mod coverage;
mod door;
mod mysql;
mod mysql_client;
mod mysql_frameworks;
mod mysql_kill;
mod mysql_statements;
mod mysql_untold;
mod mysql_variables;
