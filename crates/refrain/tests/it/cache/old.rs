//! Replies whose time is over, over PostgreSQL: Refrain fetches others by itself, and gives the old
//! ones while it does, or if the database has none.

use std::thread;
use std::time::{Duration, Instant};

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::{Session, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    nobody_waits_for_a_slow_query_whose_time_is_over,
    what_is_fetched_has_the_settings_and_the_form_of_its_clients,
    old_replies_are_given_while_the_database_is_down,
    errors_of_a_query_are_not_hidden,
}

/// Runs the program on one core with this rule, which knows of no writes.
fn with_rule(version: Version, times: &str) -> Proxy {
    let rule = format!("[[cache.rules]]\nconsistency = \"ttl\"\njitter = \"0%\"\n{times}");
    // Each core would find out for itself what it knows of a text.
    let config = Config::over(cluster(version)).general("workers", "1").more(&rule);
    config.pool("track_functions", "\"off\"").start()
}

/// 100 clients read for two seconds what the database takes some 0.4 s to find, and whose time is
/// over each 0.1 s. Nobody but the first waits, and there is one execution at a time.
fn nobody_waits_for_a_slow_query_whose_time_is_over(version: Version) {
    let name = database_of(version, "cache_never_waits");
    let proxy = with_rule(version, "ttl = \"100ms\"\nstale_while_revalidate = \"1h\"\n");
    let mut sessions: Vec<Session> = (0..100).map(|_| proxy.open(name)).collect();
    sessions[0].run("create table t as select generate_series(1, 2000) as a");
    let text = "select count(*) from t a, t b where a.a + b.a > 1";
    warm(&proxy, Way::Simple, &mut sessions[0], text);
    let hits = || proxy.counter("cache_hits");
    let (before, begun, mut asked) = (hits(), Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(2) {
        sessions.iter_mut().for_each(|it| it.send(&[query(text)]));
        for session in &mut sessions {
            assert!(session.ready().words().contains("D(4000000)"));
            asked += 1;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let (hits, refreshes) = (hits() - before, proxy.counter("cache_refreshes"));
    assert_eq!(hits, asked);
    assert!(proxy.counter("cache_stale_hits") > 0 && proxy.counter("cache_waits") == 0);
    assert!((1..20).contains(&refreshes), "{refreshes} executions");
}

fn what_is_fetched_has_the_settings_and_the_form_of_its_clients(version: Version) {
    for way in WAYS {
        let name = database_of(version, "cache_fetched");
        let proxy = with_rule(version, "ttl = \"10ms\"\nstale_while_revalidate = \"1h\"\n");
        let mut direct = Session::open(addr(cluster(version)), name);
        direct.run("drop schema if exists one cascade; drop schema if exists two cascade");
        direct.run(
            "create schema one; create schema two; create table one.t (a int, t timestamptz);
             create table two.t as select 0 as a, 'two'::text as t; insert into one.t values (0, '2020-02-03 04:05:06+00')",
        );
        let text = "select a, t from t";
        let sets = [
            "set search_path = one",
            "set search_path = one; set timezone = 'Asia/Tokyo'",
            "set search_path = two",
        ];
        let mut sessions: Vec<Session> = Vec::new();
        let mut twins: Vec<Session> = Vec::new();
        for set in sets {
            for (session, all) in [
                (proxy.open(name), &mut sessions),
                (Session::open(addr(cluster(version)), name), &mut twins),
            ] {
                let mut session = session;
                session.run(set);
                way.prepare(&mut session, text);
                all.push(session);
            }
        }
        for session in &mut sessions {
            warm(&proxy, way, session, text);
        }
        for value in 1..4 {
            direct.run(&format!("update one.t set a = {value}; update two.t set a = {value}"));
            eventually("all have got the new replies", || {
                let pairs = sessions.iter_mut().zip(&mut twins);
                let words = pairs.map(|(one, two)| (way.read(one, text), way.read(two, text)));
                let news = words.filter(|(one, two)| one == two).count();
                news == sets.len()
            });
        }
        let misses = proxy.counter("cache_misses");
        thread::sleep(Duration::from_millis(50));
        for (session, twin) in sessions.iter_mut().zip(&mut twins) {
            assert_eq!(way.read(session, text), way.read(twin, text), "{way:?}");
        }
        assert_eq!(proxy.counter("cache_misses"), misses, "{way:?}: jobs fetch, and no client");
        assert!(proxy.counter("cache_refreshes") >= 3 * sets.len() as u64);
    }
}

fn old_replies_are_given_while_the_database_is_down(version: Version) {
    for way in WAYS {
        let name = database_of(version, "cache_down");
        let proxy = with_rule(version, "ttl = \"10ms\"\nstale_if_error = \"1h\"\n");
        let mut operator = Session::open(addr(cluster(version)), "postgres");
        let (mut one, mut two) = (proxy.open(name), proxy.open(name));
        one.run("drop table if exists t; create table t as select 'old' as a");
        let text = "select a from t";
        for session in [&mut one, &mut two] {
            way.prepare(session, text);
            eventually("the reply is kept", || {
                let fills = proxy.counter("cache_fills");
                way.read(session, text);
                proxy.counter("cache_fills") > fills
            });
        }
        operator.run(&format!("alter database {name} allow_connections false"));
        operator.run(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        ));
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(30));
            for session in [&mut one, &mut two] {
                let words = way.read(session, text);
                assert!(words.contains("D(old)"), "{way:?}: {words}");
            }
        }
        operator.run(&format!("alter database {name} allow_connections true"));
        let mut direct = Session::open(addr(cluster(version)), name);
        direct.run("update t set a = 'new'");
        eventually("the database is asked again", || way.read(&mut two, text).contains("D(new)"));
    }
}

fn errors_of_a_query_are_not_hidden(version: Version) {
    for way in WAYS {
        let name = database_of(version, "cache_errors");
        let times = "ttl = \"10ms\"\nstale_if_error = \"1h\"\nstale_while_revalidate = \"1h\"\n";
        let proxy = with_rule(version, times);
        let mut direct = Session::open(addr(cluster(version)), name);
        let mut session = proxy.open(name);
        session.run("drop table if exists t; create table t as select 4 as a");
        let text = "select 12 / a from t";
        way.prepare(&mut session, text);
        warm(&proxy, way, &mut session, text);
        direct.run("update t set a = 0");
        eventually("the error is told", || way.read(&mut session, text).contains("E(22012"));
        direct.run("update t set a = 3");
        assert!(way.read(&mut session, text).contains("D(4)"));
    }
}
