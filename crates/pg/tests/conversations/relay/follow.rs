//! Settings that a client never made follow its server.

use crate::talk::*;

#[test]
fn a_default_that_a_server_reports_anew_is_asked_for_and_followed() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]);
    let reload = [vec![parameter("TimeZone", "Europe/Berlin")], one_row()].concat();
    server.answers(reload.clone());
    alice.gets(reload);
    server.gets(settings_asked()).answers(settings_answer(&[&["TimeZone=", "Europe/Berlin"]]));
    // Bob follows when he gets the server, and hears of it.
    bob.sends([query("select 1")]);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets([vec![parameter("TimeZone", "Europe/Berlin")], one_row()].concat());
    assert_eq!(talk.counters().protocol.defaults_learned, 1);
}

#[test]
fn a_reset_tells_the_default_of_this_server() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.moves_to_tokyo(&server);
    bob.sends([query("select 1")]);
    server.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("select 1")]);
    server.answers(synced(&["UTF8", "on", "Europe/Berlin"])).answers(one_row());
    bob.gets([vec![parameter("TimeZone", "Europe/Berlin")], one_row()].concat());
}

#[test]
fn a_setting_of_the_clients_own_does_not_follow_a_new_default() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.moves_to_tokyo(&first);
    bob.sends([query("begin")]);
    first.gets([query_with("'timezone',NULL,false"), query("begin")]);
    first.answers(synced(&["UTF8", "on", "UTC"])).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    talk.servers_report("TimeZone", "Europe/Berlin");
    alice.sends([query("select 1")]);
    let second = talk.server(2);
    let sets = query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)");
    second.gets([sets, query("select 1")]).answers(synced(&["Asia/Tokyo"])).answers(one_row());
    alice.gets(one_row());
}

/// The second server has not reported that the default has changed, and no query has to be in
/// front for alice's own value to hold.
#[test]
fn a_setting_of_the_clients_own_is_set_once_another_server_has_a_new_default() {
    let talk = two_servers();
    let (alice, bob, carol) = (talk.client(), talk.client(), talk.client());
    let first = talk.server(1);
    bob.asks(&first, "begin", vec![complete("BEGIN"), ready_in_block()]);
    alice.sends([query("set timezone = 'UTC'")]);
    let second = talk.server(2);
    second.gets([query("set timezone = 'UTC'")]).answers([complete("SET"), ready()]);
    alice.gets([complete("SET"), ready()]);
    carol.sends([query("select 1")]);
    second.gets([query_with("'timezone',NULL,false"), query("select 1")]);
    second.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    carol.gets(one_row());
    let reload = vec![parameter("TimeZone", "Europe/Berlin"), complete("COMMIT"), ready()];
    bob.asks(&first, "commit", reload);
    first.gets(settings_asked()).answers(settings_answer(&[&["TimeZone=", "Europe/Berlin"]]));
    bob.asks(&first, "begin", vec![complete("BEGIN"), ready_in_block()]);
    alice.sends([query("select 1")]);
    let sets = query_with("pg_catalog.set_config('timezone','UTC',false)");
    second.gets([sets, query("select 1")]).answers(synced(&["UTC"])).answers(one_row());
    alice.gets(one_row());
    alice.asks(&second, "select 1", one_row());
}

#[test]
fn a_server_that_has_the_clients_settings_gets_no_query_for_them() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    for client in [&alice, &bob, &alice] {
        client.asks(&server, "select 1", one_row());
    }
    assert_eq!(talk.counters().protocol.settings_synced, 0);
}
