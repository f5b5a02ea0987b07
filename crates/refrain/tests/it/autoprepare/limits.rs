//! Autoprepare: its limits, the statements that it gives up, and the listings that show it.

use std::collections::BTreeMap;

use refrain_differ::msg::Msg;

use crate::session::{Session, query};
use crate::twin::{House, eager};
use crate::world::{Config, Version, cluster, eventually};

const SETUP: &str = "create table t as select generate_series(1, 100) as a; create index on t (a)";

/// Number of servers, and of clients, in the tests with many normalized queries.
const SERVERS: usize = 20;

/// Counts the prepared statements on the session's current server.
fn prepared(session: &mut Session) -> u64 {
    session.value("select count(*) from pg_prepared_statements").parse().unwrap()
}

/// Sends texts as fast as the peer takes them, and checks that none fails.
fn run_all(session: &mut Session, texts: &[String]) {
    for some in texts.chunks(100) {
        let msgs: Vec<Msg> = some.iter().map(|text| query(text)).collect();
        session.send(&msgs);
        for text in some {
            let reply = session.ready();
            assert!(reply.error().is_none(), "{text}: {}", reply.words());
        }
    }
}

fn texts(client: usize, count: usize) -> Vec<String> {
    let text = |number| format!("select a as c{client}_{number} from t where a = {}", number % 100);
    (0..count).map(text).collect()
}

/// Runs ten thousand normalized queries. Returns how many statements each server has.
fn ten_thousand(house: &House, name: &str) -> Vec<u64> {
    let clients: Vec<_> = (0..SERVERS).map(|client| (client, house.proxy.open(name))).collect();
    let running = clients.into_iter().map(|(client, mut session)| {
        std::thread::spawn(move || {
            run_all(&mut session, &texts(client, 10_000 / SERVERS));
            session
        })
    });
    let running: Vec<_> = running.collect();
    let mut sessions: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
    // Each session keeps a server, so that all servers are counted.
    sessions.iter_mut().for_each(|session| session.run("begin"));
    sessions.iter_mut().map(prepared).collect()
}

#[test]
fn ten_thousand_templates_and_the_limit_of_statements() {
    let config = eager(20).pool("autoprepare_limit", "50");
    let house = House::new("auto_limit", SETUP, config);
    let prepared = ten_thousand(&house, "auto_limit");
    assert!(prepared.iter().all(|count| *count <= 50), "{prepared:?}");
    assert!(prepared.iter().any(|count| *count > 10), "{prepared:?}");
    assert!(house.hits() > 5000, "{}", house.hits());
    let templates = house.proxy.show("autoprepare").len();
    assert!(templates <= 4 * 50 + 1, "{templates} templates");
    assert!(house.proxy.counter("evictions") > 5000);
    let servers = house.proxy.show_of("servers_extended", "auto_limit");
    let counts = servers.iter().map(|row| row["statements"].parse::<u64>().unwrap());
    assert!(counts.sum::<u64>() <= 50 * SERVERS as u64);
}

#[test]
fn ten_thousand_templates_and_the_limit_of_memory() {
    // A statement of a short text counts 8 KiB, and 32 bytes for each byte of its text.
    let config = eager(20).pool("autoprepare_memory_limit", "\"256KiB\"");
    let house = House::new("auto_memory", SETUP, config);
    let prepared = ten_thousand(&house, "auto_memory");
    assert!(prepared.iter().all(|count| *count <= 32), "{prepared:?}");
    assert!(house.hits() > 5000);
}

#[test]
fn the_limit_of_a_server_counts_all_statements() {
    let config = eager(1).pool("max_server_statements", "20");
    let house = House::new("auto_server_limit", SETUP, config);
    let mut session = house.proxy.open("auto_server_limit");
    run_all(&mut session, &texts(0, 300));
    session.run("begin");
    assert!(prepared(&mut session) <= 20);
}

#[test]
fn clients_of_different_settings_share_what_is_prepared() {
    let house = House::new("auto_settings", SETUP, eager(1));
    let client =
        |name| Session::with(house.proxy.addr(), "auto_settings", &[("application_name", name)]);
    let mut clients = [client("one"), client("two")];
    for number in 1..=20 {
        for client in &mut clients {
            let text = format!("select a from t where a = {number}");
            assert_eq!(client.query(&text).words(), format!("T D({number}) C(SELECT 1) Z(I)"));
        }
    }
    // Some queries run as they were sent, so that the times can be compared.
    assert!(house.hits() >= 20, "{}", house.hits());
    assert!(
        house.proxy.counter("settings_synced") >= 39,
        "{}",
        house.proxy.counter("settings_synced")
    );
    for (client, name) in clients.iter_mut().zip(["one", "two"]) {
        assert_eq!(client.value("show application_name"), name);
    }
}

#[test]
fn texts_that_are_all_distinct_are_not_prepared() {
    let config = Config::over(cluster(Version::V15)).pool("autoprepare", "\"on\"");
    let house = House::new("auto_distinct", SETUP, config);
    let mut session = house.proxy.open("auto_distinct");
    run_all(&mut session, &texts(0, 3000));
    assert_eq!(house.hits(), 0);
    assert_eq!(prepared(&mut session), 0);
    assert_eq!(house.proxy.counter("auto_verified"), 0);
}

#[test]
fn a_text_is_prepared_when_it_was_seen_often_enough() {
    let config = Config::over(cluster(Version::V15)).pool("autoprepare", "\"on\"");
    let house = House::new("auto_threshold", SETUP, config.pool("autoprepare_threshold", "10"));
    let mut pair = house.pair();
    (0..9).for_each(|a| drop(pair.same(&format!("select a from t where a = {a}"))));
    assert_eq!(house.hits(), 0);
    eventually("it is prepared", || {
        pair.same("select a from t where a = 3");
        house.hits() > 20
    });
    // A failed query is not counted.
    (0..50).for_each(|a| drop(pair.same(&format!("select {a} from t where 1 / (a - a) = 1"))));
    let row = template(&house, "1 / (a - a)");
    assert!(row.is_none_or(|row| row["hits"] == "0"));
}

/// Returns the console's row for the normalized query that contains `part`.
fn template(house: &House, part: &str) -> Option<BTreeMap<String, String>> {
    house.proxy.show("autoprepare").into_iter().find(|row| row["template"].contains(part))
}

#[test]
fn literals_beyond_the_limit() {
    let house = House::new("auto_literals", SETUP, eager(1).pool("autoprepare_max_literals", "3"));
    let mut pair = house.pair();
    (0..5).for_each(|_| drop(pair.same("select a from t where a in (1, 2, 3, 4) order by a")));
    assert_eq!(house.hits(), 0);
    (0..5).for_each(|_| drop(pair.same("select a from t where a in (1, 2, 3) order by a")));
    assert_eq!(house.hits(), 5);
}

/// A generic plan that is far worse than a plan for a value. PostgreSQL keeps it, because it
/// expects it to cost less: it folds the function if the argument is known, and otherwise calls it
/// for each row.
#[test]
fn a_template_that_is_slower_when_prepared_is_given_up() {
    let setup = "create function slow(int) returns int language plpgsql immutable cost 0.0001 as
        $$ begin perform pg_sleep(0.001); return $1; end $$;
        create table few as select generate_series(1, 40) as a; analyze few";
    let house = House::new("auto_skew", setup, eager(1));
    let mut pair = house.pair();
    let mut number = 0;
    eventually("it is given up", || {
        number = number % 40 + 1;
        pair.same(&format!("select count(*) from few where a = slow({number})"));
        house.proxy.counter("auto_too_slow") > 0
    });
    let hits = house.hits();
    (0..10).for_each(|a| drop(pair.same(&format!("select count(*) from few where a = slow({a})"))));
    assert_eq!(house.hits(), hits);
    let row = template(&house, "slow").unwrap();
    assert!(row["demotions"] == "1" && row["reason"].starts_with("slower: "), "{row:?}");
    assert!(row["time_saved_us"].starts_with('-'), "{row:?}");
    // The other normalized queries stay prepared.
    (0..5).for_each(|a| drop(pair.same(&format!("select a from few where a = {a}"))));
    assert_eq!(house.hits(), hits + 5);
}

/// One value is in half of the rows, after values that occur once: the kept plan looks for its
/// first row among all rows with the value. From then on the text with this value runs as it was
/// sent, and the others stay prepared; or, if that value came first, the whole normalized query is
/// given up.
#[test]
fn a_value_that_the_plan_does_not_fit() {
    let setup = "create table skewed as select case when i <= 20000 then 0 else i end as a, i as id
            from generate_series(1, 40000) i order by random();
        create index on skewed (a); create index on skewed (id); analyze skewed";
    let house = House::new("auto_skewed", setup, eager(1));
    let mut pair = house.pair();
    for a in 38_001..38_020 {
        pair.same(&format!("select id from skewed where a = {a} order by id limit 1"));
    }
    eventually("it is found", || {
        (0..10)
            .for_each(|_| drop(pair.same("select id from skewed where a = 0 order by id limit 1")));
        let row = template(&house, "skewed").unwrap();
        row["demotions"] == "1" || row["slow_texts"] == "1"
    });
}

#[test]
fn what_the_console_shows() {
    let house = House::new("auto_console", SETUP, eager(1));
    let mut pair = house.pair();
    (1..=5).for_each(|a| drop(pair.same(&format!("select a from t where a = {a} order by 1"))));
    pair.same("select date('2020-01-01')");
    pair.same("select concat(a, 'x', 5) from t where a = 7");
    let row = template(&house, "a = $1 order by 1").expect("it is shown");
    assert_eq!((&*row["database"], &*row["user"]), ("auto_console", "postgres"));
    assert_eq!(
        (&*row["seen"], &*row["hits"], &*row["kept"], &*row["demotions"]),
        ("5", "5", "1", "0")
    );
    let row = template(&house, "date(").expect("it is shown");
    assert_eq!((&*row["hits"], row["reason"].is_empty()), ("0", false));
    let asked = house.proxy.counter("auto_verified");
    house.proxy.order("flush autoprepare");
    assert!(house.proxy.show("autoprepare").is_empty());
    pair.same("select a from t where a = 1 order by 1");
    assert_eq!(house.proxy.counter("auto_verified"), asked + 1);
}

#[test]
fn explain_autoprepare() {
    let proxy = eager(1).start();
    let mut console = proxy.console();
    let reply = console.query(
        "explain autoprepare select 'é', -5, a from t where b = 'x;y' and c > date '2020-01-01' order by 2;",
    );
    let rows: Vec<Vec<String>> =
        reply.rows().into_iter().map(|row| row.into_iter().flatten().collect()).collect();
    let (outcome, literals) = rows.split_last().unwrap();
    let shown: Vec<_> = literals.iter().map(|row| row[..4].join(" ")).collect();
    let expected = [
        "8 'é' string parameter",
        "14 5 int4 parameter",
        "36 'x;y' string parameter",
        "55 '2020-01-01' string parameter",
        "77 2 int4 keep",
    ];
    assert_eq!(shown, expected);
    assert!(literals[4][4].starts_with("order-by: "), "{}", literals[4][4]);
    assert_eq!(
        outcome[..2],
        [
            "select $1,  $2, a from t where b = $3 and c > CAST($4 AS date) order by 2;".to_owned(),
            "prepare".to_owned()
        ]
    );
    let reply = console.query("EXPLAIN AUTOPREPARE select 1; select 2");
    assert!(reply.words().contains("run as sent,several: "), "{}", reply.words());
    assert_eq!(console.query("explain analyze select 1").code(), "42601");
    assert_eq!(console.query("flush everything").code(), "42601");
}

/// Users do not share statements.
#[test]
fn pools_have_templates_of_their_own() {
    let setup = "create table mine as select current_user::text as who, 1 as a;
        do $$ begin create role auto_other login superuser; exception when others then null; end $$";
    let house = House::new("auto_pools", setup, eager(1));
    let postgres = [("user", "postgres"), ("database", "auto_pools")];
    let other = [("user", "auto_other"), ("database", "auto_pools")];
    for _ in 0..5 {
        for params in [postgres, other] {
            let mut session = Session::login(house.proxy.addr(), &params).unwrap();
            assert_eq!(session.value("select current_user, 1 from mine where a = 1"), params[0].1);
        }
    }
    let rows = house.proxy.show("autoprepare");
    let count = rows.iter().filter(|row| row["template"].contains("from mine")).count();
    assert_eq!(count, 2);
}

#[test]
fn statements_are_prepared_anew_when_they_are_old() {
    let house = House::new("auto_age", SETUP, eager(1).pool("autoprepare_max_age", "\"1s\""));
    let mut pair = house.pair();
    pair.same("select a from t where a = 1");
    let before = house.proxy.counter("auto_verified");
    eventually("it is prepared anew", || {
        pair.same("select a from t where a = 1");
        house.proxy.counter("auto_verified") > before
    });
    // From now on, the sessions are expected to see a change made directly at the server.
    for mut session in [house.behind(), house.copy()] {
        session
            .run("create schema postgres; create table postgres.t as select 1 as a, 'nearer' as b");
    }
    eventually("it is followed", || {
        let reply = pair.proxied.query("select count(b) from t where a = 1");
        reply.error().is_none()
    });
}

/// Returns SQL for a table with this number of partitions; a generic plan has all of them.
fn partitioned(partitions: u32) -> String {
    format!(
        "create table p (r int, id int, v text) partition by list (r);
        do $$ begin for n in 1..{partitions} loop
            execute format('create table p%s partition of p for values in (%s)', n, n);
        end loop; end $$; insert into p select r, r, r from generate_series(1, {partitions}) r"
    )
}

/// Runs ten statements on such a table, each often enough for the server to keep a plan.
fn ten_of_partitions(house: &House) {
    let mut pair = house.pair();
    for number in 0..70 {
        let (template, r) = (number % 10, number / 10 + 1);
        pair.same(&format!("select v as v{template} from p where r = {r} and id = {r}"));
    }
}

#[test]
fn a_plan_with_many_partitions_takes_much_of_the_limit() {
    let config = eager(1).pool("autoprepare_memory_limit", "\"2MiB\"");
    let house = House::new("auto_partitions", &partitioned(100), config);
    ten_of_partitions(&house);
    let mut session = house.proxy.open("auto_partitions");
    let kib = "select sum(total_bytes)::int / 1024 from pg_backend_memory_contexts \
        where name = 'CachedPlan'";
    let kib: u64 = session.value(kib).parse().unwrap();
    // The plan of each statement takes half a MiB.
    assert!(kib <= 3 * 1024, "{kib} KiB for {} statements", prepared(&mut session));
    assert!((3..=5).contains(&prepared(&mut session)), "{}", prepared(&mut session));
    assert!(house.hits() >= 70, "{}", house.hits());
}

#[test]
fn a_plan_that_takes_more_than_the_limit_is_not_kept() {
    let config = eager(1).pool("autoprepare_memory_limit", "\"256KiB\"");
    let house = House::new("auto_huge", &partitioned(100), config);
    ten_of_partitions(&house);
    assert_eq!(house.hits(), 0);
    let row = template(&house, "from p where").unwrap();
    assert_eq!((&*row["state"], &*row["reason"]), ("refused", "memory"));
    // An INSERT finds its partition when it runs, so its plan is small.
    let mut pair = house.pair();
    (1..=8).for_each(|r| drop(pair.same(&format!("insert into p values ({r}, {r}, 'x')"))));
    assert_eq!(house.hits(), 8);
}
