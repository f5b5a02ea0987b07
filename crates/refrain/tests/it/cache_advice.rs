//! The console and `refrain advise` on reads that are repeated, and on replies that are kept, over
//! PostgreSQL.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::{Way, warm};
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
    assert!(fine && words.contains("No read was repeated"), "{words}");
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
            thread::sleep(Duration::from_millis(5));
        }
    }
    let rows = proxy.show_of("cache advice", name);
    assert!(rows.iter().all(|row| !row["text"].contains("update")), "{rows:?}");
    let statements = proxy.show_of("statements", name);
    let saves = |row: &str| {
        let found = statements.iter().find(|it| it["text"].contains(row)).expect("it is there");
        found["repeated_us"].parse::<u64>().expect("a number")
    };
    assert!(saves("a < 7") > 0);
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
