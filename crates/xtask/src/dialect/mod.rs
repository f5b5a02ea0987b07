//! `cargo xtask dialect`: the statements of PostgreSQL's regression suite, to PostgreSQL and to SQLite behind the proxy.
//!
//! Each statement is run here and there, each in a savepoint. What both answer stays; what one refuses is undone in both, so
//! that the two stay in step and a difference is the statement's own. Before each script stand the tables that the suite makes
//! for all of them. What is a difference is said in [`judge`]; each is printed.

mod script;
mod wire;

mod judge;

mod settled;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::Refrain;

use self::judge::{Judge, Verdict};
use self::script::Statement;
use self::wire::Wire;

type Counts = BTreeMap<Verdict, u64>;

/// What keeps the answers of PostgreSQL the same as here where a setting says how they are printed.
const SETTINGS: &str = "SET timezone = 'UTC'; SET datestyle = 'ISO'";
/// How long a statement may take.
const PATIENCE: &str = "SET statement_timeout = '5min'";
/// The longest value here, so that a statement may hold several.
const VALUE_MAX: &str = "64MiB";
/// How much memory the proxy may take, in KiB, as `ulimit` takes it: what asks for more ends it, and not the machine.
const MEMORY_MAX: &str = "-d 2097152";

/// Statements that are no question of the dialect: they end or begin transactions, or say how the session is.
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

/// Which.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// These scripts only, by name.
    #[arg(long)]
    only: Vec<String>,
    /// A folder of scripts, instead of the regression suite's.
    #[arg(long)]
    scripts: Option<PathBuf>,
}

/// The script that makes the tables which the others use.
const SETUP: &str = "test_setup";

/// Runs all statements both ways; whether none is answered differently in silence.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let suite = provision::regression()?.suites.join("server");
    let folder = arguments.scripts.clone().unwrap_or_else(|| suite.join("sql"));
    let cluster = Cluster::start(Version::V15, &[("fsync", "off")])?;
    let files = std::env::temp_dir().join(format!("refrain-dialect-{}", std::process::id()));
    fs::create_dir_all(&files)?;
    let place = Place { cluster, files, suite };
    let mut total = place.set_up()?;
    let mut scripts: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    scripts.sort_by_key(fs::DirEntry::file_name);
    let mut all = true;
    for entry in scripts {
        let path = entry.path();
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
                println!("--- {name}: broken off\n{error:#}");
                all = false;
            }
        }
    }
    let _ = fs::remove_dir_all(&place.files);
    println!("{total:?}");
    Ok(all && !total.keys().any(|verdict| verdict.is_fault()))
}

/// Where the scripts are run: a cluster, and files for SQLite.
struct Place {
    cluster: Cluster,
    files: PathBuf,
    suite: PathBuf,
}

impl Place {
    /// Makes the tables that scripts use, in a database that theirs are copies of.
    fn set_up(&self) -> Result<Counts> {
        self.cluster.psql("postgres", &format!("CREATE DATABASE {SETUP}"))?;
        let path = self.suite.join("sql").join(SETUP).with_extension("sql");
        let counts = self.run(SETUP, &path, "COMMIT").context("the tables of all scripts")?;
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
        self.run(name, path, "ROLLBACK")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.join(format!("{name}.db"))
    }

    fn run(&self, name: &str, path: &Path, end: &str) -> Result<Counts> {
        let script = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        let config = format!(
            "auth = \"trust\"\n[databases.\"*\"]\nbackend = \"sqlite\"\npath = \"{}\"\n\
             sqlite_max_length = \"{VALUE_MAX}\"\n",
            self.file(name).display()
        );
        let proxy = Refrain::start_within(MEMORY_MAX, &config)?;
        let mut pair = Pair {
            there: Wire::open(self.cluster.port(), name)?,
            here: Wire::open(proxy.port(), name)?,
            judge: Judge::default(),
        };
        pair.there.query(SETTINGS)?;
        pair.both(PATIENCE)?;
        pair.both("BEGIN")?;
        let mut counts = Counts::new();
        for statement in script::statements(&script, &self.suite) {
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
        if verdict == Verdict::Differs
            && settled::is_left_open(&mut self.there, text, &here, &there)?
        {
            verdict = Verdict::LeftOpen;
        }
        let stays = here.error.is_none() && there.error.is_none();
        self.both(if stays { "RELEASE s" } else { "ROLLBACK TO s" })?;
        if verdict.is_fault() {
            println!(
                "--- {name}: {verdict:?}\n{text}\nhere:  {}\nthere: {}",
                here.shown(),
                there.shown()
            );
        }
        Ok(Some(verdict))
    }
}
