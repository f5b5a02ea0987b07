//! Replication connections: each has a server of its own, which begins as its client does and gets
//! the client's messages as they are.

use std::time::Duration;

use refrain_pool::event::Command;

use crate::talk::*;

const PHYSICAL: &[(&str, &str)] = &[("replication", "true")];

fn copy_both_response() -> Line {
    raw(b"W\0\0\0\x07\0\0\0")
}

#[test]
fn a_server_begins_with_the_parameters_of_its_client() {
    let talk = one_server().by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("application_name", "a"), ("replication", "database")]);
    alice.gets([authentication(0, b"")]);
    let server = talk.connection(1);
    let parameters =
        [("user", "u"), ("database", "d"), ("application_name", "a"), ("replication", "database")];
    server.accepts();
    server.gets_bytes(&startup(0, &parameters).bytes);
    server.greets(1);
    alice.is_let_in();
}

#[test]
fn messages_pass_in_both_directions_at_once() {
    let talk = one_server();
    let alice = talk.client_with(PHYSICAL);
    let server = talk.server(1);
    alice.sends([query("START_REPLICATION 0/0")]);
    server.gets([query("START_REPLICATION 0/0")]);
    server.answers([copy_both_response(), copy_data("written")]);
    alice.gets([copy_both_response(), copy_data("written")]);
    alice.sends([copy_data("flushed")]);
    server.gets([copy_data("flushed")]).answers([copy_data("more")]);
    alice.gets([copy_data("more")]).sends([copy_done()]);
    server.gets([copy_done()]).answers([copy_done(), complete("START_STREAMING"), ready()]);
    alice.gets([copy_done(), complete("START_STREAMING"), ready()]);
    // Nothing of the session is Refrain's: no statement is managed, and no setting synced.
    alice.sends([parse("s", "select 1"), sync()]);
    server.gets([parse("s", "select 1"), sync()]).answers([parse_complete(), ready()]);
    alice.gets([parse_complete(), ready()]);
}

#[test]
fn nobody_gets_the_server_of_another() {
    let talk = one_server();
    let alice = talk.client_with(PHYSICAL);
    let server = talk.server(1);
    alice.sends([terminate()]);
    server.gets([terminate()]);
    assert!(alice.is_closed() && server.is_closed());
    let bob = talk.client_with(PHYSICAL);
    bob.sends([query("IDENTIFY_SYSTEM")]);
    talk.server(2).gets([query("IDENTIFY_SYSTEM")]);
}

#[test]
fn a_fatal_error_is_the_last_that_a_client_gets() {
    let talk = one_server();
    let alice = talk.client_with(PHYSICAL);
    let server = talk.server(1);
    alice.sends([query("START_REPLICATION 0/0")]);
    let words = "terminating walsender process due to replication timeout";
    server.gets([query("START_REPLICATION 0/0")]).answers([fatal("57P01", words)]);
    alice.gets([fatal("57P01", words)]);
    assert!(alice.is_closed());
}

#[test]
fn a_client_gets_the_whole_of_a_fatal_error_that_comes_in_pieces_and_nothing_behind_it() {
    let error = fatal("57P01", &"word ".repeat(200));
    for at in 1..32 {
        let talk = one_server();
        let alice = talk.client_with(PHYSICAL);
        let server = talk.server(1);
        alice.sends([query("START_REPLICATION 0/0")]);
        let (beginning, rest) = error.bytes.split_at(at * at);
        server.gets([query("START_REPLICATION 0/0")]).sends_bytes(beginning);
        assert!(!alice.is_closed());
        server.sends_bytes(rest);
        alice.gets([error.clone()]);
        assert!(alice.is_closed());
    }
}

#[test]
fn an_error_too_long_to_be_held_passes_on_in_pieces() {
    let error = fatal("57P01", &"x".repeat(3 << 19));
    let talk = one_server();
    let alice = talk.client_with(PHYSICAL);
    let server = talk.server(1);
    alice.sends([query("START_REPLICATION 0/0")]);
    server.gets([query("START_REPLICATION 0/0")]).sends_bytes(&error.bytes[..1 << 20]);
    server.sends_bytes(&error.bytes[1 << 20..]);
    alice.gets([error]);
}

#[test]
fn a_shutdown_ends_a_stream_and_waits_for_a_command() {
    let talk = two_servers();
    let (alice, one) = (talk.client_with(PHYSICAL), talk.server(1));
    let (bob, two) = (talk.client_with(PHYSICAL), talk.server(2));
    alice.sends([query("START_REPLICATION 0/0")]);
    one.gets([query("START_REPLICATION 0/0")]).answers([copy_both_response()]);
    alice.gets([copy_both_response()]);
    bob.sends([query("BASE_BACKUP")]);
    two.gets([query("BASE_BACKUP")]);
    talk.commands(Command::Drain);
    let shutdown = || fatal("57P01", "terminating connection due to administrator command");
    alice.gets([shutdown()]);
    one.gets([terminate()]);
    two.answers([complete("BASE_BACKUP"), ready()]);
    talk.waits(Duration::from_secs(1));
    bob.gets([complete("BASE_BACKUP"), ready(), shutdown()]);
    two.gets([terminate()]);
    assert!(talk.is_drained());
}
