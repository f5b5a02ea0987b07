//! The page of metrics when descriptors or threads run short: the process must go on and answer.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::process;
use crate::ports::free_port;
use crate::postgres::Cluster;
use crate::proxy::{self, Refrain};
use crate::workspace;

use super::Plan;
use super::verdict::Verdict;

/// The process's limit of file descriptors.
const DESCRIPTORS: u32 = 4096;
/// Number of silent connections to the port of PostgreSQL's protocol: more than [`DESCRIPTORS`].
const SILENT: usize = 4200;
/// Number of silent connections to the port of metrics.
const SILENT_METRICS: usize = 400;
/// Length of a header line that does not end, in MiB.
const ENDLESS_MIB: usize = 64;
/// The most memory that the process may use for that line, in MiB.
const GROWTH_MIB: f64 = 8.0;
/// The most additional threads for silent connections to the port of metrics.
const THREADS: f64 = 16.0;
/// The longest that a connection or a reply may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks for metrics in three situations in which a resource runs short.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    process::allow_open_files(4 * DESCRIPTORS)?;
    let program = plan.program()?;
    let cluster = Cluster::start(plan.version(), &[])?;
    let limited = limited(&program)?;
    let mut verdict = Verdict::default();
    no_descriptor(&limited, &cluster, &mut verdict)?;
    silent_at_metrics(&program, &cluster, &mut verdict)?;
    endless_header(&program, &cluster, &mut verdict)?;
    Ok(verdict)
}

/// Lets silent connections take all file descriptors.
fn no_descriptor(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let silent = connections(house.proxy.port(), SILENT);
    let first = get(house.metrics);
    verdict.check(
        format!("the process goes on after {} silent connections and a GET", silent.len()),
        house.goes_on(),
    );
    verdict.check(format!("the GET gets a reply meanwhile: {first}"), first.starts_with("200"));
    drop(silent);
    let after = until_answered(house.metrics);
    verdict.check(format!("a GET gets a reply afterwards: {after}"), after.starts_with("200"));
    Ok(())
}

/// Opens silent connections to the port of metrics.
fn silent_at_metrics(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let before = threads(house.proxy.id())?;
    let silent = connections(house.metrics, SILENT_METRICS);
    let answer = until_answered(house.metrics);
    let what = format!("a GET beside {} silent connections gets a reply: {answer}", silent.len());
    verdict.check(what, answer.starts_with("200"));
    verdict.at_most("threads for them", threads(house.proxy.id())? - before, THREADS);
    verdict.check("the process goes on", house.goes_on());
    Ok(())
}

/// Sends a header line that does not end.
fn endless_header(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let before = process::resident_bytes(house.proxy.id())?;
    let mut stream = connect(house.metrics)?;
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
    let piece = vec![b'x'; 1 << 20];
    let taken = (0..ENDLESS_MIB).take_while(|_| stream.write_all(&piece).is_ok()).count();
    let grown = process::resident_bytes(house.proxy.id())?.saturating_sub(before);
    let what = format!("MiB kept of a header line of which the process read {taken}");
    verdict.at_most(&what, grown as f64 / f64::from(1 << 20), GROWTH_MIB);
    verdict.check("the process goes on", house.goes_on());
    Ok(())
}

/// A proxy with metrics.
struct House {
    proxy: Refrain,
    metrics: u16,
}

impl House {
    fn start(program: &Path, cluster: &Cluster) -> Result<House> {
        let metrics = free_port()?;
        let top = format!("metrics_listen = \"127.0.0.1:{metrics}\"\nmax_client_conn = 10000\n");
        let proxy = Refrain::start_as(program, &(top + &proxy::over(cluster, "transaction", 5)))?;
        until_answered(metrics);
        Ok(House { proxy, metrics })
    }

    /// Whether the proxy still runs half a second later.
    fn goes_on(&mut self) -> bool {
        thread::sleep(Duration::from_millis(500));
        self.proxy.is_running()
    }
}

/// Writes a script that runs the program under a limit of descriptors, and returns its path.
fn limited(program: &Path) -> Result<PathBuf> {
    let dir = workspace::target().join("repro");
    fs::create_dir_all(&dir)?;
    let script = dir.join("limited");
    let text = format!("#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec '{}' \"$@\"\n", program.display());
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

fn connect(port: u16) -> Result<TcpStream> {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Opens connections, as many as the kernel allows.
fn connections(port: u16, count: usize) -> Vec<TcpStream> {
    (0..count).map_while(|_| connect(port).ok()).collect()
}

/// Sends a GET for metrics. Returns the status and the number of lines, or the error.
fn get(port: u16) -> String {
    let answer = || -> Result<String> {
        let mut stream = connect(port)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split_whitespace().nth(1).context("the connection closed")?;
        Ok(format!("{status}, {} lines", text.lines().count()))
    };
    answer().unwrap_or_else(|error| format!("{error:#}"))
}

/// Sends GETs until one gets a reply or [`PATIENCE`] ends, and returns the last result.
fn until_answered(port: u16) -> String {
    let started = Instant::now();
    loop {
        let result = get(port);
        if result.starts_with("200") || started.elapsed() > PATIENCE {
            return result;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn threads(process: u32) -> Result<f64> {
    Ok(fs::read_dir(format!("/proc/{process}/task"))?.count() as f64)
}
