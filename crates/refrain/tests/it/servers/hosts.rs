//! Two servers with streaming replication, and writers: a failover and a switchover are followed.
//! `REFRAIN_FAILOVERS` is how often each test of writers runs, and prints figures of all runs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use xtask::ports::free_port;
use xtask::postgres::Cluster;

use crate::operation::metrics::get;
use crate::reply::Reply;
use crate::session::{Session, query};
use crate::world::{Config, Proxy, Version, eventually};

const WRITERS: u32 = 8;

/// A primary and its standby. Each commit is on both before a client hears of it.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start() -> Self {
        let primary = Cluster::start(Version::V15, &[("wal_keep_size", "64MB")]).unwrap();
        primary.psql("postgres", "create table told (writer int, number int)").unwrap();
        let standby = primary.start_standby(&[]).unwrap();
        primary.psql("postgres", "alter system set synchronous_standby_names = '*'").unwrap();
        primary.psql("postgres", "select pg_reload_conf()").unwrap();
        let pair = Self { primary, standby };
        eventually("the standby is synchronous", || {
            let state = "select sync_state from pg_stat_replication";
            pair.primary.psql("postgres", state).unwrap().trim() == "sync"
        });
        pair
    }

    /// Runs Refrain over both.
    fn proxy(&self, wants: &str, workers: u32) -> Proxy {
        self.config(wants, workers).start()
    }

    fn config(&self, wants: &str, workers: u32) -> Config {
        let ports = format!("\"{},{}\"", self.primary.port(), self.standby.port());
        Config::over(&self.primary)
            .general("workers", &workers.to_string())
            .pool("pool_size", &WRITERS.to_string())
            .server("host", "\"127.0.0.1,127.0.0.1\"")
            .server("port", &ports)
            .server("target_session_attrs", &format!("{wants:?}"))
    }

    fn promote(&self) {
        self.standby.psql("postgres", "select pg_promote()").unwrap();
    }
}

/// The writers' view of their writes.
#[derive(Default)]
struct Seen {
    /// The writes that were told as committed.
    committed: Mutex<BTreeSet<(u32, u32)>>,
    /// The SQLSTATEs of errors; an empty one for an end without words.
    errors: Mutex<Vec<String>>,
    /// When writes were told as committed last.
    last: Mutex<Vec<Instant>>,
    stops: AtomicBool,
}

struct Writers {
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    /// Starts writers, of which each writes one row after the other, in transactions of these
    /// words around the write.
    fn start(proxy: &Proxy, begin: &'static str, commit: &'static str) -> Self {
        let seen: Arc<Seen> = Arc::default();
        let addr = proxy.addr();
        let writer = |writer| {
            let seen = seen.clone();
            thread::spawn(move || write(addr, writer, [begin, commit], &seen))
        };
        let threads = (0..WRITERS).map(writer).collect();
        Self { seen, threads }
    }

    /// Waits until each of the writers may have written more.
    fn go_on(&self) {
        let before = self.count();
        eventually("writers write", || self.count() > before + 50);
    }

    fn count(&self) -> usize {
        self.seen.committed.lock().unwrap().len()
    }

    /// Returns the time from a moment to the first write told as committed after it.
    fn first_after(&self, moment: Instant) -> Duration {
        let last = self.seen.last.lock().unwrap();
        last.iter()
            .filter(|at| **at > moment)
            .min()
            .expect("writers went on")
            .duration_since(moment)
    }

    /// Stops the writers, and compares what they were told with what is there. Returns the
    /// SQLSTATEs of the errors.
    fn stop(self, server: &Cluster) -> Vec<String> {
        self.seen.stops.store(true, SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("a writer ends"));
        let rows = server.psql("postgres", "select writer || ' ' || number from told").unwrap();
        let there: BTreeSet<_> = rows.lines().map(str::to_owned).collect();
        for (writer, number) in &*self.seen.committed.lock().unwrap() {
            assert!(there.contains(&format!("{writer} {number}")), "{writer} {number} is lost");
        }
        self.seen.errors.lock().unwrap().clone()
    }
}

/// Writes one row after the other until it is to stop.
fn write(addr: SocketAddr, writer: u32, [begin, commit]: [&str; 2], seen: &Seen) {
    let mut session = Session::open(addr, "postgres");
    for number in 1.. {
        if seen.stops.load(SeqCst) {
            return;
        }
        let insert = format!("insert into told values ({writer}, {number})");
        let steps = [begin, insert.as_str(), commit].into_iter().filter(|step| !step.is_empty());
        let failed = steps.map(|step| session.query(step)).find(|reply| !succeeded(reply));
        let Some(reply) = failed else {
            seen.committed.lock().unwrap().insert((writer, number));
            seen.last.lock().unwrap().push(Instant::now());
            continue;
        };
        seen.errors.lock().unwrap().push(reply.code());
        if has_ended(&reply) {
            session = Session::open(addr, "postgres");
        } else if !begin.is_empty() {
            session.query("rollback");
        }
    }
}

fn succeeded(reply: &Reply) -> bool {
    reply.error().is_none() && !has_ended(reply)
}

fn has_ended(reply: &Reply) -> bool {
    reply.frames.iter().all(|frame| frame.tag != b'Z')
}

/// One promotion, as writers have seen it.
struct Followed {
    /// Time from the order to promote to the first write told as committed.
    first_write: Duration,
    /// The SQLSTATEs of errors.
    errors: Vec<String>,
    /// The proxy's log.
    log: String,
}

/// Repeats a promotion as often as the environment says, and prints the figures.
fn repeats(what: &str, promotes: impl Fn() -> Followed) {
    let count = std::env::var("REFRAIN_FAILOVERS").map_or(1, |count| count.parse().unwrap());
    let mut all: Vec<_> = (0..count).map(|_| promotes()).collect();
    all.sort_by_key(|one| one.first_write);
    let errors: Vec<_> = all.iter().map(|one| one.errors.len()).collect();
    let [median, worst] = [all.len() / 2, all.len() - 1].map(|at| all[at].first_write);
    println!(
        "{what}: first write after {median:?} (median), {worst:?} (worst); errors: {errors:?}"
    );
}

/// Takes the primary from writers, promotes the standby after a while, and waits until the writers
/// write there.
fn promotes(
    [begin, commit]: [&'static str; 2],
    take: impl FnOnce(&mut Pair),
    pause: Duration,
) -> Followed {
    let mut pair = Pair::start();
    let proxy = pair.proxy("read-write", 2);
    let writers = Writers::start(&proxy, begin, commit);
    writers.go_on();
    take(&mut pair);
    thread::sleep(pause);
    let promoted = Instant::now();
    pair.promote();
    writers.go_on();
    let first_write = writers.first_after(promoted);
    let errors = writers.stop(&pair.standby);
    Followed { first_write, errors, log: proxy.log() }
}

/// Kills the primary under writers, and promotes the standby.
fn fails_over(words: [&'static str; 2]) -> Followed {
    let kill = |pair: &mut Pair| pair.primary.stop();
    let followed = promotes(words, kill, Duration::from_millis(500));
    let Followed { errors, log, .. } = &followed;
    // Each writer has lost one transaction at most: that under way. None was refused meanwhile.
    assert!(errors.len() <= WRITERS as usize, "{errors:?}\n{log}");
    assert!(errors.iter().all(|it| matches!(it.as_str(), "57P01" | "57P02" | "08006" | "")));
    followed
}

#[test]
fn writers_follow_a_failover() {
    repeats("failover, single statements", || fails_over(["", ""]));
}

#[test]
fn transactions_follow_a_failover() {
    repeats("failover, transactions", || fails_over(["begin", "commit"]));
}

/// Has the primary become read-only under writers, and promotes the standby.
fn switches_over(words: [&'static str; 2]) -> Followed {
    let close = |pair: &mut Pair| {
        let primary = |sql| pair.primary.psql("postgres", sql).unwrap();
        primary("alter system set default_transaction_read_only = on");
        primary("select pg_reload_conf()");
    };
    let followed = promotes(words, close, Duration::from_millis(300));
    let Followed { errors, log, .. } = &followed;
    // Each writer may be the first to write on a server that has become read-only.
    assert!(errors.len() <= WRITERS as usize, "{errors:?}\n{log}");
    assert!(errors.iter().all(|it| it == "25006"), "{errors:?}");
    followed
}

#[test]
fn writers_follow_a_switchover() {
    repeats("switchover, single statements", || switches_over(["", ""]));
}

#[test]
fn transactions_follow_a_switchover() {
    repeats("switchover, transactions", || switches_over(["begin", "commit"]));
}

/// A database of one host, of any state, has a row as well: nothing looks at its host.
#[test]
fn one_host_has_a_row_once_a_pool_is_open() {
    let mut server = Cluster::start(Version::V15, &[]).unwrap();
    let proxy = Config::over(&server).start();
    assert_eq!(proxy.show("hosts").len(), 0);
    let mut session = proxy.open("postgres");
    session.run("select 1");
    let row = || {
        let mut rows = proxy.show("hosts");
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    };
    let one = row();
    assert_eq!((&*one["state"], &*one["target_session_attrs"]), ("good", "any"), "{one:?}");
    assert_eq!((&*one["servers"], &*one["failures"]), ("1", "0"), "{one:?}");
    server.stop();
    session.send(&[query("select 1")]);
    eventually("the host is down", || row()["state"] == "down");
}

#[test]
fn readers_use_the_standby_that_they_prefer() {
    let mut pair = Pair::start();
    let port = free_port().unwrap();
    let proxy = pair
        .config("prefer-standby", 1)
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .start();
    let mut session = proxy.open("postgres");
    assert_eq!(session.value("select pg_is_in_recovery()"), "t");
    let states: Vec<_> = proxy.show("hosts").iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["unsuited", "good"]);
    let metrics = get(port, "/metrics");
    for (at, figures) in
        [(&pair.primary, ["unsuited\"} 1", "1"]), (&pair.standby, ["good\"} 1", "0"])]
    {
        let labels =
            format!("host=\"127.0.0.1:{}\",target_session_attrs=\"prefer-standby\"", at.port());
        let [state, unsuited] = figures;
        for line in [
            format!("\nrefrain_host_state{{{labels},state=\"{state}\n"),
            format!("\nrefrain_host_unsuited_total{{{labels}}} {unsuited}\n"),
            format!("\nrefrain_host_looks_total{{{labels}}} 1\n"),
        ] {
            assert!(metrics.contains(&line), "{line}{metrics}");
        }
    }
    pair.standby.stop();
    assert_eq!(session.value("select pg_is_in_recovery()"), "f");
}
