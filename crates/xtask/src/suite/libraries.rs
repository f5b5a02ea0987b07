//! Parts that run client libraries, and the runs of them alone.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::certificates::{Authority, write_for_proxy};
use crate::command::{self, Tally};
use crate::drivers::{
    self, CONSOLE_DRIVERS, DRIVERS, Driver, MYSQL_CONSOLE_DRIVERS, SQLITE_DRIVERS, TOOLS,
};
use crate::mysql::{Flavour, PASSWORD, Server, USER};
use crate::mysql_drivers::{self, WAYS, Way};
use crate::ports::{self, free_port};
use crate::postgres::{Cluster, Version};
use crate::proxy::{self, Refrain};
use crate::workspace::{self, built};

use super::check::or_one_failure;
use super::random::sharing;
use super::summary_of;

/// The longest that Refrain may take until it listens for clients of MySQL.
const START_MAX: Duration = Duration::from_secs(10);

/// Runs client libraries through a pool of transactions.
pub(super) fn through_proxy(version: Version) -> Result<Tally> {
    let cluster = Cluster::start(version, &[])?;
    let proxy = started(&proxy::over(&cluster, "transaction", 20))?;
    Ok(driven(DRIVERS, &proxy))
}

/// Runs client libraries through a pool that shares servers.
pub(super) fn through_shared(version: Version) -> Result<Tally> {
    let cluster = Cluster::start(version, &[])?;
    let proxy = started(&sharing(&cluster, "on", 20))?;
    Ok(driven(DRIVERS, &proxy))
}

/// Runs client libraries over TLS, through a pool whose servers are encrypted as well.
pub(super) fn through_tls() -> Result<Tally> {
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
    let proxy = started(&config)?;
    let tally = every_driver(DRIVERS.iter(), proxy.port(), Some(&root));
    Ok(with_log(tally, &proxy))
}

/// Runs client libraries against SQLite in the proxy.
pub(super) fn with_sqlite() -> Result<Tally> {
    Ok(driven(SQLITE_DRIVERS, &over_file("drivers.db")?))
}

/// Runs client libraries of both protocols at the admin console. No other client is there.
pub(super) fn with_console() -> Result<Tally> {
    let mut tally = driven(CONSOLE_DRIVERS, &over_file("console.db")?);
    tally += with_mysql_console()?;
    Ok(tally)
}

/// Runs client libraries of MySQL at the admin console.
fn with_mysql_console() -> Result<Tally> {
    let server = Server::start_listening(Flavour::MariaDb, &[])?;
    let port = free_port()?;
    let config = format!(
        "mysql_listen = [\"127.0.0.1:{port}\"]\nadmin_users = [\"{USER}\"]\n[users.{USER}]\n\
         password = \"{PASSWORD}\"\n[databases.\"*\"]\n\
         url = \"mysql://{USER}:{PASSWORD}@127.0.0.1:{}/\"\n",
        server.port()
    );
    let mut proxy = started(&config)?;
    ports::wait_for(port, START_MAX, || proxy.is_running())?;
    Ok(with_log(every_driver(MYSQL_CONSOLE_DRIVERS.iter(), port, None), &proxy))
}

/// Looks at the dashboard with a browser: over PostgreSQL, MariaDB and the embedded database.
pub(super) fn with_dashboard() -> Result<Tally> {
    let mut tally = with_dashboard_of_postgres()?;
    tally += with_dashboard_of_mariadb()?;
    let metrics = free_port()?;
    let config = format!(
        "metrics_listen = \"127.0.0.1:{metrics}\"\nauth = \"trust\"\n\
         [databases.\"*\"]\nurl = \"sqlite:dashboard.db\"\n"
    );
    let proxy = started(&config)?;
    tally += looked_at(("others.js", "sqlite"), metrics, &proxy, |script| {
        script.env("PGHOST", "127.0.0.1").env("PGPORT", proxy.port().to_string());
        script.env("PGUSER", "postgres").env("PGDATABASE", "app");
    })?;
    Ok(tally)
}

/// Runs a script that looks at the dashboard of a program, over this backend.
fn looked_at(
    (script, backend): (&str, &str),
    metrics: u16,
    proxy: &Refrain,
    more: impl FnOnce(&mut Command),
) -> Result<Tally> {
    let mut script = drivers::dashboard(script, &format!("http://127.0.0.1:{metrics}/"))?;
    script.env("BACKEND", backend);
    more(&mut script);
    Ok(with_log(or_one_failure(command::tally(&mut script)), proxy))
}

fn with_dashboard_of_mariadb() -> Result<Tally> {
    let server = Server::start_listening(Flavour::MariaDb, &[])?;
    let (port, metrics) = (free_port()?, free_port()?);
    let config = format!(
        "mysql_listen = [\"127.0.0.1:{port}\"]\nmetrics_listen = \"127.0.0.1:{metrics}\"\n\
         [users.{USER}]\npassword = \"{PASSWORD}\"\n[databases.\"*\"]\n\
         url = \"mysql://{USER}:{PASSWORD}@127.0.0.1:{}/\"\n",
        server.port()
    );
    let mut proxy = started(&config)?;
    ports::wait_for(port, START_MAX, || proxy.is_running())?;
    looked_at(("others.js", "mysql"), metrics, &proxy, |script| {
        script.env("MYSQL_PORT", port.to_string());
        script.env("MYSQL_USER", USER).env("MYSQL_PASSWORD", PASSWORD);
    })
}

fn with_dashboard_of_postgres() -> Result<Tally> {
    let cluster = Cluster::start(Version::V15, &[])?;
    let metrics = free_port()?;
    let eager = "autoprepare = \"on\"\nautoprepare_threshold = 2\n";
    let config = proxy::over_with(&cluster, "transaction", 20, eager);
    let narrow = format!(
        "[databases.narrow]\nurl = \"postgres://{}:{}/postgres\"\npool_size = 1\n",
        cluster.host(),
        cluster.port()
    );
    let config = format!("metrics_listen = \"127.0.0.1:{metrics}\"\n{config}\n{narrow}");
    let proxy = started(&config)?;
    looked_at(("dashboard.js", "postgres"), metrics, &proxy, |script| {
        script.env("PGHOST", "127.0.0.1").env("PGPORT", proxy.port().to_string());
        script.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    })
}

/// Runs tools against PostgreSQL, which must pass, and against SQLite in the proxy.
pub(super) fn tools() -> Result<Tally> {
    let cluster = Cluster::start(Version::V15, &[])?;
    let mut tally = every_driver(TOOLS.iter(), cluster.port(), None);
    tally += driven(TOOLS, &over_file("tools.db")?);
    Ok(tally)
}

/// Runs client libraries of MySQL. Each server has the ways that it differs in from others.
pub(super) fn with_mysql(flavour: Flavour) -> Result<Tally> {
    let ways: &[Way] = match flavour {
        Flavour::MariaDb => &[Way::Socket, Way::Tls],
        Flavour::MySql | Flavour::MySql9 => &[Way::Restarted],
    };
    mysql_drivers::run(flavour, ways, None)
}

/// Runs the tests of frameworks with MariaDB and MySQL.
pub(super) fn frameworks() -> Result<Tally> {
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
    Ok(summary_of(&report))
}

/// Builds the proxy, and starts it with a configuration.
fn started(config: &str) -> Result<Refrain> {
    Refrain::start_as(&built("refrain")?, config)
}

/// Starts the proxy with an SQLite file in its own folder.
fn over_file(name: &str) -> Result<Refrain> {
    started(&format!("auth = \"trust\"\n[databases.\"*\"]\nurl = \"sqlite:{name}\"\n"))
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
    Ok(summary_of(&[("direct", tally, started.elapsed())]))
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
