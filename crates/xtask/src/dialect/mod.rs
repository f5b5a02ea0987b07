//! `cargo xtask dialect`: runs the statements of PostgreSQL's regression suite in PostgreSQL and in
//! SQLite through the proxy.
//!
//! Each statement runs in a savepoint on both sides. If one side refuses it, both sides roll it
//! back, so that they stay in step and a difference is the statement's own. Each script begins with
//! a copy of the tables that the suite creates for all scripts. `judge` says which differences
//! are faults, and each fault is printed. In the code `here` is SQLite and `there` PostgreSQL.

mod script;
mod wire;

mod judge;

mod settled;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::command::{self, Tally};
use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::{Refrain, program};
use crate::workspace::built;

use self::judge::{Judge, Verdict};
use self::script::Statement;
use self::wire::Wire;

type Counts = BTreeMap<Verdict, u64>;

/// Settings with which PostgreSQL prints values as SQLite through the proxy does.
const SETTINGS: &str = "SET timezone = 'UTC'; SET datestyle = 'ISO'";
/// The time limit of a statement.
const PATIENCE: &str = "SET statement_timeout = '5min'";
/// The limit of a value's length in SQLite, so that one statement can hold several long values.
const VALUE_MAX: &str = "64MiB";
/// The proxy's limit of memory as an argument of `ulimit`, in KiB. A statement that needs more ends
/// the proxy, not the machine.
const MEMORY_MAX: &str = "-d 2097152";

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

/// The arguments of `cargo xtask dialect`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Run only these scripts.
    #[arg(long)]
    only: Vec<String>,
    /// Run the scripts of this folder rather than the regression suite's.
    #[arg(long)]
    scripts: Option<PathBuf>,
    /// Run the forms that tools use, in both versions.
    #[arg(long)]
    forms: bool,
}

/// Forms that tools use. Each statement must have the same answer, or the same error.
const FORMS: &str = include_str!("forms.sql");

/// Runs the forms that tools use in both versions of PostgreSQL.
pub fn forms() -> Result<Tally> {
    alike(&built("refrain")?)
}

fn alike(program: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[("fsync", "off")])?;
        let files = std::env::temp_dir().join(format!("refrain-forms-{}", std::process::id()));
        fs::create_dir_all(&files)?;
        let (program, suite) = (program.to_owned(), PathBuf::new());
        let place = Place { program, cluster, files, suite, all_alike: true };
        place.cluster.psql("postgres", "CREATE DATABASE forms")?;
        let counts = place.run("forms", FORMS, "ROLLBACK");
        let _ = fs::remove_dir_all(&place.files);
        for (verdict, count) in counts? {
            let count = u32::try_from(count)?;
            let of_verdict = if verdict.is_alike() { &mut tally.passed } else { &mut tally.failed };
            *of_verdict += count;
        }
    }
    Ok(tally)
}

/// The script that creates the tables of all others.
const SETUP: &str = "test_setup";

/// Runs all statements on both sides. Returns true if no verdict is a fault.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.forms {
        let tally = alike(&program()?)?;
        println!("{} alike, {} not", tally.passed, tally.failed);
        return Ok(tally.failed == 0);
    }
    let suite = provision::regression()?.suites.join("server");
    let folder = arguments.scripts.clone().unwrap_or_else(|| suite.join("sql"));
    let cluster = Cluster::start(Version::V15, &[("fsync", "off")])?;
    let files = std::env::temp_dir().join(format!("refrain-dialect-{}", std::process::id()));
    fs::create_dir_all(&files)?;
    let place = Place { program: program()?, cluster, files, suite, all_alike: false };
    let mut total = place.set_up()?;
    let mut scripts: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    scripts.sort_by_key(fs::DirEntry::file_name);
    let mut all = true;
    for script in scripts {
        let path = script.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|_| path.extension().is_some_and(|end| end == "sql")) else {
            continue;
        };
        if name == SETUP || !arguments.only.is_empty() && !arguments.only.contains(&name) {
            continue;
        }
        match place.script(&name, &path) {
            Ok(counts) => {
                println!("{name}: {counts:?}");
                counts
                    .into_iter()
                    .for_each(|(verdict, count)| *total.entry(verdict).or_default() += count);
            }
            Err(error) => {
                println!("--- {name}: aborted\n{error:#}");
                all = false;
            }
        }
    }
    let _ = fs::remove_dir_all(&place.files);
    println!("{total:?}");
    Ok(all && !total.keys().any(|verdict| verdict.is_fault()))
}

/// The place where scripts run: a cluster, and a folder of SQLite files.
struct Place {
    program: PathBuf,
    cluster: Cluster,
    files: PathBuf,
    suite: PathBuf,
    /// Whether an answer that is not PostgreSQL's is told, although it may be refused.
    all_alike: bool,
}

impl Place {
    /// Creates the tables that scripts use, in the database that each script's is a copy of.
    fn set_up(&self) -> Result<Counts> {
        self.cluster.psql("postgres", &format!("CREATE DATABASE {SETUP}"))?;
        let path = self.suite.join("sql").join(SETUP).with_extension("sql");
        let script = read(&path)?;
        let counts = self.run(SETUP, &script, "COMMIT").context("the tables of all scripts")?;
        println!("{SETUP}: {counts:?}");
        Ok(counts)
    }

    fn script(&self, name: &str, path: &Path) -> Result<Counts> {
        let database = format!("CREATE DATABASE \"{name}\" TEMPLATE {SETUP}");
        self.cluster.psql("postgres", &database)?;
        for end in ["", "-wal"] {
            let from = PathBuf::from(format!("{}{end}", self.file(SETUP).display()));
            if from.exists() {
                fs::copy(from, format!("{}{end}", self.file(name).display()))?;
            }
        }
        self.run(name, &read(path)?, "ROLLBACK")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.join(format!("{name}.db"))
    }

    fn run(&self, name: &str, script: &str, end: &str) -> Result<Counts> {
        let config = format!(
            "auth = \"trust\"\n[databases.\"*\"]\nbackend = \"sqlite\"\npath = \"{}\"\n\
             sqlite_max_length = \"{VALUE_MAX}\"\n",
            self.file(name).display()
        );
        let proxy = Refrain::start_within(&self.program, MEMORY_MAX, &config)?;
        let mut pair = Pair {
            there: Wire::open(self.cluster.port(), name)?,
            here: Wire::open(proxy.port(), name)?,
            judge: Judge::default(),
            all_alike: self.all_alike,
        };
        pair.there.query(SETTINGS)?;
        pair.both(PATIENCE)?;
        pair.both("BEGIN")?;
        let mut counts = Counts::new();
        for statement in script::statements(script, &self.suite) {
            let verdict = pair.run(&statement, name).with_context(|| statement.text.clone())?;
            if let Some(verdict) = verdict {
                *counts.entry(verdict).or_default() += 1;
            }
        }
        pair.both(end)?;
        Ok(counts)
    }
}

struct Pair {
    there: Wire,
    here: Wire,
    judge: Judge,
    all_alike: bool,
}

fn read(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

impl Pair {
    fn both(&mut self, text: &str) -> Result<()> {
        for (wire, side) in [(&mut self.there, "there"), (&mut self.here, "here")] {
            let answer = wire.query(text).context(side)?;
            ensure!(answer.error.is_none(), "{side}, {text}: {}", answer.shown());
        }
        Ok(())
    }

    fn run(&mut self, statement: &Statement, name: &str) -> Result<Option<Verdict>> {
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
        Ok(Some(verdict))
    }
}
