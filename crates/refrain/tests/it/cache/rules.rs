//! The parts of a rule, over PostgreSQL: to which requests it applies, and for how long and for
//! whom its replies are kept.

use std::thread;
use std::time::Duration;

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    a_rule_applies_to_an_application,
    a_rule_applies_to_texts_that_its_expression_describes,
    a_text_with_a_hint_is_kept_without_a_rule,
    a_hint_changes_the_rule_that_applies,
    trusted_functions_depend_on_every_write,
    each_time_of_a_rule_acts,
    a_reply_that_is_too_long_is_not_kept,
    users_of_a_group_share_replies,
    a_quota_of_memory_holds,
    a_shorter_time_acts_at_once,
}

/// Runs the program on one core: each would find out for itself what it knows of a text.
fn config(version: Version, rules: &str) -> Config {
    let config = Config::over(cluster(version)).general("workers", "1").more(rules);
    config.pool("track_functions", "\"off\"").pool("pool_size", "4")
}

fn caching(version: Version, rules: &str) -> Proxy {
    config(version, rules).start()
}

/// Makes the table and opens a direct connection, whose writes the program does not see.
fn with_table(version: Version, name: &str) -> Session {
    let mut direct = Session::open(addr(cluster(version)), name);
    direct.run("drop table if exists t; create table t as select 1 as a");
    direct
}

/// Whether a session gets the reply from memory that is there: the row is not what it was.
fn is_kept(way: Way, session: &mut Session, direct: &mut Session, text: &str) -> bool {
    let before = way.read(session, text);
    direct.run("update t set a = a + 1");
    way.read(session, text) == before
}

/// Reads until a reply is kept, if for a short time.
fn fills(proxy: &Proxy, way: Way, session: &mut Session, text: &str) {
    let before = proxy.counter("cache_fills");
    eventually("a reply is kept", || {
        way.read(session, text);
        proxy.counter("cache_fills") > before
    });
}

/// Reads often enough for Refrain to find out that the text is a read.
fn becomes_known(proxy: &Proxy, way: Way, session: &mut Session, text: &str) {
    let unknown = || proxy.counter("cache_bypass_unknown") + proxy.counter("cache_bypass_form");
    eventually("the read is known", || {
        let before = unknown();
        way.read(session, text);
        thread::sleep(Duration::from_millis(20));
        unknown() == before
    });
}

fn a_rule_applies_to_an_application(version: Version) {
    let rule = "[[cache.rules]]\napplication_name = \"report\"\nconsistency = \"ttl\"\n";
    for way in WAYS {
        let name = database_of(version, "cache_application");
        let (proxy, text) = (caching(version, rule), "select a from t");
        let mut direct = with_table(version, name);
        let named = |name: &str, application: &str| {
            let params = [("user", "postgres"), ("application_name", application)];
            Session::with(proxy.addr(), name, &params[1..])
        };
        let (mut report, mut shop) = (named(name, "report"), named(name, "shop"));
        way.prepare(&mut report, text);
        way.prepare(&mut shop, text);
        warm(&proxy, way, &mut report, text);
        assert!(is_kept(way, &mut report, &mut direct, text), "{way:?}");
        becomes_known(&proxy, way, &mut shop, text);
        assert!(!is_kept(way, &mut shop, &mut direct, text), "{way:?}");
        // The name is a setting that a session may change.
        shop.run("set application_name = 'report'");
        eventually("the session counts as the application", || {
            is_kept(way, &mut shop, &mut direct, text)
        });
        report.run("set application_name = 'other'");
        eventually("the session does not", || !is_kept(way, &mut report, &mut direct, text));
    }
}

fn a_rule_applies_to_texts_that_its_expression_describes(version: Version) {
    let rule = "[[cache.rules]]\nregex = \"(?i)FROM t WHERE\"\nconsistency = \"ttl\"\n";
    for way in WAYS {
        let name = database_of(version, "cache_regex");
        let proxy = caching(version, rule);
        let mut direct = with_table(version, name);
        for (text, keeps) in [("select a from t where 1 = 1", true), ("select a from t", false)] {
            let mut session = proxy.open(name);
            way.prepare(&mut session, text);
            if keeps {
                warm(&proxy, way, &mut session, text);
            } else {
                becomes_known(&proxy, way, &mut session, text);
            }
            assert_eq!(is_kept(way, &mut session, &mut direct, text), keeps, "{way:?} {text}");
        }
    }
}

fn a_text_with_a_hint_is_kept_without_a_rule(version: Version) {
    for way in WAYS {
        let name = database_of(version, "cache_hints");
        let proxy = caching(version, "[cache]\nhints = true\n");
        let mut direct = with_table(version, name);
        let mut session = proxy.open(name);
        let hinted = "/* refrain: ttl=1h tag=shop */ select a from t";
        way.prepare(&mut session, hinted);
        warm(&proxy, way, &mut session, hinted);
        assert!(is_kept(way, &mut session, &mut direct, hinted));
        // A hint does not say `ttl`, so a write through Refrain voids the reply.
        session.run("update t set a = 100");
        assert!(way.read(&mut session, hinted).contains("D(100)"));
        proxy.order("flush cache tag shop");
        direct.run("update t set a = 200");
        assert!(way.read(&mut session, hinted).contains("D(200)"));
        let rules = proxy.show_of("cache rules", name);
        assert_eq!(rules.len(), 1);
        assert!(rules[0]["rule"] == "hint" && rules[0]["hits"].parse::<u64>().unwrap() > 0);
        for plain in ["select a from t", "/* refrain: ttl=soon */ select a from t"] {
            let mut session = proxy.open(name);
            way.prepare(&mut session, plain);
            becomes_known(&proxy, way, &mut session, plain);
            assert!(!is_kept(way, &mut session, &mut direct, plain), "{way:?} {plain}");
        }
        let explained =
            |text: &str| proxy.console().query(&format!("explain cache {text}")).words();
        assert!(explained("/* refrain: ttl=soon */ select a from t").contains("ttl=soon"));
        assert!(explained(hinted).contains("yes,hint,writes"), "{}", explained(hinted));
        let disregarded = caching(version, "[[cache.rules]]\ndatabase = \"another\"\n");
        let mut session = disregarded.open(name);
        way.prepare(&mut session, hinted);
        (0..10).for_each(|_| drop(way.read(&mut session, hinted)));
        assert!(!is_kept(way, &mut session, &mut direct, hinted));
    }
}

fn a_hint_changes_the_rule_that_applies(version: Version) {
    let rules = "[cache]\nhints = true\n[[cache.rules]]\nname = \"long\"\nttl = \"1h\"\n\
                 jitter = \"0%\"\nconsistency = \"ttl\"\n";
    for way in WAYS {
        let name = database_of(version, "cache_hint_over");
        let (proxy, text) = (caching(version, rules), "select a from t");
        let mut direct = with_table(version, name);
        for (hint, keeps) in [("", true), ("/* refrain: ttl=10ms */ ", false)] {
            let text = format!("{hint}{text}");
            let mut session = proxy.open(name);
            way.prepare(&mut session, &text);
            fills(&proxy, way, &mut session, &text);
            let before = way.read(&mut session, &text);
            direct.run("update t set a = a + 1");
            thread::sleep(Duration::from_millis(30));
            assert_eq!(way.read(&mut session, &text) == before, keeps, "{way:?} {hint}");
        }
        assert_eq!(proxy.show_of("cache rules", name)[0]["rule"], "long");
    }
}

fn trusted_functions_depend_on_every_write(version: Version) {
    for way in WAYS {
        let name = database_of(version, "cache_trust");
        let proxy = caching(
            version,
            "[[cache.rules]]\ntable = \"other\"\ntrust_stable_functions = true\n[[cache.rules]]\n",
        );
        let mut direct = with_table(version, name);
        direct.run(
            "drop table if exists other, third; create table other as select 1 as b;
             create table third as select 1 as c;
             create or replace function f() returns int language sql stable as
                 'select a from public.t'",
        );
        let mut session = proxy.open(name);
        let (trusted, plain) = ("select f(), b from other", "select f()");
        way.prepare(&mut session, trusted);
        warm(&proxy, way, &mut session, trusted);
        assert!(is_kept(way, &mut session, &mut direct, trusted));
        // Nobody knows what the function reads: each write counts.
        for write in ["update t set a = 50", "update third set c = 2"] {
            warm(&proxy, way, &mut session, trusted);
            // At first a write voids all replies, whatever it writes.
            (0..10).for_each(|_| session.run(write));
            let before = proxy.counter("cache_misses");
            way.read(&mut session, trusted);
            assert_eq!(proxy.counter("cache_misses"), before + 1, "{way:?} {write}");
        }
        session.run("update t set a = 60");
        assert!(way.read(&mut session, trusted).contains("60"));
        let mut session = proxy.open(name);
        way.prepare(&mut session, plain);
        becomes_known(&proxy, way, &mut session, plain);
        assert!(!is_kept(way, &mut session, &mut direct, plain), "no rule trusts it");
    }
}

/// `ttl`, `empty_ttl` and `jitter`.
fn each_time_of_a_rule_acts(version: Version) {
    let rule = "[[cache.rules]]\nconsistency = \"ttl\"\nttl = \"600ms\"\nempty_ttl = \"10ms\"\n\
                jitter = \"0%\"\n";
    for way in WAYS {
        let name = database_of(version, "cache_times");
        let proxy = caching(version, rule);
        let mut direct = with_table(version, name);
        for (text, keeps) in [("select a from t", true), ("select a from t where a < 0", false)] {
            let mut session = proxy.open(name);
            way.prepare(&mut session, text);
            fills(&proxy, way, &mut session, text);
            let mut hits = || {
                let before = proxy.counter("cache_hits");
                way.read(&mut session, text);
                thread::sleep(Duration::from_millis(30));
                way.read(&mut session, text);
                proxy.counter("cache_hits") - before
            };
            // The time of a reply may end amid a try.
            let most = (0..3).map(|_| hits()).max();
            assert_eq!(most == Some(2), keeps, "{way:?} {text}");
        }
        let mut session = proxy.open(name);
        way.prepare(&mut session, "select a from t");
        direct.run("update t set a = 77");
        eventually("the time is over", || way.read(&mut session, "select a from t").contains("77"));
    }
}

fn a_reply_that_is_too_long_is_not_kept(version: Version) {
    let rule = "[[cache.rules]]\nmax_result_size = \"2KiB\"\n";
    for way in WAYS {
        let name = database_of(version, "cache_long");
        let proxy = caching(version, rule);
        let mut direct = with_table(version, name);
        for (count, keeps) in [(10, true), (400, false)] {
            let text = format!("select a from t, generate_series(1, {count})");
            let mut session = proxy.open(name);
            way.prepare(&mut session, &text);
            if keeps {
                warm(&proxy, way, &mut session, &text);
            } else {
                let refused = || proxy.counter("cache_fills_refused");
                eventually("a reply is too long", || {
                    way.read(&mut session, &text);
                    refused() > 0
                });
            }
            assert_eq!(is_kept(way, &mut session, &mut direct, &text), keeps, "{way:?} {count}");
        }
    }
}

fn users_of_a_group_share_replies(version: Version) {
    let text = "select a from t";
    for (group, shares) in [("", false), ("share_group = \"all\"\n", true)] {
        for way in WAYS {
            let name = database_of(version, "cache_groups");
            let rule = format!("[[cache.rules]]\nconsistency = \"ttl\"\n{group}");
            let mut direct = with_table(version, name);
            direct.run("drop role if exists cache_reader; create role cache_reader login");
            direct.run("grant select on t to cache_reader");
            let proxy = caching(version, &rule);
            let mut owner = proxy.open(name);
            let mut reader =
                Session::login(proxy.addr(), &[("user", "cache_reader"), ("database", name)])
                    .expect("the reader logs in");
            for session in [&mut owner, &mut reader] {
                way.prepare(session, text);
                warm(&proxy, way, session, text);
            }
            // Whoever asks first fetches; with a group, the other gets that reply.
            proxy.order("flush cache");
            way.read(&mut owner, text);
            let before = proxy.counter("cache_misses");
            way.read(&mut reader, text);
            let missed = proxy.counter("cache_misses") - before;
            assert_eq!(missed, u64::from(!shares), "{way:?} {group}");
            direct.run("revoke select on t from cache_reader; drop role cache_reader");
        }
    }
}

fn a_quota_of_memory_holds(version: Version) {
    let rules = "[[cache.rules]]\nname = \"small\"\nmemory = \"64KiB\"\ntable = \"t\"\n\
                 [[cache.rules]]\nname = \"rest\"\n";
    let name = database_of(version, "cache_quota");
    let proxy = caching(version, rules);
    drop(with_table(version, name));
    let mut session = proxy.open(name);
    session.run("drop table if exists u; create table u as select 1 as a");
    let text = |table: &str, number: u32| {
        format!("select a, repeat('x', 200) from {table} where a <> {number}")
    };
    let entries = || {
        let words = proxy.console().query("show cache memory").words();
        let (_, rest) = words.split_once("D(entries,").expect("there is a row");
        rest.split_once(')').and_then(|(count, _)| count.parse::<u64>().ok()).expect("a number")
    };
    fills(&proxy, Way::Simple, &mut session, &text("t", 0));
    (1..1000).for_each(|number| session.run(&text("t", number)));
    let small = entries();
    assert!((10..300).contains(&small), "{small} replies");
    fills(&proxy, Way::Simple, &mut session, &text("u", 0));
    (1..1000).for_each(|number| session.run(&text("u", number)));
    assert!(entries() >= small + 990, "{}", entries());
}

fn a_shorter_time_acts_at_once(version: Version) {
    let rule = |ttl: &str| {
        format!("[[cache.rules]]\njitter = \"0%\"\nconsistency = \"ttl\"\nttl = \"{ttl}\"\n")
    };
    for way in WAYS {
        let name = database_of(version, "cache_shorter");
        let (proxy, text) = (caching(version, &rule("1h")), "select a from t");
        let mut direct = with_table(version, name);
        let mut session = proxy.open(name);
        way.prepare(&mut session, text);
        warm(&proxy, way, &mut session, text);
        assert!(is_kept(way, &mut session, &mut direct, text));
        thread::sleep(Duration::from_millis(20));
        proxy.reload(&config(version, &rule("10ms")));
        direct.run("update t set a = 99");
        thread::sleep(Duration::from_millis(20));
        eventually("the time is over", || way.read(&mut session, text).contains("99"));
    }
}
