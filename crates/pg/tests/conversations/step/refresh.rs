//! Replies whose time is over: clients get them while a job fetches others, or if that fails.

use crate::step::answer::*;
use crate::talk::*;

/// A rule by which nobody waits for a while.
const STALE: &str = "stale_while_revalidate = \"5s\"";
/// A rule by which old replies are given for longer if the database has none.
const IF_ERROR: &str = "stale_if_error = \"1h\"";

/// Returns what the server gets for a job that fetches the reply to a read.
fn fetched(way: Way, value: &str) -> Vec<Line> {
    let (text, bound) = match way {
        Way::Simple => (format!("select a from t where b = '{value}'"), bind("~aside", "~aside")),
        Way::Named | Way::Unnamed => (READ.to_owned(), bind_value("~aside", "~aside", value)),
    };
    let parse = parse("~aside", &text);
    let mut sent = vec![close_statement("~aside"), parse, describe_statement("~aside"), bound];
    if way != Way::Named {
        sent.push(describe_portal("~aside"));
    }
    let ends = [execute("~aside"), close_portal("~aside"), close_statement("~aside"), sync()];
    sent.extend(ends);
    sent
}

/// Returns the server's replies up to that to the Execute.
fn heads(way: Way, column: &str) -> Vec<Line> {
    let described = [parameters(if way == Way::Simple { &[] } else { &[23] }), columns(&[column])];
    let mut heads = vec![close_complete(), parse_complete()];
    heads.extend(described);
    heads.push(bind_complete());
    if way != Way::Named {
        heads.push(columns(&[column]));
    }
    heads
}

/// Returns the server's answer.
fn answer(way: Way, value: &str) -> Vec<Line> {
    let rows = [row(&[value]), complete("SELECT 1"), close_complete(), close_complete(), ready()];
    [heads(way, "a"), rows.to_vec()].concat()
}

/// A scene with a reply whose time is over.
fn old(way: Way, more: &str) -> Scene {
    let scene = Scene::known(way, &[&format!("{RULE}\n{more}")]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.talk.waits(11 * SECOND);
    scene
}

#[test]
fn nobody_waits_for_a_reply_whose_time_is_over() {
    for way in WAYS {
        let scene = old(way, STALE);
        scene.hits_beside(&scene.alice, "1", "one");
        scene.hits_beside(&scene.bob, "1", "one");
        scene.server.gets(fetched(way, "1")).answers(answer(way, "two"));
        scene.hits(&scene.alice, "1", "two");
        scene.hits(&scene.bob, "1", "two");
        let counters = scene.talk.counters().protocol;
        assert_eq!((counters.cache_stale_hits, counters.cache_waits), (2, 0));
        assert_eq!((counters.cache_refreshes, counters.cache_fills), (1, 2));
        // Behind that time everybody waits.
        scene.talk.waits(16 * SECOND);
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        scene.server_answers(&scene.alice, "1", "three");
        scene.bob.gets(way.reply("three"));
    }
}

#[test]
fn a_write_voids_what_is_fetched() {
    for way in WAYS {
        let scene = old(way, STALE);
        scene.hits_beside(&scene.alice, "1", "one");
        scene.server.gets(fetched(way, "1"));
        scene.bob.sends([query(UPDATE)]);
        let second = scene.talk.server(2);
        second.gets([query(UPDATE)]).answers([complete("UPDATE 1"), ready()]);
        scene.bob.gets([complete("UPDATE 1"), ready()]);
        scene.server.answers(answer(way, "two"));
        scene.goes_to_a_server(&scene.bob, "1");
        assert_eq!(scene.talk.counters().protocol.cache_fills_outdated, 1);
    }
}

#[test]
fn an_error_of_the_query_is_told_to_the_next_client() {
    for way in WAYS {
        let scene = old(way, &format!("{STALE}\n{IF_ERROR}"));
        scene.hits_beside(&scene.alice, "1", "one");
        let failed = [error("22012", "division by zero"), ready()];
        let heads = [heads(way, "a"), failed.to_vec()].concat();
        scene.server.gets(fetched(way, "1")).answers(heads);
        scene.asks_server(&scene.bob, "1", "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn an_old_reply_is_given_if_the_database_has_no_other() {
    for way in WAYS {
        let scene = old(way, IF_ERROR);
        scene.alice.sends(way.request("1")).gets_nothing();
        scene.bob.sends(way.request("1")).gets_nothing();
        let failed = [error("57014", "canceling statement due to statement timeout"), ready()];
        let heads = [heads(way, "a"), failed.to_vec()].concat();
        scene.server.gets(fetched(way, "1")).answers(heads);
        scene.alice.gets(way.reply("one"));
        scene.bob.gets(way.reply("one"));
        // Each request from now on has Refrain try again, and does not wait.
        scene.server.gets(fetched(way, "1")).answers(answer(way, "two"));
        scene.hits(&scene.bob, "1", "two");
    }
}

#[test]
fn an_old_reply_is_given_if_the_server_goes() {
    for way in WAYS {
        let scene = old(way, IF_ERROR);
        scene.alice.sends(way.request("1")).gets_nothing();
        scene.server.gets(fetched(way, "1")).breaks();
        scene.talk.waits(SECOND);
        scene.alice.gets(way.reply("one"));
        // The next try needs a server, and takes as long as it likes.
        let second = scene.talk.server(2);
        second.gets(fetched(way, "1")).answers(answer(way, "two"));
        scene.bob.sends(way.request("1")).gets(way.reply("two"));
    }
}

#[test]
fn an_old_reply_is_given_if_another_takes_too_long() {
    for way in WAYS {
        let scene = old(way, IF_ERROR);
        scene.alice.sends(way.request("1")).gets_nothing();
        scene.server.gets(fetched(way, "1"));
        scene.talk.waits(6 * SECOND);
        scene.alice.gets(way.reply("one"));
        // The job is cancelled behind `query_timeout`, as a request of a client is, and alice has
        // had Refrain try again.
        assert_eq!(scene.talk.cancel(1).forgets().len(), 1);
        scene.talk.server(2).gets(fetched(way, "1"));
    }
}

#[test]
fn what_cannot_be_kept_is_not_fetched_by_jobs_again() {
    for way in WAYS {
        for what in ["notice", "columns"] {
            let scene = old(way, STALE);
            let (mut reply, heads_end) = (answer(way, "two"), heads(way, "a").len());
            match what {
                "notice" => reply.insert(heads_end, notice("look")),
                // A client that knows the columns of its statement is not told others.
                _ if way == Way::Named => drop(reply.splice(..heads_end, heads(way, "b"))),
                _ => continue,
            }
            scene.hits_beside(&scene.alice, "1", "one");
            scene.server.gets(fetched(way, "1")).answers(reply);
            scene.asks_server(&scene.bob, "1", "three");
        }
    }
}

#[test]
fn a_part_of_the_servers_fetches_at_a_time() {
    let scene = Scene::known(Way::Simple, &[&format!("{RULE}\n{STALE}")]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.asks_server(&scene.alice, "2", "two");
    scene.talk.waits(11 * SECOND);
    scene.hits_beside(&scene.alice, "1", "one");
    scene.hits_beside(&scene.alice, "2", "two");
    scene.server.gets(fetched(Way::Simple, "1")).answers(answer(Way::Simple, "new"));
    scene.server.gets(fetched(Way::Simple, "2")).answers(answer(Way::Simple, "new"));
    scene.hits(&scene.bob, "1", "new");
    scene.hits(&scene.bob, "2", "new");
}
