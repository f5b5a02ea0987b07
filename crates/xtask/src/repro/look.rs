//! The cost of looking: at the dashboard with many clients and statements, and by a scrape of many
//! pools.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::bench::process;
use crate::bench::session::{Session, dial, parse, run as run_statement};
use crate::ports::free_port;
use crate::postgres::Cluster;
use crate::proxy::{self, Refrain};

use super::Plan;
use super::verdict::Verdict;

/// Number of clients beside which the dashboard is looked at.
const CLIENTS: usize = 10_000;
/// The limit of file descriptors of this program, and of Refrain.
const DESCRIPTORS: u32 = 20_000;
/// Number of statements that they have prepared.
const STATEMENTS: usize = 5_000;
/// Of these, so many are prepared by one client.
const STATEMENTS_EACH: usize = 500;
/// The most that a worker thread may lose, in milliseconds a second.
const LOSS_MS: f64 = 1.0;
/// The most that a dashboard may cost that nobody looks at, in milliseconds a second: what two
/// measurements of the same program differ by.
const UNSEEN_MS: f64 = 0.1;

/// Number of pools that are scraped, and of databases that they are of.
const POOLS: usize = 1_000;
const DATABASES: usize = 10;
/// The most bytes and milliseconds of a scrape.
const SCRAPE_BYTES: f64 = 500_000.0;
const SCRAPE_MS: f64 = 50.0;
/// Number of scrapes.
const SCRAPES: usize = 20;

/// Time limit of a read.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which a program finishes what clients have asked for.
const SETTLE: Duration = Duration::from_secs(2);

/// Sections of the dashboard: what the page asks for, and how often (`page.js`).
const SECTIONS: [(&str, u64, &str); 4] = [
    ("Overview", 2, "show=overview&show=times&show=waits&show=warnings"),
    (
        "Statements",
        5,
        "show=statements&sort=-uses&find=&offset=0&limit=100&show=stmt_cache_texts&limit=1",
    ),
    ("Pools", 5, "show=pools&show=pins&show=hosts&show=servers_extended&show=sharing"),
    ("Cache", 5, "show=cache+memory&show=cache+rules&show=cache+advice&show=cache+bypass"),
];

/// Looks at each section of the dashboard beside many clients.
pub(super) fn dashboard(plan: &Plan) -> Result<Verdict> {
    process::allow_open_files(DESCRIPTORS)?;
    let cluster = Cluster::start(plan.version(), &[])?;
    let time = Duration::from_secs_f64(plan.seconds);
    let mut verdict = Verdict::default();
    let without = {
        let crowd = Crowd::gather(plan, &cluster, false)?;
        crowd.busy_ms(time, None)?
    };
    let crowd = Crowd::gather(plan, &cluster, true)?;
    let unseen = crowd.busy_ms(time, None)?;
    println!(
        "ms a second of the busiest worker thread, {CLIENTS} clients, {STATEMENTS} statements"
    );
    println!("without a dashboard {without:.3}, with one that nobody looks at {unseen:.3}");
    verdict.at_most("ms a second of a dashboard unseen", unseen - without, UNSEEN_MS);
    for (name, every, asked) in SECTIONS {
        let seen = crowd.busy_ms(time, Some((Duration::from_secs(every), asked)))?;
        println!("{name}: {seen:.3}, each {every} s");
        let what = format!("ms a second for {name}");
        verdict.at_most(&what, seen - unseen, LOSS_MS);
    }
    Ok(verdict)
}

/// A program with many clients, of which a few have prepared many statements.
struct Crowd {
    refrain: Refrain,
    page: u16,
    _clients: Vec<Session>,
}

impl Crowd {
    fn gather(plan: &Plan, cluster: &Cluster, dashboard: bool) -> Result<Crowd> {
        let page = free_port()?;
        let top = format!(
            "metrics_listen = \"127.0.0.1:{page}\"\ndashboard = {dashboard}\n\
             max_client_conn = {}\n",
            CLIENTS + 100
        );
        let config = top + &proxy::over(cluster, "transaction", 5);
        let refrain = Refrain::start_as(&plan.program()?, &config)?;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(Session::open(refrain.port(), "postgres", PATIENCE)?);
        }
        for first in (0..STATEMENTS).step_by(STATEMENTS_EACH) {
            let client = &mut clients[first / STATEMENTS_EACH];
            for number in first..first + STATEMENTS_EACH {
                let name = format!("s{number}");
                let text = format!("SELECT {number} AS of_{number}, 'a literal' AS b");
                client.send(&[parse(&name, &text), run_statement(&name, &[])].concat())?;
                let answer = client.answer()?;
                ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
            }
        }
        thread::sleep(SETTLE);
        Ok(Crowd { refrain, page, _clients: clients })
    }

    /// Returns the time that the busiest worker thread works, in milliseconds a second, while
    /// somebody asks for this as often.
    fn busy_ms(&self, time: Duration, asks: Option<(Duration, &str)>) -> Result<f64> {
        let (begun, before) = (Instant::now(), self.workers()?);
        while begun.elapsed() < time {
            let Some((every, asked)) = asks else {
                thread::sleep(time);
                break;
            };
            let path = format!("/api/1/show?{asked}");
            let Got { status, body, .. } = get(self.page, &path, "")?;
            ensure!(status == 200, "{path}: {status}: {}", String::from_utf8_lossy(&body));
            thread::sleep(every);
        }
        let (after, seconds) = (self.workers()?, begun.elapsed().as_secs_f64());
        let spent = before.iter().zip(&after).map(|(before, after)| after - before);
        let most = spent.max().context("no worker thread")?;
        Ok(most as f64 / 1e6 / seconds)
    }

    /// Returns the time of processors that each worker thread has had, in nanoseconds.
    fn workers(&self) -> Result<Vec<u64>> {
        ran_ns(&self.refrain, "core-")
    }
}

/// Returns the time of processors that each thread has had whose name begins so, in nanoseconds.
fn ran_ns(refrain: &Refrain, named: &str) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", refrain.id()))? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.starts_with(named) {
            let times = fs::read_to_string(task.join("schedstat"))?;
            let ran = times.split_whitespace().next().context("no schedstat")?;
            all.push((task, ran.parse()?));
        }
    }
    all.sort();
    Ok(all.into_iter().map(|(_, ran)| ran).collect())
}

/// Scrapes the metrics of many pools.
pub(super) fn scrape(plan: &Plan) -> Result<Verdict> {
    process::allow_open_files(DESCRIPTORS)?;
    let cluster = Cluster::start(plan.version(), &[("max_connections", "200")])?;
    let users = POOLS / DATABASES;
    let roles: String =
        (0..users).map(|user| format!("CREATE ROLE user_number_{user} LOGIN;")).collect();
    cluster.psql("postgres", &roles)?;
    let mut verdict = Verdict::default();
    for by in ["database", "pool", "total"] {
        let page = free_port()?;
        let (host, port) = (cluster.host(), cluster.port());
        let mut config = format!(
            "metrics_listen = \"127.0.0.1:{page}\"\nmetrics_by = \"{by}\"\nauth = \"trust\"\n\n\
             [pool]\npool_mode = \"transaction\"\npool_size = 2\n"
        );
        for database in 0..DATABASES {
            config += &format!(
                "[databases.database_number_{database}]\n\
                 url = \"postgres://{host}:{port}/postgres\"\nmax_connections = 5\n"
            );
        }
        let refrain = Refrain::start_as(&plan.program()?, &config)?;
        let mut clients = Vec::new();
        for pool in 0..POOLS {
            let channel = dial(refrain.port(), PATIENCE, None)?;
            let user = format!("user_number_{}", pool / DATABASES);
            let database = format!("database_number_{}", pool % DATABASES);
            let mut client = Session::log_in_as(channel, &user, &database)?;
            let answer = client.query("SELECT 1")?;
            ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
            clients.push(client);
        }
        for (name, accepts) in [("as it is", ""), ("with gzip", "Accept-Encoding: gzip\r\n")] {
            let Scrapes { bytes, median_ms, most_ms, cpu_ms } = scrapes(&refrain, page, accepts)?;
            println!(
                "metrics_by = {by}, {name}: {bytes} bytes, {median_ms:.1} ms in the median, \
                 {most_ms:.1} at most, {cpu_ms:.1} of processors"
            );
            if by == "database" {
                verdict.at_most(&format!("bytes of {POOLS} pools, {name}"), bytes, SCRAPE_BYTES);
                verdict.at_most(&format!("ms of {POOLS} pools, {name}"), median_ms, SCRAPE_MS);
                let what = format!("ms of processors for {POOLS} pools, {name}");
                verdict.at_most(&what, cpu_ms, SCRAPE_MS);
            }
        }
    }
    Ok(verdict)
}

/// Several scrapes.
struct Scrapes {
    /// The most bytes of one.
    bytes: f64,
    /// Time from the request to the end of the answer, in milliseconds.
    median_ms: f64,
    most_ms: f64,
    /// Time of processors of the whole program for one, in milliseconds: what waits for a processor
    /// does not count.
    cpu_ms: f64,
}

fn scrapes(refrain: &Refrain, page: u16, accepts: &str) -> Result<Scrapes> {
    let (mut bytes, mut times) = (0.0_f64, Vec::new());
    let before = ran_ns(refrain, "")?;
    for _ in 0..SCRAPES {
        let begun = Instant::now();
        let Got { status, body } = get(page, "/metrics", accepts)?;
        ensure!(status == 200, "/metrics: {status}");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        bytes = bytes.max(body.len() as f64);
        thread::sleep(Duration::from_millis(100));
    }
    let after = ran_ns(refrain, "")?;
    let cpu: u64 = after.iter().zip(&before).map(|(after, before)| after - before).sum();
    times.sort_by(f64::total_cmp);
    Ok(Scrapes {
        bytes,
        median_ms: times[times.len() / 2],
        most_ms: times[times.len() - 1],
        cpu_ms: cpu as f64 / 1e6 / SCRAPES as f64,
    })
}

/// An answer of the program.
struct Got {
    status: u16,
    body: Vec<u8>,
}

/// Asks for a page, with further lines of the request.
fn get(port: u16, path: &str, more: &str) -> Result<Got> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
    let status = std::str::from_utf8(&answer[..end])?.split(' ').nth(1).context("no status")?;
    Ok(Got { status: status.parse()?, body: answer[end + 4..].to_vec() })
}
