//! `cargo xtask fuzz`: clients and servers that break the protocol.
//!
//! Hostile clients hold conversations that begin well and are then spoiled: messages are left out,
//! repeated, exchanged, cut or torn; they come in pieces and amid cancel requests, and end
//! anywhere. The clients share a pool over PostgreSQL with a canary, a client that checks all its
//! replies. Other hostile clients use a pool over a server that lies.
//!
//! The run passes if no canary got a wrong reply; no client waited for ever; the proxy sent whole
//! messages only; sessions whose messages were all whole were alive at their end; PostgreSQL sent
//! no reply without an outstanding request; no client, no busy server and no memory is left; and
//! the proxy did not panic.

mod tally;
mod say;
mod spoil;
mod canary;
mod wire;
mod hostile;
mod reduce;
mod fake;
mod after;

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::bench::process;
use crate::postgres::{Cluster, Version};
use crate::proxy::Refrain;
use crate::workspace::built;

use self::hostile::{Story, Target};
use self::tally::Tally;

/// The database of PostgreSQL.
const SOUND: &str = "fuzz";
/// The database of the lying server.
const FALSE: &str = "fake";
/// The most memory that the proxy may have.
const MEMORY_MAX: u64 = 1024 * 1024 * 1024;

/// The arguments of `cargo xtask fuzz`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Number of messages that hostile clients and the lying server send.
    #[arg(long, default_value_t = 1_000_000)]
    pub messages: u64,
    /// Seed of random choices; the run also depends on the machine's timing.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of clients of each kind at a time. With 1, a failing session is shortened and
    /// printed.
    #[arg(long, default_value_t = 6)]
    pub clients: u64,
    /// Number of servers of each pool.
    #[arg(long, default_value_t = 4)]
    pub servers: u32,
    /// Prepare simple queries from their second use on.
    #[arg(long)]
    pub autoprepare: bool,
    /// Do not run the lying server.
    #[arg(long)]
    pub no_fakes: bool,
    /// Use PostgreSQL 18 rather than 15.
    #[arg(long)]
    pub new: bool,
}

impl Arguments {
    /// Returns the arguments of a short run, for the suite.
    pub fn short() -> Self {
        Self {
            messages: 200_000,
            seed: 1,
            clients: 6,
            servers: 4,
            autoprepare: false,
            no_fakes: true,
            new: false,
        }
    }
}

/// Runs the fuzzer. Returns true if no check failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let version = if arguments.new { Version::V18 } else { Version::V15 };
    let cluster = Cluster::start(version, &[])?;
    cluster.psql("postgres", &format!("CREATE DATABASE {SOUND}"))?;
    cluster.psql(SOUND, say::SCHEMA)?;
    let (port, listener) = fake::listen()?;
    let config = config(arguments, &cluster, port);
    let mut proxy = Refrain::start_as(&built("refrain", "refrain")?, &config)?;
    let tally = Tally::new(arguments.messages);
    let begun = Instant::now();
    let memory = all_at_once(arguments, &cluster, &proxy, &listener, &tally)?;
    let took = begun.elapsed();
    let bad = after::findings(&cluster, &mut proxy, &tally, memory);
    bad.iter().for_each(|finding| println!("{finding}"));
    after::summary(&tally, memory, took, after::crashes(&cluster), bad.is_empty());
    Ok(bad.is_empty())
}

fn config(arguments: &Arguments, cluster: &Cluster, fake: u16) -> String {
    let (host, port, servers) = (cluster.host(), cluster.port(), arguments.servers);
    let prepares = if arguments.autoprepare {
        "autoprepare = \"on\"\nautoprepare_threshold = 2\n"
    } else {
        "autoprepare = \"off\"\n"
    };
    format!(
        "auth = \"trust\"\nadmin_users = [\"postgres\"]\nworkers = 2\n\n\
         [pool]\npool_mode = \"transaction\"\npool_size = {servers}\n\
         server_login_retry = \"50ms\"\nserver_connect_timeout = \"2s\"\n{prepares}\n\
         [databases.{SOUND}]\nurl = \"postgres://postgres@{host}:{port}/{SOUND}\"\n\n\
         [databases.{FALSE}]\nurl = \"postgres://postgres@127.0.0.1:{fake}/{FALSE}\"\n"
    )
}

/// Runs clients, servers and canaries until enough messages are sent. Returns the most memory that
/// the proxy had.
fn all_at_once(
    arguments: &Arguments,
    cluster: &Cluster,
    proxy: &Refrain,
    listener: &TcpListener,
    tally: &Tally,
) -> Result<u64> {
    let (port, seed) = (proxy.port(), arguments.seed << 32);
    let sound = Target { port, database: SOUND, is_sound: true };
    let lying = Target { port, database: FALSE, is_sound: false };
    thread::scope(|scope| {
        for number in 0..arguments.clients {
            let seed = seed + number;
            let alone = arguments.clients == 1;
            scope.spawn(move || {
                let mut known = 0;
                hostile::run(sound, seed, tally, |client, story| {
                    if alone {
                        look(proxy, tally, &mut known, client, story);
                    }
                });
            });
            if !arguments.no_fakes {
                scope.spawn(move || hostile::run(lying, !seed, tally, |_, _| {}));
            }
        }
        if !arguments.no_fakes {
            scope.spawn(move || fake::serve(listener, seed, tally));
        }
        if arguments.clients > 1 {
            let crashes = || after::crashes(cluster);
            scope.spawn(move || canary::run(port, SOUND, seed ^ 5, tally, crashes));
        }
        watch(proxy, tally)
    })
}

/// Watches the proxy's memory until the run is over. Ends the run if the memory exceeds
/// [`MEMORY_MAX`] or no message is sent for long.
fn watch(proxy: &Refrain, tally: &Tally) -> Result<u64> {
    let (mut most, mut heard, mut before) = (0, Instant::now(), 0);
    while !tally.is_over() {
        thread::sleep(Duration::from_millis(100));
        let now = tally.messages.load(std::sync::atomic::Ordering::Relaxed);
        if now > before {
            (heard, before) = (Instant::now(), now);
        }
        let Ok(bytes) = process::resident_bytes(proxy.id()) else {
            tally.over.store(true, std::sync::atomic::Ordering::Relaxed);
            bail!("the proxy has ended:\n{}", proxy.log());
        };
        most = most.max(bytes);
        let stuck = heard.elapsed() > 2 * canary::PATIENCE;
        if stuck || bytes > MEMORY_MAX {
            tally.wrong.add(format!("{bytes} bytes of memory, silence: {:?}", heard.elapsed()));
            tally.over.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    Ok(most)
}

/// Looks for an unexpected message of PostgreSQL's after a session, and searches for a shorter
/// session that leads to one. Used with one client.
fn look(proxy: &Refrain, tally: &Tally, known: &mut usize, client: u16, story: &Story) {
    let mut news = || {
        let log = proxy.log();
        let found: Vec<&str> = log.lines().filter(|line| after::is_unexpected(line)).collect();
        let new = found.len() > *known;
        let last = found.last().map(|line| (*line).to_owned());
        *known = found.len();
        last.filter(|_| new)
    };
    let Some(line) = news() else { return };
    println!("client at port {client}: {line}\n{story}");
    let shorter = reduce::shortest(proxy.port(), story, &mut || news().is_some());
    match shorter {
        Some(story) => println!("shorter:\n{story}"),
        None => println!("the same session does not fail again"),
    }
    tally.wrong.add(line);
}
