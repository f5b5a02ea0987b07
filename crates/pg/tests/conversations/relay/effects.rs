//! Effects of completed commands on the session: above all, which commands pin a client.

use crate::talk::*;

#[test]
fn listen_pins_and_unlisten_all_frees_once_it_has_been_committed() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
    assert_eq!(talk.pinned(), "listen");
    alice.opens_block(&server);
    alice.asks(&server, "unlisten *", [complete("UNLISTEN"), ready_in_block()]);
    assert_eq!(talk.pinned(), "listen", "a rollback would bring it back");
    alice.commits(&server);
    assert_eq!(talk.pinned(), "");
}

#[test]
fn a_rollback_brings_back_what_an_unlisten_would_have_freed() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
    alice.opens_block(&server);
    alice.asks(&server, "unlisten *", [complete("UNLISTEN"), ready_in_block()]);
    alice.asks(&server, "rollback", [complete("ROLLBACK"), ready()]);
    assert_eq!(talk.pinned(), "listen");
}

#[test]
fn a_listen_that_failed_pins_nothing() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "listen news", [error("25P02", "aborted"), ready()]);
    assert_eq!(talk.pinned(), "");
}

#[test]
fn temporary_tables_locks_and_cursors_pin_each_by_its_own_reason() {
    for (text, tag, pin) in [
        ("create temp table t (a int)", "CREATE TABLE", "temporary tables"),
        ("select pg_advisory_lock(1)", "SELECT 1", "advisory locks"),
        ("declare c cursor with hold for select 1", "DECLARE CURSOR", "cursors with hold"),
        ("prepare q as select 1", "PREPARE", "prepared"),
        ("load 'auto_explain'", "LOAD", "load"),
        ("set role app", "SET", "role"),
    ] {
        let talk = one_server();
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, text, [complete(tag), ready()]);
        assert_eq!(talk.pinned(), pin, "{text}");
        alice.asks(&server, "select 1", one_row());
    }
}

#[test]
fn discard_all_frees_a_client_that_was_pinned() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "create temp table t (a int)", [complete("CREATE TABLE"), ready()]);
    alice.asks(&server, "discard all", [complete("DISCARD ALL"), ready()]);
    assert_eq!(talk.pinned(), "");
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

#[test]
fn a_change_of_the_schema_has_statements_prepared_anew() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", "update t set a = 1", "~1");
    bob.asks(&server, "alter table t add b int", [complete("ALTER TABLE"), ready()]);
    bob.sends([parse("s", "update t set a = 1"), describe_statement("s"), sync()]);
    server.gets([
        close_statement("~1"),
        parse("~1.1", "update t set a = 1"),
        describe_statement("~1.1"),
        sync(),
    ]);
    server.answers([close_complete(), parse_complete(), parameters(&[]), no_data(), ready()]);
    bob.gets([parse_complete(), parameters(&[]), no_data(), ready()]);
}
