//! `cargo xtask bench`: what the proxy costs, beside PgBouncer and beside nothing.
//!
//! Figures depend on the machine and on what else it does. They are printed, and put into
//! `BENCHMARKS.md` when asked, with the machine they were taken on. Nothing is judged here: no
//! figure fails a build.

pub mod process;
pub mod session;
pub mod launch;
mod pgbench;
mod facts;
mod report;
mod rounds;
mod syscalls;
mod idle;
mod instructions;
mod printed;
mod sqlite_wire;
mod sqlite_writes;
mod autoprepare;
mod publish;

use anyhow::Result;
use clap::{Args, Subcommand};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    plan: rounds::Plan,
    /// Put the result into `BENCHMARKS.md`, in place of the last one.
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// System calls per transaction, by strace.
    Syscalls,
    /// Memory per idle client.
    Idle {
        /// Clients.
        #[arg(long, default_value_t = 10_000, value_parser = idle::clients())]
        idle_clients: u32,
    },
    /// Instructions of the engine per transaction, by valgrind.
    Instructions,
    /// What a text costs that becomes the values of a prepared statement, before anything is sent.
    Template,
    /// What kept statements of SQLite save, beside rusqlite and go-sqlite3.
    Sqlite,
    /// What a lookup in SQLite costs behind the protocol, beside PostgreSQL.
    SqliteWire,
    /// What one client that writes to SQLite gets done, beside the library without a server.
    SqliteWrites,
    /// What autoprepare saves, and what it costs where it can save nothing.
    Autoprepare(autoprepare::Plan),
}

/// Measures, prints and, if asked, publishes.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (section, text) = match &arguments.what {
        None => ("bench", arguments.plan.run()?),
        Some(What::Syscalls) => ("bench-syscalls", syscalls::run()?),
        Some(What::Idle { idle_clients }) => ("bench-idle", idle::run(*idle_clients)?),
        Some(What::Instructions) => ("bench-instructions", instructions::run()?),
        Some(What::Template) => {
            let hit_and_analysis = [("refrain-sql", "normalize"), ("refrain-grammar", "analyse")];
            ("bench-template", printed::run(&hit_and_analysis)?)
        }
        Some(What::Sqlite) => ("bench-sqlite", printed::run(&[("refrain-sqlite", "statements")])?),
        Some(What::SqliteWire) => ("bench-sqlite-wire", sqlite_wire::run()?),
        Some(What::SqliteWrites) => ("bench-sqlite-writes", sqlite_writes::run()?),
        Some(What::Autoprepare(plan)) => ("bench-autoprepare", plan.run()?),
    };
    println!("{text}");
    if arguments.write {
        publish::publish(section, &text)?;
    }
    Ok(())
}
