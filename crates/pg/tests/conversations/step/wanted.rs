//! Requests whose replies are kept: several statements under one Sync.

use crate::step::answer::{RULE, Scene, Way};
use crate::talk::*;

#[test]
fn the_reply_to_several_statements_is_kept_as_one() {
    let scene = Scene::known(Way::Named, &[RULE]);
    let pipeline = |name: &str, values: [&str; 2]| {
        let part = |value| vec![bind_value("", name, value), execute("")];
        [part(values[0]), part(values[1]), vec![sync()]].concat()
    };
    let part = |found| vec![bind_complete(), row(&[found]), complete("SELECT 1")];
    let reply = [part("one"), part("two"), vec![ready()]].concat();
    scene.alice.sends(pipeline("s", ["1", "2"]));
    scene.server.gets(pipeline("~1", ["1", "2"])).answers(reply.clone());
    scene.alice.gets(reply.clone());
    scene.bob.sends(pipeline("s", ["1", "2"])).gets(reply);
    scene.server.gets_nothing();
    // Neither a part of it nor another order is the same request.
    scene.asks_server(&scene.bob, "1", "one");
    scene.bob.sends(pipeline("s", ["2", "1"]));
    scene.server.gets(pipeline("~1", ["2", "1"]));
    assert_eq!(scene.talk.counters().protocol.cache_hits, 1);
}
