//! Limits of Refrain's own: the server is made to fail, and its error gets the words for the limit.

use crate::talk::*;

const UNKNOWN: &str = "prepared statement \"~none\" does not exist";

#[test]
fn one_statement_too_many_fails_at_the_server_and_the_transaction_with_it() {
    let talk = Conversation::new(options("pool_size = 1\nmax_client_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "a", "update t set a = 1");
    alice.opens_block(&server);
    alice.sends([parse("b", "update t set b = 1"), bind("", "b"), sync()]);
    server.gets([describe_statement("~none"), bind("", "b"), sync()]);
    server.answers([error("26000", UNKNOWN), ready_failed()]);
    alice.gets([error("54000", "too many prepared statements"), ready_failed()]);
}

#[test]
fn a_refusal_in_a_failed_transaction_is_postgresqls_own_error() {
    let talk = Conversation::new(options("pool_size = 1\nmax_client_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "a", "update t set a = 1");
    alice.opens_block(&server);
    alice.asks(&server, "x", [error("42601", "x"), ready_failed()]);
    alice.sends([parse("b", "update t set b = 1"), sync()]);
    server.gets([describe_statement("~none"), sync()]);
    server.answers([error("25P02", "current transaction is aborted"), ready_failed()]);
    alice.gets([error("25P02", "current transaction is aborted"), ready_failed()]);
}

#[test]
fn sql_prepare_is_refused_where_the_options_say_so() {
    let talk = Conversation::new(options("pool_size = 1\nsql_prepare = \"error\""));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("prepare q as select 1")]);
    server.gets([query("EXECUTE \"~none\"")]).answers([error("26000", UNKNOWN), ready()]);
    alice.gets([error("0A000", "PREPARE is switched off (sql_prepare)"), ready()]);
    assert_eq!(talk.pinned(), "");
}

#[test]
fn one_portal_too_many_waits_for_replies_and_is_refused_in_the_servers_place() {
    let talk = Conversation::new(options("pool_size = 1\nmax_client_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.sends([parse("", "set a.b = 1"), bind("p", ""), bind("q", ""), sync()]);
    server.gets([parse("", "set a.b = 1"), bind("p", ""), flush()]);
    server.answers([parse_complete(), bind_complete()]);
    server.gets([bind("q", "~none"), sync()]);
    server.answers([error("26000", UNKNOWN), ready_failed()]);
    alice.gets(
        [parse_complete(), bind_complete()]
            .into_iter()
            .chain([error("53200", "too many portals"), ready_failed()]),
    );
}
