//! Writes, where replies are kept: what they make wrong is given to nobody once their client may
//! know of them.

use std::time::Duration;

use crate::step::answer::{READ, RULE, SECOND, Scene, UPDATE, WAYS, Way};
use crate::talk::*;

#[test]
fn a_write_of_another_client_voids_before_its_client_hears_of_it() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(UPDATE)]);
        scene.server.gets([query(UPDATE)]);
        // Nobody can know yet that the write has taken effect.
        scene.hits(&scene.alice, "1", "one");
        scene.server.answers([complete("UPDATE 1")]);
        scene.bob.gets([complete("UPDATE 1")]);
        scene.alice.sends(way.request("1")).gets_nothing();
        let second = scene.talk.server(2);
        if way == Way::Named {
            second.gets([parse("~1", READ), describe_statement("~1"), flush()]);
            second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        }
        second.gets(way.sent("1")).answers(way.reply("two"));
        scene.alice.gets(way.reply("two"));
        scene.server.answers([ready()]);
        scene.bob.gets([ready()]);
        // The write may have been committed behind the read.
        scene.goes_to_a_server(&scene.alice, "1");
    }
}

#[test]
fn a_write_in_a_block_voids_when_the_block_ends() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.opens_block(&scene.server);
        scene.bob.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
        scene.hits(&scene.alice, "1", "one");
        scene.bob.commits(&scene.server);
        scene.asks_server(&scene.alice, "1", "two");
        scene.hits(&scene.bob, "1", "two");
    }
}

#[test]
fn whatever_may_write_voids() {
    for text in [
        "insert into t values (1)",
        "with x as (delete from t returning a) select * from x",
        "select f(1)",
        "call p()",
        "do $$ begin end $$",
        "truncate t",
        "create table u ()",
        "commit prepared 'x'",
        "execute s",
        "explain analyze delete from t",
    ] {
        let scene = Scene::known(Way::Unnamed, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(text)]);
        scene.server.gets([query(text)]).answers([complete("X"), ready()]);
        scene.bob.gets([complete("X"), ready()]);
        scene.bob.forgets();
        scene.goes_to_a_server(&scene.alice, "1");
    }
    for text in ["begin", "commit", "show all", "select 1", "listen x"] {
        let scene = Scene::known(Way::Unnamed, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(text)]);
        scene.server.gets([query(text)]).answers([complete("X"), ready()]);
        scene.bob.gets([complete("X"), ready()]);
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_prepared_write_and_a_function_call_void() {
    let scene = Scene::known(Way::Simple, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.bob.sends([parse("", UPDATE), bind("", ""), execute(""), sync()]);
    scene.server.gets([parse("", UPDATE), bind("", ""), execute(""), sync()]);
    let done = [parse_complete(), bind_complete(), complete("UPDATE 1"), ready()];
    scene.server.answers(done.clone());
    scene.bob.gets(done);
    scene.asks_server(&scene.alice, "1", "one");
    scene.bob.sends([function_call(7)]);
    scene.server.gets([function_call(7)]).answers([function_result(), ready()]);
    scene.bob.gets([function_result(), ready()]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.hits(&scene.bob, "1", "one");
}

#[test]
fn nothing_is_kept_for_a_while_after_a_write_of_unknown_outcome() {
    for way in WAYS {
        // S7: the server goes before it has told how the write ended.
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(UPDATE)]);
        scene.server.gets([query(UPDATE)]).breaks();
        scene.bob.forgets();
        let second = {
            scene.alice.sends(way.request("1"));
            scene.talk.server(2)
        };
        if way == Way::Named {
            second.gets([parse("~1", READ), describe_statement("~1"), flush()]);
            second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        }
        second.gets(way.sent("1")).answers(way.reply("one"));
        scene.alice.gets(way.reply("one"));
        let scene = Scene { server: second, ..scene };
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(3 * SECOND);
        scene.asks_server(&scene.alice, "1", "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn with_consistency_by_time_writes_void_nothing_and_rights_do() {
    for way in WAYS {
        let scene = Scene::known(way, &[&format!("{RULE}\nconsistency = \"ttl\"")]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.alice, UPDATE, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
        // S12.
        scene.does(&scene.alice, "revoke select on t from u", "REVOKE");
        scene.goes_to_a_server(&scene.alice, "1");
    }
}

#[test]
fn with_consistency_by_session_a_client_reads_what_it_has_written() {
    for way in WAYS {
        let scene = Scene::known(way, &[&format!("{RULE}\nconsistency = \"session\"")]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.bob, UPDATE, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
        scene.talk.waits(Duration::from_millis(1));
        scene.asks_server(&scene.bob, "1", "two");
        scene.hits(&scene.bob, "1", "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn a_client_that_moves_still_reads_what_it_has_written() {
    let rule = format!("{RULE}\nconsistency = \"session\"");
    let scene = Scene::new_on(2, Way::Simple, &[&rule]).becomes_known();
    scene.asks_server(&scene.bob, "1", "one");
    scene.does(&scene.alice, UPDATE, "UPDATE 1");
    scene.talk.gives_clients(0, 1);
    assert_eq!(scene.alice.core(), 1);
    scene.goes_to_a_server(&scene.alice, "1");
}
