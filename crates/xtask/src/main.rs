//! The command line of `cargo xtask`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports on standard output")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use xtask::postgres::Version;
use xtask::suite::Extent;
use xtask::{
    bench, command, dialect, dist, docs, encrypted, fuzz, provision, regress, repro, soak, suite,
    tidy, vendor, workspace,
};

/// Commands of the Refrain workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch missing dependencies and run the whole suite.
    Test {
        /// Do not run the client libraries.
        #[arg(long)]
        no_drivers: bool,
        /// Run only what needs no servers.
        #[arg(long, conflicts_with = "no_drivers")]
        quick: bool,
        /// Run only this part; with several of them, those.
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(suite::part_names()))]
        only: Vec<String>,
        /// Keep the time of each part in the table of `CONTRIBUTING.md`.
        #[arg(long)]
        write: bool,
    },
    /// Run a part of the suite, for `watch-part`.
    #[command(hide = true)]
    RunPart { name: String, report: PathBuf },
    /// Run a part of the suite in a process of its own, for `test`.
    #[command(hide = true)]
    WatchPart { name: String, report: PathBuf },
    /// Run a test program if it belongs to these, for cargo.
    #[command(hide = true)]
    RunTest {
        programs: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    /// Run the client libraries directly against PostgreSQL.
    Drivers {
        /// Use PostgreSQL 18 rather than 15.
        #[arg(long, conflicts_with = "tls")]
        new: bool,
        /// Run those of MySQL instead, directly and through the proxy, with every server.
        #[arg(long, conflicts_with_all = ["tls", "new"])]
        mysql: bool,
        /// Try their options for TLS instead, through the proxy.
        #[arg(long)]
        tls: bool,
        /// Run only this client library.
        #[arg(long)]
        only: Option<String>,
    },
    /// Fetch everything that the suite needs.
    Provision,
    /// Run the simulator with these arguments.
    Sim {
        /// Arguments of the simulator, such as `--seed 42`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the simulator of MySQL with these arguments.
    SimMysql {
        /// Arguments of the simulator, such as `--seed 42`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure the proxy.
    Bench(Box<bench::Arguments>),
    /// Run clients of all kinds at once for some time, and check for errors and leaks.
    Soak(soak::Arguments),
    /// Run clients and servers that break the protocol, and check that the proxy copes.
    Fuzz(fuzz::Arguments),
    /// Run PostgreSQL's own regression suites, directly and through the proxy, and compare.
    Regress(regress::Arguments),
    /// Run MariaDB's own suite, directly and through the proxy, and compare.
    VendorSuite(vendor::Arguments),
    /// Run the statements of PostgreSQL's regression suite in PostgreSQL and in SQLite, and
    /// compare.
    Dialect(dialect::Arguments),
    /// Reproduce bugs that were reported once, and check that they do not come back.
    Repro(repro::Arguments),
    /// Check the house rules and print the size of each crate.
    Tidy,
    /// Write the generated pages of `docs/`.
    Docs,
    /// Make the packages of a release in `target/dist`, and try them.
    Dist,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command. Returns whether its checks passed, or an error if the command could not run.
fn run(task: Task) -> Result<bool> {
    match task {
        Task::Test { no_drivers, quick, only, write } => {
            let extent = match (quick, no_drivers) {
                (true, _) => Extent::Quick,
                (_, true) => Extent::WithoutDrivers,
                _ => Extent::Whole,
            };
            return suite::run(&only, extent, write);
        }
        Task::RunPart { name, report } => suite::run_part(&name, &report)?,
        Task::WatchPart { name, report } => suite::watch(&name, &report)?,
        Task::RunTest { programs, program } => suite::run_test(&programs, &program)?,
        Task::Drivers { tls: true, only, .. } => {
            return Ok(encrypted::run(only.as_deref())?.failed == 0);
        }
        Task::Drivers { mysql: true, only, .. } => {
            return suite::with_every_mysql(only.as_deref());
        }
        Task::Drivers { new, only, .. } => {
            let version = if new { Version::V18 } else { Version::V15 };
            return suite::direct(version, only.as_deref());
        }
        Task::Provision => provision::everything()?,
        Task::Sim { arguments } => simulate("sim", &arguments)?,
        Task::SimMysql { arguments } => simulate("sim-mysql", &arguments)?,
        Task::Bench(arguments) => bench::run(&arguments)?,
        Task::Soak(arguments) => return soak::run(&arguments),
        Task::Fuzz(arguments) => return fuzz::run(&arguments),
        Task::Regress(arguments) => return regress::run(&arguments),
        Task::VendorSuite(arguments) => return vendor::run(&arguments),
        Task::Dialect(arguments) => return dialect::run(&arguments),
        Task::Repro(arguments) => return repro::run(&arguments),
        Task::Tidy => tidy::run()?,
        Task::Docs => docs::write()?,
        Task::Dist => return dist::run(),
    }
    Ok(true)
}

/// Runs a simulator, in the build that the suite runs.
fn simulate(program: &str, arguments: &[String]) -> Result<()> {
    let mut simulator = Command::new(workspace::built(program)?);
    command::run(simulator.args(arguments).current_dir(workspace::root()))
}
