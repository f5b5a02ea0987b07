//! Input from servers, by their holder.

use crate::talk::*;

#[test]
fn a_server_is_not_read_while_its_client_does_not_read() {
    let talk = Conversation::new(options(
        "pool_size = 1\nbuffer_high = \"64KiB\"\nbuffer_low = \"16KiB\"",
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select")]);
    server.gets([query("select")]);
    alice.stalls();
    let long = row(&[&"x".repeat(100_000)]);
    server.sends([columns(&["a"]), long.clone()]);
    assert!(server.is_paused());
    server.sends([complete("SELECT 1"), ready()]);
    alice.takes_in();
    assert!(!server.is_paused());
    alice.gets([columns(&["a"]), long, complete("SELECT 1"), ready()]);
}

#[test]
fn an_idle_server_that_ends_its_session_goes_quietly() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    server.sends([fatal("57P01", "terminating connection due to administrator command")]);
    assert!(server.is_closed() && !alice.is_closed());
    alice.asks_another(&talk, 2, "select 1");
}

#[test]
fn a_setting_that_an_idle_server_reports_is_known_when_it_is_lent() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    server.sends([parameter("TimeZone", "Europe/Berlin"), notice("reloaded")]);
    alice.sends([query("select 1")]);
    server.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("select 1")]);
    server.answers(synced(&["Europe/Berlin"])).answers(one_row());
    alice.gets([vec![parameter("TimeZone", "Europe/Berlin")], one_row()].concat());
}

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
