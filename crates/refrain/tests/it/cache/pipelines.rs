//! Several statements under one Sync, whose replies are kept as one, over PostgreSQL.

use refrain_differ::msg::Msg;

use crate::cache::with_both_versions;
use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    a_pipeline_is_answered_as_a_whole_or_not_at_all,
}

/// Reads of two tables.
const ONE: &str = "select a from t where a >= $1::int4 order by a";
const TWO: &str = "select b from u where b = $1::int4";

fn describe() -> Msg {
    Msg::DescribePortal(Vec::new())
}

/// Pipelines, each of the same two reads with these values.
fn pipelines(one: &str, two: &str) -> Vec<Vec<Msg>> {
    let (one, two) = ([one], [two]);
    vec![
        vec![bind("s", &one), execute(), bind("r", &two), execute(), Msg::Sync],
        vec![
            parse("", ONE),
            bind("", &one),
            describe(),
            execute(),
            parse("", TWO),
            bind("", &two),
            describe(),
            execute(),
            Msg::Sync,
        ],
        vec![parse("", ONE), bind("", &one), execute(), bind("r", &two), execute(), Msg::Sync],
        vec![bind("s", &one), execute(), parse("", TWO), bind("", &two), execute(), Msg::Sync],
    ]
}

struct Scene {
    proxy: Proxy,
    client: Session,
    direct: Session,
}

impl Scene {
    fn new(version: Version) -> Self {
        let name = database_of(version, "cache_pipelines");
        let config = Config::over(cluster(version)).general("workers", "1");
        let config = config.pool("track_functions", "\"off\"").more("[[cache.rules]]\n");
        let proxy = config.start();
        let mut direct = Session::open(addr(cluster(version)), name);
        direct.run("drop table if exists t, u; create table t as select generate_series(1, 5) a");
        direct.run("create table u as select generate_series(1, 5) b");
        let mut client = proxy.open(name);
        for session in [&mut client, &mut direct] {
            session.ask(&[parse("s", ONE), parse("r", TWO), Msg::Sync]);
        }
        Self { proxy, client, direct }
    }

    /// Asks, and compares the reply with PostgreSQL's. Returns whether it came from the cache.
    fn is_kept(&mut self, messages: &[Msg]) -> bool {
        let before = self.proxy.counter("cache_hits");
        let reply = self.client.ask(messages);
        assert_eq!(reply.words(), self.direct.ask(messages).words());
        self.proxy.counter("cache_hits") > before
    }
}

fn a_pipeline_is_answered_as_a_whole_or_not_at_all(version: Version) {
    let mut scene = Scene::new(version);
    for messages in pipelines("2", "3") {
        eventually("the pipeline is kept", || scene.is_kept(&messages));
        assert!(scene.is_kept(&messages));
        // The unnamed statement is that of the last Parse, if there was one.
        let parse = messages.iter().rev().find_map(|message| match message {
            Msg::Parse(name, text, _) if name.is_empty() => Some(text),
            _ => None,
        });
        if parse.is_some() {
            scene.is_kept(&[bind("", &["4"]), describe(), execute(), Msg::Sync]);
        }
    }
    // Other values are another reply, whichever of the two they are of.
    for (one, two) in [("3", "3"), ("2", "4"), ("23", ""), ("x", "3"), ("2", "x")] {
        for messages in pipelines(one, two) {
            assert!(!scene.is_kept(&messages), "{one} {two}");
        }
    }
    // A reply with an error is not kept, and a write to either table voids the whole.
    assert!(!scene.is_kept(&pipelines("2", "x")[0]));
    for table in ["update t set a = a + 1", "update u set b = b + 1"] {
        let messages = &pipelines("2", "3")[0];
        eventually("the pipeline is kept", || scene.is_kept(messages));
        scene.client.run(table);
        assert!(!scene.is_kept(messages), "{table}");
    }
}
