//! The end of server connections, and what becomes of their clients.

use crate::talk::*;

#[test]
fn the_client_of_a_server_that_goes_is_told_so() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    server.breaks();
    alice.gets([fatal("08006", "the server closed the connection unexpectedly")]);
    assert!(alice.is_closed());
}

#[test]
fn a_client_that_has_half_a_row_gets_no_error_behind_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]);
    let half = row(&[&"x".repeat(1000)]).bytes[..500].to_vec();
    server.sends_bytes(&half).breaks();
    alice.gets_bytes(&half);
    assert!(alice.is_closed());
}

#[test]
fn an_idle_server_that_goes_is_replaced_at_the_next_query() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    server.breaks();
    alice.asks_another(&talk, 2, "select 1");
}

#[test]
fn a_client_that_waits_gets_the_place_of_a_server_that_went() {
    let talk = one_server();
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    talk.server(1).breaks();
    alice.forgets();
    talk.server(2).gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_server_that_breaks_the_protocol_while_it_is_idle_goes_and_no_client_with_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    server.sends([row(&["1"])]);
    assert!(server.is_closed() && !alice.is_closed());
    assert_eq!(talk.counters().pool.unexpected_messages, 1);
}
