//! ParameterStatus, notifications, and rows that answer Refrain's queries about settings.

use crate::talk::*;

#[test]
fn a_setting_that_the_client_knows_already_is_not_reported_to_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]);
    server.answers([parameter("TimeZone", "UTC"), parameter("is_superuser", "off")]);
    server.answers(one_row());
    alice.gets([vec![parameter("is_superuser", "off")], one_row()].concat());
}

#[test]
fn a_setting_that_a_client_made_is_made_at_its_next_server_too() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.moves_to_tokyo(&first);
    bob.sends([query("begin")]);
    first.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("begin")]);
    first.answers(synced(&["UTF8", "on", "UTC"])).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([query("select 1")]);
    let second = talk.server(2);
    let sets = query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)");
    second.gets([sets, query("select 1")]).answers(synced(&["Asia/Tokyo"])).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn a_notification_of_its_own_session_bears_the_process_id_that_the_client_knows() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
    alice.sends([query("notify news")]);
    server.gets([query("notify news")]);
    server.answers([complete("NOTIFY"), notification(1, "news"), notification(99, "news")]);
    server.answers([ready()]);
    let own = alice.key().0;
    assert_ne!(own, 99);
    alice.gets([complete("NOTIFY"), notification(own, "news"), notification(99, "news"), ready()]);
}

#[test]
fn a_notification_reaches_a_client_that_is_idle_and_keeps_its_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
    server.sends([notification(7, "news")]);
    alice.gets([notification(7, "news")]);
}

#[test]
fn a_setting_longer_than_refrain_keeps_goes_to_the_client_and_ties_it_to_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let path = "x".repeat(2_000_000);
    alice.sends([query("set search_path = long")]);
    server.gets([query("set search_path = long")]);
    let reply = [complete("SET"), parameter("search_path", &path), ready()];
    server.answers(reply.clone());
    alice.gets(reply);
    assert_eq!(talk.pinned(), "settings");
}
