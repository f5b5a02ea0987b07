//! The console and `refrain advise` on reads that are repeated, and on replies that are kept, over
//! PostgreSQL.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use refrain_differ::msg::Msg;

use crate::cache::{Way, warm};
use crate::session::{bind, execute, parse};
use crate::world::{Config, Proxy, Version, cluster, database};

/// Runs `refrain advise` against a proxy. Returns what it writes.
fn advise(proxy: &Proxy, user: &str) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_refrain"))
        .args(["advise", &proxy.addr().to_string(), "--user", user])
        .output()
        .expect("the program runs");
    let text = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8(text).expect("text"))
}

/// Refrain looks at requests for one second in thirty.
#[test]
fn reads_that_are_repeated_are_advised_to_be_kept() {
    let name = database("cache_advice");
    let proxy = Config::over(cluster(Version::V15)).general("workers", "1").start();
    let mut session = proxy.open(name);
    session.run("create table t as select 1 as a");
    let (fine, words) = advise(&proxy, "postgres");
    assert!(fine && words.contains("No read that could be kept"), "{words}");
    Way::Named.prepare(&mut session, "select a from t where a < 7");
    let begun = Instant::now();
    let repeated = |text: &str| {
        let rows = proxy.show_of("cache advice", name);
        rows.iter().any(|row| row["text"].contains(text) && row["repeats"] != "0")
    };
    while !(repeated("a > 0") && repeated("a < 0")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", proxy.show("cache advice"));
        for _ in 0..20 {
            session.run("select a from t where a > 5");
            session.run("update t set a = a");
            Way::Named.read(&mut session, "");
            // Some forty rounds in the second in which Refrain looks, and few in the others.
            thread::sleep(Duration::from_millis(25));
        }
    }
    let rows = proxy.show_of("cache advice", name);
    assert!(rows.iter().all(|row| !row["text"].contains("update")), "{rows:?}");
    let statements = proxy.show_of("statements", name);
    let saves = |row: &str| {
        let found = statements.iter().find(|it| it["text"].contains(row)).expect("it is there");
        found["repeated_us"].parse::<u64>().expect("a number")
    };
    assert!(saves("a < 0") > 0);
    let (fine, words) = advise(&proxy, "postgres");
    assert!(fine && words.contains("statement = \"select a from t where a > 0\""), "{words}");

    // The advice is a configuration, by which the replies are kept.
    let rules: String = words.split("[[cache.rules]]").skip(1).map(rule).collect();
    let config = Config::over(cluster(Version::V15)).general("workers", "1").more(&rules);
    proxy.reload(&config);
    for way in [Way::Simple, Way::Named] {
        warm(&proxy, way, &mut session, "select a from t where a > 5");
    }
    let (fine, words) = advise(&proxy, "nobody");
    assert!(!fine && words.starts_with("refrain advise: 127.0.0.1:"), "{words}");
}

/// Texts that are never kept are repeated as often as one that can be kept, and as one that a rule
/// is for.
#[test]
fn what_is_never_kept_is_not_advised() {
    let name = database("cache_not_advised");
    let rule = "[[cache.rules]]\ntable = \"covered\"\nttl = \"1ms\"\n";
    for (rules, covered) in [("", false), (rule, true)] {
        let proxy = Config::over(cluster(Version::V15)).general("workers", "1").more(rules).start();
        let mut session = proxy.open(name);
        session.run("create table if not exists t as select 1 as a");
        session.run("create table if not exists covered as select 1 as a");
        let texts = [
            "select pg_sleep(0.001)",
            "select random()",
            "select now()",
            "select current_timestamp, a from t",
            "select a from t where 'today'::date > '2020-01-01'",
            "select count(*) from pg_class",
            "select current_user",
            "select a from covered",
            "select a from t where a > 5",
        ];
        let named = ["select clock_timestamp(), a from t", "select a from t where a < 8"];
        for text in named {
            session.ask(&[parse(text, text), Msg::Sync]);
        }
        let advised = |text: &str| {
            let rows = proxy.show_of("cache advice", name);
            rows.iter().any(|row| row["text"].contains(text) && row["repeats"] != "0")
        };
        let begun = Instant::now();
        let rest = |begun: Instant| begun.elapsed() < Duration::from_secs(70);
        while !(advised("a > 0") && advised("a < 0") && advised("covered") != covered) {
            assert!(rest(begun), "{:?}", proxy.show("cache advice"));
            for _ in 0..10 {
                texts.iter().for_each(|text| drop(session.query(text)));
                for text in named {
                    session.ask(&[bind(text, &[]), execute(), Msg::Sync]);
                }
            }
            thread::sleep(Duration::from_millis(100));
        }
        // Reads are judged in batches: the last of them may still be under way.
        thread::sleep(Duration::from_secs(1));
        let rows = proxy.show_of("cache advice", name);
        let mut shown: Vec<_> = rows.iter().map(|row| &*row["text"]).collect();
        shown.sort_unstable();
        let due =
            ["select a from covered", "select a from t where a < 0", "select a from t where a > 0"];
        assert_eq!(shown, due[usize::from(covered)..]);
        let (fine, words) = advise(&proxy, "postgres");
        assert!(fine && words.matches("[[cache.rules]]").count() == shown.len(), "{words}");
    }
}

/// Returns a rule of the advice, with a longer time.
fn rule(text: &str) -> String {
    let keys = text.lines().filter(|line| !line.starts_with('#'));
    let keys: Vec<&str> = keys.filter(|line| !line.starts_with("ttl")).collect();
    format!("[[cache.rules]]\n{}\nttl = \"1h\"\n", keys.join("\n"))
}

#[test]
fn the_console_lists_replies_and_the_tables_that_they_read() {
    let name = database("cache_listing");
    let rules = "[[cache.rules]]\nname = \"few\"\ntable = \"few\"\nttl = \"1h\"\n\
                 [[cache.rules]]\nname = \"rest\"\nconsistency = \"ttl\"\n";
    let proxy = Config::over(cluster(Version::V15)).general("workers", "1").more(rules).start();
    let mut session = proxy.open(name);
    session.run("create table few as select 1 as a; create table many as select 2 as a");
    session.run("create view seen as select many.a from few, many");
    for text in ["select a from few", "select a from few where a = 3", "select a from many"] {
        warm(&proxy, Way::Simple, &mut session, text);
    }
    warm(&proxy, Way::Simple, &mut session, "select a from seen");
    let entries = proxy.show("cache entries");
    assert_eq!(entries.len(), 4, "{entries:?}");
    let of = |text: &str| {
        let found = entries.iter().find(|row| row["text"] == text);
        found.unwrap_or_else(|| panic!("{text} is not among {entries:?}"))
    };
    assert_eq!(
        (&*of("select a from few")["rule"], &*of("select a from few")["tables"]),
        ("few", "public.few")
    );
    assert_eq!(of("select a from many")["rule"], "rest");
    let left: u64 = of("select a from few where a = 0")["left_ms"].parse().expect("a number");
    assert!((3_000_000..=3_600_000).contains(&left), "{left}");
    let tables = proxy.show("cache tables");
    let replies = |table: &str| {
        let found = tables.iter().find(|row| row["table"] == table);
        found.map(|row| row["replies"].clone())
    };
    assert_eq!(
        (replies("public.few").as_deref(), replies("public.many").as_deref()),
        (Some("3"), Some("2"))
    );
    // A reply that is void is not listed.
    session.run("update few set a = 2");
    assert!(proxy.show("cache entries").len() < 4);
}
