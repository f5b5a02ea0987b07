//! Clients that are logged in: what needs no server, what is held, and back-pressure.

use crate::talk::*;

#[test]
fn a_client_that_waits_is_not_read_beyond_a_bound() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    let long = query(&format!("select '{}'", "x".repeat(50_000)));
    bob.sends([long.clone()]);
    assert!(!bob.is_paused());
    bob.sends([long.clone()]);
    assert!(bob.is_paused());
    alice.commits(&server);
    server.gets([long.clone(), long]).answers(one_row()).answers(one_row());
    bob.gets([one_row(), one_row()].concat());
    assert!(!bob.is_paused());
}

#[test]
fn a_client_is_not_read_while_its_server_does_not_read() {
    let talk = Conversation::new(options(
        "pool_size = 1\nbuffer_high = \"64KiB\"\nbuffer_low = \"16KiB\"",
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "copy t from stdin", [copy_in_response()]);
    server.stalls();
    let data = copy_data(&"x".repeat(100_000));
    alice.sends([data.clone()]);
    assert!(alice.is_paused());
    server.takes_in().gets([data]);
    assert!(!alice.is_paused());
    alice.sends([copy_done()]);
    server.gets([copy_done()]).answers([complete("COPY 1"), ready()]);
    alice.gets([complete("COPY 1"), ready()]);
}

#[test]
fn a_client_that_does_not_read_is_not_asked_for_more() {
    let talk =
        Conversation::new(options("pool_size = 1\nbuffer_high = \"8KiB\"\nbuffer_low = \"4KiB\""));
    let alice = talk.client();
    alice.stalls();
    let syncs = || (0..2_000).map(|_| sync());
    alice.sends(syncs()); // 6 bytes of reply each
    assert!(alice.is_paused());
    alice.takes_in();
    assert!(!alice.is_paused());
    alice.gets((0..2_000).map(|_| ready()));
}

#[test]
fn a_message_without_a_sound_header_ends_the_session() {
    for bytes in [&b"Q\0\0\0\x03"[..], b"Q\xff\xff\xff\xff", b"?\0\0\0\x04"] {
        let talk = one_server();
        let alice = talk.client();
        alice.sends_bytes(bytes);
        alice.gets([fatal("08P01", "invalid message")]);
        assert!(alice.is_closed());
    }
}
