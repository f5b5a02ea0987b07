//! Knowledge of a session's settings, between a change and the server's report of it.

use crate::talk::*;

const DATE: &str = "update t set a = date '01/02/2020'";

#[test]
fn a_setting_that_is_not_reported_is_read_before_the_server_goes_to_another_client() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "set work_mem = '8MB'", [complete("SET"), ready()]);
    server.gets(settings_asked());
    bob.sends([query("select 1")]);
    server.gets_nothing();
    server.answers(settings_answer(&[&["work_mem", "8MB"]]));
    server.gets([query_with("pg_catalog.set_config('work_mem',NULL,false)"), query("select 1")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn what_was_read_is_set_at_the_clients_next_server() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&first, "set work_mem = '8MB'", [complete("SET"), ready()]);
    first.gets(settings_asked()).answers(settings_answer(&[&["work_mem", "8MB"]]));
    bob.sends([query("begin")]);
    first.gets([query_with("'work_mem',NULL,false"), query("begin")]);
    first.answers(synced(&["UTF8", "on", "UTC"])).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([query("select 1")]);
    let second = talk.server(2);
    second.gets([query_with("pg_catalog.set_config('work_mem','8MB',false)"), query("select 1")]);
    second.answers(synced(&["8MB"])).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn a_parse_with_constants_asks_for_the_settings_of_its_own_transaction() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    let dates = [complete("SET"), parameter("DateStyle", "SQL, DMY"), ready_in_block()];
    alice.asks(&server, "set local datestyle = 'SQL, DMY'", dates);
    alice.sends([parse("s", DATE), describe_statement("s"), sync()]);
    server.gets([parse("", DATE), describe_statement(""), sync()]);
    server.answers([parse_complete(), parameters(&[]), no_data(), ready_in_block()]);
    alice.gets([parse_complete(), parameters(&[]), no_data(), ready_in_block()]);
}

#[test]
fn a_set_without_a_sync_is_asked_for_before_a_parse_with_constants() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let set = "set datestyle = 'SQL, DMY'";
    alice.sends([parse("", set), bind("", ""), execute(""), parse("s", DATE), sync()]);
    server.gets([parse("", set), bind("", ""), execute(""), flush()]);
    server.answers([parse_complete(), bind_complete(), complete("SET")]);
    server.gets([internal("FROM pg_catalog.pg_settings"), vec![flush(), flush()]].concat());
    server.answers(internal_answer(&[&["DateStyle", "SQL, DMY"]]));
    server.gets([parse("", DATE), describe_statement(""), sync()]);
    server.answers([parse_complete(), parameters(&[]), no_data()]);
    server.answers([parameter("DateStyle", "SQL, DMY"), ready()]);
    alice.gets([parse_complete(), bind_complete(), complete("SET")].into_iter().chain([
        parse_complete(),
        parameter("DateStyle", "SQL, DMY"),
        ready(),
    ]));
}

#[test]
fn a_server_that_an_idle_timeout_is_about_to_end_takes_no_other_client() {
    let talk = one_server();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&first, "set idle_session_timeout = 1", [complete("SET"), ready()]);
    bob.sends([query("select 1")]);
    first.gets(settings_asked());
    first.answers(settings_answer(&[&["idle_session_timeout", "1ms"]]));
    assert!(first.is_closed());
    let second = talk.server(2);
    second.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
    // Its own client has the timeout with it, and the next server ends likewise.
    alice.sends([query("select 1")]);
    let called = "pg_catalog.set_config('idle_session_timeout','1ms',false)";
    second.gets([query_with(called), query("select 1")]);
    second.answers(synced(&["1ms"])).answers(one_row());
    alice.gets(one_row());
    assert!(second.is_closed());
}

#[test]
fn a_server_with_a_longer_idle_timeout_is_kept() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "set idle_session_timeout = '1min'", [complete("SET"), ready()]);
    server.gets(settings_asked());
    server.answers(settings_answer(&[&["idle_session_timeout", "1min"]]));
    assert!(!server.is_closed());
}

#[test]
fn settings_are_asked_for_apart_behind_a_command_that_ended_its_transaction() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let discard = "discard all";
    alice.sends([parse("", discard), bind("", ""), execute(""), parse("s", DATE), flush()]);
    server.gets([parse("", discard), bind("", ""), execute(""), flush()]);
    server.answers([parse_complete(), bind_complete(), complete("DISCARD ALL")]);
    server.gets([vec![sync()], settings_asked()].concat());
    server.answers([ready()]).answers(settings_answer(&[]));
    server.gets([parse("", DATE), describe_statement(""), flush()]);
    server.answers([parse_complete(), parameters(&[]), no_data()]);
    alice.gets([parse_complete(), bind_complete(), complete("DISCARD ALL"), parse_complete()]);
}

#[test]
fn what_a_reading_had_found_before_it_failed_is_no_startup_packet() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "set work_mem = '8MB'", [complete("SET"), ready()]);
    server.gets(settings_asked());
    server.answers([
        close_complete(),
        parse_complete(),
        bind_complete(),
        row(&["work_mem", "8MB"]),
    ]);
    server.answers([error("53200", "out of memory"), ready()]);
    assert_eq!(talk.pinned(), "settings");
    alice.breaks();
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
    bob.sends([query("select 1")]);
    server.gets([query_with("pg_catalog.set_config("), query("select 1")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
    bob.asks(&server, "select 2", one_row());
}
