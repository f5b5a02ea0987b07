//! Which idle server a client gets, where sessions have had parameters of the user's own.

use std::time::Duration;

use crate::talk::*;

const SECOND: Duration = Duration::from_secs(1);

/// Has the server of a client get a placeholder.
fn spoils(client: &Party, server: &Party) {
    client.asks(server, "set local app.t = 'x'", [complete("SET"), ready_in_block()]);
}

/// Has two clients each hold a server, in a block.
fn in_two_blocks(talk: &Conversation, alice: &Party, bob: &Party) -> (Party, Party) {
    let first = talk.server(1);
    alice.opens_block(&first);
    bob.sends([query("begin")]);
    let second = talk.server(2);
    second.gets([query("begin")]).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    (first, second)
}

#[test]
fn a_client_gets_the_idle_server_that_suits_it() {
    let talk = two_servers();
    let (alice, bob) = (talk.client(), talk.client());
    let (first, second) = in_two_blocks(&talk, &alice, &bob);
    spoils(&alice, &first);
    bob.commits(&second);
    alice.commits(&first);
    bob.asks(&second, "select 1", one_row());
    alice.asks(&first, "select 2", one_row());
    bob.asks(&second, "select 3", one_row());
    bob.asks(&second, "select 4", one_row());
    alice.asks(&first, "select 5", one_row());
}

#[test]
fn a_parameter_of_the_session_or_of_set_config_counts_as_well() {
    let talk = two_servers();
    let (alice, bob) = (talk.client(), talk.client());
    let (first, second) = in_two_blocks(&talk, &alice, &bob);
    let reply = [columns(&["set_config"]), row(&["x"]), complete("SELECT 1"), ready_in_block()];
    alice.asks(&first, "select set_config('App.t', 'x', true)", reply);
    bob.commits(&second);
    alice.commits(&first);
    bob.asks(&second, "select 1", one_row());
    // What follows a client to its next server is there, too.
    alice.asks(&first, "set app.u = 'y'", [complete("SET"), ready()]);
    first.gets(settings_asked()).answers(settings_answer(&[&["app.u", "y"]]));
    let carol = talk.client();
    carol.asks(&second, "select 1", one_row());
    bob.asks(&second, "select 1", one_row());
}

#[test]
fn a_client_that_no_server_suits_gets_any_and_the_pool_a_new_one() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&first);
    spoils(&alice, &first);
    alice.commits(&first);
    bob.asks(&first, "select 1", one_row());
    talk.waits(SECOND * 5 / 4);
    let second = talk.server(2);
    bob.asks(&second, "select 2", one_row());
    alice.asks(&first, "select 3", one_row());
    bob.asks(&second, "select 4", one_row());
    talk.waits(SECOND * 5);
    assert!(!first.is_closed() && !second.is_closed());
    assert_eq!(talk.connections(), 2);
}

#[test]
fn in_a_full_pool_the_new_one_takes_the_place_of_an_idle_one() {
    let talk = two_servers();
    let (alice, bob) = (talk.client(), talk.client());
    let (first, second) = in_two_blocks(&talk, &alice, &bob);
    spoils(&alice, &first);
    spoils(&bob, &second);
    alice.commits(&first);
    bob.commits(&second);
    let carol = talk.client();
    carol.asks(&second, "select 1", one_row());
    talk.waits(SECOND * 5 / 4);
    assert!(first.is_closed() && !second.is_closed());
    let third = talk.server(3);
    carol.asks(&third, "select 2", one_row());
    alice.asks(&second, "select 3", one_row());
    // Nobody misses one any more.
    talk.waits(SECOND * 5);
    assert_eq!(talk.connections(), 3);
}

#[test]
fn a_pool_of_one_server_keeps_it() {
    let talk = one_server();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&first);
    spoils(&alice, &first);
    alice.commits(&first);
    bob.asks(&first, "select 1", one_row());
    talk.waits(SECOND * 5);
    bob.asks(&first, "select 2", one_row());
    assert_eq!(talk.connections(), 1);
}

#[test]
fn a_server_that_comes_from_another_core_is_marked_there() {
    let talk = Conversation::on_cores(2, options("pool_size = 2"));
    let (alice, bob, carol) = (talk.client_on(0), talk.client_on(0), talk.client_on(1));
    let (first, second) = in_two_blocks(&talk, &alice, &bob);
    spoils(&alice, &first);
    carol.sends([query("select 1")]);
    alice.commits(&first);
    first.gets([query("select 1")]).answers(one_row());
    carol.gets(one_row());
    assert_eq!(first.core(), 1);
    carol.asks(&first, "select 2", one_row());
    talk.waits(SECOND * 5 / 4);
    assert!(first.is_closed() && !second.is_closed());
    carol.asks(&talk.server(3), "select 3", one_row());
}
