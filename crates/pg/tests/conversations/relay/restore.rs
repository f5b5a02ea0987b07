//! Startup settings that Refrain restores behind a RESET, and behind code that may run one.

use super::internal::{in_tokyo, restores};
use super::look::{NEWEST, asked, tracking};
use super::unread::{comment, sends_in_pieces};
use crate::talk::*;

/// Has a client reset its time zone; its ReadyForQuery has to wait.
fn resets(alice: &Party, server: &Party, text: &str, end: Line) {
    alice.sends([query(text)]);
    server.gets([query(text)]);
    server.answers([complete("RESET"), parameter("TimeZone", "UTC"), end]);
    alice.gets([complete("RESET")]);
}

/// Has the server restore the time zone, and its client get what waited.
fn is_restored(alice: &Party, server: &Party) {
    server.answers(internal_answer(&[&["Asia/Tokyo"]]));
    server.answers([parameter("TimeZone", "Asia/Tokyo"), ready()]);
    alice.gets([ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

#[test]
fn reset_all_goes_back_to_the_startup_packet_before_the_client_is_ready() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    resets(&alice, &server, "reset all", ready());
    server.gets(restores());
    is_restored(&alice, &server);
}

#[test]
fn a_reset_that_failed_restores_nothing() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.asks(&server, "reset all; x", [error("42601", "syntax error"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

const CANCELLED: (&str, &str) = ("57014", "canceling statement due to user request");

/// Has the server begin the query that restores settings, and cancel it.
fn is_cancelled_there(server: &Party) {
    server.answers([close_complete(), parse_complete(), error(CANCELLED.0, CANCELLED.1)]);
}

#[test]
fn a_cancel_request_that_comes_too_late_for_a_reset_does_not_lose_the_startup_settings() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    resets(&alice, &server, "reset all", ready());
    server.gets(restores());
    is_cancelled_there(&server);
    server.answers([ready()]).gets(restores());
    is_restored(&alice, &server);
}

#[test]
fn a_cancel_request_behind_a_reset_in_a_block_is_told_and_fails_the_block() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.opens_block(&server);
    resets(&alice, &server, "reset timezone", ready_in_block());
    server.gets(restores());
    is_cancelled_there(&server);
    server.answers([parameter("TimeZone", "Asia/Tokyo"), ready_failed()]);
    alice.gets([error(CANCELLED.0, CANCELLED.1), ready_failed()]);
}

#[test]
fn a_message_behind_discard_all_waits_for_the_startup_settings_and_fails_with_them() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    let discard = [parse("", "discard all"), bind("", ""), execute("")];
    alice.sends(discard.to_vec()).sends([parse("s", "select 1"), sync()]);
    server.gets([discard.to_vec(), vec![flush()]].concat());
    server.answers([parse_complete(), bind_complete(), complete("DISCARD ALL")]);
    alice.gets([parse_complete(), bind_complete(), complete("DISCARD ALL")]);
    server.gets([vec![sync()], restores()].concat());
    server.answers([parameter("TimeZone", "UTC"), ready()]);
    for _ in 1..8 {
        is_cancelled_there(&server);
        server.answers([ready()]).gets(restores());
    }
    is_cancelled_there(&server);
    server.answers([ready()]);
    alice.gets([error(CANCELLED.0, CANCELLED.1), parameter("TimeZone", "UTC")]);
    server.gets([sync()]).answers([ready()]);
    alice.gets([ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

#[test]
fn settings_that_are_restored_in_a_session_pool_are_not_taken_for_defaults() {
    let talk = Conversation::new(options("pool_size = 2\npool_mode = \"session\""));
    let (alice, server) = in_tokyo(&talk);
    alice.sends([query("reset all")]);
    server.gets([query("reset all")]);
    server.answers([complete("RESET"), parameter("TimeZone", "UTC"), ready()]);
    server.gets(restores()).answers(internal_answer(&[&["Asia/Tokyo"]]));
    server.answers([parameter("TimeZone", "Asia/Tokyo"), ready()]);
    alice.gets([complete("RESET"), ready()]);
    let bob = talk.client();
    bob.asks_another(&talk, 2, "select 1");
}

#[test]
fn a_reset_by_execute_goes_back_to_the_startup_packet() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.prepares(&server, "r", "reset all");
    alice.sends([query("execute r")]);
    server.gets([parse("~1", "reset all"), sync(), query("execute \"~1\"")]);
    server.answers([parse_complete(), ready()]);
    server.answers([complete("RESET"), parameter("TimeZone", "UTC"), ready()]);
    alice.gets([complete("RESET")]);
    server.gets(restores());
    is_restored(&alice, &server);
}

#[test]
fn a_reset_by_execute_in_extended_messages_goes_back_to_the_startup_packet() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.prepares(&server, "r", "reset all");
    alice.sends([parse("", "execute r"), bind("", ""), execute(""), sync()]);
    let lent = vec![close_statement("r"), parse("r", "reset all")];
    let sent = vec![parse("", "execute r"), bind("", ""), execute("")];
    server.gets([lent, sent, restores()].concat());
}

#[test]
fn explain_runs_no_reset_and_nothing_is_restored() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.prepares(&server, "r", "reset all");
    alice.sends([query("explain execute r")]);
    server.gets([parse("~1", "reset all"), sync(), query("explain execute \"~1\"")]);
    let planned = [columns(&["QUERY PLAN"]), complete("EXPLAIN"), ready()];
    server.answers([parse_complete(), ready()]).answers(planned.clone());
    alice.gets(planned);
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

/// Has the server answer the query that restores settings: it restored the time zone, or nothing.
fn finds(server: &Party, reset: bool) {
    let mut answer = internal_answer(if reset { &[&["Asia/Tokyo"]] } else { &[] });
    if reset {
        answer.push(parameter("TimeZone", "Asia/Tokyo"));
    } else {
        answer[3] = complete("SELECT 0");
    }
    answer.push(ready());
    server.gets(restores()).answers(answer);
}

/// Has a client run code that may have reset its time zone, and get what the code returns.
fn runs(alice: &Party, server: &Party, text: &str, reset: bool) {
    alice.sends([query(text)]);
    let mut answer = one_row();
    if reset {
        answer.insert(answer.len() - 1, parameter("TimeZone", "UTC"));
    }
    server.gets([query(text)]).answers(answer);
    finds(server, reset);
    alice.gets(one_row());
}

#[test]
fn a_function_that_resets_settings_never_becomes_harmless() {
    let talk = tracking("on");
    let (alice, server) = in_tokyo(&talk);
    for _ in 0..5 {
        runs(&alice, &server, "select f(1)", true);
        server.gets(asked()).answers(settings_answer(&[NEWEST]));
    }
    // One that resets nothing costs nothing from the fourth time on.
    for _ in 0..3 {
        runs(&alice, &server, "select g(1)", false);
        server.gets(asked()).answers(settings_answer(&[NEWEST]));
    }
    alice.asks(&server, "select g(1)", one_row());
    server.gets_nothing();
}

#[test]
fn what_is_harmless_to_a_client_without_startup_settings_may_reset_those_of_another() {
    let talk = tracking("on");
    let (alice, server) = in_tokyo(&talk);
    let bob = talk.client();
    bob.sends([query("select f(1)")]);
    server.gets([query_with("'timezone',NULL,false"), query("select f(1)")]);
    server.answers(synced(&["UTC"])).answers(one_row());
    for _ in 1..3 {
        bob.gets(one_row());
        server.gets(asked()).answers(settings_answer(&[NEWEST]));
        bob.sends([query("select f(1)")]);
        server.gets([query("select f(1)")]).answers(one_row());
    }
    bob.gets(one_row());
    server.gets(asked()).answers(settings_answer(&[NEWEST]));
    bob.asks(&server, "select f(1)", one_row());
    alice.sends([query("select f(1)")]);
    server.gets([query_with("'timezone','Asia/Tokyo',false"), query("select f(1)")]);
    server.answers(synced(&["Asia/Tokyo"])).answers(one_row());
    finds(&server, true);
    alice.gets(one_row());
    server.gets(asked());
}

#[test]
fn a_function_called_by_bind_is_restored_behind_its_sync() {
    let talk = tracking("on");
    let (alice, server) = in_tokyo(&talk);
    alice.prepares(&server, "s", "select f(1)");
    alice.sends([bind("", "s"), execute(""), sync(), query("select 2")]);
    server.gets([bind("", ""), execute(""), sync()]);
    let done = [bind_complete(), row(&["1"]), complete("SELECT 1")];
    server.answers(done.to_vec()).answers([parameter("TimeZone", "UTC"), ready()]);
    alice.gets(done.to_vec());
    finds(&server, true);
    alice.gets([ready()]);
    server.gets([query("select 2")]);
}

#[test]
fn a_call_of_set_config_may_reset_a_setting_if_its_value_is_no_constant() {
    for (call, may) in [
        ("set_config('timezone', NULL, false)", true),
        ("set_config('timezone', a, false)", true),
        ("set_config(a, 'UTC', false)", true),
        ("set_config('timezone', 'UTC', false)", false),
        ("set_config('timezone', NULL, true)", false),
        ("set_config('datestyle', NULL, false)", false),
    ] {
        let talk = one_server();
        let (alice, server) = in_tokyo(&talk);
        let text = format!("select {call}");
        alice.sends([query(&text)]);
        server.gets([query(&text)]).answers(one_row());
        if may {
            finds(&server, true);
        }
        alice.gets(one_row());
        server.forgets();
    }
}

#[test]
fn settings_are_restored_behind_code_that_failed_since_it_may_have_committed() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    let text = "do 'begin reset timezone; commit; raise; end'";
    alice.sends([query(text)]);
    server.gets([query(text)]);
    server.answers([error("P0001", "x"), parameter("TimeZone", "UTC"), ready()]);
    alice.gets([error("P0001", "x")]);
    finds(&server, true);
    alice.gets([ready()]);
    server.gets(settings_asked());
}

#[test]
fn a_block_that_failed_restores_nothing() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.opens_block(&server);
    let text = "do 'begin reset timezone; raise; end'";
    alice.asks(&server, text, [error("P0001", "x"), ready_failed()]);
    server.gets_nothing();
}

#[test]
fn a_function_called_by_its_oid_may_reset_settings() {
    let talk = tracking("on");
    let (alice, server) = in_tokyo(&talk);
    alice.sends([function_call(16_384)]);
    server.gets([function_call(16_384)]);
    server.answers([function_result(), parameter("TimeZone", "UTC"), ready()]);
    alice.gets([function_result()]);
    finds(&server, true);
    alice.gets([ready()]);
    server.gets(asked());
}

#[test]
fn a_text_whose_rest_was_not_read_may_reset_settings() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    let text = format!("{} reset all", comment());
    sends_in_pieces(&alice, &text);
    server.gets([query(&text)]);
    server.answers([complete("RESET"), parameter("TimeZone", "UTC"), ready()]);
    alice.gets([complete("RESET")]);
    finds(&server, true);
    alice.gets([ready()]);
    server.gets(asked());
}

/// Has a client set its time zone to the server's default.
fn goes_to_the_default(alice: &Party, server: &Party) {
    let set = [complete("SET"), parameter("TimeZone", "UTC"), ready()];
    alice.asks(server, "set timezone = 'UTC'", set);
}

#[test]
fn a_setting_that_the_client_has_set_to_the_default_is_not_taken_for_reset() {
    let talk = tracking("on");
    let (alice, server) = in_tokyo(&talk);
    goes_to_the_default(&alice, &server);
    alice.sends([query("select f(1)")]);
    server.gets([query_with("'timezone',NULL,false"), query("select f(1)")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    alice.gets(one_row());
    server.gets(asked());
}

#[test]
fn a_setting_with_the_default_is_restored_if_a_text_resets_it_by_name() {
    let padded = |reset: &str| format!("{} {reset}", comment());
    for (text, may) in [
        (padded("reset all"), true),
        (padded("discard all"), true),
        (padded("reset a"), false),
        ("select set_config('TimeZone', a, false)".to_owned(), true),
    ] {
        let talk = one_server();
        let (alice, server) = in_tokyo(&talk);
        goes_to_the_default(&alice, &server);
        let bytes = query(&text).bytes;
        let (one, other) = bytes.split_at(bytes.len().min(66_000));
        alice.sends_bytes(one);
        alice.sends_bytes(other);
        server.gets([query_with("'timezone',NULL,false"), query(&text)]);
        server.answers(synced(&["UTF8", "on", "UTC"]));
        server.answers([complete("RESET"), ready()]);
        if may {
            alice.gets([complete("RESET")]);
            finds(&server, true);
            alice.gets([parameter("TimeZone", "Asia/Tokyo"), ready()]);
        } else {
            alice.gets([complete("RESET"), ready()]);
        }
        server.forgets();
    }
}

#[test]
fn a_text_that_failed_has_not_reset_what_it_names() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    goes_to_the_default(&alice, &server);
    let text = format!("select '{}'; discard all", "x".repeat(70_000));
    sends_in_pieces(&alice, &text);
    server.gets([query_with("'timezone',NULL,false"), query(&text)]);
    server.answers(synced(&["UTF8", "on", "UTC"]));
    let fails = [error("25001", "DISCARD ALL cannot run inside a transaction block"), ready()];
    server.answers(fails.clone());
    alice.gets(fails);
    server.forgets();
}

#[test]
fn a_reset_behind_a_constant_with_a_backslash_is_seen() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    let off = "set standard_conforming_strings = off";
    let set = [complete("SET"), parameter("standard_conforming_strings", "off"), ready()];
    alice.sends([query(off)]);
    server.gets([query(off)]).answers(set.clone());
    alice.gets(set);
    let text = r"select 'a\'b'; reset all";
    alice.sends([query(text)]);
    server.gets([query_with("set_config('client_encoding'"), query(text)]);
    server.answers(synced(&["UTF8"]));
    let read = one_row()[..3].to_vec();
    let reset = [complete("RESET"), parameter("TimeZone", "UTC"), ready()];
    server.answers(read.clone()).answers(reset).gets(restores());
    alice.gets([read, vec![complete("RESET")]].concat());
}
