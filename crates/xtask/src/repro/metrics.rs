//! The page of metrics where something has run out. The process has to live through it, and to answer.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::process;
use crate::postgres::{Cluster, free_port};
use crate::proxy::{self, Refrain};
use crate::workspace;

use super::Plan;
use super::verdict::Verdict;

/// Descriptors that the process may have.
const DESCRIPTORS: u32 = 4096;
/// Connections to the port of PostgreSQL's protocol that say nothing: more than that.
const SILENT: usize = 4200;
/// Connections to the metrics that say nothing.
const SILENT_METRICS: usize = 400;
/// A line of a header that never ends, in MiB.
const ENDLESS_MIB: usize = 64;
/// What the process may grow by for it, in MiB.
const GROWTH_MIB: f64 = 8.0;
/// Threads that it may have for those connections.
const THREADS: f64 = 16.0;
/// How long an answer may take, and a process to be seen to have ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks for metrics in three states of need.
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

/// All descriptors are taken by those who connected and say nothing.
fn no_descriptor(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let silent = connections(house.proxy.port(), SILENT);
    let first = get(house.metrics);
    verdict.check(
        format!("the process goes on behind {} silent connections and a GET", silent.len()),
        house.goes_on(),
    );
    verdict.check(format!("the GET is answered meanwhile: {first}"), first.starts_with("200"));
    drop(silent);
    let after = until_answered(house.metrics);
    verdict.check(format!("it is answered when they have gone: {after}"), after.starts_with("200"));
    Ok(())
}

/// Those who say nothing have connected to the metrics.
fn silent_at_metrics(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let before = threads(house.proxy.id())?;
    let silent = connections(house.metrics, SILENT_METRICS);
    let answer = until_answered(house.metrics);
    let what = format!("a GET beside {} silent connections is answered: {answer}", silent.len());
    verdict.check(what, answer.starts_with("200"));
    verdict.at_most("threads for them", threads(house.proxy.id())? - before, THREADS);
    verdict.check("the process goes on", house.goes_on());
    Ok(())
}

/// A line of a header does not end.
fn endless_header(program: &Path, cluster: &Cluster, verdict: &mut Verdict) -> Result<()> {
    let mut house = House::start(program, cluster)?;
    let before = process::resident_bytes(house.proxy.id())?;
    let mut stream = connect(house.metrics)?;
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
    let piece = vec![b'x'; 1 << 20];
    let taken = (0..ENDLESS_MIB).take_while(|_| stream.write_all(&piece).is_ok()).count();
    let grown = process::resident_bytes(house.proxy.id())?.saturating_sub(before);
    let what = format!("MiB kept of a header line of which {taken} were taken");
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

    /// Whether it still runs. One that is about to end has ended when it answers a client no more.
    fn goes_on(&mut self) -> bool {
        thread::sleep(Duration::from_millis(500));
        self.proxy.is_running()
    }
}

/// The program under a limit of descriptors.
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

/// As many connections as the kernel makes.
fn connections(port: u16, count: usize) -> Vec<TcpStream> {
    (0..count).map_while(|_| connect(port).ok()).collect()
}

/// What a GET of the metrics comes to: the status and the number of lines, or why there is none.
fn get(port: u16) -> String {
    let answer = || -> Result<String> {
        let mut stream = connect(port)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split_whitespace().nth(1).context("it closed without a word")?;
        Ok(format!("{status}, {} lines", text.lines().count()))
    };
    answer().unwrap_or_else(|error| format!("{error:#}"))
}

/// The same, until there is an answer or patience ends.
fn until_answered(port: u16) -> String {
    let started = Instant::now();
    loop {
        let said = get(port);
        if said.starts_with("200") || started.elapsed() > PATIENCE {
            return said;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn threads(process: u32) -> Result<f64> {
    Ok(fs::read_dir(format!("/proc/{process}/task"))?.count() as f64)
}
