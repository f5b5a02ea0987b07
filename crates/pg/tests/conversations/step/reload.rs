//! Rules of the cache that come into force while transactions are open.

use crate::step::answer::{RULE, SECOND, Scene, UPDATE, Way, caching};
use crate::talk::*;

#[test]
fn a_write_from_before_the_first_rule_voids_what_was_read_before_its_end() {
    let (way, two) = (Way::Simple, "pool_size = 2");
    let scene = Scene::known(way, &[RULE]);
    scene.talk.reloads(&options(two));
    scene.alice.opens_block(&scene.server);
    scene.alice.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
    scene.talk.reloads(&caching(two, &[RULE]));
    let reads = |server: &Party| {
        server.gets(way.request("1")).answers(way.reply("old"));
        scene.bob.gets(way.reply("old"));
    };
    // Other cores may not note their writes yet: at first nothing is kept.
    for _ in 0..2 {
        scene.bob.sends(way.request("1"));
        reads(&scene.talk.server(2));
    }
    scene.talk.waits(3 * SECOND);
    scene.bob.sends(way.request("1"));
    reads(&scene.talk.server(2));
    scene.hits_beside(&scene.bob, "1", "old");
    scene.alice.commits(&scene.server);
    scene.goes_to_a_server(&scene.bob, "1");
}
