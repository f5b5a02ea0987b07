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
use super::report::{median, table};
use super::session::Session;

use self::load::{Load, Target};

/// The database of all pools.
const DATABASE: &str = "pools";
/// Clients of each pool.
const CLIENTS_EACH: usize = 3;
/// Servers that PostgreSQL allows for each pool, without `--room`.
const SERVERS_EACH: u32 = 3;
/// Connections that PostgreSQL allows besides: those of superusers, and of this program.
const RESERVED: u32 = 10;
/// Time limit of a read.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often PostgreSQL ran other statements than those of the clients, and their share of the time
/// of all, in percent.
const STATEMENTS: &str = "SELECT coalesce(sum(calls) FILTER (WHERE asks), 0), \
     round(100 * coalesce(sum(time) FILTER (WHERE asks) / sum(time), 0)::numeric, 2) \
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
    /// Number of servers that the database has room for, and that the proxies may open. Without it
    /// there is room for all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    room: Option<u32>,
    /// Clients of one more pool, which always have a request under way.
    #[arg(long, default_value_t = 0)]
    busy: u32,
    /// Number of rounds, in each of which all proxies are measured; the report has medians.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
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
        let most = self.room.unwrap_or(self.pools * SERVERS_EACH + 100) + RESERVED;
        let most = most.to_string();
        let settings = [
            ("max_connections", most.as_str()),
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.track_planning", "on"),
            ("shared_buffers", "256MB"),
        ];
        let cluster = Cluster::start(Version::V15, &settings)?;
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        cluster.psql(DATABASE, &self.objects())?;
        let mut found: Vec<Vec<Measured>> = LINES.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds {
            for ((name, contender, more), found) in LINES.into_iter().zip(&mut found) {
                let measured = self.measure(&cluster, contender, more).context(name)?;
                println!("{name}: {measured:?}");
                found.push(measured);
            }
        }
        let mut text = facts::facts(&cluster);
        self.explain(&mut text);
        let heads = HEADS.iter().map(|(head, _)| (*head).to_owned()).collect::<Vec<_>>();
        let lines = LINES.iter().zip(&found).map(|((name, ..), found)| {
            let cell = |(_, of): &(&str, Column)| median(found.iter().map(of).collect()).map(plain);
            ((*name).to_owned(), HEADS.iter().map(cell).collect())
        });
        table(&mut text, "Many pools", "", &heads, lines);
        Ok(text)
    }

    /// Writes what the table shows.
    fn explain(self, text: &mut String) {
        let Plan { pools, under_way, seconds, warmup, by, room, busy, rounds } = self;
        let kind = if by == By::Users { "users of" } else { "names of" };
        let servers = room.unwrap_or(pools * SERVERS_EACH);
        let _ = writeln!(
            text,
            "\n{pools} pools ({kind} one database) of {CLIENTS_EACH} clients each, {under_way} \
             requests under way, and a pool of {busy} clients that always have one under way \
             (\"busy\"); room for {servers} servers; {seconds} s after {warmup} s of warm-up; \
             medians of {rounds}. Refrain's clients run a prepared statement by name, those of \
             PgBouncer the unnamed one. \"CPU\" is the proxy's, in microseconds for each request. \
             \"Questions\" are all statements of PostgreSQL's but those of the clients: how many, \
             and their share of the time of all statements in percent, planning included. \
             \"Largest\" is the memory of its own of the largest server process, in MiB."
        );
    }

    /// Returns the SQL that makes the table and the users.
    fn objects(self) -> String {
        let mut sql = "CREATE EXTENSION pg_stat_statements; \
             CREATE TABLE t (a int PRIMARY KEY, b int); \
             INSERT INTO t SELECT x, x FROM generate_series(1, 10000) x; \
             GRANT SELECT ON t TO PUBLIC; ANALYZE t;"
            .to_owned();
        for number in (0..=self.pools).filter(|_| self.by == By::Users) {
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
    ) -> Result<Measured> {
        let shape = Shape { pool_size: 20, more, top: "" };
        let targets: Vec<Target> = (0..=self.pools).map(|number| self.target(number)).collect();
        let users: Vec<_> = targets.iter().map(|target| target.user.clone()).collect();
        let names: Vec<_> = targets.iter().map(|target| target.database.clone()).collect();
        let (users, names) = match self.by {
            By::Users => (&users[..], &[][..]),
            By::Databases => (&[][..], &names[..]),
        };
        let many = Many { users, names, database: DATABASE, room: self.room };
        let running = Running::start_for(contender, cluster, &shape, &many)?;
        let mut load = Load::new(if contender.prepares() { "s" } else { "" })?;
        let (last, first) = targets.split_last().context("no pools")?;
        for target in first {
            load.log_in(running.port, target, CLIENTS_EACH, false)?;
        }
        load.log_in(running.port, last, self.busy as usize, true)?;
        let mut console = Session::open(cluster.port(), DATABASE, PATIENCE)?;
        let under_way = self.under_way as usize;
        load.run(under_way, Duration::from_secs(self.warmup.into()))?;
        console.query("SELECT pg_stat_statements_reset()")?;
        let cpu = || running.id().map_or(Ok(0), process::cpu_ns);
        let (began, cpu_before) = (Instant::now(), cpu()?);
        load.run(under_way, Duration::from_secs(self.seconds.into()))?;
        let (took, cpu_after) = (began.elapsed().as_secs_f64(), cpu()?);
        let shares = rows(&mut console, STATEMENTS)?;
        let servers = rows(&mut console, SERVERS)?;
        let (answered, errors) = (load.answered(), load.errors() as f64);
        drop((load, running));
        // The next contender begins without these servers.
        while rows(&mut console, SERVERS)?.len() > 1 {
            thread::sleep(Duration::from_millis(100));
        }
        let share = shares.first().context("no statements")?;
        let figure = |place: usize| share.get(place).and_then(|text| text.parse().ok());
        Ok(Measured {
            many: answered.many as f64 / took,
            busy: answered.busy as f64 / took,
            cpu: (cpu_after - cpu_before) as f64 / 1000.0 / (answered.many + answered.busy) as f64,
            errors,
            servers: servers.len() as f64,
            questions: figure(0).context("no number of questions")?,
            share: figure(1).context("no share of the questions")?,
            largest: servers.iter().filter_map(|row| own_mib(row.first()?)).fold(0.0, f64::max),
        })
    }
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Requests of the many pools a second.
    many: f64,
    /// Requests of the busy pool a second.
    busy: f64,
    /// CPU time of the proxy for each request, in microseconds.
    cpu: f64,
    errors: f64,
    servers: f64,
    /// Statements of PostgreSQL's but those of the clients.
    questions: f64,
    /// Their share of the time of all statements, in percent.
    share: f64,
    /// The memory of its own of the largest server process, in MiB.
    largest: f64,
}

/// A figure of a measurement.
type Column = fn(&Measured) -> f64;

/// The columns of the table.
const HEADS: [(&str, Column); 8] = [
    ("requests/s", |of| of.many),
    ("busy", |of| of.busy),
    ("CPU", |of| of.cpu),
    ("errors", |of| of.errors),
    ("servers", |of| of.servers),
    ("questions", |of| of.questions),
    ("share", |of| of.share),
    ("largest", |of| of.largest),
];

/// Returns a figure as the table shows it: small ones with one digit behind the point.
fn plain(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
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
