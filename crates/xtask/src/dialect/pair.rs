//! The two sides of a comparison: each statement runs on both, in a savepoint.

use anyhow::{Context, Result, ensure};

use crate::command;

use super::judge::{Judge, Verdict};
use super::script::Statement;
use super::settled;
use super::wire::Wire;

/// Settings with which PostgreSQL prints values as SQLite through the proxy does.
const SETTINGS: &str = "SET timezone = 'UTC'; SET datestyle = 'ISO'";
/// The time limit of a statement.
const PATIENCE: &str = "SET statement_timeout = '5min'";
/// First words of statements that do not concern the dialect: they begin or end transactions, or
/// change or show the session's state.
const SESSION: &[&str] = &[
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "set",
    "reset",
    "show",
    "prepare",
    "execute",
    "deallocate",
    "declare",
    "fetch",
    "move",
    "close",
    "listen",
    "notify",
    "unlisten",
    "load",
    "discard",
    "checkpoint",
    "vacuum",
    "lock",
];

/// A connection to each side.
pub(super) struct Pair {
    there: Wire,
    here: Wire,
    judge: Judge,
    /// Whether an answer that is not PostgreSQL's is told, although it may be refused.
    pub(super) all_alike: bool,
}

/// The outcome of a statement.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// Whether both sides ran the statement.
    pub(super) ran: bool,
    /// SQLite's error, if there was one, without names and values.
    pub(super) refusal: Option<String>,
}

impl Pair {
    /// Connects to the proxy and to PostgreSQL at these ports.
    pub(super) fn open(here: u16, there: u16, database: &str) -> Result<Pair> {
        let (there, here) = (Wire::open(there, database)?, Wire::open(here, database)?);
        let mut pair = Pair { there, here, judge: Judge::default(), all_alike: false };
        pair.there.query(SETTINGS)?;
        pair.both(PATIENCE)?;
        Ok(pair)
    }

    /// Runs a text on both sides, which must not fail.
    pub(super) fn both(&mut self, text: &str) -> Result<()> {
        for (wire, side) in [(&mut self.there, "there"), (&mut self.here, "here")] {
            let answer = wire.query(text).context(side)?;
            ensure!(answer.error.is_none(), "{side}, {text}: {}", answer.shown());
        }
        Ok(())
    }

    /// Runs a statement on both sides; `None` for one that does not concern the dialect.
    pub(super) fn run(&mut self, statement: &Statement, name: &str) -> Result<Option<Judged>> {
        let Statement { text, rows } = statement;
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        if SESSION.contains(&word.to_ascii_lowercase().as_str()) {
            return Ok(None);
        }
        self.both("SAVEPOINT s")?;
        let there = self.there.copy(text, rows.as_deref()).context("there")?;
        let here = self.here.copy(text, rows.as_deref()).context("here")?;
        let mut verdict = self.judge.verdict(text, &here, &there);
        // The catalog does not depend on the place of rows.
        if verdict == Verdict::Differs
            && !text.contains("pg_")
            && settled::is_left_open(&mut self.there, text, &here, &there)?
        {
            verdict = Verdict::LeftOpen;
        }
        let stays = here.error.is_none() && there.error.is_none();
        self.both(if stays { "RELEASE s" } else { "ROLLBACK TO s" })?;
        if verdict.is_fault() || self.all_alike && !verdict.is_alike() {
            let (here, there) = (here.shown(), there.shown());
            println!("--- {name}: {verdict:?}\n{text}\nhere:  {here}\nthere: {there}");
            let first = text.lines().next().unwrap_or_default();
            command::keep_failure(format!("--- {name}: {verdict:?}: {first}"));
        }
        let refusal = here.error.as_ref().map(|error| {
            let plain = error.message.split('"').step_by(2).collect::<Vec<_>>().join("…");
            format!("{verdict:?}: {} {plain}", error.sqlstate)
        });
        Ok(Some(Judged { verdict, ran: stays, refusal }))
    }
}
