//! Cancel requests: from a connection that shows a client's key, to the client's server of now.

use std::time::Duration;

use refrain_pool::snapshot::ServerViewState;

use crate::step::answer::{RULE, Scene, WAYS};
use crate::talk::*;

/// Asks Refrain, on a connection of its own, to cancel the query of this client.
pub(crate) fn cancels(talk: &Conversation, client: &Party) -> Party {
    let (pid, key) = client.key();
    let other = talk.newcomer();
    other.sends([cancel_request(pid, &key)]);
    other
}

pub(crate) fn canceled() -> [Line; 2] {
    [error("57014", "canceling statement due to user request"), ready()]
}

#[test]
fn a_cancel_goes_to_the_server_with_the_servers_own_key() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.gets([query("select pg_sleep(9)")]);
    let other = cancels(&talk, &alice);
    assert!(other.is_closed(), "no answer is due");
    let cancel = talk.cancel(1);
    assert_eq!(cancel.host(), "127.0.0.1:1");
    cancel.gets_bytes(&cancel_request(1, b"key!").bytes).ends_stream();
    server.answers(canceled());
    alice.gets(canceled());
    assert_eq!(talk.counters().pool.cancels, 1);
}

/// The process IDs that the cores know are counters: with one of them, a key would be half as long.
#[test]
fn a_client_whose_key_names_the_process_is_found_by_that_key_alone() {
    let talk = Conversation::new(format!("peer_id = 5\n{}", options("pool_size = 1")));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    let (_, key) = alice.key();
    for pid in 0..16 {
        talk.newcomer().sends([cancel_request(pid, &key)]);
    }
    assert_eq!(talk.counters().pool.cancels, 0);
    cancels(&talk, &alice);
    talk.cancel(1).forgets();
    assert_eq!(talk.counters().pool.cancels, 1);
}

#[test]
fn a_client_from_before_a_peer_id_keeps_its_key() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    talk.reloads(&format!("peer_id = 5\n{}", options("pool_size = 1")));
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    cancels(&talk, &alice);
    talk.cancel(1).forgets();
    assert_eq!(talk.counters().pool.cancels, 1);
}

#[test]
fn a_server_is_lent_to_nobody_while_a_cancel_is_under_way() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    cancels(&talk, &alice);
    talk.cancel(1).forgets();
    server.answers(one_row()); // the query was faster
    alice.gets(one_row());
    bob.sends([query("select 2")]);
    server.gets_nothing();
    assert_eq!(talk.snapshot().servers[0].state, ServerViewState::Cancelling);
    talk.cancel(1).ends_stream();
    server.gets([query("select 2")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_cancel_with_a_wrong_key_or_of_an_idle_client_goes_nowhere() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    cancels(&talk, &alice);
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    let (pid, _) = alice.key();
    for key in [&b"none"[..], b"no", b"a longer one"] {
        let mallory = talk.newcomer();
        mallory.sends([cancel_request(pid, key)]);
        assert!(mallory.is_closed());
    }
    talk.newcomer().sends([cancel_request(pid + 7, b"key!")]);
    assert_eq!(talk.connections(), 1, "that is the server");
}

#[test]
fn a_cancel_for_a_client_that_has_left_names_nobody() {
    let talk = one_server();
    let logins = [0; 3].map(|_| {
        let client = talk.client();
        let (pid, _) = client.key();
        client.sends([terminate()]);
        pid
    });
    assert_eq!(logins, [1, 2, 3], "who comes next has another number");
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    let (_, key) = alice.key();
    for pid in logins {
        // In these conversations all keys are the same.
        talk.newcomer().sends([cancel_request(pid, &key)]);
    }
    assert_eq!(talk.connections(), 1, "that is the server");
    cancels(&talk, &alice);
    talk.cancel(1).forgets();
}

#[test]
fn a_cancel_during_refrains_own_query_waits_for_the_clients() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.moves_to_tokyo(&server);
    bob.sends([query("select pg_sleep(9)")]);
    server.forgets();
    cancels(&talk, &bob);
    assert_eq!(talk.connections(), 1, "the settings are being synced");
    server.answers(synced(&["UTF8", "on", "UTC"]));
    talk.cancel(1).gets_bytes(&cancel_request(1, b"key!").bytes).ends_stream();
    server.answers(canceled());
    bob.gets(canceled());
}

#[test]
fn a_cancel_that_gets_no_end_costs_the_server_it_was_for() {
    let talk = Conversation::new(format!("cancel_timeout = \"1s\"\n{}", options("")));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    cancels(&talk, &alice);
    talk.cancel(1).forgets();
    talk.waits(Duration::from_secs(2));
    assert!(talk.cancel(1).is_closed() && !server.is_closed());
    server.answers(one_row());
    alice.gets(one_row());
    assert!(server.is_closed(), "the signal may still come");
}

#[test]
fn a_cancel_finds_a_client_of_another_core() {
    let talk = Conversation::on_cores(2, options("pool_size = 1"));
    let alice = talk.client_on(1);
    let server = talk.server(1);
    alice.sends([query("select pg_sleep(9)")]);
    server.forgets();
    let (pid, key) = alice.key();
    talk.newcomer_on(0).sends([cancel_request(pid, &key)]);
    talk.cancel(1).gets_bytes(&cancel_request(1, b"key!").bytes).ends_stream();
    server.answers(canceled());
    alice.gets(canceled());
}

#[test]
fn a_query_that_waits_for_a_server_is_cancelled_without_one() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select pg_sleep(9)"), query("select 2")]);
    cancels(&talk, &bob);
    bob.gets(canceled());
    assert_eq!(talk.connections(), 1, "nothing goes to the host");
    alice.commits(&server);
    server.gets([query("select 2")]).answers(one_row());
    bob.gets(one_row());
    cancels(&talk, &bob);
    bob.gets_nothing();
}

#[test]
fn the_rest_of_a_segment_that_waits_is_ignored_up_to_its_sync() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    let long = query(&"x".repeat(1_000));
    bob.sends([close_statement("s"), parse("s", "select 1"), bind("", "s"), execute("")]);
    bob.gets([close_complete()]);
    cancels(&talk, &bob);
    bob.gets([error("57014", "canceling statement due to user request")]);
    bob.sends([describe_statement("s"), flush(), long, sync(), bind("", "s"), sync()]);
    bob.gets([ready()]);
    alice.commits(&server);
    server.gets([bind("", "s"), sync()]);
    server.forgets();
}

#[test]
fn a_message_that_has_not_come_is_not_cancelled_unless_it_is_not_read_on() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    let bytes = query("select 'one'").bytes;
    bob.sends_bytes(&bytes[..9]);
    cancels(&talk, &bob);
    bob.sends_bytes(&bytes[9..]).gets_nothing();
    alice.commits(&server);
    server.gets([query("select 'one'")]).answers(one_row());
    bob.gets(one_row());

    alice.opens_block(&server);
    let long = query(&format!("select '{}'", "x".repeat(100_000))).bytes;
    bob.sends_bytes(&long[..90_000]);
    assert!(bob.is_paused());
    cancels(&talk, &bob);
    bob.gets(canceled());
    assert!(!bob.is_paused());
    bob.sends_bytes(&long[90_000..]).sends([query("select 'two'")]).gets_nothing();
    alice.commits(&server);
    server.gets([query("select 'two'")]).answers(one_row());
    bob.gets(one_row());
}

/// Has both clients of a scene ask for the same reply, and cancels the request of `client`.
fn cancels_read(scene: &Scene, client: &Party) {
    scene.alice.sends(scene.way.request("1"));
    scene.bob.sends(scene.way.request("1"));
    cancels(&scene.talk, client);
    client.gets(canceled());
}

#[test]
fn a_client_that_waits_for_the_reply_of_another_is_cancelled_alone() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        cancels_read(&scene, &scene.bob);
        scene.server_answers(&scene.alice, "1", "one");
        scene.hits(&scene.bob, "1", "one");
    }
}

#[test]
fn a_client_that_is_cancelled_before_it_fetches_hands_over() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        let others = [scene.talk.client(), scene.talk.client()];
        others[0].opens_block(&scene.server);
        others[1].sends([query("begin")]);
        scene.talk.server(2).gets([query("begin")]);
        cancels_read(&scene, &scene.alice);
        others[0].commits(&scene.server);
        scene.server_answers(&scene.bob, "1", "one");
        scene.hits(&scene.alice, "1", "one");
    }
}
