//! Clients that have ended their stream get the replies to what they had sent.

use crate::talk::*;

#[test]
fn a_client_that_has_ended_its_stream_gets_its_answers_first() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1"), query("select 2")]).ends_stream();
    server.gets([query("select 1"), query("select 2")]);
    assert!(!alice.is_closed());
    server.answers(one_row()).answers(one_row());
    alice.gets([one_row(), one_row()].concat());
    assert!(alice.is_closed() && !server.is_closed());
}

#[test]
fn what_waited_for_a_server_is_run_all_the_same() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("insert into t values (1)")]).ends_stream();
    alice.commits(&server);
    server.gets([query("insert into t values (1)")]);
    server.answers([complete("INSERT 0 1"), ready()]);
    bob.gets([complete("INSERT 0 1"), ready()]);
    assert!(bob.is_closed());
}

#[test]
fn a_stream_that_ends_in_a_transaction_rolls_it_back() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.ends_stream();
    assert!(alice.is_closed());
    server.gets([query("ROLLBACK")]).answers([complete("ROLLBACK"), ready()]);
}

#[test]
fn a_stream_that_ends_amid_copy_data_gets_postgresqls_errors() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "copy t from stdin", [copy_in_response()]);
    alice.sends([copy_data("1\n")]).ends_stream();
    let words = "unexpected EOF on client connection with an open transaction";
    let lost = "terminating connection because protocol synchronization was lost";
    alice.gets([error("08006", words), fatal("08P01", lost)]);
    assert!(alice.is_closed() && server.is_closed());
    server.forgets();
}

#[test]
fn a_stream_that_ends_amid_a_message_costs_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let long = query(&"x".repeat(200_000)).bytes;
    alice.sends_bytes(&long[..100_000]);
    server.forgets();
    alice.ends_stream();
    assert!(alice.is_closed() && server.is_closed());
    server.forgets();
}

/// The query that began the COPY has no reply before the COPY has an end, and that end never comes.
#[test]
fn a_stream_that_ends_amid_the_end_of_a_copy_costs_the_server_at_once() {
    for cut in [6, 12] {
        let talk = one_server();
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, "copy t from stdin", [copy_in_response()]);
        alice.sends([copy_data("1\n")]);
        server.gets([copy_data("1\n")]);
        alice.sends_bytes(&copy_fail("a reason").bytes[..cut]);
        server.forgets();
        alice.ends_stream();
        assert!(alice.is_closed() && server.is_closed());
        server.forgets();
        alice.forgets();
    }
}

#[test]
fn a_stream_that_ends_at_the_login_is_a_client_that_has_gone() {
    let talk = one_server().by_hand();
    let (silent, waiting) = (talk.newcomer(), talk.newcomer());
    silent.ends_stream();
    waiting.asks_to_log_in(&[]);
    waiting.gets([authentication(0, b"")]);
    waiting.ends_stream();
    assert!(silent.is_closed() && waiting.is_closed());
}
