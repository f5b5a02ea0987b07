//! Rules with `consistency = "commits"`: what is committed past Refrain voids replies, and no reply
//! is older than the rule says.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use xtask::postgres::Cluster;

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, eventually};

with_both_versions! {
    commits_past_refrain_void_replies,
    no_read_is_older_than_the_rule_says,
    a_commit_that_others_do_not_see_yet_stays_in_doubt,
    what_was_written_before_a_table_was_published_is_not_missed,
    tables_that_the_stream_lacks_are_read_at_the_server,
    a_filter_above_a_partition_counts_whatever_another_publication_has,
    what_has_moved_below_a_table_touches_it,
    a_stream_that_is_lost_gives_nothing_and_comes_back,
    nothing_is_left_of_a_refrain_that_is_killed,
    no_slot_is_left_of_a_stream_that_ends_while_it_is_made,
    a_database_that_is_followed_is_not_dropped,
}

const DATABASE: &str = "shop";
const RULE: &str = "[[cache.rules]]\nttl = \"10min\"\nconsistency = \"commits\"\n\
                    max_staleness = \"100ms\"\n";
const STALENESS: Duration = Duration::from_millis(100);

/// Counts the slots at a server.
const SLOTS: &str = "select count(*) from pg_replication_slots";

/// A database whose changes are followed, and the program over it.
struct World {
    proxy: Proxy,
    cluster: Cluster,
}

/// Configures the program over a server, whose changes it follows.
fn config(cluster: &Cluster, rule: &str) -> Config {
    let config = Config::over(cluster).only(DATABASE).pool("pool_size", "8");
    let config = config.general("workers", "2").server("changes", "\"replication\"");
    config.server("changes_user", "\"follower\"").more(rule)
}

impl World {
    /// Starts a server with these tables, all of them published, and the program.
    fn start(version: Version, setup: &str, rule: &str) -> Self {
        Self::published(version, setup, rule, &[("refrain", "for all tables")])
    }

    /// Starts them with these publications.
    fn published(version: Version, setup: &str, rule: &str, published: &[(&str, &str)]) -> Self {
        let cluster = Cluster::start(version, &[("wal_level", "logical")]).unwrap();
        cluster.psql("postgres", &format!("create database {DATABASE}")).unwrap();
        let mut direct = Session::open(addr(&cluster), DATABASE);
        direct.run(setup);
        for (name, tables) in published {
            direct.run(&format!("create publication {name} {tables}"));
        }
        direct.run("create role follower login replication");
        let names: Vec<&str> = published.iter().map(|(name, _)| *name).collect();
        let config = config(&cluster, rule).server("publications", &format!("{names:?}"));
        Self { proxy: config.start(), cluster }
    }

    /// Opens a session that does not pass through the program.
    fn direct(&self) -> Session {
        Session::open(addr(&self.cluster), DATABASE)
    }

    fn reader(&self) -> Session {
        self.proxy.open(DATABASE)
    }

    fn changes(&self, column: &str) -> String {
        self.proxy.show("cache changes")[0][column].clone()
    }

    fn is_live(&self) -> bool {
        self.changes("state") == "live"
    }

    /// Returns whether a text is kept, and why not.
    fn explain(&self, text: &str) -> (String, String) {
        let reply = self.proxy.console().query(&format!("explain cache {text}"));
        let row = reply.rows().into_iter().next().unwrap_or_default();
        let column = |place: usize| row.get(place).cloned().flatten().unwrap_or_default();
        (column(2), column(6))
    }
}

fn commits_past_refrain_void_replies(version: Version) {
    let world = World::start(
        version,
        "create table t (a int primary key, b text); insert into t values (1, 'one');
         create table parts (a int primary key, b text) partition by range (a);
         create table part partition of parts for values from (0) to (10);
         insert into parts values (1, 'one');
         create table parent (a int primary key); insert into parent values (1);
         create table child (a int primary key references parent on delete cascade);
         insert into child values (1);
         create view v as select * from t",
        RULE,
    );
    let changes = [
        ("update t set b = b || 'x'", "select b from t"),
        ("begin; update t set b = b || 'y'; commit", "select b from t"),
        ("begin; savepoint s; update t set b = b || 'z'; release s; commit", "select b from v"),
        ("do $$ begin update t set b = b || 'd'; end $$", "select b from t"),
        ("insert into t values (2, 'two')", "select count(*) from t"),
        ("copy t from program 'echo 3,three' with (delimiter ',')", "select count(*) from t"),
        ("truncate t", "select count(*) from t"),
        ("update part set b = b || 'p'", "select b from parts"),
        ("update parts set b = b || 'q'", "select b from part"),
        (
            "create table later partition of parts for values from (10) to (20);
             insert into parts values (11, 'later')",
            "select count(*) from parts",
        ),
        ("insert into parts values (12, 'later')", "select count(*) from parts"),
        ("delete from parent", "select count(*) from child"),
    ];
    for (way, (change, text)) in WAYS.into_iter().cycle().zip(changes) {
        let (mut reader, mut direct) = (world.reader(), world.direct());
        way.prepare(&mut reader, text);
        let before = warm(&world.proxy, way, &mut reader, text);
        direct.run(change);
        thread::sleep(STALENESS);
        let after = way.read(&mut reader, text);
        assert_ne!(before, after, "{way:?} {change}");
        let due = direct.query(text).words();
        assert!(after.ends_with(&due[3..]), "{way:?} {change}: {after} {due}");
    }
    assert!(world.proxy.log().contains("changes of database shop are live"));
}

/// A row, and the versions of it that were acknowledged.
#[derive(Default)]
struct Row(Mutex<Vec<(Instant, u64)>>);

impl Row {
    fn acknowledged(&self, version: u64) {
        self.0.lock().unwrap().push((Instant::now(), version));
    }

    /// Returns the newest version that was acknowledged this long before a moment.
    fn due(&self, moment: Instant, staleness: Duration) -> u64 {
        let versions = self.0.lock().unwrap();
        let old = versions.iter().rev().find(|(at, _)| *at + staleness <= moment);
        old.map_or(0, |(_, version)| *version)
    }
}

/// The time for which readers and writers run; `REFRAIN_COMMITS` sets another number of seconds.
fn duration() -> Duration {
    let set = std::env::var("REFRAIN_COMMITS").ok().and_then(|it| it.parse().ok());
    Duration::from_secs(set.unwrap_or(4))
}

fn no_read_is_older_than_the_rule_says(version: Version) {
    const ROWS: usize = 16;
    let world = World::start(
        version,
        "create table t (a int primary key, b bigint);
         insert into t select a, 0 from generate_series(0, 15) a;
         create table noise (a int primary key, b bigint);
         insert into noise select a, 0 from generate_series(0, 999) a",
        RULE,
    );
    warm(&world.proxy, Way::Simple, &mut world.reader(), "select b from t where a = 0");
    let rows: Vec<Row> = (0..ROWS).map(|_| Row::default()).collect();
    let (over, late, reads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for writer in 0..4 {
            let (rows, over, mut session) = (&rows, &over, world.direct());
            scope.spawn(move || {
                for round in 1_u64.. {
                    // One writer has every fourth row.
                    let row = writer + 4 * (round as usize % (ROWS / 4));
                    session.run(&format!("update t set b = {round} where a = {row}"));
                    rows[row].acknowledged(round);
                    if over.load(SeqCst) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        for _ in 0..2 {
            let (over, mut session) = (&over, world.direct());
            scope.spawn(move || {
                for round in (0..1000).cycle().take_while(|_| !over.load(SeqCst)) {
                    session.run(&format!("update noise set b = b + 1 where a = {round}"));
                }
            });
        }
        for reader in 0..8 {
            let (rows, over, late, reads) = (&rows, &over, &late, &reads);
            let mut session = world.reader();
            scope.spawn(move || {
                for round in (reader..).take_while(|_| !over.load(SeqCst)) {
                    let row = round % ROWS;
                    let due = rows[row].due(Instant::now(), STALENESS);
                    let text = format!("select b from t where a = {row}");
                    let value: u64 = session.value(&text).parse().unwrap();
                    late.fetch_add(u64::from(value < due), SeqCst);
                    reads.fetch_add(1, SeqCst);
                }
            });
        }
        thread::sleep(duration());
        over.store(true, SeqCst);
    });
    thread::sleep(STALENESS);
    let (mut reader, mut direct) = (world.reader(), world.direct());
    let hits = world.proxy.counter("cache_hits");
    let reads = reads.into_inner();
    println!("{reads} reads, {hits} hits; {:?}", world.proxy.show("cache changes"));
    assert!(hits > 100, "{hits} of {reads}; {:?}", world.proxy.show("cache bypass"));
    for row in 0..ROWS {
        let text = format!("select b from t where a = {row}");
        assert_eq!(reader.value(&text), direct.value(&text), "row {row} is wrong for good");
    }
    assert_eq!(late.into_inner(), 0, "reads are older than the rule says");
}

/// A synchronous standby that is away keeps a commit from being visible, and not from being in the
/// stream.
fn a_commit_that_others_do_not_see_yet_stays_in_doubt(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 1)";
    let world = World::start(version, setup, RULE);
    let (mut reader, mut direct) = (world.reader(), world.direct());
    let text = "select b from t where a = 1";
    warm(&world.proxy, Way::Simple, &mut reader, text);
    let wait = |session: &mut Session, who: &str| {
        session.run(&format!("alter system set synchronous_standby_names = '{who}'"));
        session.run("select pg_reload_conf()");
        eventually("the option is in force", || {
            session.value("show synchronous_standby_names") == who
        });
    };
    wait(&mut direct, "nobody");
    // Commits wait once the checkpointer has read the option as well, which no session shows.
    let mut probes = Vec::new();
    eventually("commits wait", || {
        let mut probe = world.direct();
        probe.send(&[crate::session::query("select pg_logical_emit_message(true, 'probe', '')")]);
        probes.push(probe);
        let waiting = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
        direct.value(waiting) != "0"
    });
    let before: u64 = world.changes("commits").parse().unwrap();
    let mut writer = world.direct();
    eventually("the writer has the option", || {
        writer.value("show synchronous_standby_names") == "nobody"
    });
    writer.send(&[crate::session::query("update t set b = 2 where a = 1")]);
    eventually("the commit is in the stream", || {
        let shown = || world.changes("commits").parse::<u64>().unwrap();
        // The view follows the stream within a second.
        shown() > before
    });
    // No session sees it yet: a read is as old as the reply from before.
    for _ in 0..20 {
        assert_eq!(reader.value(text), "1");
    }
    wait(&mut direct, "");
    writer.ready();
    thread::sleep(STALENESS);
    assert_eq!(reader.value(text), "2");
    warm(&world.proxy, Way::Simple, &mut reader, text);
}

fn what_was_written_before_a_table_was_published_is_not_missed(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 1);
                 create table u (a int primary key, b int); insert into u values (1, 1)";
    let world = World::start(version, setup, RULE);
    let (mut reader, mut direct) = (world.reader(), world.direct());
    direct.run("drop publication refrain; create publication refrain for table t");
    let text = "select b from u where a = 1";
    eventually("the table is seen to be unpublished", || {
        reader.value(text);
        world.explain(text).1.starts_with("unpublished")
    });
    let mut writer = world.direct();
    writer.run("begin; update u set b = 2 where a = 1");
    direct.run("alter publication refrain add table u");
    eventually("the table is seen to be published", || {
        assert_eq!(reader.value(text), "1");
        let (kept, why) = world.explain(text);
        assert_ne!(kept, "yes", "it is covered at once");
        why.starts_with("late")
    });
    writer.run("commit");
    assert_eq!(reader.value(text), "2");
    warm(&world.proxy, Way::Simple, &mut reader, text);
    direct.run("update u set b = 3");
    thread::sleep(STALENESS);
    assert_eq!(reader.value(text), "3");
}

fn tables_that_the_stream_lacks_are_read_at_the_server(version: Version) {
    let world = World::start(
        version,
        "create unlogged table unlogged (a int primary key); insert into unlogged values (1);
         create table other (a int primary key); insert into other values (1);
         create table parts (a int primary key) partition by range (a);
         create table part partition of parts for values from (0) to (10);
         create unlogged table odd partition of parts for values from (10) to (20);
         create materialized view seen as select * from other;
         create table covered (a int primary key); insert into covered values (1)",
        RULE,
    );
    let (mut reader, mut direct) = (world.reader(), world.direct());
    for (table, why) in [("unlogged", "unlogged"), ("parts", "child"), ("seen", "materialized")] {
        let text = format!("select count(*) from {table}");
        eventually("it is known why a table is not covered", || {
            reader.value(&text);
            world.explain(&text).1.starts_with(why)
        });
        let hits = world.proxy.counter("cache_hits");
        for _ in 0..20 {
            reader.value(&text);
        }
        assert_eq!(world.proxy.counter("cache_hits"), hits, "{table}");
    }
    assert!(world.proxy.counter("cache_bypass_uncovered") > 60);
    let covered = "select count(*) from covered";
    warm(&world.proxy, Way::Simple, &mut reader, covered);
    assert_eq!(world.explain(covered).0, "yes");
    direct.run("drop publication refrain");
    direct.run("create publication refrain for all tables with (publish = 'insert, update')");
    eventually("the table is covered no more", || world.explain(covered).1.starts_with("kinds"));
    direct.run("delete from covered");
    assert_eq!(reader.value(covered), "0");
}

fn a_filter_above_a_partition_counts_whatever_another_publication_has(version: Version) {
    let world = World::published(
        version,
        "create table parts (a int, b int) partition by range (a);
         create table part partition of parts for values from (0) to (1000);
         create table other (a int, b int); insert into other values (1, 1);
         insert into parts values (1, 1)",
        RULE,
        &[
            ("above", "for table parts where (a > 100) with (publish_via_partition_root)"),
            ("below", "for table part, other"),
        ],
    );
    let (mut reader, mut direct) = (world.reader(), world.direct());
    for (table, why) in [("parts", "child"), ("part", "row-filter")] {
        let text = format!("select sum(b) from {table}");
        eventually("it is known why a table is not covered", || {
            reader.value(&text);
            world.explain(&text).1.starts_with(why)
        });
        direct.run("insert into parts values (2, 1)");
        assert_eq!(reader.value(&text), direct.value(&text));
    }
    warm(&world.proxy, Way::Simple, &mut reader, "select sum(b) from other");
}

/// The stream does not name a relation again when one above it moves, and in a transaction that
/// comes in parts a name that is known says nothing.
fn what_has_moved_below_a_table_touches_it(version: Version) {
    let world = World::start(
        version,
        "create table top (a int, b text); create table middle (a int, b text);
         create table leaf () inherits (middle);
         create table parts (a int, b text) partition by range (a);
         create table part (a int, b text)",
        RULE,
    );
    let (mut reader, mut direct) = (world.reader(), world.direct());
    direct.run("alter system set logical_decoding_work_mem = '64kB'");
    direct.run("select pg_reload_conf()");
    let small = "insert into leaf values (1, 'x')";
    let large = "insert into part select a, repeat('x', 100) from generate_series(1, 5000) a";
    let inherits = "alter table middle inherit top";
    let attaches = "alter table parts attach partition part for values from (0) to (10000)";
    for (table, write, moves) in [("top", small, inherits), ("parts", large, attaches)] {
        let text = format!("select count(*) from {table}");
        direct.run(write);
        warm(&world.proxy, Way::Simple, &mut reader, &text);
        direct.run(moves);
        let rows = direct.value(&text);
        assert_ne!(rows, "0");
        // A server shows the move at once, and a read goes there whenever a proof is late.
        eventually("the move is seen from memory", || {
            let hits = world.proxy.counter("cache_hits");
            reader.value(&text) == rows && world.proxy.counter("cache_hits") > hits
        });
        for _ in 0..2 {
            direct.run(write);
            thread::sleep(STALENESS);
            assert_eq!(reader.value(&text), direct.value(&text), "{write}");
        }
    }
    assert_ne!(direct.value("select sum(stream_txns) from pg_stat_replication_slots"), "0");
}

fn a_stream_that_is_lost_gives_nothing_and_comes_back(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 0)";
    let mut world = World::start(version, setup, RULE);
    let text = "select b from t where a = 1";
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where application_name = 'refrain changes'";
    let mut reader = world.reader();
    for round in 1..4 {
        warm(&world.proxy, Way::Simple, &mut reader, text);
        let mut direct = world.direct();
        assert_eq!(direct.value(end), "2", "a walsender and a session for questions");
        direct.run(&format!("update t set b = {round}"));
        thread::sleep(STALENESS);
        assert_eq!(reader.value(text), round.to_string());
        eventually("the stream is live again", || world.is_live());
    }
    assert!(world.proxy.log().contains("changes of database shop are lost"));
    warm(&world.proxy, Way::Simple, &mut reader, text);
    world.cluster.stop();
    world.cluster.resume().unwrap();
    world.direct().run("update t set b = 9");
    let mut reader = world.reader();
    assert_eq!(reader.value(text), "9");
    eventually("the stream is live again", || world.is_live());
    warm(&world.proxy, Way::Simple, &mut reader, text);
}

fn nothing_is_left_of_a_refrain_that_is_killed(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 0)";
    let World { proxy, cluster } = World::start(version, setup, RULE);
    let mut direct = Session::open(addr(&cluster), DATABASE);
    eventually("there is a slot", || {
        direct.value("select count(*) from pg_replication_slots where temporary") == "1"
    });
    proxy.signal("KILL");
    eventually("the slot is gone", || {
        direct.value("select count(*) from pg_replication_slots") == "0"
    });
}

/// A walsender that makes a slot waits for all transactions that are open, and does not look at its
/// client on its own.
fn no_slot_is_left_of_a_stream_that_ends_while_it_is_made(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 0);
                 create publication other for table t";
    let World { proxy, cluster } = World::start(version, setup, RULE);
    let open = || Session::open(addr(&cluster), DATABASE);
    let mut direct = open();
    eventually("the stream is live", || proxy.show("cache changes")[0]["state"] == "live");
    let mut writer = open();
    writer.run("begin; update t set b = 1");
    // Each of these streams waits for the writer.
    let making = "select string_agg(slot_name, ' ') from pg_replication_slots
                  where confirmed_flush_lsn is null";
    let mut seen = Vec::new();
    for publication in ["other", "refrain"] {
        let publications = format!("[{publication:?}]");
        proxy.reload(&config(&cluster, RULE).server("publications", &publications));
        eventually("one slot is being made, and no other is there", || {
            let slots = direct.value(making);
            let is_new = !slots.is_empty() && !seen.contains(&slots);
            let is_alone = direct.value(SLOTS) == "1";
            if is_new && is_alone {
                seen.push(slots);
            }
            is_new && is_alone
        });
    }
    proxy.signal("KILL");
    eventually("the slot is gone", || direct.value(SLOTS) == "0");
    writer.run("commit");
}

/// `docs/cache.md` says so.
fn a_database_that_is_followed_is_not_dropped(version: Version) {
    let World { proxy, cluster } = World::start(version, "create table t (a int)", RULE);
    let psql = |text: &str| cluster.psql("postgres", text);
    eventually("there is a slot", || psql(SLOTS).unwrap().trim() == "1");
    let drop = format!("drop database {DATABASE} with (force)");
    for (refused, why) in [
        (drop.clone(), "logical replication slot"),
        (format!("alter database {DATABASE} rename to other"), "other users"),
        (format!("create database other template {DATABASE}"), "other users"),
    ] {
        let error = format!("{:?}", psql(&refused).unwrap_err());
        assert!(error.contains(why), "{refused}: {error}");
    }
    proxy.reload(&config(&cluster, ""));
    eventually("the slot is gone", || psql(SLOTS).unwrap().trim() == "0");
    psql(&drop).unwrap();
}
