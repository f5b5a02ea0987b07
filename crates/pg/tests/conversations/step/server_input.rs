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
