//! Settings that Refrain restores behind a RESET, and checks before it lets a client in.

use super::internal::in_tokyo;
use crate::talk::*;

#[test]
fn reset_all_goes_back_to_the_startup_packet_before_the_client_is_ready() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.sends([query("reset all")]);
    server.gets([query("reset all")]);
    server.answers([complete("RESET"), parameter("TimeZone", "UTC"), ready()]);
    alice.gets([complete("RESET")]);
    server.gets([internal("(VALUES ('timezone','Asia/Tokyo'))"), vec![sync()]].concat());
    server.answers(internal_answer(&[&["Asia/Tokyo"]]));
    server.answers([parameter("TimeZone", "Asia/Tokyo"), ready()]);
    alice.gets([ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
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
