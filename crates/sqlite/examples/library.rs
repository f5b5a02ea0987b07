//! The library without the wire: `cargo run -p refrain-sqlite --example library [FILE]`.
//!
//! Fills a table, looks rows up by key, and prints how much time kept statements saved.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use refrain_sqlite::{Connection, Database, Error, OpenOptions, Step, Text, Value};

/// Number of monsters.
const MONSTERS: i64 = 1000;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| ":memory:".to_owned());
    let connection = Database::new(path, OpenOptions::default()).connect()?;
    fill(&connection)?;
    println!("Of ten thousand monsters looked up, {} are strong.", look_up(&connection, 10_000)?);

    let stats = connection.cache_stats();
    println!(
        "{} hits, {} misses, {} statements in {} bytes; {} \u{b5}s spent in compiling, {} saved.",
        stats.hits,
        stats.misses,
        stats.entries,
        stats.bytes,
        stats.prepare_ns / 1000,
        stats.saved_ns / 1000,
    );
    for statement in connection.statement_stats() {
        println!("{:>6} calls, {:?} each: {}", statement.calls, statement.run, statement.sql);
    }
    connection.close()
}

fn fill(connection: &Connection) -> Result<(), Error> {
    let schema = "DROP TABLE IF EXISTS monster;
                  CREATE TABLE monster (id INTEGER PRIMARY KEY, name TEXT, attack INTEGER)";
    for statement in connection.split(schema) {
        statement?.start().step()?;
    }
    connection.execute("BEGIN", &[])?;
    for id in 1..=MONSTERS {
        let name = format!("monster {id}");
        let values = [id.into(), name.as_str().into(), (id % 13).into()];
        connection.execute("INSERT INTO monster VALUES (?, ?, ?)", &values)?;
    }
    connection.execute("COMMIT", &[])?;
    Ok(())
}

/// Looks up `count` monsters. Returns how many of them attack with more than ten.
fn look_up(connection: &Connection, count: i64) -> Result<usize, Error> {
    // The text is hashed once; each look-up of the statement then compares bytes and no more.
    let text = Text::new("SELECT name, attack FROM monster WHERE id = ?");
    let mut strong = 0;
    for number in 0..count {
        let mut run = connection.statement(text)?.start();
        run.bind(1, Value::Integer(number % MONSTERS + 1))?;
        if run.step()? == Step::Row
            && let Value::Integer(attack) = run.column(1)
        {
            strong += usize::from(attack > 10);
        }
    }
    Ok(strong)
}
