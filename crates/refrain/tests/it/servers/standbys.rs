//! Reads on a standby (`reads = "standby"`): no client misses what it has written, and what others
//! have written is missed for `max_lag` at most.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use refrain_differ::msg::Msg;
use xtask::postgres::Cluster;

use crate::reply::Reply;
use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, eventually};

/// Clients that write and read, each a row of its own.
const CLIENTS: u64 = 6;

/// A primary, and a standby that follows it without being waited for.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start(standby: &[(&str, &str)]) -> Self {
        let primary = Cluster::start(Version::V15, &[("wal_keep_size", "64MB")]).unwrap();
        primary.psql("postgres", "create table seen (w int primary key, n bigint)").unwrap();
        let rows = "insert into seen select w, 0 from generate_series(0, 99) w";
        primary.psql("postgres", rows).unwrap();
        let standby = primary.start_standby(standby).unwrap();
        let pair = Self { primary, standby };
        eventually("the standby has the rows", || {
            let count = pair.standby.psql("postgres", "select count(*) from seen");
            count.is_ok_and(|count| count.trim() == "100")
        });
        pair
    }

    fn config(&self, max_lag: &str) -> Config {
        let ports = format!("\"{},{}\"", self.primary.port(), self.standby.port());
        Config::over(&self.primary)
            .general("workers", "2")
            .pool("pool_size", "8")
            .server("host", "\"127.0.0.1,127.0.0.1\"")
            .server("port", &ports)
            .server("target_session_attrs", "\"read-write\"")
            .server("reads", "\"standby\"")
            .server("max_lag", &format!("{max_lag:?}"))
    }

    /// Runs Refrain, until reads of [`READ`] run on the standby.
    fn proxy(&self, max_lag: &str) -> Proxy {
        let proxy = self.config(max_lag).start();
        let mut session = proxy.open("postgres");
        eventually("reads run on the standby", || {
            (0..10).for_each(|_| drop(session.query(READ)));
            visits(&proxy) > 10
        });
        proxy
    }
}

const READ: &str = "select n from seen where w = 99";

/// Returns how many reads were sent to the standby.
fn visits(proxy: &Proxy) -> u64 {
    proxy.counter("standby_reads")
}

/// Returns how many reads have run on the standby, and were not sent to the primary afterwards.
fn stays(proxy: &Proxy) -> u64 {
    visits(proxy) - proxy.counter("standby_reads_returned")
}

/// The ways to read a row.
fn reads(way: u64, client: u64) -> Vec<Msg> {
    let value = client.to_string();
    match way % 3 {
        0 => vec![query(&format!("select n from seen where w = {client}"))],
        1 => {
            let text = "select n from seen where w = $1";
            vec![parse("", text), bind("", &[&value]), execute(), Msg::Sync]
        }
        _ => vec![bind("s", &[&value]), execute(), Msg::Sync],
    }
}

/// The ways to write a row.
fn writes(session: &mut Session, way: u64, client: u64, number: u64) {
    let update = format!("update seen set n = {number} where w = {client}");
    match way % 4 {
        0 => session.run(&update),
        1 => ["begin", update.as_str(), "commit"].iter().for_each(|text| session.run(text)),
        2 => {
            let reply = session.ask(&[parse("", &update), bind("", &[]), execute(), Msg::Sync]);
            assert!(reply.error().is_none(), "{}", reply.words());
        }
        // Committed without being flushed.
        _ => session.run(&format!("begin; set local synchronous_commit = off; {update}; commit")),
    }
}

fn value(reply: &Reply) -> u64 {
    assert!(reply.error().is_none(), "{}", reply.words());
    reply.value().parse().unwrap_or_else(|_| panic!("{}", reply.words()))
}

/// Writes a row and reads it, again and again. Returns how often it read, and how often it read
/// something else than it had written.
fn writes_and_reads(proxy: &Proxy, client: u64, until: Instant) -> (u64, u64) {
    let mut session = proxy.open("postgres");
    session.ask(&[parse("s", "select n from seen where w = $1"), Msg::Sync]);
    let (mut count, mut stale) = (0, 0);
    for number in 1.. {
        if Instant::now() > until {
            return (count, stale);
        }
        writes(&mut session, number / 3 + client, client, number);
        for read in 0..number % 80 {
            let found = value(&session.ask(&reads(read + number, client)));
            stale += u64::from(found != number);
            count += 1;
            thread::sleep(Duration::from_micros(500 * (read % 8)));
        }
    }
    unreachable!("numbers have no end")
}

#[test]
fn clients_read_what_they_have_written() {
    for (delay, seconds, least) in [("0", 6, 50), ("30ms", 6, 200)] {
        let pair = Pair::start(&[("recovery_min_apply_delay", delay)]);
        let proxy = Arc::new(pair.proxy("10s"));
        let until = Instant::now() + Duration::from_secs(seconds);
        let before = stays(&proxy);
        let clients = (0..CLIENTS).map(|client| {
            let proxy = proxy.clone();
            thread::spawn(move || writes_and_reads(&proxy, client, until))
        });
        let clients: Vec<_> = clients.collect();
        let all = clients.into_iter().map(|client| client.join().expect("a client ends"));
        let (count, stale) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let away = stays(&proxy) - before;
        let (returned, unproven) =
            (proxy.counter("standby_reads_returned"), proxy.counter("standby_reads_unproven"));
        println!(
            "delay {delay}: {count} reads, {away} on the standby, {returned} sent back, \
             {unproven} without proof, {stale} stale"
        );
        assert_eq!(stale, 0, "of {count} reads, of which {away} were on the standby");
        assert!(away > count / least, "{away} of {count} reads were on the standby");
    }
}

#[test]
fn a_standby_that_stands_still_is_read_for_max_lag_at_most() {
    let pair = Pair::start(&[]);
    let proxy = pair.proxy("1s");
    pair.standby.psql("postgres", "select pg_wal_replay_pause()").unwrap();
    let [mut alice, mut bob] = [proxy.open("postgres"), proxy.open("postgres")];
    for number in 1..=3 {
        alice.run(&format!("update seen set n = {number} where w = 99"));
        let written = Instant::now();
        while written.elapsed() < Duration::from_millis(300) {
            assert_eq!(alice.value(READ), number.to_string());
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(900));
        assert_eq!(bob.value(READ), number.to_string(), "{:?} later", written.elapsed());
    }
    let before = stays(&proxy);
    for _ in 0..50 {
        assert_eq!((alice.value(READ), bob.value(READ)), ("3".to_owned(), "3".to_owned()));
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(stays(&proxy), before, "the standby is too late for all");
    pair.standby.psql("postgres", "select pg_wal_replay_resume()").unwrap();
    eventually("reads run on the standby again", || {
        assert_eq!((alice.value(READ), bob.value(READ)), ("3".to_owned(), "3".to_owned()));
        stays(&proxy) > before + 20
    });
    let standbys = |row: &&std::collections::BTreeMap<String, String>| {
        row["target_session_attrs"] == "standby" && row["state"] == "good"
    };
    let hosts = proxy.show("hosts");
    let row = hosts.iter().find(standbys).expect("a row of the standby");
    assert!(row["lag_ms"].parse::<u64>().is_ok_and(|lag| lag < 2_000), "{row:?}");
    assert_eq!(row["role"], "standby");
    let writes = |row: &&std::collections::BTreeMap<String, String>| {
        row["target_session_attrs"] == "read-write" && row["state"] == "good"
    };
    assert_eq!(hosts.iter().find(writes).expect("a row of the primary")["role"], "primary");
}

#[test]
fn reads_go_on_while_a_standby_goes_comes_back_and_is_promoted() {
    let mut pair = Pair::start(&[]);
    let proxy = Arc::new(pair.proxy("10s"));
    let stops = Arc::new(AtomicBool::new(false));
    let (count, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
    let reader = |client: u64| {
        let (proxy, stops) = (proxy.clone(), stops.clone());
        let (count, wrong) = (count.clone(), wrong.clone());
        thread::spawn(move || {
            let mut session = proxy.open("postgres");
            session.ask(&[parse("s", "select n from seen where w = $1"), Msg::Sync]);
            for way in 0.. {
                if stops.load(SeqCst) {
                    return;
                }
                let reply = session.ask(&reads(way, client));
                if reply.error().is_some() || reply.status().is_none() || reply.value() != "0" {
                    wrong.lock().unwrap().push(reply.words());
                }
                if reply.status().is_none() {
                    session = proxy.open("postgres");
                    session.ask(&[parse("s", "select n from seen where w = $1"), Msg::Sync]);
                }
                count.fetch_add(1, SeqCst);
            }
        })
    };
    let readers: Vec<_> = (0..CLIENTS).map(reader).collect();
    let goes_on = |what: &str| {
        let before = count.load(SeqCst);
        eventually(what, || count.load(SeqCst) > before + 500);
    };
    goes_on("reads run on both");
    pair.standby.stop();
    goes_on("reads run on the primary");
    pair.standby.resume().unwrap();
    let before = stays(&proxy);
    eventually("reads run on the standby again", || stays(&proxy) > before + 100);
    pair.standby.psql("postgres", "select pg_promote()").unwrap();
    goes_on("reads go on behind a promotion");
    eventually("no read runs on what is a primary", || {
        let before = stays(&proxy);
        goes_on("reads run on the primary alone");
        stays(&proxy) == before
    });
    stops.store(true, SeqCst);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader ends"));
    let wrong = wrong.lock().unwrap();
    println!("{wrong:?}");
    // A read of which the client had begun to get the reply when the standby stopped has an error.
    assert!(wrong.len() <= CLIENTS as usize, "{wrong:?}\n{}", proxy.log());
}
