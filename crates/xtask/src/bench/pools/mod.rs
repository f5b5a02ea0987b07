//! The benchmark of many pools over one database: a thousand users, or a thousand names of one
//! database, with a few clients each.
//!
//! Each pool is small, so its clients run the same few statements on its own servers, and whatever
//! a proxy asks PostgreSQL for each pool or each statement is asked a thousand times.

mod load;

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::postgres::{Cluster, Version};

use super::facts;
use super::launch::{self, Contender, Driver, Many, Running, Shape};
use super::process;
use super::report::table;
use super::session::Session;

use self::load::{Load, Target};

/// The database of all pools.
const DATABASE: &str = "pools";
/// Clients of each pool.
const CLIENTS_EACH: usize = 3;
/// Servers that PostgreSQL allows for each pool.
const SERVERS_EACH: usize = 3;
/// Time limit of a read.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often PostgreSQL ran other statements than those of the clients, and their share of the time
/// of all, in percent.
const STATEMENTS: &str = "SELECT coalesce(sum(calls) FILTER (WHERE asks), 0), \
     round(100 * coalesce(sum(time) FILTER (WHERE asks) / sum(time), 0)::numeric, 2) || ' %' \
     FROM (SELECT calls, total_exec_time + total_plan_time, query NOT LIKE 'SELECT b FROM t %' \
     FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%') s(calls, time, asks)";
/// The processes of sessions.
const SERVERS: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'";

/// The pools, and how long the benchmark measures.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of pools.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pools: u32,
    /// The difference between the pools.
    #[arg(long, value_enum, default_value_t = By::Users)]
    by: By,
    /// Number of requests under way.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    under_way: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds of load before each measurement, in which servers are opened.
    #[arg(long, default_value_t = 10)]
    warmup: u32,
}

/// A difference between pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each has a role of its own.
    Users,
    /// Each has a name of its own for the database.
    Databases,
}

/// A proxy and its settings.
const LINES: [(&str, Contender, &str); 3] = [
    ("Refrain", Contender::refrain(Driver::Uring, 1), ""),
    (
        "Refrain, `share_servers = \"off\"`",
        Contender::refrain(Driver::Uring, 1),
        "share_servers = \"off\"",
    ),
    ("PgBouncer", Contender::Pgbouncer, ""),
];

impl Plan {
    /// Runs the benchmark and returns the table in Markdown.
    pub(super) fn run(self) -> Result<String> {
        process::allow_open_files(self.pools * 16 + 1000)?;
        launch::prepare(&LINES.map(|(_, contender, _)| contender))?;
        let most = (self.pools as usize * SERVERS_EACH + 100).to_string();
        let settings = [
            ("max_connections", most.as_str()),
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.track_planning", "on"),
            ("shared_buffers", "256MB"),
        ];
        let cluster = Cluster::start(Version::V15, &settings)?;
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        cluster.psql(DATABASE, &self.objects())?;
        let mut lines = Vec::new();
        for (name, contender, more) in LINES {
            let cells = self.measure(&cluster, contender, more).context(name)?;
            println!("{name}: {cells:?}");
            lines.push((name.to_owned(), cells.into_iter().map(Some).collect()));
        }
        let mut text = facts::facts(&cluster);
        let Plan { pools, under_way, seconds, warmup, by } = self;
        let what = if by == By::Users { "users of" } else { "names of" };
        let _ = writeln!(
            text,
            "\n{pools} pools ({what} one database) of {CLIENTS_EACH} clients each, {under_way} \
             requests under way; {seconds} s after {warmup} s of warm-up. Refrain's clients run \
             a prepared statement by name, those of PgBouncer the unnamed one. \"Questions\" are \
             all statements of PostgreSQL's but those of the clients: how many, and their share \
             of the time of all statements, planning included. \"Largest\" is the memory of its \
             own of the largest server process, in MiB."
        );
        let heads = ["requests/s", "errors", "servers", "questions", "share", "largest"];
        table(&mut text, "Many pools", "", &heads.map(str::to_owned), lines.into_iter());
        Ok(text)
    }

    /// Returns the SQL that makes the table and the users.
    fn objects(self) -> String {
        let mut sql = "CREATE EXTENSION pg_stat_statements; \
             CREATE TABLE t (a int PRIMARY KEY, b int); \
             INSERT INTO t SELECT x, x FROM generate_series(1, 10000) x; \
             GRANT SELECT ON t TO PUBLIC; ANALYZE t;"
            .to_owned();
        for number in (0..self.pools).filter(|_| self.by == By::Users) {
            let _ = write!(sql, "CREATE ROLE u{number} LOGIN;");
        }
        sql
    }

    fn target(self, number: u32) -> Target {
        match self.by {
            By::Users => Target { user: format!("u{number}"), database: DATABASE.to_owned() },
            By::Databases => Target { user: "postgres".to_owned(), database: format!("d{number}") },
        }
    }

    fn measure(
        self,
        cluster: &Cluster,
        contender: Contender,
        more: &'static str,
    ) -> Result<Vec<String>> {
        let shape = Shape { pool_size: 20, more, top: "" };
        let targets: Vec<Target> = (0..self.pools).map(|number| self.target(number)).collect();
        let users: Vec<_> = targets.iter().map(|target| target.user.clone()).collect();
        let names: Vec<_> = targets.iter().map(|target| target.database.clone()).collect();
        let many = match self.by {
            By::Users => Many { users: &users, names: &[], database: DATABASE },
            By::Databases => Many { users: &[], names: &names, database: DATABASE },
        };
        let running = Running::start_for(contender, cluster, &shape, &many)?;
        let name = if contender.prepares() { "s" } else { "" };
        let mut load = Load::new(running.port, &targets, CLIENTS_EACH, name)?;
        let mut console = Session::open(cluster.port(), DATABASE, PATIENCE)?;
        let under_way = self.under_way as usize;
        load.run(under_way, Duration::from_secs(self.warmup.into()))?;
        console.query("SELECT pg_stat_statements_reset()")?;
        let began = Instant::now();
        load.run(under_way, Duration::from_secs(self.seconds.into()))?;
        let rate = load.answered() as f64 / began.elapsed().as_secs_f64();
        let shares = rows(&mut console, STATEMENTS)?;
        let servers = rows(&mut console, SERVERS)?;
        let largest = servers.iter().filter_map(|row| own_mib(row.first()?)).fold(0.0, f64::max);
        let errors = load.errors().to_string();
        drop((load, running));
        // The next contender begins without these servers.
        while rows(&mut console, SERVERS)?.len() > 1 {
            thread::sleep(Duration::from_millis(100));
        }
        let share = shares.first().context("no statements")?;
        Ok([
            format!("{rate:.0}"),
            errors,
            servers.len().to_string(),
            share.first().cloned().unwrap_or_default(),
            share.get(1).cloned().unwrap_or_default(),
            format!("{largest:.1}"),
        ]
        .to_vec())
    }
}

/// Returns the rows of a query.
fn rows(session: &mut Session, query: &str) -> Result<Vec<Vec<String>>> {
    let answer = session.query(query)?;
    ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
    let text = |value: &Vec<u8>| String::from_utf8_lossy(value).into_owned();
    Ok(answer.rows.iter().map(|row| row.iter().map(text).collect()).collect())
}

/// Returns the memory of its own of a process, in MiB.
fn own_mib(process: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
