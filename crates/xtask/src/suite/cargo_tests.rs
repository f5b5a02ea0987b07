//! Parts that run the workspace's tests, each some of them.
//!
//! All of them are built at once. Cargo runs each test program by a command of this crate, which
//! leaves out those of other parts.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, Tally};
use crate::postgres::Version;
use crate::provision;
use crate::workspace::{self, SIMULATORS};

use super::process;

/// The command that runs a test program.
const RUN: &str = "run-test";
/// The variable of the environment that says how many tests run at once.
const THREADS: &str = "RUST_TEST_THREADS";
/// Tests that run at once for each core. Those with servers wait for most of their time.
const TESTS_PER_CORE: usize = 2;

/// Some of the workspace's test programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Programs {
    /// Tests that start servers of databases.
    WithServers,
    /// Tests that look for planted bugs in simulated worlds: the part `seeds` runs them, optimised.
    OfSeeds,
    /// All others.
    Others,
}

/// The programs of tests that start servers: the crate's folder and the program's name.
const WITH_SERVERS: &[(&str, &str)] = &[
    ("mysql", "logins"),
    ("mysql", "servers"),
    ("mysql-wire", "servers"),
    ("refrain", "it"),
    ("xtask", "clusters"),
];
/// The programs of tests that look for planted bugs.
const OF_SEEDS: &[(&str, &str)] = &[("sim", "seeds"), ("sim-mysql", "seeds")];

impl Programs {
    const ALL: [Self; 3] = [Self::WithServers, Self::OfSeeds, Self::Others];

    /// Returns the programs that one belongs to, which cargo has built for a crate in this folder.
    fn of(folder: &Path, program: &Path) -> Self {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        let name = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
        let is_in = |list: &[(&str, &str)]| list.contains(&(&*folder, name));
        match (is_in(WITH_SERVERS), is_in(OF_SEEDS)) {
            (true, _) => Self::WithServers,
            (_, true) => Self::OfSeeds,
            _ => Self::Others,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::WithServers => "with-servers",
            Self::OfSeeds => "of-seeds",
            Self::Others => "others",
        }
    }

    /// Has cargo run these programs.
    fn run(self) -> Result<Tally> {
        let runner = process::copy()?;
        let mut test = workspace::cargo();
        test.args(["test", "--workspace", "--tests", "--no-fail-fast", "--locked", "--config"]);
        let name = self.name();
        test.arg(format!("target.'cfg(all())'.runner=[{runner:?}, {RUN:?}, {name:?}]"));
        if std::env::var_os(THREADS).is_none() {
            let cores = std::thread::available_parallelism()?.get();
            test.env(THREADS, (cores * TESTS_PER_CORE).to_string());
        }
        command::tally(&mut test)
    }
}

/// Runs a test program if it belongs to these, in the place of this process.
///
/// # Errors
/// The program cannot run.
pub fn run_test(programs: &str, program: &[OsString]) -> Result<()> {
    let chosen = Programs::ALL.into_iter().find(|some| some.name() == programs);
    let (path, arguments) = program.split_first().context("no program is named")?;
    let own = Programs::of(&std::env::current_dir()?, Path::new(path));
    if chosen.context("there are no such programs")? != own {
        return Ok(());
    }
    Err(Command::new(path).args(arguments).exec()).context("the test does not run")
}

/// Runs all tests that need no server, and the examples of the documentation.
pub(super) fn without_servers() -> Result<Tally> {
    let mut tally = Programs::Others.run()?;
    let mut examples = workspace::cargo();
    examples.args(["test", "--quiet", "--workspace", "--doc", "--no-fail-fast", "--locked"]);
    tally += command::tally(&mut examples)?;
    Ok(tally)
}

/// Runs the tests that start servers.
pub(super) fn with_servers() -> Result<Tally> {
    provision::postgres(Version::V15)?;
    provision::postgres(Version::V18)?;
    provision::mariadb()?;
    provision::mysql()?;
    Programs::WithServers.run()
}

/// Runs the tests that look for planted bugs.
pub(super) fn seeds() -> Result<Tally> {
    command::tally(SIMULATORS.cargo("test").args(["--no-fail-fast", "--test", "seeds"]))
}

/// Runs the test of normalized queries over all statements of PostgreSQL's own suite, which
/// `cargo test` alone does not have.
pub(super) fn grammar() -> Result<Tally> {
    let scripts = provision::regression()?.suites.join("server/sql");
    let mut test = SIMULATORS.cargo("test");
    test.args(["--test", "grammar", "--", "--ignored"]).env("REFRAIN_SUITE", scripts);
    command::tally(&mut test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_program_belongs_to_one_part() {
        let cases = [
            ("crates/refrain", "target/debug/deps/it-0fc8ca2c180385cb", Programs::WithServers),
            ("crates/drive", "target/debug/deps/it-03fb69a78e6b46e3", Programs::Others),
            ("crates/refrain", "target/debug/deps/refrain-7b6c2b29bb3860b1", Programs::Others),
            ("crates/sim-mysql", "target/debug/deps/seeds-e3554e23e38c1c03", Programs::OfSeeds),
        ];
        for (folder, program, expected) in cases {
            assert_eq!(Programs::of(Path::new(folder), Path::new(program)), expected, "{program}");
        }
    }

    #[test]
    fn programs_that_are_named_are_there() {
        for (folder, name) in WITH_SERVERS.iter().chain(OF_SEEDS) {
            let tests = workspace::root().join("crates").join(folder).join("tests");
            let one = tests.join(name).with_extension("rs");
            assert!(one.is_file() || tests.join(name).join("main.rs").is_file(), "{folder}/{name}");
        }
    }
}
