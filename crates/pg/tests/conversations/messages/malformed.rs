//! Bodies that are not what the protocol says.

use crate::talk::*;

/// Messages that PostgreSQL refuses before it looks anything up.
const BODIES: [(u8, &[u8]); 9] = [
    (b'P', b"s\0select 1\0\0\x05"),
    (b'P', b"s"),
    (b'P', b"s\0select 1\0\0\0tail"),
    (b'B', b"\0s"),
    (b'D', b""),
    (b'D', b"Ss\0tail"),
    (b'C', b"Ss"),
    (b'C', b""),
    (b'E', b"p\0\0"),
];

fn message(tag: u8, body: &[u8]) -> Line {
    let length = u32::try_from(body.len() + 4).expect("it is short").to_be_bytes();
    raw(&[&[tag], &length[..], body].concat())
}

#[test]
fn the_server_refuses_a_malformed_message_and_the_session_goes_on() {
    let malformed = error("08P01", "insufficient data left in message");
    for (tag, body) in BODIES {
        let talk = one_server();
        let (alice, server) = (talk.client(), talk.server(1));
        alice.sends([message(tag, body), bind("", ""), sync()]);
        server.gets([message(tag, body), bind("", ""), sync()]);
        server.answers([malformed.clone(), ready()]);
        alice.gets([malformed.clone(), ready()]);
        alice.asks(&server, "select 1", one_row());
    }
}

#[test]
fn a_malformed_query_ends_with_its_error_alone() {
    let malformed = error("08P01", "invalid string in message");
    for body in [&b"select 1"[..], b"select 1\0select 2\0"] {
        let talk = one_server();
        let (alice, server) = (talk.client(), talk.server(1));
        alice.sends([message(b'Q', body), query("select 3")]);
        server.gets([message(b'Q', body), query("select 3")]);
        server.answers([malformed.clone(), ready()]).answers(one_row());
        alice.gets([vec![malformed.clone(), ready()], one_row()].concat());
    }
}

#[test]
fn a_malformed_message_leaves_the_statement_that_it_names() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", "update t set a = $1");
    let short = message(b'C', b"Ss");
    alice.sends([short.clone(), sync()]);
    server.gets([short, sync()]).answers([error("08P01", "x"), ready()]);
    alice.gets([error("08P01", "x"), ready()]);
    alice.sends([bind("", "s"), execute(""), sync()]);
    server.gets([bind("", ""), execute(""), sync()]);
}
