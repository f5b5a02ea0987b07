//! The program with real PostgreSQL: a client sees the same through Refrain as directly.
//!
//! *Conversations* are scripts in `talks/`. Each is held twice at the same time: by a session
//! straight to PostgreSQL and by one through Refrain. Their replies must be the same. Cases that a
//! script cannot express (a server that dies, a client that waits, a cancel, huge messages) are
//! tests in Rust.
//!
//! Cases E1 to E96 are those of the catalogue of edge cases. The name of a test has the numbers of
//! its cases, and [`talks::coverage`] checks that none is missing. No test depends on times,
//! except for a limit on waiting that only a hang reaches.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]
#![allow(clippy::print_stdout, reason = "known failures are printed")]

mod support;
mod talks;
mod logins;
mod tls;
mod servers;
mod settings;
mod sessions;
mod messages;
mod operation;
mod reads;
mod cache;
mod sqlite;
mod autoprepare;
mod mysql_logins;
mod mysql;
mod mysql_client;
mod mysql_console;
mod mysql_figures;
mod mysql_frameworks;
mod mysql_hidden;
mod mysql_kill;
mod mysql_statements;
mod mysql_untold;
mod mysql_variables;

use self::support::{known, relay, reply, script, session, talk, transport, twin, world};
