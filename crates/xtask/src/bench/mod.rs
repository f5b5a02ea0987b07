//! `cargo xtask bench`: measures the proxy, PgBouncer, and PostgreSQL without a proxy.
//!
//! Figures depend on the machine and on its other work. The command prints them with a description
//! of the machine, and with `--write` it puts both into `BENCHMARKS.md`. No figure fails a build.

pub mod process;
pub mod session;
pub mod launch;
mod pgbench;
mod facts;
mod report;
mod turns;
mod rounds;
mod syscalls;
mod idle;
pub mod capacity;
mod printed;
mod sqlite_wire;
mod sqlite_writes;
mod autoprepare;
mod pools;
mod publish;
mod plots;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::instructions;

/// The arguments of `cargo xtask bench`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    plan: rounds::Plan,
    /// Replace the last result in `BENCHMARKS.md` by this one.
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// Count system calls per transaction, by strace.
    Syscalls,
    /// Measure memory per idle client.
    Idle {
        /// Number of clients.
        #[arg(long, default_value_t = 10_000, value_parser = idle::clients())]
        idle_clients: u32,
    },
    /// Count the engine's instructions per transaction, by valgrind.
    Instructions,
    /// Measure how much more two workers carry than one, with a stub in place of PostgreSQL.
    Capacity(capacity::Plan),
    /// Measure how long autoprepare's analysis of a query takes.
    Template,
    /// Measure what the cache of SQLite statements saves, beside rusqlite and go-sqlite3.
    Sqlite,
    /// Measure the CPU time of a lookup in SQLite through the protocol, beside PostgreSQL.
    SqliteWire,
    /// Measure the writes per second of one client of SQLite, beside the library without a server.
    SqliteWrites,
    /// Measure what autoprepare saves, and what it costs if no text comes twice.
    Autoprepare(autoprepare::Plan),
    /// Draw tables of `BENCHMARKS.md` for `README.md`; with `--write`, into `docs`.
    Plots,
    /// Measure many pools with a few clients each over one database.
    Pools(pools::Plan),
}

/// Runs a benchmark, prints its result, and writes it into the page if `--write` asks for it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (section, text) = match &arguments.what {
        None => ("bench", arguments.plan.run()?),
        Some(What::Syscalls) => ("bench-syscalls", syscalls::run()?),
        Some(What::Idle { idle_clients }) => ("bench-idle", idle::run(*idle_clients)?),
        // These figures are kept in a file that the suite reads.
        Some(What::Instructions) => return instructions::bench(arguments.write),
        Some(What::Plots) => {
            print!("{}", plots::run(arguments.write)?);
            return Ok(());
        }
        // This build is not optimised: its clients would be slower than the proxy.
        Some(What::Capacity(_) | What::Pools(_)) if cfg!(debug_assertions) => {
            return capacity::run_optimised();
        }
        Some(What::Capacity(plan)) => ("bench-capacity", plan.run()?),
        Some(What::Template) => {
            let hit_and_analysis = [("refrain-sql", "normalize"), ("refrain-grammar", "analyse")];
            ("bench-template", printed::run(&hit_and_analysis)?)
        }
        Some(What::Sqlite) => ("bench-sqlite", printed::run(&[("refrain-sqlite", "statements")])?),
        Some(What::SqliteWire) => ("bench-sqlite-wire", sqlite_wire::run()?),
        Some(What::SqliteWrites) => ("bench-sqlite-writes", sqlite_writes::run()?),
        Some(What::Autoprepare(plan)) => ("bench-autoprepare", plan.run()?),
        Some(What::Pools(plan)) => ("bench-pools", plan.run()?),
    };
    println!("{text}");
    if arguments.write {
        publish::publish(section, &text)?;
    }
    Ok(())
}
