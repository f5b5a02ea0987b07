//! Serves a database file to PostgreSQL's clients, with a thread for each client and without
//! passwords: for experiments, not for production.
//!
//! `cargo run -p refrain-sqlite-pg --example serve -- ./my.db 127.0.0.1:6433`

#[path = "../tests/it/server.rs"]
mod server;

use std::io::Write as _;
use std::time::Duration;

use refrain_sqlite::{Database, OpenOptions};
use refrain_sqlite_pg::{Backend, Pool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "./refrain.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:6433".to_owned());
    let database = Database::new(path, OpenOptions::default());
    let backend = Backend::new("refrain", 2)?;
    let pool = Pool::new(&backend, database, Duration::from_secs(5));
    let listener = std::net::TcpListener::bind(address)?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    server::serve(&pool, listener);
    Ok(())
}
