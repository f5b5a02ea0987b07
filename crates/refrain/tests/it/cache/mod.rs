//! The result cache over PostgreSQL: what changes a result voids it, whoever makes the change and
//! however, and nobody reads what was overwritten before the read began.

mod advice;
mod chain;
mod old;
mod pipelines;
mod rules;
mod cluster;
mod told;
mod volatile;
mod logins;
mod hidden;
mod changes;
mod publication;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use refrain_differ::msg::Msg;
use xtask::ports::free_port;

use crate::operation::console::scrape;
use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database, database_of, eventually};

const RULE: &str = "[[cache.rules]]\nttl = \"10min\"\n";

/// A way of asking.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Simple,
    Unnamed,
    Named,
}

pub(crate) const WAYS: [Way; 3] = [Way::Simple, Way::Unnamed, Way::Named];

impl Way {
    /// Returns the first column of the first row of a query without parameters, or the error.
    pub(crate) fn read(self, session: &mut Session, text: &str) -> String {
        let reply = match self {
            Self::Simple => session.query(text),
            Self::Unnamed => session.ask(&[parse("", text), bind("", &[]), execute(), Msg::Sync]),
            Self::Named => session.ask(&[bind("s", &[]), execute(), Msg::Sync]),
        };
        reply.words()
    }

    /// Prepares what is to be read.
    pub(crate) fn prepare(self, session: &mut Session, text: &str) {
        if matches!(self, Self::Named) {
            session.ask(&[parse("s", text), Msg::Sync]);
        }
    }
}

/// Runs the program with these rules over PostgreSQL 15, with servers enough.
fn caching(rules: &str) -> Proxy {
    caching_over(Version::V15, rules)
}

fn caching_over(version: Version, rules: &str) -> Proxy {
    let config = Config::over(cluster(version)).pool("pool_size", "8");
    config.general("workers", "2").pool("track_functions", "\"off\"").more(rules).start()
}

/// Makes a test of each function with PostgreSQL 15, and one with 18.
macro_rules! with_both_versions {
    ($($check:ident,)*) => {
        mod postgresql_15 {
            $(#[test] fn $check() { super::$check(super::Version::V15); })*
        }
        mod postgresql_18 {
            $(#[test] fn $check() { super::$check(super::Version::V18); })*
        }
    };
}
pub(crate) use with_both_versions;

with_both_versions! {
    whatever_changes_a_result_voids_it,
    a_known_write_voids_what_it_changes_and_nothing_else,
    a_known_write_reaches_further_once_the_schema_or_a_temporary_table_says_so,
    settings_users_and_paths_have_replies_of_their_own,
    what_shows_the_present_or_the_session_is_never_kept,
    no_read_misses_a_write_that_was_acknowledged_before_it,
    a_hundred_clients_on_a_cold_key_are_one_execution,
}

/// Reads until a reply comes from the cache. Returns the reply.
pub(crate) fn warm(proxy: &Proxy, way: Way, session: &mut Session, text: &str) -> String {
    let mut reply = String::new();
    let before = proxy.counter("cache_hits");
    eventually("the reply is kept", || {
        reply = way.read(session, text);
        proxy.counter("cache_hits") > before
    });
    reply
}

/// Changes that void the replies to reads of `t`: SQL before, the change, and what it is.
const CHANGES: &[(&str, &str)] = &[
    ("", "update t set b = b || 'x' where a = 1"),
    ("", "with x as (update t set b = b || 'x' returning a) select * from x"),
    ("", "begin; update t set b = 'block' where a = 1; commit"),
    ("", "delete from t where a = 1"),
    ("", "truncate t"),
    ("", "insert into t values (0, 'zero')"),
    ("", "merge into t using (values (1)) v (a) on t.a = v.a when matched then update set b = 'm'"),
    ("", "alter table t rename b to c; alter table t add b text default 'new'"),
    ("", "drop table t; create table t as select 1 as a, 'again'::text as b"),
    ("", "do $$ begin update t set b = 'do'; end $$"),
    (
        "create function f() returns int language sql as 'update t set b = ''f'' returning 1'",
        "select f()",
    ),
    ("create procedure p() language sql as 'update t set b = ''p'''", "call p()"),
    (
        "create table u (a int);
         create function g() returns trigger language plpgsql as
             $$ begin update t set b = 'trigger'; return new; end $$;
         create trigger g after insert on u for each row execute function g()",
        "insert into u values (1)",
    ),
    (
        "create table parent (a int primary key); insert into parent values (1), (2);
         alter table t add foreign key (a) references parent on delete cascade",
        "delete from parent where a = 1",
    ),
    (
        "create table u (a int); create rule r as on insert to u do also delete from t",
        "insert into u values (1)",
    ),
    ("prepare w as update t set b = 'execute'", "execute w"),
    ("", "create schema postgres; create table postgres.t as select 1 as a, 'path'::text as b"),
    ("", "copy t from program 'echo 0 , zero' with (delimiter ',')"),
];

fn whatever_changes_a_result_voids_it(version: Version) {
    let text = "select b from t order by a limit 1";
    for way in WAYS {
        let proxy = caching_over(version, RULE);
        let name = database_of(version, "cache_changes");
        for (setup, change) in CHANGES {
            let mut direct = Session::open(addr(cluster(version)), name);
            direct.run(
                "drop schema if exists postgres, public cascade; create schema public;
                 create table t (a int, b text); insert into t values (1, 'one'), (2, 'two')",
            );
            direct.run(&format!("select 1; {setup}"));
            let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
            if setup.starts_with("prepare") {
                writer.run(setup);
            }
            // The tables are others by now, though nothing has told Refrain.
            writer.run("grant select on t to public");
            way.prepare(&mut reader, text);
            let before = warm(&proxy, way, &mut reader, text);
            writer.run(change);
            let after = way.read(&mut reader, text);
            let mut fresh = Session::open(addr(cluster(version)), name);
            way.prepare(&mut fresh, text);
            let due = way.read(&mut fresh, text);
            assert_ne!(before, due, "{change}");
            assert!(
                after == due || after.starts_with("E(0A000)"),
                "{way:?} {change}: {after} {due}"
            );
        }
    }
}

/// Changes of the rows of `t` whose tables the catalog knows: SQL before, the change, and a read
/// that shows it. Each makes another result whenever it runs.
const KNOWN_CHANGES: &[(&str, &str, &str)] = &[
    ("", "update t set b = b || 'x'", FIRST),
    ("", "with x as (update t set b = b || 'x' returning a) select count(*) from x", FIRST),
    (
        "",
        "merge into t using (values (1)) v (a) on true when matched then update set b = b || 'm'",
        FIRST,
    ),
    ("", "delete from t where a = (select min(a) from t)", FIRST),
    ("create view w as select * from t", "update w set b = b || 'x'", FIRST),
    ("create view w as select * from t", "update t set b = b || 'x'", "select b from w limit 1"),
    (
        "create table child (c int) inherits (t); insert into child values (-1, 'child', 0)",
        "update child set b = b || 'x'",
        FIRST,
    ),
    (
        "create table child (c int) inherits (t); insert into child values (-1, 'child', 0)",
        "update t set b = b || 'x'",
        "select b from child",
    ),
    (
        "create table parts (a int, b text) partition by range (a);
         create table part partition of parts for values from (0) to (10);
         insert into parts values (1, 'one')",
        "update part set b = b || 'x'",
        "select b from parts",
    ),
    (
        "create table parent (a int primary key); insert into parent select a from t;
         alter table t add foreign key (a) references parent on delete cascade",
        "delete from parent where a = (select min(a) from parent)",
        FIRST,
    ),
    (
        "create function f() returns trigger language plpgsql as
             $$ begin new.b := new.b || 'f'; return new; end $$;
         create trigger f before update on t for each row execute function f()",
        "update t set a = a",
        FIRST,
    ),
];
const FIRST: &str = "select b from t order by a limit 1";

fn a_known_write_voids_what_it_changes_and_nothing_else(version: Version) {
    for way in WAYS {
        let proxy = caching_over(version, RULE);
        let name = database_of(version, "cache_known_changes");
        for (setup, change, text) in KNOWN_CHANGES {
            let mut direct = Session::open(addr(cluster(version)), name);
            direct.run(
                "drop schema if exists public cascade; create schema public;
                 create table other as select 1 as a;
                 create table t as select a, 'row ' || a as b from generate_series(1, 1000) a",
            );
            direct.run(&format!("select 1; {setup}"));
            let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
            // The schema is another by now, and Refrain would take a while to see it.
            writer.run("create table news ()");
            way.prepare(&mut writer, change);
            let mut others = proxy.open(name);
            let hits = |session: &mut Session| {
                let before = proxy.counter("cache_hits");
                Way::Simple.read(session, "select a from other");
                proxy.counter("cache_hits") > before
            };
            eventually("the write is known to leave the other table alone", || {
                warm(&proxy, Way::Simple, &mut others, "select a from other");
                way.read(&mut writer, change);
                hits(&mut others)
            });
            way.prepare(&mut reader, text);
            for _ in 0..3 {
                let before = warm(&proxy, way, &mut reader, text);
                way.read(&mut writer, change);
                let (after, due) = (way.read(&mut reader, text), direct.query(text).words());
                assert!(
                    before != due && after.ends_with(&due[3..]),
                    "{way:?} {change}: {after} {due}"
                );
            }
        }
    }
}

fn a_known_write_reaches_further_once_the_schema_or_a_temporary_table_says_so(version: Version) {
    let name = database_of(version, "cache_reach");
    let setup = "drop schema if exists public cascade; create schema public;
         create table t as select 1 as a, 'one'::text as b;
         create table u (a int);
         create table other as select 1 as a;
         create function f() returns trigger language plpgsql as
             $$ begin update t set b = b || 'f'; return new; end $$";
    let write = "insert into u values (1)";
    for (way, reach) in WAYS.into_iter().flat_map(|way| {
        let reaches = [
            "create trigger f after insert on u for each row execute function f()",
            "create temp table u (a int);
             create trigger f after insert on u for each row execute function f()",
        ];
        reaches.map(|reach| (way, reach))
    }) {
        let proxy = caching_over(version, RULE);
        Session::open(addr(cluster(version)), name).run(setup);
        let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
        let mut hits_after_write = |writer: &mut Session| {
            warm(&proxy, Way::Simple, &mut reader, FIRST);
            way.read(writer, write);
            let before = proxy.counter("cache_hits");
            Way::Simple.read(&mut reader, FIRST);
            proxy.counter("cache_hits") > before
        };
        way.prepare(&mut writer, write);
        eventually("the write is known to leave the table alone", || hits_after_write(&mut writer));
        writer.run(reach);
        for _ in 0..8 {
            assert!(!hits_after_write(&mut writer), "{way:?} {reach}");
        }
    }
}

fn settings_users_and_paths_have_replies_of_their_own(version: Version) {
    let name = database_of(version, "cache_settings");
    let proxy = caching_over(version, RULE);
    let mut direct = Session::open(addr(cluster(version)), name);
    direct.run(
        "create schema one; create schema two; create table one.t as select 'one' as v;
         create table two.t as select 'two' as v; create table m as select timestamptz
         '2020-02-03 04:05:06+00' as t, 0.1::float8 + 0.2 as f, '\\x41'::bytea as y, interval '1 day' as i",
    );
    let sets = [
        "set timezone = 'Asia/Tokyo'",
        "set datestyle = 'German'",
        "set extra_float_digits = 0",
        "set bytea_output = 'escape'",
        "set intervalstyle = 'iso_8601'",
        "set search_path = two",
        "set app.tenant = '5'",
        "set role pg_monitor",
    ];
    for way in WAYS {
        for text in ["select t, f, y, i from m", "select v from t"] {
            for set in sets {
                let mut sessions = [proxy.open(name), proxy.open(name)];
                let mut twin = Session::open(addr(cluster(version)), name);
                for session in sessions.iter_mut().chain([&mut twin]) {
                    session.run("set search_path = one, public");
                }
                for session in sessions.iter_mut().chain([&mut twin]) {
                    way.prepare(session, text);
                }
                let [one, two] = &mut sessions;
                warm(&proxy, way, one, text);
                for session in [&mut *two, &mut twin] {
                    session.run(set);
                }
                for _ in 0..3 {
                    assert_eq!(way.read(two, text), way.read(&mut twin, text), "{way:?} {set}");
                }
            }
        }
    }
}

fn what_shows_the_present_or_the_session_is_never_kept(version: Version) {
    let name = database_of(version, "cache_present");
    let proxy = caching_over(version, RULE);
    let (mut one, mut two) = (proxy.open(name), proxy.open(name));
    one.run(
        "create table t as select 1 as a, date '2020-02-03' as d; create sequence s;
         create function f() returns text language sql stable as 'select now()::text';
         create view clock as select a, now() from t; create view day as select current_date;
         create view own as select f(); create view setting as select current_setting('a.b', true);
         create view plain as select a, to_char(d, 'YYYY') as y from t;
         create view deep as select * from plain, day",
    );
    for text in ["select * from plain", "select to_char(d, 'DD'), date_trunc('month', d) from t"] {
        warm(&proxy, Way::Simple, &mut one, text);
    }
    let before = proxy.counter("cache_hits");
    for text in [
        "select clock_timestamp()",
        "select now()",
        "select current_timestamp, a from t",
        "select 'now'::timestamptz",
        "select random()",
        "select nextval('s')",
        "select pg_backend_pid()",
        "select txid_current()",
        "select a from t for update",
        "select count(*) from pg_stat_activity",
        "select xmin from t",
        "select * from clock",
        "select * from day",
        "select * from own",
        "select * from setting",
        "select * from deep",
        "select f()",
        "select age(d) from t",
        "select current_setting('a.b', true)",
        "select has_table_privilege('t', 'select')",
    ] {
        for _ in 0..12 {
            two.query(text);
            thread::sleep(Duration::from_millis(15));
        }
        thread::sleep(Duration::from_millis(250));
        (0..4).for_each(|_| drop(two.query(text)));
        assert_eq!(proxy.counter("cache_hits"), before, "{text}");
    }
}

fn a_hundred_clients_on_a_cold_key_are_one_execution(version: Version) {
    let name = database_of(version, "cache_stampede");
    let proxy = caching_over(version, "[[cache.rules]]\nttl = \"2s\"\njitter = \"0%\"\n");
    let text = "select count(*) from t a, t b where a.a + b.a > ";
    let mut first = proxy.open(name);
    first.run("create table t as select generate_series(1, 1000) as a");
    warm(&proxy, Way::Simple, &mut first, &format!("{text} 1"));
    let mut sessions: Vec<Session> = (0..100).map(|_| proxy.open(name)).collect();
    for round in 2..4 {
        // Cold, and then expired.
        for _ in 0..2 {
            let (misses, begun) = (proxy.counter("cache_misses"), Instant::now());
            let text = format!("{text} {round}");
            sessions.iter_mut().for_each(|it| it.send(&[crate::session::query(&text)]));
            let replies: Vec<String> = sessions.iter_mut().map(|it| it.ready().words()).collect();
            assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
            let (misses, took) = (proxy.counter("cache_misses") - misses, begun.elapsed());
            println!("100 clients took {took:?}");
            // A reply that takes longer than it is kept is too old for those that wait.
            assert!(misses == 1 || took > Duration::from_secs(2), "{misses} in {took:?}");
            thread::sleep(Duration::from_millis(2100));
        }
    }
}

/// A row that a writer counts up: the values that are surely visible, and that may be.
#[derive(Default)]
struct Row {
    acknowledged: AtomicU64,
    begun: AtomicU64,
}

/// Rounds of the race; `REFRAIN_RACE` sets another number.
fn rounds() -> u64 {
    std::env::var("REFRAIN_RACE").ok().and_then(|it| it.parse().ok()).unwrap_or(300)
}

/// Counts a row up, in the ways in which clients write.
fn write(session: &mut Session, row: usize, value: u64) {
    let text = format!("update t set b = {value} where a = {row}");
    match value % 5 {
        0 => session.run(&text),
        1 => {
            session.run("begin");
            session.run(&text);
            session.run("commit");
        }
        2 => drop(session.ask(&[parse("", &text), bind("", &[]), execute(), Msg::Sync])),
        3 => session.run(&format!("select f({row}, {value})")),
        _ => {
            session.run("begin");
            session.run(&format!("update t set b = -1 where a = {row}"));
            session.run("rollback");
            session.run(&format!("begin; {text}; commit"));
        }
    }
}

/// Reads a row until `over`. Returns the number of reads.
fn read(session: &mut Session, way: Way, number: usize, row: &Row, over: &AtomicBool) -> u64 {
    let text = format!("select b from t where a = {number}");
    way.prepare(session, &text);
    let mut reads = 0;
    while !over.load(SeqCst) {
        let least = row.acknowledged.load(SeqCst);
        let words = way.read(session, &text);
        let most = row.begun.load(SeqCst);
        let value = words.split_once("D(").and_then(|(_, rest)| rest.split_once(')'));
        let value: u64 =
            value.and_then(|(value, _)| value.parse().ok()).unwrap_or_else(|| panic!("{words}"));
        assert!((least..=most).contains(&value), "{way:?}: {value} is not in {least}..={most}");
        reads += 1;
    }
    reads
}

fn no_read_misses_a_write_that_was_acknowledged_before_it(version: Version) {
    const ROWS: usize = 3;
    let name = database_of(version, "cache_race");
    let proxy = caching_over(version, RULE);
    let mut direct = Session::open(addr(cluster(version)), name);
    direct.run(
        "create table t as select generate_series(0, 2) as a, 0::bigint as b;
         create function f(int, bigint) returns void language sql as
             'update t set b = $2 where a = $1'",
    );
    let rows: [Row; ROWS] = Default::default();
    let over = AtomicBool::new(false);
    let reads = thread::scope(|scope| {
        let mut readers = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            for way in WAYS {
                let (mut session, over) = (proxy.open(name), &over);
                readers.push(scope.spawn(move || read(&mut session, way, number, row, over)));
            }
        }
        let mut writer = proxy.open(name);
        for value in 1..=rounds() {
            for (number, row) in rows.iter().enumerate() {
                row.begun.store(value, SeqCst);
                write(&mut writer, number, value);
                row.acknowledged.store(value, SeqCst);
            }
            // Replies are to be given as well as voided.
            thread::sleep(Duration::from_micros(200 * (value % 20)));
        }
        over.store(true, SeqCst);
        readers.into_iter().map(|it| it.join().unwrap()).sum::<u64>()
    });
    let hits = proxy.counter("cache_hits");
    let (fills, outdated) = (proxy.counter("cache_fills"), proxy.counter("cache_fills_outdated"));
    println!("{reads} reads, {hits} from the cache; {fills} fills, {outdated} outdated");
    assert!(hits > reads / 20 && fills > 0, "{hits} of {reads}");
}

#[test]
fn rules_for_sqlite_are_refused() {
    let text = "auth = \"trust\"\n[databases.a]\nbackend = \"sqlite\"\npath = \"a.db\"\n[[cache.rules]]\nttl = \"1s\"";
    let error = refrain_config::Options::from_toml(text).unwrap_err().to_string();
    assert!(
        error.contains("databases of SQLite or MySQL, whose replies are not cached"),
        "{error}"
    );
}

#[test]
fn the_console_shows_the_cache_and_flushes_it() {
    let name = database("cache_console");
    let rules = "[[cache.rules]]\nname = \"few\"\nstatement = \"select a from few\"\n\
                 consistency = \"ttl\"\n[[cache.rules]]\ntags = [\"many\"]\n";
    let proxy = caching(rules);
    let mut client = proxy.open(name);
    client.run("create table few as select 1 as a; create table many as select 2 as a");
    let mut console = proxy.open("refrain");
    let texts = ["select a from few", "select a from many"];
    for (flush, voids) in [
        ("flush cache".to_owned(), [true, true]),
        ("flush cache rule few".to_owned(), [true, false]),
        ("flush cache rule 2".to_owned(), [false, true]),
        ("flush cache tag many".to_owned(), [false, true]),
        (format!("flush cache database {name}"), [true, true]),
        ("flush cache table few".to_owned(), [true, false]),
        ("flush cache table public.few".to_owned(), [true, false]),
        ("flush cache table many".to_owned(), [false, true]),
        ("flush cache statement 'select a from many'".to_owned(), [false, true]),
    ] {
        for text in texts {
            warm(&proxy, Way::Simple, &mut client, text);
        }
        console.run(&flush);
        for (text, voids) in texts.iter().zip(voids) {
            let misses = proxy.counter("cache_misses");
            client.run(text);
            assert_eq!(proxy.counter("cache_misses") - misses, u64::from(voids), "{flush} {text}");
        }
    }
    for unknown in ["rule none", "table none", "table other.few", "statement 'select b from few'"] {
        let error = console.query(&format!("flush cache {unknown}")).words();
        assert!(error.starts_with("E(42704)"), "{unknown}: {error}");
    }
    let memory = console.query("show cache memory").words();
    assert!(
        memory.contains("D(limit_bytes,67108864)") && memory.contains("D(entries,2)"),
        "{memory}"
    );
    let pools = proxy.show("cache");
    assert_eq!(pools[0]["database"], name);
    assert!(pools[0]["hits"].parse::<u64>().unwrap() > 0);
    let reasons: Vec<String> =
        console.query("show cache bypass").words().split(' ').map(str::to_owned).collect();
    assert!(reasons.iter().any(|row| row.contains("unknown")), "{reasons:?}");
}

/// Two users read the same tables; the counts are those of the rule that applied, add up to those
/// of the pools, and go on when the configuration is read again.
#[test]
fn each_rule_has_counts_of_its_own() {
    let name = database("cache_rules");
    let port = free_port().unwrap();
    let few = "[[cache.rules]]\nname = \"few\"\ntable = \"few\"\nconsistency = \"ttl\"\n";
    let config =
        |rules: &str| Config::over(cluster(Version::V15)).general("workers", "1").more(rules);
    let proxy = config(&format!("{few}[[cache.rules]]\nttl = \"90s\"\n"))
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .start();
    let mut client = proxy.open(name);
    client.run("create table few as select 1 as a; create table many as select 2 as a");
    warm(&proxy, Way::Simple, &mut client, "select a from few");
    warm(&proxy, Way::Unnamed, &mut client, "select a from many");
    client.run("select a from few");
    let rules = || proxy.show_of("cache rules", name);
    let [first, second] = &rules()[..] else { panic!("{:?}", rules()) };
    assert_eq!((&*first["rule"], &*first["table"], &*first["consistency"]), ("few", "few", "ttl"));
    assert_eq!((&*second["rule"], &*second["ttl_ms"]), ("2", "90000"));
    assert_eq!((&*first["hits"], &*first["misses"], &*first["fills"]), ("2", "1", "1"));
    assert_eq!((&*second["hits"], &*second["fills"]), ("1", "1"));
    let pool = proxy.show_of("cache", name).remove(0);
    let sum: u64 = rules().iter().map(|row| row["saved_us"].parse::<u64>().unwrap()).sum();
    assert_eq!((&*pool["hits"], pool["saved_us"].parse().unwrap()), ("3", sum));
    let metrics = scrape(port);
    let labels = format!("{{database=\"{name}\",rule=\"few\"}} 2\n");
    for figure in ["hits_total", "hit_seconds_count"] {
        let sample = format!("refrain_cache_rule_{figure}{labels}");
        assert!(metrics.contains(&sample), "{sample}{metrics}");
    }
    let entries = "refrain_cache_replies_entries{rule=\"few\"} 1\n";
    assert!(metrics.contains(entries), "{metrics}");

    // The rules change their places, and one has another time.
    proxy.reload(&config(&format!("[[cache.rules]]\ntable = \"none\"\n{few}")));
    eventually("the new rules are there", || rules()[0]["table"] == "none");
    client.run("select a from few");
    let [_, few] = &rules()[..] else { panic!("{:?}", rules()) };
    assert_eq!((&*few["rule"], &*few["hits"], &*few["misses"]), ("few", "3", "1"));
}

#[test]
fn the_console_explains_what_is_kept_and_why_not() {
    let name = database("cache_explain");
    let proxy = caching("[[cache.rules]]\nname = \"of t\"\ntable = \"t\"\n");
    let mut client = proxy.open(name);
    client.run("create table t as select 1 as a; create table u as select 2 as a");
    client.run("create function f() returns int language sql stable as 'select a from t'");
    let mut console = proxy.open("refrain");
    let mut explain = |text: &str| {
        let rows = console.query(&format!("explain cache {text}")).words();
        let own = |row: &&str| row.contains(&format!("D({name},postgres,"));
        let words = rows.split(" D(").find(|row| own(&&*format!("D({row}"))).map(str::to_owned);
        words.unwrap_or(rows)
    };
    assert!(explain("select a from t").contains("unknown,of t,writes,,no client has run it"));
    warm(&proxy, Way::Simple, &mut client, "select a from t where a = 1");
    let kept = explain("/* any */ select a from t where a = 7;");
    assert!(kept.contains("yes,of t,writes,public.t,"), "{kept}");
    let moment = explain("select a from t where a = 'today'");
    assert!(moment.contains("no,") && moment.contains("date-word: "), "{moment}");
    let write = explain("update t set a = 2");
    assert!(write.contains("no,") && write.contains("kind: "), "{write}");
    for (text, reason) in [("select a from u", "no rule applies"), ("select f() from t", "stable")]
    {
        eventually("the server has been asked", || {
            client.run(text);
            let words = explain(text);
            words.contains("no,") && words.contains(reason)
        });
    }
    assert!(console.query("explain anything").words().starts_with("E(42601)"));
}

/// A write goes past Refrain: a session that wants a new reply sees it, and so do all others from
/// then on. A session that wants nothing of the cache sees it too.
#[test]
fn a_session_says_what_it_wants_of_the_cache() {
    for way in WAYS {
        let name = database("cache_wishes");
        let rule = "[[cache.rules]]\nttl = \"1h\"\nconsistency = \"ttl\"\n";
        // Each core would find out for itself what it knows of the text.
        let proxy = Config::over(cluster(Version::V15)).general("workers", "1").more(rule);
        let proxy = proxy.pool("pool_size", "8").start();
        let text = "select a from t";
        let (mut one, mut two, mut three) = (proxy.open(name), proxy.open(name), proxy.open(name));
        one.run("create table t as select 0 as a");
        for session in [&mut one, &mut two, &mut three] {
            way.prepare(session, text);
            warm(&proxy, way, session, text);
        }
        let mut direct = Session::open(addr(cluster(Version::V15)), name);
        two.run("set refrain.cache = off");
        three.run("set refrain.cache = 'Refresh'");
        // A request that comes while Refrain asks for the settings goes to the same server.
        for session in [&mut two, &mut three] {
            way.read(session, text);
        }
        for value in 1..4 {
            direct.run(&format!("update t set a = {value}"));
            let before = proxy.counter("cache_bypass_unwanted");
            let (old, new) = (format!("D({})", value - 1), format!("D({value})"));
            assert!(way.read(&mut one, text).contains(&old), "{way:?}");
            assert!(way.read(&mut two, text).contains(&new), "{way:?}");
            assert!(proxy.counter("cache_bypass_unwanted") > before, "{way:?}");
            assert!(way.read(&mut one, text).contains(&old), "{way:?}");
            assert!(way.read(&mut three, text).contains(&new), "{way:?}");
            let hits = proxy.counter("cache_hits");
            assert!(way.read(&mut one, text).contains(&new), "{way:?}");
            assert_eq!(proxy.counter("cache_hits"), hits + 1, "{way:?}");
        }
        assert_eq!(two.query("show refrain.cache").words(), "T D(off) C(SHOW) Z(I)");
        for (session, change) in [(&mut two, "reset refrain.cache"), (&mut three, "discard all")] {
            session.run(change);
            way.prepare(session, text);
            warm(&proxy, way, session, text);
        }
    }
    let name = database("cache_wishes");
    let proxy = caching(RULE);
    let options = [("options", "-c refrain.cache=off")];
    let mut session = Session::with(proxy.addr(), name, &options);
    for _ in 0..3 {
        session.run("select 1");
    }
    eventually("the session wants nothing of the cache", || {
        session.run("select 1");
        proxy.counter("cache_bypass_unwanted") > 0
    });
    assert_eq!(proxy.counter("cache_hits"), 0);
}
