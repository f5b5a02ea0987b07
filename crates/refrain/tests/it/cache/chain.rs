//! Two Refrains, one in front of the other, both with a cache: replies do not get older than one of
//! them allows.

use std::thread;
use std::time::{Duration, Instant};

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of};

with_both_versions! {
    the_times_of_a_chain_do_not_add_up,
}

/// Time for which each of the two keeps a reply.
const TTL: Duration = Duration::from_millis(600);

/// Milliseconds that the clocks of three programs may differ in what they take for now.
const CLOCKS_MS: u64 = 50;

fn config(version: Version, more: &str) -> Config {
    let rule = format!(
        "[[cache.rules]]\nconsistency = \"ttl\"\njitter = \"0%\"\nttl = \"{}ms\"\n{more}",
        TTL.as_millis()
    );
    let config = Config::over(cluster(version)).general("workers", "1").more(&rule);
    config.pool("track_functions", "\"off\"")
}

/// A reader of the outer one reads a value that is overwritten all the time: it gets none that was
/// overwritten longer ago than the `ttl`, though the inner one is asked for it at any moment of its
/// reply's time.
fn the_times_of_a_chain_do_not_add_up(version: Version) {
    for more in ["", "stale_while_revalidate = \"1ms\"\n"] {
        let inner = config(version, more).start();
        let port = inner.addr().port().to_string();
        let outer = config(version, more)
            .server("port", &port)
            .server("parameters", "{ \"refrain.ages\" = \"on\" }")
            .start();
        for way in WAYS {
            check(version, way, &inner, &outer);
        }
    }
}

fn check(version: Version, way: Way, inner: &Proxy, outer: &Proxy) {
    let name = database_of(version, "cache_chain");
    let mut direct = Session::open(addr(cluster(version)), name);
    direct.run("drop table if exists t; create table t as select 0::int8 as a");
    let text = "select a from t";
    let (mut one, mut two) = (inner.open(name), outer.open(name));
    for (proxy, session) in [(inner, &mut one), (outer, &mut two)] {
        way.prepare(session, text);
        warm(proxy, way, session, text);
    }
    let value = |words: &str| {
        let (_, rest) = words.split_once("D(").expect("there is a row");
        rest.split_once(')').and_then(|(value, _)| value.parse::<usize>().ok()).expect("a number")
    };
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_millis()).expect("a short test");
    let hits = inner.counter("cache_hits");
    // When each value was overwritten, as far as that is known: at this time or before.
    let (mut overwritten, mut kept) = (Vec::new(), 0);
    while begun.elapsed() < 4 * TTL {
        direct.run(&format!("update t set a = {}", overwritten.len() + 1));
        overwritten.push(now());
        // The inner one has a reply of which half of the time is over when the outer one asks.
        way.read(&mut one, text);
        let before = now();
        let found = value(&way.read(&mut two, text));
        kept += u64::from(found < overwritten.len());
        if let Some(at) = overwritten.get(found) {
            let age = before.saturating_sub(*at);
            let most = u64::try_from(TTL.as_millis()).expect("a short time") + CLOCKS_MS;
            assert!(age <= most, "{way:?}: a value was given {age} ms after it was overwritten");
        }
        thread::sleep(Duration::from_millis(7));
    }
    assert!(kept > 0 && inner.counter("cache_hits") > hits, "{way:?}: nothing was kept");
}
