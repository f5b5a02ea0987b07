//! Parts that draw: the simulators, the differential tests and the fuzzer, each with its seeds.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::Tally;
use crate::fuzz;
use crate::mysql::{Flavour, Server};
use crate::ports::free_port;
use crate::postgres::{Cluster, Version};
use crate::proxy::{self, Refrain};
use crate::workspace::built;

use super::check::check;

/// Runs the simulator with the seeds that every run of the suite tries.
pub(super) fn sim() -> Result<Tally> {
    check(Command::new(built("sim")?).args(["--seeds", "5000"]))
}

/// Runs the simulator of MySQL with its seeds, and with a tenth as many that have hostile ends.
pub(super) fn sim_mysql() -> Result<Tally> {
    let program = built("sim-mysql")?;
    let mut tally = check(Command::new(&program).args(["--seeds", "3000"]))?;
    tally += check(Command::new(&program).args(["--seeds", "300", "--hostile"]))?;
    Ok(tally)
}

/// Features of the differential test that it does not have by default.
const MORE: &str = "encoded,long-texts,startup-unreported";

/// Runs the differential test with random messages, with each version of PostgreSQL.
pub(super) fn differ() -> Result<Tally> {
    let (program, differ) = (built("refrain")?, built("differ")?);
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
            let mut differ = comparing(&differ, &proxy, &cluster);
            tally += check(differ.args(args))?;
        }
    }
    Ok(tally)
}

/// Returns a command that compares the replies of a proxy with those of its cluster.
fn comparing(differ: &Path, proxy: &Refrain, cluster: &Cluster) -> Command {
    let mut command = Command::new(differ);
    command.args(["--proxy", &format!("127.0.0.1:{}", proxy.port())]);
    command.args(["--direct", &format!("{}:{}", cluster.host(), cluster.port())]);
    command
}

/// Runs the differential test of MySQL and MariaDB with random commands, with each server.
pub(super) fn differ_mysql() -> Result<Tally> {
    let program = built("refrain")?;
    let differ = built("differ-mysql")?;
    let mut tally = Tally::default();
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
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
pub(super) fn queries() -> Result<Tally> {
    let (program, differ) = (built("refrain")?, built("differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        let eager = "autoprepare = \"on\"\nautoprepare_threshold = 1\n";
        let config = proxy::over_with(&cluster, "transaction", 2, eager);
        let proxy = Refrain::start_as(&program, &config)?;
        let mut differ = comparing(&differ, &proxy, &cluster);
        tally += check(differ.args(["--queries", "--segments", "5000"]))?;
    }
    Ok(tally)
}

/// Runs the differential test with reads of many clients, which share servers.
pub(super) fn shared() -> Result<Tally> {
    let (program, differ) = (built("refrain")?, built("differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        for autoprepare in ["on", "off"] {
            let proxy = Refrain::start_as(&program, &sharing(&cluster, autoprepare, 2))?;
            let mut differ = comparing(&differ, &proxy, &cluster);
            differ.args(["--with", "reads", "--clients", "8", "--segments", "4000"]);
            tally += check(differ.args(["--shared", "50"]))?;
        }
    }
    Ok(tally)
}

/// Returns a configuration with a pool whose servers share reads as soon as two clients have one.
pub(super) fn sharing(cluster: &Cluster, autoprepare: &str, pool_size: u32) -> String {
    let shared = format!(
        "autoprepare = \"{autoprepare}\"\nshare_servers = \"reads\"\n\
         share_depth = 8\nshare_min_servers = 1\nshare_statement_time = \"20ms\"\n"
    );
    let config = proxy::over_with(cluster, "transaction", pool_size, &shared);
    format!("workers = 1\n{config}")
}

/// Runs the differential test with a rule of the cache that keeps every reply until a write.
pub(super) fn cached() -> Result<Tally> {
    let (program, differ) = (built("refrain")?, built("differ")?);
    let mut tally = Tally::default();
    for version in [Version::V15, Version::V18] {
        let cluster = Cluster::start(version, &[])?;
        let config = proxy::over(&cluster, "transaction", 4);
        let config = format!("{config}\n[[cache.rules]]\nttl = \"1h\"\nconsistency = \"writes\"\n");
        let proxy = Refrain::start_as(&program, &config)?;
        let mut differ = comparing(&differ, &proxy, &cluster);
        differ.args(["--pool-size", "4", "--with", "reads,neighbours"]);
        differ.args(["--clients", "8", "--length", "2000"]);
        // Few: new clients get nothing from memory before a server has confirmed their logins.
        tally += check(differ.args(["--segments", "8000", "--hits", "10"]))?;
    }
    Ok(tally)
}

/// Runs the fuzzer, briefly, in the clear and over TLS.
pub(super) fn fuzz() -> Result<Tally> {
    let mut tally = Tally::default();
    for arguments in [fuzz::Arguments::short(), fuzz::Arguments::short_encrypted()] {
        match fuzz::run(&arguments)? {
            true => tally += Tally::PASSED,
            false => bail!("the fuzzer found an error"),
        }
    }
    Ok(tally)
}
