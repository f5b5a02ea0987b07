//! Replies that no client gets.

use crate::talk::*;

#[test]
fn what_a_client_that_left_had_asked_for_is_answered_to_nobody() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([query("select 'alice'")]);
    server.gets([query("select 'alice'")]);
    alice.breaks();
    bob.sends([query("select 'bob'")]);
    server.gets_nothing();
    server.sends_byte_by_byte(one_row());
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
    let resets = query_with("pg_catalog.set_config('timezone',NULL,false)");
    server.gets([resets, query("select 'bob'")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn an_error_in_a_segment_that_nobody_will_end_gets_a_sync_of_refrains() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1"), parse("", "selec")]);
    server.gets([query("select 1"), parse("", "selec")]);
    alice.breaks();
    server.gets([describe_statement("~none"), sync()]);
    server.answers(one_row()).answers([error("42601", "syntax error"), ready()]);
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
}

#[test]
fn a_copy_that_begins_after_its_client_has_left_costs_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("copy t from stdin")]);
    server.gets([query("copy t from stdin")]);
    alice.breaks();
    server.sends([copy_in_response()]);
    assert!(server.is_closed());
}

#[test]
fn the_rest_of_a_row_whose_client_has_left_goes_to_nobody() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([query("select repeat('x', 100000)")]);
    server.forgets();
    let long = row(&[&"x".repeat(100_000)]).bytes;
    server.sends([columns(&["repeat"])]).sends_bytes(&long[..50_000]);
    alice.forgets();
    alice.breaks();
    bob.sends([query("select 'bob'")]);
    server.sends_bytes(&long[50_000..]).sends([complete("SELECT 1"), ready()]);
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
    let resets = query_with("pg_catalog.set_config('timezone',NULL,false)");
    server.gets([resets, query("select 'bob'")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
}
