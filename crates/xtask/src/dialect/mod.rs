//! `cargo xtask dialect`: runs the statements of PostgreSQL's regression suite in PostgreSQL and in
//! SQLite through the proxy.
//!
//! Each statement runs in a savepoint on both sides. If one side refuses it, both sides roll it
//! back, so that they stay in step and a difference is the statement's own. Each script begins with
//! a copy of the tables that the suite creates for all scripts. `judge` says which differences
//! are faults, and each fault is printed. In the code `here` is SQLite and `there` PostgreSQL.

mod script;
mod wire;
mod random;

mod judge;

mod settled;

mod pair;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::command::Tally;
use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::{Refrain, program};
use crate::workspace::built;

use self::judge::Verdict;
use self::pair::{Judged, Pair};
use self::random::Script;
use self::script::Statement;

type Counts = BTreeMap<Verdict, u64>;

/// The limit of a value's length in SQLite, so that one statement can hold several long values.
const VALUE_MAX: &str = "64MiB";
/// The proxy's limit of memory as an argument of `ulimit`, in KiB. A statement that needs more ends
/// the proxy, not the machine.
const MEMORY_MAX: &str = "-d 2097152";

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
    /// Run this number of random statements.
    #[arg(long)]
    random: Option<u64>,
    /// The number of the first script of random statements.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run random statements against this version of PostgreSQL alone: 15 or 18.
    #[arg(long)]
    postgres: Option<u32>,
    /// Show each random statement.
    #[arg(long)]
    show: bool,
    /// Show the errors with which random statements were refused, with their numbers.
    #[arg(long)]
    refused: bool,
}

/// Forms that tools use. Each statement must have the same answer, or the same error.
const FORMS: &str = include_str!("forms.sql");

/// Runs the forms in both versions of PostgreSQL.
fn alike(program: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for version in VERSIONS {
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

/// Runs the forms that tools use in both versions of PostgreSQL.
pub fn forms() -> Result<Tally> {
    alike(&built("refrain")?)
}

/// The outcome of random statements.
#[derive(Default)]
struct Drawn {
    /// Whether each statement is shown.
    show: bool,
    counts: Counts,
    /// Errors of SQLite, with their numbers.
    refused: BTreeMap<String, u64>,
}

/// Runs random statements as the command line asks. Returns true if no verdict is a fault.
fn drawn(arguments: &Arguments, count: u64) -> Result<bool> {
    let program = program()?;
    let mut faults = 0;
    for version in VERSIONS {
        if arguments.postgres.is_some_and(|wanted| wanted != version.number()) {
            continue;
        }
        let Drawn { counts, refused, .. } =
            draw(&program, version, arguments.seed, count, arguments.show)?;
        println!("PostgreSQL {}: {counts:?}", version.number());
        faults += counts.iter().filter(|(verdict, _)| verdict.is_fault()).count();
        if arguments.refused {
            let mut all: Vec<_> = refused.into_iter().collect();
            all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            all.iter().for_each(|(words, count)| println!("{count:8} {words}"));
        }
    }
    Ok(faults == 0)
}

/// Runs scripts of random statements from a seed on until there were as many statements.
fn draw(program: &Path, version: Version, seed: u64, count: u64, show: bool) -> Result<Drawn> {
    let name = "random";
    let cluster = Cluster::start(version, &[("fsync", "off")])?;
    let files = std::env::temp_dir().join(format!("refrain-random-{}", std::process::id()));
    fs::create_dir_all(&files)?;
    let (program, suite) = (program.to_owned(), PathBuf::new());
    let place = Place { program, cluster, files, suite, all_alike: false };
    place.cluster.psql("postgres", &format!("CREATE DATABASE {name}"))?;
    let proxy = place.proxy(name)?;
    let mut drawn = Drawn { show, ..Drawn::default() };
    let mut left = count;
    for seed in seed.. {
        if left == 0 {
            break;
        }
        let most = left.min(random::STATEMENTS);
        left -= most;
        let mut pair = Pair::open(proxy.port(), place.cluster.port(), name)?;
        drawn.script(&mut pair, seed, most).with_context(|| format!("seed {seed}"))?;
    }
    let _ = fs::remove_dir_all(&place.files);
    Ok(drawn)
}

impl Drawn {
    fn script(&mut self, pair: &mut Pair, seed: u64, count: u64) -> Result<()> {
        let mut script = Script::new(seed);
        let mut ran = false;
        pair.both("BEGIN")?;
        for _ in 0..count {
            let text = script.next(ran);
            if self.show {
                println!("{text};");
            }
            let statement = Statement { text, rows: None };
            let judged = pair.run(&statement, &format!("seed {seed}"));
            let judged = judged.with_context(|| statement.text.clone())?;
            let Some(judged) = judged else { bail!("not of the dialect: {}", statement.text) };
            ran = judged.ran;
            *self.counts.entry(judged.verdict).or_default() += 1;
            if let Some(refusal) = judged.refusal {
                *self.refused.entry(refusal).or_default() += 1;
            }
        }
        pair.both("ROLLBACK")
    }
}

/// The versions of PostgreSQL that forms and random statements are compared with.
const VERSIONS: [Version; 2] = [Version::V15, Version::V18];

/// The script that creates the tables of all others.
const SETUP: &str = "test_setup";

/// Runs all statements on both sides. Returns true if no verdict is a fault.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.forms {
        let tally = alike(&program()?)?;
        println!("{} alike, {} not", tally.passed, tally.failed);
        return Ok(tally.failed == 0);
    }
    if let Some(count) = arguments.random {
        return drawn(arguments, count);
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

    /// Starts a proxy over the file of this name.
    fn proxy(&self, name: &str) -> Result<Refrain> {
        let config = format!(
            "auth = \"trust\"\n[databases.\"*\"]\nbackend = \"sqlite\"\npath = \"{}\"\n\
             sqlite_max_length = \"{VALUE_MAX}\"\n",
            self.file(name).display()
        );
        Refrain::start_within(&self.program, MEMORY_MAX, &config)
    }

    fn run(&self, name: &str, script: &str, end: &str) -> Result<Counts> {
        let proxy = self.proxy(name)?;
        let mut pair = Pair::open(proxy.port(), self.cluster.port(), name)?;
        pair.all_alike = self.all_alike;
        pair.both("BEGIN")?;
        let mut counts = Counts::new();
        for statement in script::statements(script, &self.suite) {
            let judged = pair.run(&statement, name).with_context(|| statement.text.clone())?;
            if let Some(Judged { verdict, .. }) = judged {
                *counts.entry(verdict).or_default() += 1;
            }
        }
        pair.both(end)?;
        Ok(counts)
    }
}

fn read(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}
