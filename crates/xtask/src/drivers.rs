//! Tests by client libraries, in their own languages: see `drivers/README.md`.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, Tally};
use crate::provision;
use crate::workspace;

/// A client library's test.
pub struct Driver {
    /// What it is called in reports.
    pub name: &'static str,
    /// The test as a command, what it needs fetched before.
    command: fn() -> Result<Command>,
}

/// Every client library's test.
pub const DRIVERS: &[Driver] = &[
    Driver { name: "asyncpg", command: || python("smoke_asyncpg.py") },
    Driver { name: "psycopg", command: || python("smoke_psycopg.py") },
    Driver { name: "psycopg2", command: || python("smoke_psycopg2.py") },
    Driver { name: "node-postgres", command: node },
    Driver { name: "pgx", command: || Ok(Command::new(provision::go()?)) },
    Driver { name: "pgjdbc", command: java },
    Driver { name: "asyncpg-suite", command: asyncpg_suite },
];

impl Driver {
    /// Runs the test against the server at this port of 127.0.0.1.
    pub fn run(&self, port: u16) -> Result<Tally> {
        let mut command = (self.command)()?;
        command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string());
        command.env("PGUSER", "postgres").env("PGDATABASE", "postgres").env("PGSSLMODE", "disable");
        command::tally(&mut command)
    }
}

fn python(script: &str) -> Result<Command> {
    let mut command = Command::new(provision::python()?);
    command.arg(workspace::root().join("drivers/python").join(script));
    Ok(command)
}

fn node() -> Result<Command> {
    let packages = provision::node()?.join("node_modules");
    let mut command = Command::new("node");
    command.arg("--no-deprecation").arg(workspace::root().join("drivers/node/smoke.js"));
    command.env("NODE_PATH", packages);
    Ok(command)
}

fn java() -> Result<Command> {
    let archives = provision::java()?.join("*");
    let mut command = Command::new("java");
    command.arg("-cp").arg(archives);
    command.arg(workspace::root().join("drivers/java/Smoke.java"));
    Ok(command)
}

fn asyncpg_suite() -> Result<Command> {
    let mut command = Command::new(provision::python()?);
    command.arg(workspace::root().join("drivers/asyncpg-suite/run.py"));
    command.arg(provision::asyncpg_source()?);
    Ok(command)
}
