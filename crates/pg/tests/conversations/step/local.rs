//! Messages of a client that has no server and needs none.

use crate::talk::*;

const WRITE: &str = "update t set a = 1";

#[test]
fn close_sync_and_flush_take_no_server_from_anybody() {
    let talk = one_server();
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([close_statement("s"), flush(), close_portal("p"), sync()]);
    bob.gets([close_complete(), close_complete(), ready()]);
    bob.sends([copy_data("late"), copy_done(), sync()]);
    bob.gets([ready()]);
}

#[test]
fn messages_that_come_in_pieces_take_no_server_from_anybody() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares(&server, "s", "commit");
    alice.opens_block(&server);
    for byte in b"C\0\0\0\x07Ss\0P\0\0\0\x12mine\0commit\0\0\0S\0\0\0\x04" {
        bob.sends([raw(&[*byte])]);
    }
    bob.gets([close_complete(), parse_complete(), ready()]);
}

#[test]
fn half_a_request_takes_no_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let whole = query("select 1");
    for request in [&whole, &parse("s", "select 1"), &bind("", "s"), &execute("")] {
        let bob = talk.client();
        let (first, rest) = request.bytes.split_at(request.bytes.len() - 1);
        bob.sends([raw(first)]);
        server.gets_nothing();
        alice.asks(&server, "select 2", one_row());
        if *request == whole {
            bob.sends([raw(rest)]);
            server.gets([query("select 1")]);
            server.sends(one_row());
            bob.forgets();
        }
    }
}

#[test]
fn a_parse_that_a_server_has_accepted_takes_no_server_either() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    bob.sends([parse("mine", WRITE), sync()]);
    bob.gets([parse_complete(), ready()]);
    bob.sends([parse("other", "update t set b = 1"), sync()]);
    bob.gets_nothing();
    alice.commits(&server);
    server.gets([parse("", "update t set b = 1"), describe_statement(""), sync()]);
    server.answers([parse_complete(), parameters(&[]), no_data(), ready()]);
    bob.gets([parse_complete(), ready()]);
}

#[test]
fn terminate_ends_the_session_without_a_word() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([terminate()]);
    alice.gets_nothing();
    assert!(alice.is_closed() && !server.is_closed());
}
