//! Rounds: programs that use a client library as its users do, and print the results.
//!
//! Each program runs against PostgreSQL and against SQLite in Refrain. Both must print the same,
//! with the same types of the program's language. PostgreSQL's output is the right one.

use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use crate::command::{self, Tally};
use crate::drivers::{java, node, of, python};
use crate::postgres::Cluster;
use crate::provision::{self, Version};
use crate::proxy::Refrain;
use crate::workspace::built;

/// A round: the library and its program.
type Round = (&'static str, fn() -> Result<Command>);

const ROUNDS: &[Round] = &[
    ("psycopg2", || python("round_psycopg2.py")),
    ("psycopg", || python("round_psycopg.py")),
    ("asyncpg", || python("round_asyncpg.py")),
    ("pgx", || of("pgx", go())),
    ("pgjdbc", || java("Round.java")),
    ("node-postgres", || node("round_pg.js")),
    ("gorm", || of("gorm", go())),
    ("knex", || node("round_knex.js")),
];

fn go() -> Result<Command> {
    Ok(Command::new(provision::go_rounds()?))
}

/// The beginning of a line about a part that failed.
const FAILED: &str = "FAILED";

/// The most lines of a difference that are printed.
const SHOWN_MAX: usize = 20;

/// Runs every program twice and compares the outputs part by part.
pub fn run() -> Result<Tally> {
    let cluster = Cluster::start(Version::V15, &[("timezone", "UTC")])?;
    let config = "auth = \"trust\"\n[databases.\"*\"]\nurl = \"sqlite:rounds.db\"\n";
    let proxy = Refrain::start_as(&built("refrain")?, config)?;
    let mut tally = Tally::default();
    for (library, program) in ROUNDS {
        println!("--- {library}");
        let (expected, answered) = thread::scope(|scope| {
            let direct = scope.spawn(|| output_of(*program, cluster.port()));
            let answered = output_of(*program, proxy.port());
            (direct.join(), answered)
        });
        let expected = expected.map_err(|_| anyhow::anyhow!("a round has panicked"))?;
        let expected = expected.with_context(|| format!("{library} with PostgreSQL"))?;
        let answered = answered.with_context(|| format!("{library} with SQLite"))?;
        tally += compared(["PostgreSQL", "SQLite"], &expected, &answered);
    }
    Ok(tally)
}

/// Returns the output of a program with the server at this port of 127.0.0.1.
fn output_of(program: fn() -> Result<Command>, port: u16) -> Result<String> {
    let mut command = program()?;
    command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string()).env("TZ", "UTC");
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres").env("PGSSLMODE", "disable");
    command::output(&mut command)
}

/// Returns the parts of an output. Each begins with a line that names it.
fn parts(output: &str) -> Vec<(&str, Vec<&str>)> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in output.lines() {
        match (line.strip_prefix("= "), parts.last_mut()) {
            (Some(name), _) => parts.push((name, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    parts
}

/// Compares the parts of two outputs, whose names are for reports. The first one is right.
pub(crate) fn compared(names: [&str; 2], expected: &str, answered: &str) -> Tally {
    let mut tally = Tally::default();
    let answers = parts(answered);
    for (index, (name, lines)) in parts(expected).into_iter().enumerate() {
        let other = answers.get(index).filter(|(other, _)| *other == name);
        let other = other.map(|(_, lines)| lines.as_slice());
        let done = !lines.iter().any(|line| line.starts_with(FAILED));
        if done && other == Some(lines.as_slice()) {
            println!("ok      {name}");
            tally.passed += 1;
        } else {
            command::tell_failure(&format!("FAILED  {name}"));
            show(names, &lines, other.unwrap_or_default());
            tally.failed += 1;
        }
    }
    if tally == Tally::default() {
        tally.failed = 1;
    }
    tally
}

/// Prints both outputs from the first line that differs.
fn show(names: [&str; 2], expected: &[&str], answered: &[&str]) {
    let same = expected.iter().zip(answered).take_while(|(a, b)| a == b).count();
    for (name, lines) in names.into_iter().zip([expected, answered]) {
        lines.iter().skip(same).take(SHOWN_MAX).for_each(|line| println!("{name:>10}  {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_compared_part_by_part() {
        let expected = "= a\none\n= b\ntwo\n= c\n";
        let count = |answered| {
            let Tally { passed, failed } = compared(["a", "b"], expected, answered);
            (passed, failed)
        };
        assert_eq!(count(expected), (3, 0));
        assert_eq!(count("= a\none\n= b\n2\n= c\n"), (2, 1));
        assert_eq!(count("= a\none\n"), (1, 2));
        assert_eq!(count(""), (0, 3));
        let failed = "= a\nFAILED\n";
        assert_eq!(compared(["a", "b"], failed, failed), Tally::FAILED);
        assert_eq!(compared(["a", "b"], "", ""), Tally::FAILED);
    }
}
