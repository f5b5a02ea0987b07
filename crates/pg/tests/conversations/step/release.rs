//! Which client gets a server, when it comes back, and in what state.
//!
//! Clients that leave are here, too. Replies that come after their client has left are in
//! `relay/to_nobody.rs`, streams that end in order in `farewell.rs`, clients that leave amid a job
//! in `jobs.rs`, and servers that do not finish for a client that left in `tick.rs`.

use std::time::Duration;

use crate::talk::*;

#[test]
fn clients_get_a_server_in_the_order_in_which_they_asked() {
    let talk = one_server();
    let (alice, bob, carol) = (talk.client(), talk.client(), talk.client());
    let server = talk.server(1);
    alice.opens_block(&server);
    bob.sends([query("select 'bob'")]);
    carol.sends([query("select 'carol'")]);
    alice.commits(&server);
    server.gets([query("select 'bob'")]).answers(one_row());
    server.gets([query("select 'carol'")]).answers(one_row());
    bob.gets(one_row());
    carol.gets(one_row());
}

#[test]
fn a_transaction_keeps_its_server_until_it_ends() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select 1")]);
    alice.asks(&server, "x", [error("42601", "x"), ready_failed()]);
    server.gets_nothing();
    alice.asks(&server, "rollback", [complete("ROLLBACK"), ready()]);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn the_server_of_a_client_that_left_in_a_transaction_is_rolled_back_first() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select 1")]);
    alice.breaks();
    server.gets([query("ROLLBACK")]).answers([complete("ROLLBACK"), ready()]);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn the_server_of_a_client_that_left_without_a_sync_fails_before_it_could_commit() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", "delete from t"), bind("", ""), execute("")]);
    server.gets([parse("", "delete from t"), bind("", ""), execute("")]);
    alice.breaks();
    server.gets([describe_statement("~none"), sync()]);
    server.answers([parse_complete(), bind_complete(), complete("DELETE 1")]);
    server.answers([error("26000", "prepared statement \"~none\" does not exist"), ready()]);
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
    assert!(!server.is_closed());
}

#[test]
fn a_server_that_a_pinned_client_left_is_reset_and_closed_if_that_fails() {
    for works in [true, false] {
        let talk = one_server();
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
        alice.breaks();
        server.gets([query("DISCARD ALL")]);
        let reset = if works { complete("DISCARD ALL") } else { error("25001", "no") };
        server.answers([reset, ready()]);
        assert_eq!(server.is_closed(), !works);
        assert_eq!(talk.counters().pool.resets, 1);
    }
}

#[test]
fn a_client_that_leaves_amid_a_copy_costs_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "copy t from stdin", [copy_in_response()]);
    alice.breaks();
    assert!(server.is_closed());
}

#[test]
fn a_session_pool_lends_for_the_session_and_resets_with_its_own_query() {
    let talk = Conversation::new(options(
        "pool_size = 1\npool_mode = \"session\"\nserver_reset_query = \"RESET ALL\"",
    ));
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "select 1", one_row());
    bob.sends([query("select 2")]);
    server.gets_nothing();
    alice.sends([terminate()]);
    server.gets([query("RESET ALL")]).answers([complete("RESET"), ready()]);
    // A reset may not have gone back to the defaults: these are asked for.
    server.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("select 2")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_statement_pool_refuses_transaction_blocks() {
    let talk = Conversation::new(options("pool_size = 1\npool_mode = \"statement\""));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("begin")]);
    server.gets([query("begin")]).answers([complete("BEGIN"), ready_in_block()]);
    let words = "transaction blocks are not allowed in statement pooling mode";
    alice.gets([complete("BEGIN"), ready_in_block(), fatal("08P01", words)]);
    assert!(alice.is_closed());
    server.gets([query("ROLLBACK")]).answers([complete("ROLLBACK"), ready()]);
}

#[test]
fn one_client_too_many_that_would_wait_is_refused_at_once() {
    let talk = Conversation::new(options("pool_size = 1\nmax_waiting = 1"));
    let (alice, bob, carol) = (talk.client(), talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    carol.sends([query("select 1")]);
    carol.gets([fatal("53300", "too many clients wait for a server")]);
    assert!(carol.is_closed() && !bob.is_closed());
}

#[test]
fn a_server_that_was_idle_for_long_answers_an_empty_query_first() {
    for (own, asked, answer) in [
        ("", "", vec![empty_query(), ready()]),
        ("server_check_query = \"select 2\"", "select 2", one_row()),
        // A server that refuses the question is there.
        ("server_check_query = \"oops\"", "oops", vec![error("42601", "oops"), ready()]),
    ] {
        let talk = Conversation::new(options(&format!("server_check_delay = \"10s\"\n{own}")));
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, "select 1", one_row());
        talk.waits(Duration::from_secs(9));
        alice.asks(&server, "select 1", one_row());
        talk.waits(Duration::from_secs(11));
        alice.sends([query("select 1")]);
        server.gets([query(asked)]).answers(answer);
        server.gets([query("select 1")]).answers(one_row());
        alice.gets(one_row());
        assert_eq!(talk.connections(), 1);
    }
}
