//! Parse: recorded under the client's name, answered or sent on.

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

#[test]
fn a_text_goes_unnamed_at_first_and_by_name_from_its_second_use() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.runs(&server, "s", [bind("", "~1")]);
}

#[test]
fn a_parse_whose_columns_the_client_does_not_ask_for_is_described_all_the_same() {
    let talk = one_server();
    let alice = talk.client();
    alice.sends([parse("s", "select $1"), sync()]);
    talk.server(1).gets([parse("", "select $1"), describe_statement(""), sync()]).answers([
        parse_complete(),
        parameters(&[25]),
        columns(&["a"]),
        ready(),
    ]);
    alice.gets([parse_complete(), ready()]);
}

#[test]
fn a_parse_of_what_the_server_has_is_answered_in_its_turn_and_not_sent() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([query("begin"), parse("again", WRITE), sync()]);
    server.gets([query("begin")]);
    alice.gets_nothing();
    server.answers([complete("BEGIN"), ready_in_block()]);
    server.gets([sync()]).answers([ready_in_block()]);
    alice.gets([complete("BEGIN"), ready_in_block(), parse_complete(), ready_in_block()]);
}

#[test]
fn a_failed_transaction_refuses_a_parse_of_what_the_server_has() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.opens_block(&server);
    alice.asks(&server, "x", [error("42601", "x"), ready_failed()]);
    alice.sends([parse("again", WRITE), sync()]);
    server.gets([close_statement("~1"), parse("~1", WRITE), sync()]);
    server.answers([error("25P02", "aborted"), ready_failed()]);
    alice.gets([error("25P02", "aborted"), ready_failed()]);
}

#[test]
fn a_parse_of_the_servers_own_unnamed_statement_is_answered() {
    let talk = one_server();
    let alice = talk.client();
    alice.sends([parse("", WRITE), bind_value("", "", "1"), execute(""), sync()]);
    let server = talk.server(1);
    server.gets([parse("", WRITE), bind_value("", "", "1"), execute(""), sync()]).answers([
        parse_complete(),
        bind_complete(),
        complete("UPDATE 1"),
        ready(),
    ]);
    alice.gets([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
    alice.sends([parse("", WRITE), bind_value("", "", "2"), execute(""), sync()]);
    server.gets([bind_value("", "", "2"), execute(""), sync()]).answers([
        bind_complete(),
        complete("UPDATE 1"),
        ready(),
    ]);
    alice.gets([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_name_that_is_taken_is_refused_by_the_server_in_the_clients_words() {
    let talk = one_server();
    let alice = talk.client();
    let server = talk.server(1);
    alice.prepares(&server, "s", WRITE);
    alice.sends([parse("s", "select 2"), sync()]);
    server
        .gets([close_statement("~aside"), parse("~aside", ""), parse("~aside", "select 2"), sync()])
        .answers([
            close_complete(),
            parse_complete(),
            error("42P05", "prepared statement \"~aside\" already exists"),
            ready(),
        ]);
    alice.gets([error("42P05", "prepared statement \"s\" already exists"), ready()]);
}

#[test]
fn a_text_too_long_to_be_kept_is_passed_on_and_its_client_keeps_the_server() {
    let talk = Conversation::new(options(
        "max_client_statement_bytes = \"4KiB\"\nmax_cached_statement_bytes = \"4KiB\"",
    ));
    let alice = talk.client();
    let long = format!("select '{}'", "x".repeat(5000));
    alice.sends([parse("s", &long), sync()]);
    talk.server(1).gets([parse("s", &long), sync()]).answers([parse_complete(), ready()]);
    alice.gets([parse_complete(), ready()]);
    assert_eq!(talk.pinned(), "prepared");
    alice.sends([bind("", "s"), sync()]);
    talk.server(1).gets([bind("", "s"), sync()]).answers([bind_complete(), ready()]);
    alice.gets([bind_complete(), ready()]);
}
