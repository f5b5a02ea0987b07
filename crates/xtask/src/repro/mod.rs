//! `cargo xtask repro`: reproductions of bugs that were reported once.
//!
//! Most reproductions start their own PostgreSQL, send the same requests directly, through the
//! proxy with its defaults and through the proxy with autoprepare, in turns, and print the figures.
//! Each then says which of its bars hold, and the command fails if one does not. `--program` names
//! another build of the proxy, so that the same command shows the behaviour of an older one.
//!
//! A reproduction is a file here and a row of `REPROS`.

mod figures;
mod verdict;
mod load;
mod house;
mod metrics;
mod look;
mod latency;
mod partitions;
mod ddl;
mod skew;
mod stale;
mod standbys;
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
    /// The name on the command line.
    name: &'static str,
    /// The situation and the bar, for the help text.
    about: &'static str,
    run: fn(&Plan) -> Result<Verdict>,
}

/// All reproductions.
const REPROS: &[Repro] = &[
    Repro {
        name: "skew-1",
        about: "C1: one key has 95 % of the rows and 1 % of the queries; autoprepare may not be slower",
        run: |plan| skew::run(plan, 1),
    },
    Repro {
        name: "skew-10",
        about: "C1: one key has 95 % of the rows and 10 % of the queries; autoprepare may not be slower",
        run: |plan| skew::run(plan, 10),
    },
    Repro {
        name: "partitions",
        about: "C1: lookups in a table of 200 list partitions; autoprepare may not be slower",
        run: partitions::run,
    },
    Repro {
        name: "ddl-outside",
        about: "B1: columns are added and dropped at the server; no transaction may fail",
        run: ddl::outside,
    },
    Repro {
        name: "ddl-through",
        about: "B2: a table is rewritten and changed through the proxy; no transaction may fail",
        run: ddl::through,
    },
    Repro {
        name: "metrics",
        about: "D1: GETs of metrics when no descriptor is left, and silent connections to the port of \
                metrics; the process must go on and answer",
        run: metrics::run,
    },
    Repro {
        name: "dashboard",
        about: "34: 10,000 clients and 5,000 statements; the dashboard may cost no worker thread more \
                than 1 ms a second, and nothing while nobody looks",
        run: look::dashboard,
    },
    Repro {
        name: "scrape",
        about: "34: metrics of 1,000 pools of 10 databases; at most 500 kB, and 50 ms in the median and \
                of processors",
        run: look::scrape,
    },
    Repro {
        name: "latency",
        about: "34: quantiles of SHOW STATEMENTS beside those of pgbench's log; p99 of statements of \
                20 ms may differ by 5 %, p50 of all but the shortest by as much from what pgbench \
                measures directly, and p99 by 5 % more than PostgreSQL's own log from its client's",
        run: latency::run,
    },
    Repro {
        name: "stale",
        about: "A1: a column's type changes under 30 connections of pgjdbc; no read may be wrong",
        run: stale::run,
    },
    Repro {
        name: "standbys",
        about: "a million reads with writes between, while a standby lags by 0 to 5 s; no client may \
                miss its own write; and what lookups on primary and standby cost",
        run: standbys::run,
    },
    Repro {
        name: "sqlite-sizes",
        about: "A0, A7: \\copy of 1 GB into SQLite, parameters of 256 MiB; no other client of the core \
                may wait",
        run: sqlite::sizes,
    },
    Repro {
        name: "sqlite-lasting",
        about: "A8: SQLite statements with long single steps; no other client of the core may wait",
        run: sqlite::lasting,
    },
];

/// The arguments of `cargo xtask repro`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Names of reproductions; all of them if there is none.
    #[arg(value_parser = names())]
    names: Vec<String>,
    #[command(flatten)]
    plan: Plan,
}

/// The options of all reproductions.
#[derive(Args, Clone, Debug)]
struct Plan {
    /// Number of rounds, in each of which each way has one turn.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a turn.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Number of clients at a time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Use this build of the proxy rather than a new release build.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Use PostgreSQL 18 rather than 15.
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

/// Runs the named reproductions. Returns true if all bars hold.
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
