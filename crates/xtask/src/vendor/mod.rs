//! `cargo xtask vendor-suite`: compares the results of MariaDB's own tests, directly and through
//! the proxy.
//!
//! The suite's program `mysql-test-run.pl --extern` runs a test at a server that is already up. A
//! test that passes directly has to pass through the proxy too, in session mode and in transaction
//! mode. Other tests are left out: they start servers themselves, or need other options.
//!
//! A run of the program takes several tests, until one fails. That one runs again alone, at a new
//! server: what counts is that verdict. A test that then fails through the proxy has to do so
//! twice, with a direct run between that passes.
//!
//! `crates/xtask/vendor/expected.txt` has the expected differences. The outputs of tests that
//! differ stay in `target/vendor-suite`, with the proxy's log.

mod expected;
mod scripts;
mod place;
mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::command::{self, Tally};
use crate::provision;
use crate::turns::in_turns;
use crate::workspace;

use self::expected::Expected;
use self::place::{Place, Way, suite};
use self::verdict::{Verdict, verdicts};

/// Suites of which every test is tried unless some are named.
const SUITES: &[&str] = &[
    "main",
    "compat",
    "csv",
    "funcs_1",
    "gcol",
    "handler",
    "json",
    "period",
    "roles",
    "sys_vars",
    "vcol",
    "versioning",
];
/// The modes of a pool, in the order of the runs.
const MODES: [&str; 2] = ["session", "transaction"];
/// The most tests of a run of the suite's program, which takes a while to begin.
const TESTS_AT_ONCE: usize = 12;

/// How the suite's client sends statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// As text.
    #[default]
    Text,
    /// As prepared statements, where they can be.
    Ps,
    /// As prepared statements with a cursor, where they can be.
    Cursor,
}

impl Protocol {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Text => &[],
            Self::Ps => &["--ps-protocol"],
            Self::Cursor => &["--cursor-protocol"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Ps => "ps",
            Self::Cursor => "cursor",
        }
    }
}

/// The arguments of `cargo xtask vendor-suite`.
#[derive(Args, Clone, Debug, Default)]
pub struct Arguments {
    /// Run only these tests, such as `main.select`, or those of these suites, such as `json`.
    tests: Vec<String>,
    /// Run the tests that the suite of this repository runs.
    #[arg(long, conflicts_with = "tests")]
    sample: bool,
    /// Run only tests whose name has this in it.
    #[arg(long)]
    with: Option<String>,
    /// Send statements so.
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// Run only with pools of this mode.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(MODES))]
    mode: Option<String>,
    /// Another build of Refrain.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Run so many tests at a time, each at a server of its own.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Arguments {
    /// Returns the names of the tests.
    fn names(&self, usr: &Path) -> Result<Vec<String>> {
        let tests = suite(usr);
        let chosen = if self.sample { expected::sample() } else { self.tests.clone() };
        let suites = SUITES.iter().map(|&name| name.to_owned());
        let chosen = if chosen.is_empty() { suites.collect() } else { chosen };
        let mut names = Vec::new();
        for one in chosen {
            match one.contains('.') {
                true => names.push(one),
                false => names.extend(scripts::of(&tests, &one)?),
            }
        }
        names.retain(|name| self.with.as_ref().is_none_or(|part| name.contains(part)));
        Ok(names)
    }

    fn modes(&self) -> impl Iterator<Item = &'static str> {
        MODES.into_iter().filter(|mode| self.mode.as_ref().is_none_or(|only| only == mode))
    }
}

/// Runs the tests. Returns true if all differences are expected ones.
pub fn run(arguments: &Arguments) -> Result<bool> {
    Ok(tally(arguments)?.failed == 0)
}

/// Runs the tests that the suite of this repository runs.
pub fn sample() -> Result<Tally> {
    tally(&Arguments { sample: true, jobs: 2, ..Arguments::default() })
}

fn tally(arguments: &Arguments) -> Result<Tally> {
    let usr = provision::mariadb_suite()?;
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => workspace::built("refrain")?,
    };
    let kept = workspace::target().join("vendor-suite").join(arguments.protocol.name());
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept)?;
    let names = arguments.names(&usr)?;
    let batches: Vec<_> = names.chunks(TESTS_AT_ONCE).collect();
    let places = (0..arguments.jobs.max(1)).map(|_| Place::new(&usr, &program));
    let runs = places.map(|place| Ok(Run { arguments, place: place?, kept: &kept }));
    let found = in_turns(runs.collect::<Result<_>>()?, &batches, |run, batch| run.batch(batch))?;
    let mut results = found.concat();
    results.sort_by(|one: &Compared, other| one.test.cmp(&other.test));
    report(arguments, names.len(), &results)
}

/// A test that passes directly, and what came of it through the proxy.
#[derive(Clone)]
struct Compared {
    test: String,
    through: Vec<(&'static str, Verdict)>,
}

/// The runs of one thread.
struct Run<'a> {
    arguments: &'a Arguments,
    place: Place<'a>,
    kept: &'a Path,
}

impl Run<'_> {
    /// Runs tests every way, and returns those that pass directly.
    fn batch(&mut self, names: &[String]) -> Result<Vec<Compared>> {
        let direct = self.every(names, Way::Direct)?;
        let passed = |(name, verdict)| (verdict == Verdict::Passed).then_some(name);
        let kept: Vec<String> = direct.into_iter().filter_map(passed).collect();
        let empty = |test: &String| Compared { test: test.clone(), through: Vec::new() };
        let mut found: Vec<_> = kept.iter().map(empty).collect();
        for mode in self.arguments.modes() {
            let mut through = self.every(&kept, Way::Through(mode))?;
            for compared in &mut found {
                let verdict = through.remove(&compared.test).context("a test has no verdict")?;
                compared.through.push((mode, verdict));
            }
        }
        // A test that also fails directly now and then says nothing.
        let mut steady = Vec::new();
        for compared in found {
            let differs = compared.through.iter().any(|(_, verdict)| *verdict != Verdict::Passed);
            if !differs || self.alone(&compared.test, Way::Direct)? == Verdict::Passed {
                steady.push(self.confirmed(compared)?);
            }
        }
        Ok(steady)
    }

    /// Runs a test again in the modes in which it has failed.
    fn confirmed(&mut self, mut compared: Compared) -> Result<Compared> {
        for (mode, verdict) in &mut compared.through {
            if *verdict != Verdict::Passed {
                *verdict = self.alone(&compared.test, Way::Through(mode))?;
            }
        }
        Ok(compared)
    }

    /// Runs tests one way. One that fails runs again alone.
    fn every(&mut self, names: &[String], way: Way) -> Result<BTreeMap<String, Verdict>> {
        let mut found = BTreeMap::new();
        let mut rest = names;
        while !rest.is_empty() {
            let output = self.place.run(rest, way, self.arguments.protocol.arguments())?.output;
            let ran = verdicts(&output);
            let good = |name: &&String| {
                ran.get(*name).is_some_and(|verdict| !matches!(verdict, Verdict::Failed(_)))
            };
            let done = rest.iter().take_while(good).count();
            found.extend(rest[..done].iter().map(|name| (name.clone(), ran[name].clone())));
            let Some(failed) = rest.get(done) else { break };
            let verdict = self.alone(failed, way)?;
            found.insert(failed.clone(), verdict);
            rest = &rest[done + 1..];
        }
        Ok(found)
    }

    /// Runs a test alone, at a new server.
    fn alone(&mut self, name: &str, way: Way) -> Result<Verdict> {
        self.place.renew()?;
        let names = [name.to_owned()];
        let ran = self.place.run(&names, way, self.arguments.protocol.arguments())?;
        let verdict = verdicts(&ran.output).remove(name);
        let verdict = verdict.unwrap_or_else(|| Verdict::Failed("no verdict".to_owned()));
        if verdict != Verdict::Passed {
            let way = match way {
                Way::Direct => "direct",
                Way::Through(mode) => mode,
            };
            let text = format!("{}\n--- Refrain's log\n{}", ran.output, ran.log);
            fs::write(self.kept.join(format!("{name}.{way}")), text)?;
            self.place.renew()?;
        }
        Ok(verdict)
    }
}

/// Prints what differs, and how many tests do.
fn report(arguments: &Arguments, tried: usize, results: &[Compared]) -> Result<Tally> {
    let expected = expected::all()?;
    let mut tally = Tally::default();
    println!("{tried} tests, of which {} pass directly", results.len());
    for mode in arguments.modes() {
        let (mut same, mut known, mut wrong) = (0, 0, 0);
        for Compared { test, through } in results {
            let of_mode = through.iter().find(|(other, _)| *other == mode);
            let (_, verdict) = of_mode.context("a mode was left out")?;
            let reason = expected.iter().find(|one| one.is_of(mode, test)).map(reason_of);
            match (verdict, reason) {
                (Verdict::Passed, _) => same += 1,
                (_, Some(reason)) => {
                    known += 1;
                    println!("{test} differs in {mode} mode as it may: {reason}");
                }
                (verdict, None) => {
                    wrong += 1;
                    let words = words(verdict);
                    command::tell_failure(&format!("--- {test} differs in {mode} mode: {words}"));
                }
            }
        }
        println!("{mode} mode: {same} the same, {known} differ as they may, {wrong} differ");
        tally += Tally { passed: same + known, failed: wrong };
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(tally)
}

fn reason_of(one: &Expected) -> &'static str {
    one.reason
}

fn words(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Passed => "it passes",
        Verdict::Skipped => "it is skipped",
        Verdict::Failed(words) => words,
    }
}
