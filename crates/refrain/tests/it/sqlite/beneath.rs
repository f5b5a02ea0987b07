//! Harm that another program does to an SQLite file while clients write to it, in a process that
//! also serves PostgreSQL.
//!
//! Each harm ends the statements on that database with an error that names it, and writes a line to
//! the log. The transactions of PostgreSQL clients on the same core are not affected.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use xtask::postgres::Version;

use crate::world::{Config, Proxy, cluster, database, eventually};

/// A way to harm a file.
type Deed = fn(&Path);

/// Each harm, the suffix of the harmed file, the way, and the SQLSTATEs that statements may end
/// with.
const HARMS: &[(&str, &str, Deed, &[&str])] = &[
    ("moved", "", away, GONE),
    ("replaced", "", replace, GONE),
    ("deleted", "", delete, GONE),
    ("shortened", "", shorten, &["XX001", "58030"]),
    ("moved", "-wal", away, GONE),
    ("replaced", "-wal", replace, GONE),
    ("deleted", "-wal", delete, GONE),
    ("shortened", "-wal", shorten, &["58030", "XX001"]),
    ("moved", "-shm", away, BROKEN),
    ("replaced", "-shm", replace, BROKEN),
    ("deleted", "-shm", delete, BROKEN),
    ("shortened", "-shm", shorten, BROKEN),
    ("shortened to nothing", "-shm", empty, BROKEN),
];

/// The file is missing, or is another one than the committed data is in.
const GONE: &[&str] = &["58P01", "58030"];
const BROKEN: &[&str] = &["58030"];
/// Time within which clients that write and read all the time must see the harm.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of clients that write to SQLite, and of those that write to PostgreSQL.
const WRITERS: usize = 3;

fn away(path: &Path) {
    fs::rename(path, path.with_extension("away")).unwrap();
}

fn replace(path: &Path) {
    let other = path.with_extension("other");
    fs::copy(path, &other).unwrap();
    fs::rename(other, path).unwrap();
}

fn delete(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn shorten(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(5000).unwrap();
}

fn empty(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
}

/// Writes or reads until an error reports the harm. Returns its SQLSTATE.
fn meet(proxy: &Proxy, sql: &str, done: &AtomicUsize) -> String {
    let (mut session, begun) = (proxy.open("file"), Instant::now());
    loop {
        let reply = session.query(sql);
        let code = reply.error().map(|_| reply.code()).unwrap_or_default();
        match code.as_str() {
            "" => _ = done.fetch_add(1, Relaxed),
            // These are errors of writers that wait for each other.
            "55P03" | "40001" => {}
            _ => return code,
        }
        assert!(begun.elapsed() < PATIENCE, "nobody hears of it");
    }
}

/// Counts in PostgreSQL, in one transaction per step, until `over`. Returns the count.
fn count(proxy: &Proxy, database: &str, number: usize, over: &AtomicBool) -> u64 {
    let (mut session, mut counted) = (proxy.open(database), 0_u64);
    while !over.load(Relaxed) {
        session.run("begin");
        session.run(&format!("update counts set n = n + 1 where id = {number}"));
        counted += 1;
        let found = session.value(&format!("select n from counts where id = {number}"));
        assert_eq!(found, counted.to_string());
        session.run("commit");
    }
    counted
}

/// Ends [`count`] also where an assertion fails: the scope of its threads waits for them.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn is_met(harm: &(&str, &str, Deed, &[&str]), postgres: &'static str) {
    let (name, end, deed, codes) = harm;
    let what = format!("{name} {end}");
    let file = "[databases.file]\nbackend = \"sqlite\"\npath = \"file.db\"\n";
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "5").more(file).start();
    let path: PathBuf = proxy.folder().join(format!("file.db{end}"));
    let mut session = proxy.open(postgres);
    session.run("drop table if exists counts");
    session.run("create table counts (id int primary key, n int)");
    session.run("insert into counts select i, 0 from generate_series(1, 9) as i");
    let mut session = proxy.open("file");
    session.run("create table t (id serial primary key, word text)");
    session.run(
        "insert into t (word) with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000) \
         select repeat('x', 900) from n",
    );
    let (over, written, read) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let (proxy, over) = (&proxy, &over);
    thread::scope(|scope| {
        let _ends = Ends(over);
        let pooled = |number| scope.spawn(move || count(proxy, postgres, number, over));
        let pooled: Vec<_> = (1..=WRITERS).map(pooled).collect();
        let write = "insert into t (word) values (repeat('x', 900))";
        let mut clients: Vec<_> =
            (0..WRITERS).map(|_| scope.spawn(|| meet(proxy, write, &written))).collect();
        clients.push(scope.spawn(|| meet(proxy, "select sum(length(word)) from t", &read)));
        eventually("it is written and read", || {
            written.load(Relaxed) > 20 && read.load(Relaxed) > 2
        });
        deed(&path);
        for client in clients {
            let code = client.join().unwrap();
            assert!(codes.contains(&code.as_str()), "{what}: {code}");
        }
        let before = written.load(Relaxed);
        thread::sleep(Duration::from_millis(50));
        over.store(true, Relaxed);
        for client in pooled {
            assert!(client.join().unwrap() > 0, "{what}: PostgreSQL's clients went on");
        }
        assert_eq!(written.load(Relaxed), before);
    });
    let is_logged =
        |line: &str| line.contains("cause=sqlite") && codes.iter().any(|code| line.contains(code));
    assert!(proxy.log().lines().any(is_logged), "{what}: {}", proxy.log());
    assert_eq!(proxy.counter("lost_statements"), 0, "{what}");
}

#[test]
fn a_harmed_file_is_told_of_and_touches_nobody_else() {
    let postgres = database("beneath");
    for harm in HARMS {
        is_met(harm, postgres);
    }
}
