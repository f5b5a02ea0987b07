//! `cargo xtask`: the chores, by name.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a chore talks to the person at the terminal")]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use xtask::postgres::Version;
use xtask::{
    bench, command, dialect, docs, fuzz, provision, regress, repro, soak, suite, tidy, workspace,
};

/// Chores of the Refrain workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Fetch what is missing and run the whole suite.
    Test {
        /// Leave the client libraries out.
        #[arg(long)]
        no_drivers: bool,
        /// Run this part only.
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(suite::part_names()))]
        only: Option<String>,
    },
    /// Run the client libraries straight against PostgreSQL, as the oracle.
    Drivers {
        /// Against PostgreSQL 18 rather than 15.
        #[arg(long)]
        new: bool,
        /// This client library only.
        #[arg(long)]
        only: Option<String>,
    },
    /// Fetch everything the suite needs.
    Provision,
    /// Run the simulator; its arguments are passed on.
    Sim {
        /// Arguments of the simulator, such as `--seed 42`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure what the proxy costs.
    Bench(Box<bench::Arguments>),
    /// Have clients do everything at once for some time, and see that nothing is wrong or left.
    Soak(soak::Arguments),
    /// Have clients and servers say what they should not, and see that nobody else is harmed.
    Fuzz(fuzz::Arguments),
    /// Run PostgreSQL's own regression suites, straight and through the proxy, and compare.
    Regress(regress::Arguments),
    /// Run the statements of PostgreSQL's regression suite there and in SQLite behind the proxy, and compare the answers.
    Dialect(dialect::Arguments),
    /// Do again what was once reported to be wrong, and say whether it still is.
    Repro(repro::Arguments),
    /// Check the rules of the house and print the size of each crate.
    Tidy,
    /// Write the generated pages of `docs/`.
    Docs,
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well; an error if the chore could not be done.
fn run(chore: Chore) -> Result<bool> {
    match chore {
        Chore::Test { no_drivers, only } => return Ok(suite::run(only.as_deref(), !no_drivers)),
        Chore::Drivers { new, only } => {
            let version = if new { Version::V18 } else { Version::V15 };
            return suite::direct(version, only.as_deref());
        }
        Chore::Provision => provision::everything()?,
        Chore::Sim { arguments } => sim(&arguments)?,
        Chore::Bench(arguments) => bench::run(&arguments)?,
        Chore::Soak(arguments) => return soak::run(&arguments),
        Chore::Fuzz(arguments) => return fuzz::run(&arguments),
        Chore::Regress(arguments) => return regress::run(&arguments),
        Chore::Dialect(arguments) => return dialect::run(&arguments),
        Chore::Repro(arguments) => return repro::run(&arguments),
        Chore::Tidy => tidy::run()?,
        Chore::Docs => docs::write()?,
    }
    Ok(true)
}

fn sim(arguments: &[String]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--release", "--package", "refrain-sim", "--"]);
    command::run(cargo.args(arguments))
}
