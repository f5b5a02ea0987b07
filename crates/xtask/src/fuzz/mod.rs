//! `cargo xtask fuzz`: clients and servers that break the protocol.
//!
//! Hostile clients hold conversations that begin well and are then spoiled: messages are left out,
//! repeated, exchanged, cut or torn; they come in pieces and amid cancel requests, and end
//! anywhere. The clients share a pool over PostgreSQL with a canary, a client that checks all its
//! replies. Other hostile clients use a pool over a server that lies. With `--tls` all of them
//! speak TLS, and spoil records as well.
//!
//! The run passes if no canary got a wrong reply; no client waited for ever; the proxy sent whole
//! messages only; sessions whose messages were all whole were alive at their end; PostgreSQL sent
//! no reply without an outstanding request; no client, no busy server and no memory is left; and
//! the proxy did not panic.

mod tally;
mod say;
mod spoil;
mod door;
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
use crate::certificates::Authority;
use crate::postgres::{Cluster, Version};
use crate::proxy::Refrain;
use crate::workspace::built;

use self::door::{Door, Encryption};
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
    /// Run TLS on both sides of the proxy, and spoil records too.
    #[arg(long)]
    pub tls: bool,
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
            tls: false,
            new: false,
        }
    }

    /// Returns the arguments of a short run over TLS, with the lying server.
    pub fn short_encrypted() -> Self {
        Self { no_fakes: false, tls: true, ..Self::short() }
    }
}

/// Runs the fuzzer. Returns true if no check failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let authority = Authority::new("root")?;
    let encryption = arguments.tls.then(|| Encryption::new(&authority)).transpose()?;
    let cluster = match (arguments.tls, arguments.new) {
        (false, false) => Cluster::start(Version::V15, &[])?,
        (false, true) => Cluster::start(Version::V18, &[])?,
        (true, new) => {
            let version = if new { Version::V18Tls } else { Version::V15 };
            Cluster::start_encrypting(version, &authority, "host all all all trust\n", "")?
        }
    };
    cluster.psql("postgres", &format!("CREATE DATABASE {SOUND}"))?;
    cluster.psql(SOUND, say::SCHEMA)?;
    let (port, listener) = fake::listen()?;
    let config = config(arguments, &cluster, port, encryption.as_ref());
    let mut proxy = Refrain::start_as(&built("refrain")?, &config)?;
    let tally = Tally::new(arguments.messages);
    let begun = Instant::now();
    let memory = all_at_once(arguments, &cluster, &proxy, &listener, encryption.as_ref(), &tally)?;
    let took = begun.elapsed();
    let bad = after::findings(&cluster, &mut proxy, &tally, memory);
    bad.iter().for_each(|finding| println!("{finding}"));
    after::summary(&tally, memory, took, after::crashes(&cluster), bad.is_empty());
    Ok(bad.is_empty())
}

fn config(
    arguments: &Arguments,
    cluster: &Cluster,
    fake: u16,
    encryption: Option<&Encryption>,
) -> String {
    let (host, port, servers) = (cluster.host(), cluster.port(), arguments.servers);
    let prepares = if arguments.autoprepare {
        "autoprepare = \"on\"\nautoprepare_threshold = 2\n"
    } else {
        "autoprepare = \"off\"\n"
    };
    // The checks at the end come in the clear.
    let (to_clients, to_servers) = match encryption.map(|encryption| &encryption.options) {
        Some((clients, servers)) => {
            (format!("client_tls_sslmode = \"prefer\"\n{clients}"), servers.as_str())
        }
        None => (String::new(), ""),
    };
    format!(
        "auth = \"trust\"\n{to_clients}admin_users = [\"postgres\"]\nworkers = 2\n\n\
         [pool]\npool_mode = \"transaction\"\npool_size = {servers}\n\
         server_login_retry = \"50ms\"\nserver_connect_timeout = \"2s\"\n{prepares}\n\
         [databases.{SOUND}]\nurl = \"postgres://postgres@{host}:{port}/{SOUND}\"\n{to_servers}\n\
         [databases.{FALSE}]\nurl = \"postgres://postgres@127.0.0.1:{fake}/{FALSE}\"\n{to_servers}"
    )
}

/// Runs clients, servers and canaries until enough messages are sent. Returns the most memory that
/// the proxy had.
fn all_at_once(
    arguments: &Arguments,
    cluster: &Cluster,
    proxy: &Refrain,
    listener: &TcpListener,
    encryption: Option<&Encryption>,
    tally: &Tally,
) -> Result<u64> {
    let seed = arguments.seed << 32;
    let door = Door { port: proxy.port(), encryption };
    let sound = Target { door, database: SOUND, is_sound: true };
    let lying = Target { door, database: FALSE, is_sound: false };
    thread::scope(|scope| {
        for number in 0..arguments.clients {
            let seed = seed + number;
            let alone = arguments.clients == 1;
            scope.spawn(move || {
                let mut known = 0;
                hostile::run(sound, seed, tally, |client, story| {
                    if alone {
                        look(door, proxy, tally, &mut known, client, story);
                    }
                });
            });
            if !arguments.no_fakes {
                scope.spawn(move || hostile::run(lying, !seed, tally, |_, _| {}));
            }
        }
        if !arguments.no_fakes {
            scope.spawn(move || {
                fake::serve(listener, encryption.map(|both| &both.server), seed, tally)
            });
        }
        if arguments.clients > 1 {
            let crashes = || after::crashes(cluster);
            scope.spawn(move || canary::run(door, SOUND, seed ^ 5, tally, crashes));
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
        let stuck = heard.elapsed() > 2 * door::PATIENCE;
        if stuck || bytes > MEMORY_MAX {
            tally.wrong.add(format!("{bytes} bytes of memory, silence: {:?}", heard.elapsed()));
            tally.over.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    Ok(most)
}

/// Looks for an unexpected message of PostgreSQL's after a session, and searches for a shorter
/// session that leads to one. Used with one client.
fn look(
    door: Door<'_>,
    proxy: &Refrain,
    tally: &Tally,
    known: &mut usize,
    client: u16,
    story: &Story,
) {
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
    let shorter = reduce::shortest(door, story, &mut || news().is_some());
    match shorter {
        Some(story) => println!("shorter:\n{story}"),
        None => println!("the same session does not fail again"),
    }
    tally.wrong.add(line);
}
