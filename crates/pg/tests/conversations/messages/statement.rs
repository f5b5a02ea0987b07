//! Describe and Close of a statement, and DEALLOCATE in extended messages.

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

#[test]
fn a_close_is_answered_and_the_server_keeps_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.sends([close_statement("s"), bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]);
    let unknown = error("26000", "prepared statement \"s\" does not exist");
    server.answers([unknown.clone(), ready_failed()]);
    alice.gets([close_complete(), unknown, ready_failed()]);
}

#[test]
fn a_close_of_an_unknown_statement_within_a_transaction_goes_to_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.sends([close_statement("by_sql"), sync()]);
    server.gets([close_statement("by_sql"), sync()]);
    server.answers([close_complete(), ready_in_block()]);
    alice.gets([close_complete(), ready_in_block()]);
}

#[test]
fn deallocate_by_extended_messages_finds_an_empty_statement_of_the_clients_name() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([parse("", "deallocate s"), bind("", ""), execute(""), sync()]);
    server.gets([
        parse("", "deallocate s"),
        bind("", ""),
        close_statement("s"),
        parse("s", ""),
        execute(""),
        sync(),
    ]);
    server.answers([
        parse_complete(),
        bind_complete(),
        close_complete(),
        parse_complete(),
        complete("DEALLOCATE"),
        ready(),
    ]);
    alice.gets([parse_complete(), bind_complete(), complete("DEALLOCATE"), ready()]);
    alice.sends([bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]).answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
}

#[test]
fn the_first_63_bytes_of_a_name_are_the_name() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let [one, other] = ["a", "b"].map(|end| format!("{}{end}", "n".repeat(63)));
    alice.prepares_by_name(&server, &one, WRITE, "~1");
    // PostgreSQL repeats the name of the message, whatever the statement was called before.
    alice.sends([bind("", &other), sync()]);
    let words = |name| error("08P01", &format!("prepared statement \"{name}\" requires 1"));
    server.gets([bind("", "~1"), sync()]).answers([words("~1"), ready()]);
    alice.gets([words(&other), ready()]);
    alice.sends([close_statement(&other), sync()]);
    alice.gets([close_complete(), ready()]);
    alice.sends([bind("", &one), sync()]);
    server.gets([bind("", &one), sync()]);
}
