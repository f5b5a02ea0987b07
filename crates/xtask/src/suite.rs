//! The whole suite, part by part, for `cargo xtask test` and `.ci/run`.
//!
//! A part that fails does not stop the parts after it. The last printed line is
//! `N passed, N failed` over all parts.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificates::{Authority, write_for_proxy};
use crate::command::{self, Tally};
use crate::drivers::{DRIVERS, Driver, SQLITE_DRIVERS, TOOLS};
use crate::encrypted;
use crate::fuzz;
use crate::instructions;
use crate::mysql::{Flavour, Server};
use crate::mysql_drivers::{self, WAYS, Way};
use crate::pooler;
use crate::ports::free_port;
use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::{self, Refrain};
use crate::rounds;
use crate::vendor;
use crate::workspace::{self, QUICK, built};

/// A part of the suite.
struct Part {
    name: &'static str,
    run: fn() -> Result<Tally>,
    /// Whether the part runs client libraries, which `--no-drivers` leaves out.
    drives: bool,
}

/// Every part, cheapest first.
const PARTS: &[Part] = &[
    Part { name: "fmt", run: fmt, drives: false },
    Part { name: "clippy", run: clippy, drives: false },
    Part { name: "doc", run: doc, drives: false },
    Part { name: "cargo-test", run: cargo_test, drives: false },
    Part { name: "pooler", run: pooler::run, drives: false },
    Part { name: "grammar", run: grammar, drives: false },
    Part { name: "instructions", run: instructions::check, drives: false },
    Part { name: "sim", run: sim, drives: false },
    Part { name: "sim-mysql", run: sim_mysql, drives: false },
    Part { name: "differ", run: differ, drives: false },
    Part { name: "differ-mysql", run: differ_mysql, drives: false },
    Part { name: "queries", run: queries, drives: false },
    Part { name: "shared", run: shared, drives: false },
    Part { name: "cached", run: cached, drives: false },
    Part { name: "fuzz", run: fuzz, drives: false },
    Part { name: "vendor-suite", run: vendor::sample, drives: false },
    Part { name: "drivers-sqlite", run: with_sqlite, drives: true },
    Part { name: "tools", run: tools, drives: true },
    Part { name: "rounds", run: rounds::run, drives: true },
    Part { name: "drivers-15", run: || through_proxy(Version::V15), drives: true },
    Part { name: "drivers-shared-15", run: || through_shared_servers(Version::V15), drives: true },
    Part { name: "drivers-18", run: || through_proxy(Version::V18), drives: true },
    Part { name: "drivers-shared-18", run: || through_shared_servers(Version::V18), drives: true },
    Part { name: "drivers-tls", run: through_tls, drives: true },
    Part { name: "drivers-tls-modes", run: || encrypted::run(None), drives: true },
    Part { name: "drivers-mariadb", run: || with_mysql(Flavour::MariaDb), drives: true },
    Part { name: "drivers-mysql-8", run: || with_mysql(Flavour::MySql), drives: true },
    Part { name: "frameworks", run: frameworks, drives: true },
];

/// Returns the names of the parts, for the command line.
pub fn part_names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.name)
}

/// Runs the suite, or only the part of this name. Returns true if all checks passed.
pub fn run(only: Option<&str>, drivers: bool) -> bool {
    let chosen = |part: &&Part| match only {
        Some(name) => part.name == name,
        None => drivers || !part.drives,
    };
    let mut report = Vec::new();
    for part in PARTS.iter().filter(chosen) {
        println!("=== {}", part.name);
        let started = Instant::now();
        let tally = or_one_failure((part.run)());
        report.push((part.name, tally, started.elapsed()));
    }
    summary(&report)
}

fn summary(report: &[(&str, Tally, Duration)]) -> bool {
    let mut total = Tally::default();
    println!("=== summary");
    for (name, tally, took) in report {
        let took = took.as_secs();
        println!("{name:>12} {:>5} ok {:>3} bad {took:>4} s", tally.passed, tally.failed);
        total += *tally;
    }
    command::failures().iter().for_each(|failure| println!("{failure}"));
    println!("{} passed, {} failed", total.passed, total.failed);
    total.failed == 0 && total.passed > 0
}

/// Returns a part's counts. A part that could not run counts as one failure.
fn or_one_failure(result: Result<Tally>) -> Tally {
    result.unwrap_or_else(|error| {
        command::tell_failure(&format!("{error:#}"));
        Tally { passed: 0, failed: 1 }
    })
}

fn fmt() -> Result<Tally> {
    check(workspace::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<Tally> {
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets", "--locked"]);
    check(clippy.args(["--", "--deny", "warnings"]))
}

/// Builds the documentation with private items: most of what a link leads to is private.
fn doc() -> Result<Tally> {
    let mut doc = workspace::cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
    check(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings"))
}

/// The variable of the environment that says how many tests run at once.
const THREADS: &str = "RUST_TEST_THREADS";
/// Tests that run at once for each core. Those with servers wait for most of their time.
const TESTS_PER_CORE: usize = 2;

fn cargo_test() -> Result<Tally> {
    provision::postgres(Version::V15)?;
    provision::postgres(Version::V18)?;
    provision::mariadb()?;
    provision::mysql()?;
    let mut test = workspace::cargo();
    test.args(["test", "--workspace", "--no-fail-fast", "--locked"]);
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism()?.get();
        test.env(THREADS, (cores * TESTS_PER_CORE).to_string());
    }
    command::tally(&mut test)
}

/// Runs the test of normalized queries over all statements of PostgreSQL's own suite, which
/// `cargo test` alone does not have.
fn grammar() -> Result<Tally> {
    let scripts = provision::regression()?.suites.join("server/sql");
    let mut test = workspace::cargo();
    test.args(["test", "--package", "refrain-grammar", "--test", "it", "--locked"]).args(QUICK);
    command::tally(test.args(["--", "--ignored"]).env("REFRAIN_SUITE", scripts))
}

/// Runs the simulator with the seeds that every run of the suite tries.
fn sim() -> Result<Tally> {
    let mut sim = Command::new(built("refrain-sim", "sim")?);
    check(sim.args(["--seeds", "5000"]))
}

/// Runs the simulator of MySQL with its seeds, and with a tenth as many that have hostile ends.
fn sim_mysql() -> Result<Tally> {
    let program = built("refrain-sim-mysql", "sim-mysql")?;
    let mut tally = check(Command::new(&program).args(["--seeds", "3000"]))?;
    tally += check(Command::new(&program).args(["--seeds", "300", "--hostile"]))?;
    Ok(tally)
}

/// Features of the differential test that it does not have by default.
const MORE: &str = "encoded,long-texts,startup-unreported";

/// Runs the differential test with random messages, with each version of PostgreSQL.
fn differ() -> Result<Tally> {
    let (program, differ) = (built("refrain", "refrain")?, built("refrain-differ", "differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        // Where the end of what the proxy reads of a text cuts a name, a client keeps its server.
        let runs = [
            (2, &["--segments", "10000"][..]),
            (4, &["--segments", "5000", "--pool-size", "4", "--with", MORE]),
        ];
        for (pool_size, args) in runs {
            let config = proxy::over(&cluster, "transaction", pool_size);
            let proxy = Refrain::start_as(&program, &config)?;
            let mut differ = Command::new(&differ);
            differ.args(["--proxy", &format!("127.0.0.1:{}", proxy.port())]);
            differ.args(["--direct", &format!("{}:{}", cluster.host(), cluster.port())]);
            tally += check(differ.args(args))?;
        }
    }
    Ok(tally)
}

/// Runs the differential test of MySQL and MariaDB with random commands, with each server.
fn differ_mysql() -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let differ = built("refrain-differ-mysql", "differ-mysql")?;
    let mut tally = Tally::default();
    for flavour in [Flavour::MariaDb, Flavour::MySql, Flavour::MySql9] {
        if !flavour.is_there()? {
            continue;
        }
        let server_port = free_port()?;
        let text = server_port.to_string();
        let address = [("skip-networking", "0"), ("bind-address", "127.0.0.1"), ("port", &*text)];
        let more = [("local-infile", "1"), ("max-allowed-packet", "64M")];
        let _server = Server::start(flavour, &[&address[..], &more].concat())?;
        let port = free_port()?;
        let config = format!(
            "mysql_listen = [\"127.0.0.1:{port}\"]\nauth = \"trust\"\n\n\
             [pool]\npool_size = 2\n\n\
             [databases.\"*\"]\nurl = \"mysql://diffp@127.0.0.1:{server_port}/\"\n"
        );
        let _proxy = Refrain::start_as(&program, &config)?;
        let mut differ = Command::new(&differ);
        differ.args(["--proxy", &format!("127.0.0.1:{port}")]);
        differ.args(["--direct", &format!("127.0.0.1:{server_port}")]);
        tally += check(differ.args(["--segments", "3000"]))?;
    }
    Ok(tally)
}

/// Runs the differential test with random queries. Autoprepare prepares them at their first use.
fn queries() -> Result<Tally> {
    let (program, differ) = (built("refrain", "refrain")?, built("refrain-differ", "differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        let eager = "[pool]\nautoprepare = \"on\"\nautoprepare_threshold = 1\n";
        let config = proxy::over(&cluster, "transaction", 2).replacen("[pool]\n", eager, 1);
        let proxy = Refrain::start_as(&program, &config)?;
        let mut differ = Command::new(&differ);
        differ.args(["--proxy", &format!("127.0.0.1:{}", proxy.port()), "--queries"]);
        differ.args(["--direct", &format!("{}:{}", cluster.host(), cluster.port())]);
        tally += check(differ.args(["--segments", "5000"]))?;
    }
    Ok(tally)
}

/// Runs the differential test with reads of many clients, which share servers.
fn shared() -> Result<Tally> {
    let (program, differ) = (built("refrain", "refrain")?, built("refrain-differ", "differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        for autoprepare in ["on", "off"] {
            let proxy = Refrain::start_as(&program, &sharing(&cluster, autoprepare, 2))?;
            let mut differ = Command::new(&differ);
            differ.args(["--proxy", &format!("127.0.0.1:{}", proxy.port()), "--with", "reads"]);
            differ.args(["--direct", &format!("{}:{}", cluster.host(), cluster.port())]);
            differ.args(["--clients", "8", "--segments", "4000", "--shared", "50"]);
            tally += check(&mut differ)?;
        }
    }
    Ok(tally)
}

/// Returns a configuration with a pool whose servers share reads as soon as two clients have one.
fn sharing(cluster: &Cluster, autoprepare: &str, pool_size: u32) -> String {
    let shared = format!(
        "[pool]\nautoprepare = \"{autoprepare}\"\nshare_servers = \"reads\"\n\
         share_depth = 8\nshare_min_servers = 1\nshare_statement_time = \"20ms\"\n"
    );
    let config = proxy::over(cluster, "transaction", pool_size).replacen("[pool]\n", &shared, 1);
    format!("workers = 1\n{config}")
}

/// Runs the differential test with a rule of the cache that keeps every reply until a write.
fn cached() -> Result<Tally> {
    let (program, differ) = (built("refrain", "refrain")?, built("refrain-differ", "differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        let config = proxy::over(&cluster, "transaction", 4);
        let config = format!("{config}\n[[cache.rules]]\nttl = \"1h\"\nconsistency = \"writes\"\n");
        let proxy = Refrain::start_as(&program, &config)?;
        let mut differ = Command::new(&differ);
        differ.args(["--proxy", &format!("127.0.0.1:{}", proxy.port()), "--pool-size", "4"]);
        differ.args(["--direct", &format!("{}:{}", cluster.host(), cluster.port())]);
        differ.args(["--with", "reads,neighbours", "--clients", "8", "--length", "2000"]);
        // Few: new clients get nothing from memory before a server has confirmed their logins.
        tally += check(differ.args(["--segments", "8000", "--hits", "10"]))?;
    }
    Ok(tally)
}

/// Runs the fuzzer, briefly, in the clear and over TLS.
fn fuzz() -> Result<Tally> {
    let mut tally = Tally::default();
    for arguments in [fuzz::Arguments::short(), fuzz::Arguments::short_encrypted()] {
        match fuzz::run(&arguments)? {
            true => tally += Tally { passed: 1, failed: 0 },
            false => bail!("the fuzzer found an error"),
        }
    }
    Ok(tally)
}

fn through_proxy(version: Version) -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let cluster = Cluster::start(version, &[])?;
    let proxy = Refrain::start_as(&program, &proxy::over(&cluster, "transaction", 20))?;
    Ok(driven(DRIVERS, &proxy))
}

/// Runs client libraries through a pool that shares servers.
fn through_shared_servers(version: Version) -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let cluster = Cluster::start(version, &[])?;
    let proxy = Refrain::start_as(&program, &sharing(&cluster, "on", 20))?;
    Ok(driven(DRIVERS, &proxy))
}

/// Runs client libraries over TLS, through a pool whose servers are encrypted as well.
fn through_tls() -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let authority = Authority::new("root")?;
    let hba = "hostssl all all all trust\n";
    let cluster = Cluster::start_encrypting(Version::V18Tls, &authority, hba, "")?;
    let folder = workspace::target().join("drivers-tls");
    let (to_clients, to_server) = write_for_proxy(&authority, &folder)?;
    let root = folder.join("root.crt");
    let config = format!(
        "client_tls_sslmode = \"require\"\n{to_clients}{}{to_server}",
        proxy::over(&cluster, "transaction", 20),
    );
    let proxy = Refrain::start_as(&program, &config)?;
    let tally = every_driver(DRIVERS.iter(), proxy.port(), Some(&root));
    Ok(with_log(tally, &proxy))
}

/// Runs client libraries against SQLite in the proxy.
fn with_sqlite() -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let config = "auth = \"trust\"\n[databases.\"*\"]\nurl = \"sqlite:drivers.db\"\n";
    Ok(driven(SQLITE_DRIVERS, &Refrain::start_as(&program, config)?))
}

/// Runs tools against PostgreSQL, which must pass, and against SQLite in the proxy.
fn tools() -> Result<Tally> {
    let program = built("refrain", "refrain")?;
    let cluster = Cluster::start(Version::V15, &[])?;
    let mut tally = every_driver(TOOLS.iter(), cluster.port(), None);
    let config = "auth = \"trust\"\n[databases.\"*\"]\nurl = \"sqlite:tools.db\"\n";
    tally += driven(TOOLS, &Refrain::start_as(&program, config)?);
    Ok(tally)
}

/// Runs client libraries of MySQL. Each server has the ways that it differs in from others.
fn with_mysql(flavour: Flavour) -> Result<Tally> {
    let ways: &[Way] = match flavour {
        Flavour::MariaDb => &[Way::Socket, Way::Tls],
        Flavour::MySql | Flavour::MySql9 => &[Way::Restarted],
    };
    mysql_drivers::run(flavour, ways, None)
}

/// Runs the tests of frameworks with MariaDB and MySQL.
fn frameworks() -> Result<Tally> {
    let mut tally = mysql_drivers::frameworks(Flavour::MariaDb, None)?;
    tally += mysql_drivers::frameworks(Flavour::MySql, None)?;
    Ok(tally)
}

/// Runs client libraries of MySQL in every way with every server. Returns true if all passed.
pub fn with_every_mysql(only: Option<&str>) -> Result<bool> {
    let mut report = Vec::new();
    for (name, flavour) in
        [("mariadb", Flavour::MariaDb), ("mysql-8", Flavour::MySql), ("mysql-9", Flavour::MySql9)]
    {
        let started = Instant::now();
        let mut tally = mysql_drivers::run(flavour, WAYS, only)?;
        tally += mysql_drivers::frameworks(flavour, only)?;
        report.push((name, tally, started.elapsed()));
    }
    Ok(summary(&report))
}

fn driven(drivers: &[Driver], proxy: &Refrain) -> Tally {
    with_log(every_driver(drivers.iter(), proxy.port(), None), proxy)
}

/// Prints the proxy's log if a check has failed.
fn with_log(tally: Tally, proxy: &Refrain) -> Tally {
    if tally.failed > 0 {
        println!("--- the proxy's log\n{}", proxy.log());
    }
    tally
}

/// Runs client libraries directly against PostgreSQL, whose results are the right ones. Returns
/// true if all tests passed.
pub fn direct(version: Version, only: Option<&str>) -> Result<bool> {
    let cluster = Cluster::start(version, &[])?;
    let chosen = DRIVERS.iter().filter(|driver| only.is_none_or(|name| driver.name == name));
    let started = Instant::now();
    let tally = every_driver(chosen, cluster.port(), None);
    Ok(summary(&[("direct", tally, started.elapsed())]))
}

fn every_driver<'a>(
    drivers: impl Iterator<Item = &'a Driver>,
    port: u16,
    root: Option<&Path>,
) -> Tally {
    let mut total = Tally::default();
    for driver in drivers {
        println!("--- {}", driver.name);
        let result = driver.run(port, root).with_context(|| format!("driver {}", driver.name));
        total += or_one_failure(result);
    }
    total
}

/// Runs a command as one check.
fn check(command: &mut Command) -> Result<Tally> {
    command::run(command)?;
    Ok(Tally { passed: 1, failed: 0 })
}
