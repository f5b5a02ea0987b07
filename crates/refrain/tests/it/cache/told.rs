//! The result cache and what PostgreSQL itself tells of a commit before Refrain has its answer: who
//! is told, in whatever way, and then reads through Refrain, reads what was committed.
//!
//! One session writes through Refrain, another hears of it straight from PostgreSQL, and a third
//! reads through Refrain. Most rounds have a relay that holds back PostgreSQL's answers to Refrain,
//! so that nobody can be told later than the reader.

use std::time::Duration;

use refrain_differ::msg::Msg;

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::relay::Relay;
use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of};

with_both_versions! {
    whoever_is_told_by_postgresql_reads_what_was_committed,
    whoever_is_told_by_postgresql_while_its_answer_is_late_reads_what_was_committed,
}

/// Time for which the relay holds back PostgreSQL's answers.
const LATE: Duration = Duration::from_millis(2);

/// Tables and functions. Every write of `t` that is not quiet is told to those who listen at `c`,
/// by a trigger. PostgreSQL does not prepare a transaction that has told anybody.
const SETUP: &str = "
    create table t (a int primary key, b bigint, quiet bool); insert into t values (1, 0, false);
    create table keys (a bigint primary key);
    create function tell() returns trigger language plpgsql as
        $$ begin perform pg_notify('c', new.b::text); return new; end $$;
    create trigger tell after update on t for each row when (not new.quiet) execute function tell();
    create function f(bigint) returns void language sql as
        'insert into keys values ($1); update t set b = $1';
    create procedure p(bigint) language plpgsql as $$ begin
        insert into keys values ($1); update t set b = $1; commit; perform pg_sleep(0.002);
    end $$;
    create view w as select * from t";

/// A way of being told of the write of a value.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// By a notification.
    Notification,
    /// By an INSERT that waits for the key of another transaction, and finds it taken.
    Key,
    /// By a row that was locked.
    Row,
    /// By an advisory lock that was taken.
    Lock,
    /// By asking again and again for a row that is not locked.
    Skipped,
}

const TOLD: [Told; 5] = [Told::Notification, Told::Key, Told::Row, Told::Lock, Told::Skipped];

impl Told {
    /// Begins to wait.
    fn begin(self, session: &mut Session, value: u64) {
        match self {
            Self::Notification => {}
            Self::Key => session.send(&[query(&format!("insert into keys values ({value})"))]),
            Self::Row => session.send(&[query("select b from t where a = 1 for update")]),
            Self::Lock => session.send(&[query("select pg_advisory_xact_lock_shared(7)")]),
            Self::Skipped => {}
        }
    }

    /// Waits until the session is told.
    fn wait(self, session: &mut Session, value: u64) {
        match self {
            Self::Notification => {
                let told = |tag| move |frame: &refrain_differ::reply::Frame| frame.tag == tag;
                while !session.frame().as_ref().is_some_and(told(b'A')) {}
            }
            Self::Key => {
                let words = session.ready().words();
                assert!(words.contains("E(23505)"), "{words}");
            }
            Self::Row | Self::Lock => drop(session.ready()),
            Self::Skipped => {
                let text = format!("select from t where b >= {value} for update skip locked");
                while !session.query(&text).words().contains("C(SELECT 1)") {}
            }
        }
    }
}

/// A way of writing: what is sent before the others begin to wait, and what commits.
type Write = fn(u64) -> (Vec<Msg>, Vec<Msg>);

/// The ways of writing in a block. The transaction holds the key, the row and the lock before
/// another begins to wait for them.
const BLOCKS: [Write; 5] = [
    |value| (block(value), vec![query("commit")]),
    |value| (block(value), vec![parse("", "end"), bind("", &[]), execute(), Msg::Sync]),
    |value| (block(value), vec![query("select 1; commit; select pg_sleep(0.001)")]),
    |value| (block(value), vec![query("commit and chain"), query("rollback")]),
    |value| (block(value), vec![query("commit; begin"), query("rollback")]),
];

/// The same in two steps.
const PREPARED: Write = |value| {
    let mut before = block(value);
    before.pop();
    let quiet = format!("update t set b = {value}, quiet = true where a = 1");
    before.extend([query(&quiet), query(&format!("prepare transaction 'told {value}'"))]);
    (before, vec![query(&format!("commit prepared 'told {value}'"))])
};

/// The ways of writing without a block: whoever is told has begun to wait before.
const ALONE: [Write; 6] = [
    |value| (vec![], vec![query(&update(value))]),
    |value| (vec![], vec![parse("", &update(value)), bind("", &[]), execute(), Msg::Sync]),
    |value| (vec![], vec![query(&format!("select f({value})"))]),
    |value| (vec![], vec![query(&format!("call p({value})"))]),
    |value| (vec![], vec![query(&format!("do $$ begin update t set b = {value}; end $$"))]),
    |value| {
        let text = format!("with x as (update w set b = {value} returning a) select a from x");
        (vec![], vec![query(&text)])
    },
];

fn update(value: u64) -> String {
    format!("update t set b = {value}, quiet = false where a = 1")
}

fn block(value: u64) -> Vec<Msg> {
    let keys = format!("insert into keys values ({value})");
    vec![query("begin; select pg_advisory_xact_lock(7)"), query(&keys), query(&update(value))]
}

/// The replies that end with a ReadyForQuery.
fn segments(sent: &[Msg]) -> usize {
    sent.iter().filter(|it| matches!(it, Msg::Sync | Msg::Query(_))).count()
}

/// Has one more value written, and told in one way. Returns the value that is read then.
fn round(
    (writer, told, reader): (&mut Session, &mut Session, &mut Session),
    (write, how, way): (Write, Told, Way),
    value: u64,
) -> u64 {
    let (before, commit) = write(value);
    writer.send(&before);
    (0..segments(&before)).for_each(|_| drop(writer.ready()));
    how.begin(told, value);
    // It is in memory, and known to be current.
    (0..2).for_each(|_| drop(way.read(reader, READ)));
    writer.send(&commit);
    how.wait(told, value);
    let words = way.read(reader, READ);
    (0..segments(&commit)).for_each(|_| drop(writer.ready()));
    let read = words.split_once("D(").and_then(|(_, rest)| rest.split_once(')'));
    read.and_then(|(read, _)| read.parse().ok()).unwrap_or_else(|| panic!("{words}"))
}

const READ: &str = "select b from t where a = 1";

/// Runs this many rounds of each way of writing and of being told, with values from `first` on: the
/// names of prepared transactions are the cluster's.
fn race(version: Version, name: &'static str, proxy: &Proxy, (rounds, first): (u64, u64)) {
    let name = database_of(version, name);
    let direct = || Session::open(addr(cluster(version)), name);
    direct().run(SETUP);
    let (mut writer, mut reader, mut value) = (proxy.open(name), proxy.open(name), first);
    WAYS.iter().for_each(|way| way.prepare(&mut reader, READ));
    warm(proxy, Way::Simple, &mut reader, READ);
    let blocks = BLOCKS.iter().flat_map(|write| TOLD.map(|told| (*write, told)));
    let blocks = blocks.chain(TOLD[1..].iter().map(|told| (PREPARED, *told)));
    let alone = [Told::Notification, Told::Skipped];
    let alone = ALONE.iter().flat_map(|write| alone.map(|told| (*write, told)));
    for (number, (write, how)) in blocks.chain(alone).enumerate() {
        let mut told = direct();
        // A session that listens in vain would have to read what it is told.
        if matches!(how, Told::Notification) {
            told.run("listen c");
        }
        for round_number in 0..rounds {
            value += 1;
            let way = WAYS[round_number as usize % WAYS.len()];
            let sessions = (&mut writer, &mut told, &mut reader);
            let read = round(sessions, (write, how, way), value);
            assert!(read >= value, "{number} {how:?} {way:?}: {read} is older than {value}");
        }
    }
    let (hits, all) = (proxy.counter("cache_hits"), value - first);
    println!("{all} rounds, {hits} of {} reads from the cache", 3 * all);
    assert!(hits > all / 4, "{hits} hits in {all} rounds");
}

fn caching(config: Config) -> Proxy {
    let config = config.pool("pool_size", "8").pool("track_functions", "\"off\"");
    config.general("workers", "2").more("[[cache.rules]]\nttl = \"10min\"\n").start()
}

/// Rounds of each way of writing and of being told; `REFRAIN_RACE` sets another number.
fn rounds(default: u64) -> u64 {
    std::env::var("REFRAIN_RACE").ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn whoever_is_told_by_postgresql_reads_what_was_committed(version: Version) {
    race(version, "cache_told", &caching(Config::over(cluster(version))), (rounds(30), 0));
}

fn whoever_is_told_by_postgresql_while_its_answer_is_late_reads_what_was_committed(
    version: Version,
) {
    let relay = Relay::late(addr(cluster(version)), LATE);
    let config = Config::over(cluster(version)).server("host", "\"127.0.0.1\"");
    let proxy = caching(config.server("port", &relay.addr().port().to_string()));
    race(version, "cache_told_late", &proxy, (rounds(6).min(100), 1 << 32));
}
