//! `cargo xtask dialect`: the statements of PostgreSQL's regression suite, to PostgreSQL and to SQLite behind the proxy.
//!
//! Each statement is run here and there, each in a savepoint. What both answer stays; what one refuses is undone in both, so
//! that the two stay in step and a difference is the statement's own. An answer is the same if its rows, the names and types of
//! its columns and its command tag are. What is refused here must come with a hint. What is answered differently is printed.

mod script;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::Refrain;

use self::wire::{Answer, Wire};

/// What keeps the answers of PostgreSQL the same as here where a setting says how they are printed.
const SETTINGS: &str = "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET statement_timeout = '10s'";

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

/// Statements that differ as they may, by what they say, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("version()", "the version is our own"),
    ("current_database()", "the database has another name"),
    ("pg_backend_pid()", "a process of its own"),
    ("random()", "no two are the same"),
    ("gen_random_uuid()", "no two are the same"),
    ("now()", "the clock goes on"),
    ("current_timestamp", "the clock goes on"),
    ("localtimestamp", "the clock goes on"),
    ("integer primary key", "in this word it is SQLite's own, and generates (docs/sqlite.md)"),
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

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Same,
    BothRefuse,
    RefusedWithHint,
    RefusedWithoutHint,
    DiffersAsItMay,
    Differs,
    AnsweredHereOnly,
}

/// Runs all statements both ways; whether none is answered differently in silence.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let folder = match &arguments.scripts {
        Some(folder) => folder.clone(),
        None => provision::regression()?.suites.join("server/sql"),
    };
    let cluster = Cluster::start(Version::V15, &[("fsync", "off")])?;
    let files = std::env::temp_dir().join(format!("refrain-dialect-{}", std::process::id()));
    fs::create_dir_all(&files)?;
    let mut total = BTreeMap::<Verdict, u64>::new();
    let mut scripts: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    scripts.sort_by_key(fs::DirEntry::file_name);
    for entry in scripts {
        let path = entry.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|_| path.extension().is_some_and(|end| end == "sql")) else {
            continue;
        };
        if !arguments.only.is_empty() && !arguments.only.contains(&name) {
            continue;
        }
        let script = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let counts =
            run_script(&cluster, &files, &name, &script).with_context(|| format!("script {name}"));
        match counts {
            Ok(counts) => {
                println!("{name}: {counts:?}");
                counts
                    .into_iter()
                    .for_each(|(verdict, count)| *total.entry(verdict).or_default() += count);
            }
            Err(error) => println!("{name}: {error:#}"),
        }
    }
    let _ = fs::remove_dir_all(&files);
    println!("{total:?}");
    let silent = [Verdict::Differs, Verdict::AnsweredHereOnly];
    Ok(silent.iter().all(|verdict| !total.contains_key(verdict)))
}

fn run_script(
    cluster: &Cluster,
    files: &Path,
    name: &str,
    script: &str,
) -> Result<BTreeMap<Verdict, u64>> {
    let database = format!("dialect_{name}");
    cluster.psql("postgres", &format!("CREATE DATABASE \"{database}\""))?;
    let file = files.join(format!("{name}.db"));
    let config = format!(
        "auth = \"trust\"\n[databases.\"*\"]\nbackend = \"sqlite\"\npath = \"{}\"\n",
        file.display()
    );
    let proxy = Refrain::start(&config)?;
    let mut pair = Pair {
        there: Wire::open(cluster.port(), &database)?,
        here: Wire::open(proxy.port(), &database)?,
    };
    pair.there.query(SETTINGS)?;
    pair.both("BEGIN")?;
    let mut counts = BTreeMap::new();
    for statement in script::statements(script) {
        let Some(verdict) = pair.run(&statement, name)? else { continue };
        *counts.entry(verdict).or_default() += 1;
    }
    Ok(counts)
}

struct Pair {
    there: Wire,
    here: Wire,
}

impl Pair {
    fn both(&mut self, text: &str) -> Result<()> {
        self.there.query(text)?;
        self.here.query(text)?;
        Ok(())
    }

    fn run(&mut self, statement: &str, name: &str) -> Result<Option<Verdict>> {
        let word = statement.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        if SESSION.contains(&word.to_ascii_lowercase().as_str()) {
            return Ok(None);
        }
        self.both("SAVEPOINT s")?;
        let here = self.here.query(statement)?;
        let there = self.there.query(statement)?;
        let stays = here.error.is_none() && there.error.is_none();
        self.both(if stays { "RELEASE s" } else { "ROLLBACK TO s" })?;
        let verdict = judge(statement, &here, &there);
        match verdict {
            Verdict::Differs | Verdict::AnsweredHereOnly | Verdict::RefusedWithoutHint => {
                println!(
                    "--- {name}: {verdict:?}\n{statement}\nhere:  {}\nthere: {}",
                    shown(&here),
                    shown(&there)
                );
            }
            _ => {}
        }
        Ok(Some(verdict))
    }
}

fn judge(statement: &str, here: &Answer, there: &Answer) -> Verdict {
    let lower = statement.to_ascii_lowercase();
    let may = ALLOWED.iter().any(|(words, _)| lower.contains(words));
    match (&here.error, &there.error) {
        (Some(_), Some(_)) => Verdict::BothRefuse,
        (Some((.., hint)), None) if hint.is_empty() => Verdict::RefusedWithoutHint,
        (Some(_), None) => Verdict::RefusedWithHint,
        // A key declared INTEGER, in this word, is SQLite's own, and given by it.
        (None, Some((state, ..))) if may || state == "23502" => Verdict::DiffersAsItMay,
        (None, Some(_)) => Verdict::AnsweredHereOnly,
        (None, None) if same(&lower, here, there) => Verdict::Same,
        (None, None) if may => Verdict::DiffersAsItMay,
        (None, None) => Verdict::Differs,
    }
}

/// Whether two answers are the same. Rows that nobody asked for in an order may come in any.
fn same(statement: &str, here: &Answer, there: &Answer) -> bool {
    if here.columns != there.columns || here.tag != there.tag {
        return false;
    }
    if here.rows == there.rows {
        return true;
    }
    let sorted = |answer: &Answer| {
        let mut rows = answer.rows.clone();
        rows.sort();
        rows
    };
    // What stands in parentheses orders nothing outside of them.
    let outside = statement.rsplit(')').next().unwrap_or(statement);
    let ordered =
        outside.contains("order by") || !statement.contains('(') && statement.contains("order by");
    !ordered && sorted(here) == sorted(there)
}

fn shown(answer: &Answer) -> String {
    if let Some((state, message, hint)) = &answer.error {
        return format!("{state} {message} ({hint})");
    }
    let value = |value: &Option<Vec<u8>>| {
        value
            .as_ref()
            .map_or("NULL".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
    };
    let rows =
        answer.rows.iter().take(8).map(|row| row.iter().map(value).collect::<Vec<_>>().join("|"));
    format!("{:?} {:?} {}", answer.tag, answer.columns, rows.collect::<Vec<_>>().join(" / "))
}
