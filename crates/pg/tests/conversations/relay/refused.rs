//! A server refuses the settings of the client that it was lent to.

use crate::talk::*;

const SET: &str = "set temp_buffers = 100";
const REFUSED: (&str, &str) = ("22023", "invalid value for parameter \"temp_buffers\": 100");

/// Has a client make a setting that another server may refuse, and another client use the server.
pub(crate) fn with_buffers(talk: &Conversation) -> (Party, Party, Party) {
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, SET, [complete("SET"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[&["temp_buffers", "100"]]));
    bob.sends([query("select 1")]);
    // The request waits: to reset a setting may take a right.
    server
        .gets([query_with("'temp_buffers',NULL,false")])
        .answers(synced(&["UTF8", "on", "UTC", "1024"]));
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
    (alice, bob, server)
}

fn sets() -> Line {
    query_with("'temp_buffers','100',false")
}

fn refusal() -> [Line; 2] {
    [error(REFUSED.0, REFUSED.1), ready()]
}

#[test]
fn the_request_goes_to_another_server() {
    let talk = one_server();
    let (alice, _, server) = with_buffers(&talk);
    alice.sends([query("select 2")]);
    server.gets([sets()]).answers(refusal());
    assert!(server.is_closed());
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(synced(&["100"]));
    fresh.gets([query("select 2")]).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn what_a_new_server_refuses_fails_the_request_and_is_given_up() {
    let talk = one_server();
    let (alice, bob, server) = with_buffers(&talk);
    alice.sends([query("select 2"), query("select 3")]);
    server.gets([sets()]).answers(refusal());
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(refusal());
    alice.gets(refusal());
    fresh.gets([query("select 3")]).answers(one_row());
    alice.gets(one_row());
    bob.asks(&fresh, "select 4", one_row());
}

#[test]
fn the_rest_of_the_segment_is_skipped() {
    let talk = one_server();
    let (alice, _, server) = with_buffers(&talk);
    alice.sends([parse("", "select 2"), bind("", ""), execute(""), sync()]);
    server.gets([sets()]).answers(refusal());
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(refusal());
    alice.gets(refusal());
    alice.asks(&fresh, "select 3", one_row());
}

#[test]
fn what_was_to_come_of_a_large_request_is_dropped() {
    let talk = one_server();
    let (alice, _, server) = with_buffers(&talk);
    let text = format!("select '{}'", "x".repeat(100_000));
    let mut bytes = vec![b'Q'];
    bytes.extend_from_slice(&u32::try_from(text.len() + 5).expect("a length").to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    let (beginning, rest) = bytes.split_at(50_000);
    alice.sends_bytes(beginning);
    server.gets([sets()]).answers(refusal());
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(refusal());
    alice.gets(refusal());
    alice.sends_bytes(rest);
    fresh.gets_nothing();
    alice.asks(&fresh, "select 2", one_row());
}

#[test]
fn a_role_that_is_gone_is_asked_for_again() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("options", "-c role=r")]);
    let server = talk.server(1);
    server.gets([query_with("'role','r',false")]).answers(synced(&["r"]));
    alice.is_let_in();
    let bob = talk.client();
    bob.sends([query("select 1")]);
    server.gets([query_with("'role',NULL,false")]).answers(synced(&["UTF8", "on", "UTC", "none"]));
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
    for _ in 0..2 {
        let gone = [error("22023", "role \"r\" does not exist"), ready()];
        alice.sends([query("select 2")]);
        server.gets([query_with("'role','r',false")]).answers(gone.clone());
        alice.gets(gone);
        bob.asks(&server, "select 3", one_row());
    }
    assert!(!server.is_closed());
}

#[test]
fn a_query_that_the_former_clients_timeout_has_ended_is_sent_again() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "set statement_timeout = 1", [complete("SET"), ready()]);
    server.gets([internal("set_config('statement_timeout','0',true)"), settings_asked()].concat());
    server.answers(internal_answer(&[])).answers(settings_answer(&[&["statement_timeout", "1ms"]]));
    bob.sends([query("select 1")]);
    for _ in 0..3 {
        server.gets([query_with("'statement_timeout',NULL,false")]);
        server.answers([error("57014", "canceling statement due to statement timeout"), ready()]);
    }
    server
        .gets([query_with("'statement_timeout',NULL,false")])
        .answers(synced(&["UTF8", "on", "UTC", "0"]));
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_request_that_is_cancelled_meanwhile_fails_and_nothing_is_given_up() {
    let talk = one_server();
    let (alice, _, server) = with_buffers(&talk);
    let cancelled = [error("57014", "canceling statement due to user request"), ready()];
    alice.sends([query("select 2")]);
    server.gets([sets()]).answers(cancelled.clone());
    alice.gets(cancelled);
    alice.sends([query("select 3")]);
    server.gets([sets()]).answers(synced(&["100"]));
    server.gets([query("select 3")]).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn the_end_of_a_server_ends_the_transaction_of_a_client_that_waits_for_nothing() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    // The message behind it would wait for the answer, which has come.
    let reply = [complete("SELECT 1"), complete("DEALLOCATE ALL"), ready_in_block()];
    alice.asks(&server, "select 1; deallocate all", reply);
    let words = "terminating connection due to administrator command";
    server.answers([fatal("57P01", words)]).breaks();
    alice.gets([fatal("57P01", words)]);
    assert!(alice.is_closed());
}

#[test]
fn a_server_that_ends_meanwhile_takes_no_request_along() {
    let talk = one_server();
    let (alice, _, server) = with_buffers(&talk);
    alice.sends([query("select 2")]);
    let words = "terminating connection due to transaction timeout";
    server.gets([sets()]).answers([fatal("25P04", words)]).breaks();
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(synced(&["100"]));
    fresh.gets([query("select 2")]).answers(one_row());
    alice.gets(one_row());
}
