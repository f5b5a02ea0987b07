//! Errors longer than a packet.

use crate::talk::*;

#[test]
fn a_long_error_streams_behind_its_first_fields() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("x")]);
    server.gets([query("x")]);
    let long = error("22P02", &"x".repeat(3_000_000));
    server.sends_bytes(&long.bytes[..1_500_000]);
    assert!(alice.has_got() > 1_000_000, "the client has the beginning");
    server.sends_bytes(&long.bytes[1_500_000..]).sends([ready()]);
    alice.gets([long, ready()]);
}

#[test]
fn a_fatal_error_that_has_not_arrived_in_full_is_cut_to_whole_fields() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("x")]);
    server.gets([query("x")]);
    let long = fatal("57P01", &"x".repeat(3_000_000));
    server.sends_bytes(&long.bytes[..1_500_000]);
    let mut cut = fatal("57P01", "x").bytes;
    cut.truncate(cut.len() - 4); // the message has not arrived
    cut.push(0);
    let length = u32::try_from(cut.len() - 1).unwrap();
    cut[1..5].copy_from_slice(&length.to_be_bytes());
    alice.gets([raw(&cut)]);
    assert!(alice.is_closed());
}
