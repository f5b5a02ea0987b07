//! Tests by client libraries in their own languages: see `drivers/README.md`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command::{self, Tally};
use crate::provision;
use crate::workspace;

/// A client library's test.
pub struct Driver {
    /// The name in reports.
    pub name: &'static str,
    /// Fetches what the test needs and returns the test as a command.
    command: fn() -> Result<Command>,
}

/// Every client library's test.
pub const DRIVERS: &[Driver] = &[
    Driver { name: "asyncpg", command: || python("smoke_asyncpg.py") },
    Driver { name: "psycopg", command: || python("smoke_psycopg.py") },
    Driver { name: "psycopg2", command: || python("smoke_psycopg2.py") },
    Driver { name: "node-postgres", command: || node("smoke.js") },
    Driver { name: "pgx", command: || built(provision::go) },
    Driver { name: "pgjdbc", command: || java("Smoke.java") },
    Driver { name: "asyncpg-suite", command: asyncpg_suite },
];

/// Every client library's test against SQLite.
pub const SQLITE_DRIVERS: &[Driver] = &[
    Driver { name: "asyncpg", command: || of("asyncpg", python("sqlite.py")) },
    Driver { name: "psycopg", command: || of("psycopg", python("sqlite.py")) },
    Driver { name: "psycopg2", command: || of("psycopg2", python("sqlite.py")) },
    Driver { name: "pg8000", command: || of("pg8000", python("sqlite.py")) },
    Driver { name: "sqlalchemy-core", command: || of("sqlalchemy-core", python("sqlite.py")) },
    Driver { name: "sqlalchemy-orm", command: || of("sqlalchemy-orm", python("sqlite.py")) },
    Driver { name: "node-postgres", command: || of("node-postgres", node("sqlite.js")) },
    Driver { name: "postgres.js", command: || of("postgres.js", node("sqlite.js")) },
    Driver { name: "pgx", command: || of("pgx", built(provision::go_with_sqlite)) },
    Driver { name: "lib/pq", command: || of("pq", built(provision::go_with_sqlite)) },
    Driver { name: "pgjdbc", command: || java("Sqlite.java") },
    Driver { name: "tokio-postgres", command: || of("tokio-postgres", built(provision::rust)) },
    Driver { name: "sqlx", command: || of("sqlx", built(provision::rust)) },
];

/// Every client library's test at the admin console.
pub const CONSOLE_DRIVERS: &[Driver] = &[
    Driver { name: "psycopg", command: || of("psycopg", python("console.py")) },
    Driver { name: "asyncpg", command: || of("asyncpg", python("console.py")) },
    Driver { name: "node-postgres", command: || node("console.js") },
    Driver { name: "pgx", command: || built(provision::go_console) },
    Driver { name: "pgjdbc", command: || java("Console.java") },
];

/// Every client library's test at the admin console, in MySQL's protocol.
pub const MYSQL_CONSOLE_DRIVERS: &[Driver] = &[
    Driver { name: "PyMySQL", command: || of("pymysql", python("console_mysql.py")) },
    Driver { name: "mysqlclient", command: || of("mysqlclient", python("console_mysql.py")) },
    Driver { name: "aiomysql", command: || of("aiomysql", python("console_mysql.py")) },
    Driver { name: "asyncmy", command: || of("asyncmy", python("console_mysql.py")) },
    Driver { name: "Connector/Python", command: || of("connector", python("console_mysql.py")) },
    Driver {
        name: "Connector/Python prepared",
        command: || of("connector-prepared", python("console_mysql.py")),
    },
    Driver {
        name: "MariaDB Connector/Python",
        command: || of("mariadb", python("console_mysql.py")),
    },
    Driver {
        name: "MariaDB Connector/Python prepared",
        command: || of("mariadb-binary", python("console_mysql.py")),
    },
    Driver { name: "mysql2", command: || of("mysql2", node("console_mysql.js")) },
    Driver { name: "mariadb of Node", command: || of("mariadb", node("console_mysql.js")) },
    Driver { name: "go-sql-driver", command: || built(provision::go_console_mysql) },
    Driver { name: "Connector/J", command: || of("connector", java("ConsoleMysql.java")) },
    Driver { name: "MariaDB Connector/J", command: || of("mariadb", java("ConsoleMysql.java")) },
];

/// Every tool's first real work, against PostgreSQL and SQLite.
pub const TOOLS: &[Driver] = &[
    Driver { name: "sqlalchemy", command: || of("sqlalchemy", tools()) },
    Driver { name: "alembic", command: || of("alembic", tools()) },
    Driver { name: "pandas", command: || of("pandas", tools()) },
    Driver { name: "peewee", command: || of("peewee", tools()) },
    Driver { name: "sqlmodel", command: || of("sqlmodel", tools()) },
    Driver { name: "tortoise", command: || of("tortoise", tools()) },
    Driver { name: "knex", command: || of("knex", node_tools()) },
    Driver { name: "kysely", command: || of("kysely", node_tools()) },
    Driver { name: "sequelize", command: || of("sequelize", node_tools()) },
    Driver { name: "typeorm", command: || of("typeorm", node_tools()) },
    Driver { name: "drizzle", command: || of("drizzle", node_tools()) },
];

impl Driver {
    /// Runs the test against the server at this port of this machine: in the clear, or encrypted if
    /// there is a file with the authority of the server's certificate.
    pub fn run(&self, port: u16, root: Option<&Path>) -> Result<Tally> {
        let mut command = (self.command)()?;
        command.env("PGPORT", port.to_string()).env("PGUSER", "postgres");
        command.env("PGDATABASE", "postgres");
        command.env("MYSQL_HOST", "127.0.0.1").env("MYSQL_PORT", port.to_string());
        match root {
            None => command.env("PGHOST", "127.0.0.1").env("PGSSLMODE", "disable"),
            Some(root) => command
                .env("PGHOST", "localhost")
                .env("PGSSLMODE", "verify-full")
                .env("PGSSLROOTCERT", root)
                .env("NODE_EXTRA_CA_CERTS", root),
        };
        command::tally(&mut command)
    }
}

/// Returns the command for one library of a program that tests several.
pub(crate) fn of(library: &str, program: Result<Command>) -> Result<Command> {
    let mut command = program?;
    command.arg(library);
    Ok(command)
}

/// Returns the command of the script that runs tools, with these.
fn tools() -> Result<Command> {
    let mut command = Command::new(provision::python_tools()?);
    command.arg(workspace::root().join("drivers/python/tools.py"));
    Ok(command)
}

/// Returns the command of a Python script, with the drivers' libraries.
pub(crate) fn python(script: &str) -> Result<Command> {
    let mut command = Command::new(provision::python()?);
    command.arg(workspace::root().join("drivers/python").join(script));
    Ok(command)
}

/// Returns the command of a Node script, with its packages.
pub(crate) fn node(script: &str) -> Result<Command> {
    Ok(node_with(&provision::node()?, script))
}

/// Returns the command of the Node script that runs tools, with these.
fn node_tools() -> Result<Command> {
    Ok(node_with(&provision::node_tools()?, "tools/tools.js"))
}

/// Returns the command of a script that looks at the dashboard in Chromium.
pub(crate) fn dashboard(script: &str, page: &str) -> Result<Command> {
    let packages = provision::node_dashboard()?;
    let mut command = node_with(&packages, &format!("dashboard/{script}"));
    // The libraries of MySQL are among those of the other scripts.
    let folders = [packages, provision::node()?].map(|packages| packages.join("node_modules"));
    command.env("NODE_PATH", env::join_paths(folders)?);
    command.env("DASHBOARD", page).env("CHROMIUM", provision::chromium()?);
    Ok(command)
}

fn node_with(packages: &Path, script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg("--no-deprecation").arg(workspace::root().join("drivers/node").join(script));
    command.env("NODE_PATH", packages.join("node_modules"));
    command
}

fn built(program: fn() -> Result<PathBuf>) -> Result<Command> {
    Ok(Command::new(program()?))
}

/// Returns the command of a Java program, with pgjdbc.
pub(crate) fn java(program: &str) -> Result<Command> {
    let archives = provision::java()?.join("*");
    let mut command = Command::new("java");
    command.arg("-cp").arg(archives);
    command.arg(workspace::root().join("drivers/java").join(program));
    Ok(command)
}

fn asyncpg_suite() -> Result<Command> {
    let mut command = Command::new(provision::python()?);
    command.arg(workspace::root().join("drivers/asyncpg-suite/run.py"));
    command.arg(provision::source_of("asyncpg")?);
    Ok(command)
}
