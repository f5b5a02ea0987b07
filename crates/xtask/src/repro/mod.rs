//! `cargo xtask repro`: what was once reported to be wrong, as commands.
//!
//! Each sets a PostgreSQL up that nobody else uses, puts the same requests to it directly, through the proxy as it is by
//! default and through the proxy with autoprepare, in turns, and prints what came of them. Then it says which bars
//! hold: a command with a bar that does not ends with failure. `--program` names another build of the proxy, so that
//! the same command shows what an older one did.
//!
//! A reproduction is a file here and a row of [`REPROS`].

mod figures;
mod verdict;
mod load;
mod house;
mod metrics;
mod partitions;
mod ddl;
mod skew;
mod stale;
mod sqlite;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::bench::launch::{self, Contender, Driver};
use crate::postgres::Version;
use crate::workspace;

use self::verdict::Verdict;

/// A reproduction.
struct Repro {
    /// What it is called on the command line.
    name: &'static str,
    /// What is done, and what may not come of it.
    about: &'static str,
    run: fn(&Plan) -> Result<Verdict>,
}

/// All of them. Each is as long as it says: a minute a way where times are compared.
const REPROS: &[Repro] = &[
    Repro {
        name: "skew-1",
        about: "C1: one key has 95 % of the rows and 1 % of the queries; may not be slower for autoprepare",
        run: |plan| skew::run(plan, 1),
    },
    Repro {
        name: "skew-10",
        about: "C1: the same with 10 % of the queries",
        run: |plan| skew::run(plan, 10),
    },
    Repro {
        name: "partitions",
        about: "C1: lookups in a table of 200 list partitions; may not be slower for autoprepare",
        run: partitions::run,
    },
    Repro {
        name: "ddl-outside",
        about: "B1: columns come and go straight at the server; no transaction may fail for autoprepare",
        run: ddl::outside,
    },
    Repro {
        name: "ddl-through",
        about: "B2: a table is rewritten and changed by the same way; no transaction may fail for autoprepare",
        run: ddl::through,
    },
    Repro {
        name: "metrics",
        about: "D1: metrics are asked for when there is no descriptor left, or by those who say nothing; \
                the process goes on and answers",
        run: metrics::run,
    },
    Repro {
        name: "stale",
        about: "A1: a column's type changes under 30 connections of pgjdbc; no read may be wrong",
        run: stale::run,
    },
    Repro {
        name: "sqlite-sizes",
        about: "A0, A7: \\copy of 1 GB into SQLite, parameters of 256 MiB; time by size, memory within bounds, and \
                no other client of the core waits",
        run: sqlite::sizes,
    },
    Repro {
        name: "sqlite-lasting",
        about: "A8: statements of SQLite's of which a single step lasts; no other client of the core waits",
        run: sqlite::lasting,
    },
];

/// Which, and for how long.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What to reproduce; everything, if nothing is named.
    #[arg(value_parser = names())]
    names: Vec<String>,
    #[command(flatten)]
    plan: Plan,
}

/// How it is reproduced.
#[derive(Args, Clone, Debug)]
struct Plan {
    /// Times that each way has its turn.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a turn.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Clients at a time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// This build of the proxy, rather than one built for release now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Over PostgreSQL 18 rather than 15.
    #[arg(long)]
    new: bool,
}

impl Plan {
    fn version(&self) -> Version {
        if self.new { Version::V18 } else { Version::V15 }
    }

    fn program(&self) -> Result<PathBuf> {
        match &self.program {
            Some(program) => {
                let named = || format!("there is no {}", program.display());
                program.canonicalize().with_context(named)
            }
            None => {
                launch::prepare(&[Contender::refrain(Driver::Uring, 1)])?;
                Ok(workspace::target().join("release/refrain"))
            }
        }
    }
}

fn names() -> PossibleValuesParser {
    let value = |repro: &Repro| PossibleValue::new(repro.name).help(repro.about);
    PossibleValuesParser::new(REPROS.iter().map(value))
}

/// Runs what was asked for; whether all bars hold.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let Arguments { names, plan } = arguments;
    let mut holds = true;
    for repro in REPROS {
        if !names.is_empty() && !names.iter().any(|name| name == repro.name) {
            continue;
        }
        println!("--- {}: {}", repro.name, repro.about);
        let verdict = (repro.run)(plan).with_context(|| repro.name)?;
        print!("{verdict}");
        holds &= verdict.holds();
    }
    Ok(holds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: BTreeSet<_> = REPROS.iter().map(|repro| repro.name).collect();
        assert_eq!(names.len(), REPROS.len());
    }
}
