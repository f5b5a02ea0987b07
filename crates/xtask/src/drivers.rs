//! Tests by client libraries, in their own languages: see `drivers/README.md`.

use std::path::PathBuf;
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
    Driver { name: "node-postgres", command: || node("smoke.js") },
    Driver { name: "pgx", command: || Ok(Command::new(provision::go()?)) },
    Driver { name: "pgjdbc", command: || java("Smoke.java") },
    Driver { name: "asyncpg-suite", command: asyncpg_suite },
];

/// Every client library's test against SQLite.
pub const SQLITE_DRIVERS: &[Driver] = &[
    Driver { name: "asyncpg", command: || python_with_sqlite("asyncpg") },
    Driver { name: "psycopg", command: || python_with_sqlite("psycopg") },
    Driver { name: "psycopg2", command: || python_with_sqlite("psycopg2") },
    Driver { name: "pg8000", command: || python_with_sqlite("pg8000") },
    Driver { name: "sqlalchemy-core", command: || python_with_sqlite("sqlalchemy-core") },
    Driver { name: "sqlalchemy-orm", command: || python_with_sqlite("sqlalchemy-orm") },
    Driver { name: "node-postgres", command: || node_with_sqlite("node-postgres") },
    Driver { name: "postgres.js", command: || node_with_sqlite("postgres.js") },
    Driver { name: "pgx", command: || of(provision::go_with_sqlite()?, "pgx") },
    Driver { name: "lib/pq", command: || of(provision::go_with_sqlite()?, "pq") },
    Driver { name: "pgjdbc", command: || java("Sqlite.java") },
    Driver { name: "tokio-postgres", command: || of(provision::rust()?, "tokio-postgres") },
    Driver { name: "sqlx", command: || of(provision::rust()?, "sqlx") },
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

fn python_with_sqlite(library: &str) -> Result<Command> {
    let mut command = python("sqlite.py")?;
    command.arg(library);
    Ok(command)
}

fn node(script: &str) -> Result<Command> {
    let packages = provision::node()?.join("node_modules");
    let mut command = Command::new("node");
    command.arg("--no-deprecation").arg(workspace::root().join("drivers/node").join(script));
    command.env("NODE_PATH", packages);
    Ok(command)
}

fn node_with_sqlite(library: &str) -> Result<Command> {
    let mut command = node("sqlite.js")?;
    command.arg(library);
    Ok(command)
}

/// A program that tests several libraries.
fn of(program: PathBuf, library: &str) -> Result<Command> {
    let mut command = Command::new(program);
    command.arg(library);
    Ok(command)
}

fn java(program: &str) -> Result<Command> {
    let archives = provision::java()?.join("*");
    let mut command = Command::new("java");
    command.arg("-cp").arg(archives);
    command.arg(workspace::root().join("drivers/java").join(program));
    Ok(command)
}

fn asyncpg_suite() -> Result<Command> {
    let mut command = Command::new(provision::python()?);
    command.arg(workspace::root().join("drivers/asyncpg-suite/run.py"));
    command.arg(provision::asyncpg_source()?);
    Ok(command)
}
