//! Settings that Refrain restores behind a RESET, and checks before it lets a client in.

use super::internal::{in_tokyo, restores};
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

#[test]
fn the_startup_packet_is_checked_by_a_server_and_refused_in_its_words() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("timezone", "Nowhere")]);
    let server = talk.server(1);
    server.gets([query_with("'timezone','Nowhere',false")]);
    let words = "invalid value for parameter \"TimeZone\": \"Nowhere\"";
    server.answers([error("22023", words), ready()]);
    alice.gets([authentication(0, b""), fatal("22023", words)]);
    assert!(alice.is_closed());
    server.forgets();
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
    bob.asks(&talk.server(2), "select 1", one_row());
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
