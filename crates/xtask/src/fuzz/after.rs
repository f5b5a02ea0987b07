//! The checks at the end of a run: errors, and clients and servers that are left over.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::session::Session;
use crate::postgres::Cluster;
use crate::proxy::Refrain;

use super::SOUND;
use super::tally::Tally;

/// Time in which the proxy finishes its work after the last message.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// Whether a line of the log reports an unexpected message of PostgreSQL's.
pub(super) fn is_unexpected(line: &str) -> bool {
    line.contains("ERROR") && line.contains("server_protocol") && line.contains(SOUND)
}

/// Returns the number of PostgreSQL's crashes. Some messages crash it (`spoil::spare_postgresql`).
pub(super) fn crashes(cluster: &Cluster) -> usize {
    cluster.log().matches("was terminated by signal").count()
}

/// Returns all errors of a run, in words.
pub(super) fn findings(
    cluster: &Cluster,
    proxy: &mut Refrain,
    tally: &Tally,
    memory: u64,
) -> Vec<String> {
    let mut bad = Vec::new();
    if tally.wrong.count() > 0 {
        bad.push(format!("{} wrong, the first:", tally.wrong.count()));
        let (words, log) = (tally.wrong.words(), proxy.log());
        bad.extend(words.iter().flat_map(|words| lines_about(words, &log)).map(str::to_owned));
        bad.extend(words);
    }
    if !proxy.is_running() {
        bad.push(format!("the proxy has ended:\n{}", proxy.log()));
    } else {
        bad.extend(left(cluster, proxy).unwrap_or_else(|error| Some(format!("{error:#}"))));
    }
    let log = proxy.log();
    let unexpected: Vec<&str> = log.lines().filter(|line| is_unexpected(line)).collect();
    if !unexpected.is_empty() {
        bad.push(format!("{} unexpected messages, the first:", unexpected.len()));
        bad.extend(unexpected.iter().take(5).map(|line| (*line).to_owned()));
    }
    bad.extend(log.lines().find(|line| line.contains("panic")).map(str::to_owned));
    if memory == 0 {
        bad.push("the memory was not measured".to_owned());
    }
    bad
}

/// Returns the lines of the log about the client that an error names.
fn lines_about<'a>(wrong: &str, log: &'a str) -> Vec<&'a str> {
    let port = wrong.split_once("at port ").and_then(|(_, rest)| rest.split_once(':'));
    let Some((port, _)) = port else { return Vec::new() };
    let peer = format!("peer=127.0.0.1:{port}");
    log.lines().filter(|line| line.split_whitespace().any(|word| word == peer)).collect()
}

/// Returns words about clients and busy servers that are left after [`SETTLE_MAX`], if there are
/// any.
fn left(cluster: &Cluster, proxy: &Refrain) -> Result<Option<String>> {
    let begun = Instant::now();
    loop {
        let mut console = Session::open(proxy.port(), "refrain", Duration::from_secs(10))?;
        let clients = console.query("SHOW CLIENTS")?.rows.len();
        let servers = console.query("SHOW SERVERS")?.rows;
        let idle = |row: &Vec<Vec<u8>>| row.iter().any(|value| value == b"idle");
        let busy = servers.iter().filter(|row| !idle(row)).count();
        let active = cluster.psql(
            "postgres",
            &format!(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = '{SOUND}' \
                 AND state IS DISTINCT FROM 'idle'"
            ),
        )?;
        if clients == 1 && busy == 0 && active.trim() == "0" {
            return Ok(None);
        }
        if begun.elapsed() > SETTLE_MAX {
            let shown: Vec<String> = servers
                .iter()
                .map(|row| String::from_utf8_lossy(&row.join(&b' ')).into_owned())
                .collect();
            return Ok(Some(format!(
                "left: {clients} clients, {busy} servers that are not idle, {} sessions of \
                 PostgreSQL that are busy\n{}",
                active.trim(),
                shown.join("\n")
            )));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Prints one line about the run.
pub(super) fn summary(tally: &Tally, memory: u64, took: Duration, crashes: usize, passed: bool) {
    println!(
        "fuzz: {} messages in {:.0} s, {} sessions, {} of them alive at their end, {} sessions of \
         the lying server, {} spoiled records, {} requests of canaries, {crashes} crashes of \
         PostgreSQL, {} wrong, at most {:.1} MiB: {}",
        tally.messages.load(Relaxed),
        took.as_secs_f64(),
        tally.sessions.load(Relaxed),
        tally.alive.load(Relaxed),
        tally.servers.load(Relaxed),
        tally.records.load(Relaxed),
        tally.requests.load(Relaxed),
        tally.wrong.count(),
        memory as f64 / 1048576.0,
        if passed { "passed" } else { "FAILED" },
    );
}
