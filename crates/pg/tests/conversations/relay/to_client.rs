//! Replies on their way to the client.

use crate::talk::*;

#[test]
fn a_long_row_streams_before_it_has_arrived() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select repeat('x', 100000)")]);
    server.forgets();
    let long = row(&[&"x".repeat(100_000)]).bytes;
    server.sends([columns(&["repeat"])]).sends_bytes(&long[..50_000]);
    assert!(alice.has_got() > 50_000, "the client has the beginning");
    server.sends_bytes(&long[50_000..]).sends([complete("SELECT 1"), ready()]);
    alice.gets([columns(&["repeat"]), raw(&long), complete("SELECT 1"), ready()]);
}

#[test]
fn a_row_that_is_too_long_ends_the_session_before_the_client_gets_any_of_it() {
    let talk = Conversation::new(options("pool_size = 1\nmax_packet_size = \"256KiB\""));
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    let [short, long] = [200, 300].map(|kib| row(&[&"x".repeat(kib * 1024)]).bytes);
    for (client, bytes) in [(&alice, &short), (&bob, &long)] {
        client.sends([query("select f()")]);
        server.forgets();
        server.sends([columns(&["f"])]);
        let mut parts = bytes.chunks(64 * 1024);
        server.sends_bytes(parts.next().unwrap_or_default());
        if bytes == &short {
            for part in parts {
                server.sends_bytes(part);
            }
            server.sends([complete("SELECT 1"), ready()]);
            client.gets([columns(&["f"]), raw(bytes), complete("SELECT 1"), ready()]);
        }
    }
    let words = "the message is longer than max_packet_size";
    bob.gets([columns(&["f"]), fatal("54000", words)]);
    assert!(bob.is_closed() && server.is_closed());
}

#[test]
fn a_reply_that_answers_no_request_costs_the_server_and_its_client() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]).answers([bind_complete()]);
    alice.gets([fatal("08P01", "the server broke the protocol")]);
    assert!(alice.is_closed() && server.is_closed());
    assert!(talk.log().iter().any(|(cause, _)| *cause == "server_protocol"));
    assert_eq!(talk.counters().pool.unexpected_messages, 1);
}

#[test]
fn a_second_ready_for_query_is_not_taken_for_an_answer() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]).answers([one_row(), vec![ready()]].concat());
    alice.gets(one_row());
    assert!(server.is_closed() && !alice.is_closed());
}

#[test]
fn notices_keep_their_place_among_the_replies() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let reply = [notice("one"), columns(&["a"]), notice("two"), row(&["1"]), notice("three")];
    alice.asks(&server, "select f()", reply.into_iter().chain([complete("SELECT 1"), ready()]));
}

#[test]
fn a_portal_that_stops_at_its_row_limit_goes_on_with_the_next_execute() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.sends([
        parse("", "select 1"),
        bind("p", ""),
        describe_portal("p"),
        execute("p"),
        flush(),
    ]);
    server.forgets();
    let first = [parse_complete(), bind_complete(), columns(&["a"]), row(&["1"]), suspended()];
    server.answers(first.clone());
    alice.gets(first);
    alice.sends([execute("p"), sync()]);
    server.gets([execute("p"), sync()]);
    server.answers([complete("SELECT 0"), ready_in_block()]);
    alice.gets([complete("SELECT 0"), ready_in_block()]);
}

#[test]
fn replies_that_arrive_one_byte_at_a_time_are_the_same_replies() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1; selec")]);
    server.gets([query("select 1; selec")]);
    let reply = [columns(&["a"]), row(&["1"]), complete("SELECT 1"), notice("hm")];
    let reply = || reply.clone().into_iter().chain([error("42601", "syntax"), ready()]);
    server.sends_byte_by_byte(reply());
    alice.gets(reply());
}
