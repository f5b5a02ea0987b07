//! Writes to a file without a server, as the baseline for a client that writes through one.
//!
//! One connection runs one kept INSERT, and each commit is on disk. Prints commits per second.
//!
//! `cargo run --release -p refrain-sqlite --example writes -- ./my.db 5`

use std::io::Write as _;
use std::time::{Duration, Instant};

use refrain_sqlite::{Database, OpenOptions, Step, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "./refrain.db".to_owned());
    let seconds = arguments.next().map_or(Ok(1), |seconds| seconds.parse())?;
    let connection = Database::new(path, OpenOptions::default()).connect()?;
    connection
        .execute("CREATE TABLE IF NOT EXISTS written (id INTEGER PRIMARY KEY, v INT)", &[])?;
    let (begun, mut count) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut run = connection.statement("INSERT INTO written (v) VALUES (?)")?.start();
        run.bind(1, Value::Integer(7))?;
        while run.step()? == Step::Row {}
        count += 1;
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    writeln!(std::io::stdout(), "{rate}")?;
    Ok(())
}
