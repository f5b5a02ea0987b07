//! Bind, Describe and Close: the client's name of a statement becomes the server's.

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

#[test]
fn a_statement_that_the_server_lacks_is_parsed_in_front_of_its_bind() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares_by_name(&first, "s", WRITE, "~1");
    bob.opens_block(&first);
    alice.sends([bind_value("", "s", "7"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("~1", WRITE), bind_value("", "~1", "7"), execute(""), sync()]);
    second.answers([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_bind_gets_the_name_of_the_server_and_keeps_its_portal_and_values() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([bind_values("p", "s", &["7", "x"]), execute("p"), sync()]);
    server.gets([bind_values("p", "~1", &["7", "x"]), execute("p"), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_bind_of_a_name_that_was_never_given_is_refused_by_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([bind_value("p", "nope", "7"), execute("p"), sync()]);
    server.gets([bind_value("p", "nope", "7"), execute("p"), sync()]);
    let unknown = error("26000", "prepared statement \"nope\" does not exist");
    server.answers([unknown.clone(), ready()]);
    alice.gets([unknown, ready()]);
}

#[test]
fn a_client_cannot_name_a_statement_of_refrain() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let name = format!("{}1", talk.prefix());
    let safe = name.replacen('_', "-", 1);
    alice.sends([bind("", &name), describe_statement(&name), close_statement(&name), sync()]);
    server.gets([bind("", &safe), describe_statement(&safe), close_statement(&safe), sync()]);
    server.answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
}

#[test]
fn the_unnamed_statement_of_another_client_is_closed_before_a_bind_could_run_it() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([parse("", WRITE), bind_value("", "", "1"), sync()]);
    server.gets([parse("", WRITE), bind_value("", "", "1"), sync()]);
    server.answers([parse_complete(), bind_complete(), ready()]);
    alice.gets([parse_complete(), bind_complete(), ready()]);
    bob.sends([bind_value("", "", "7"), sync()]);
    server.gets([close_statement(""), bind_value("", "", "7"), sync()]);
    let unknown = error("26000", "unnamed prepared statement does not exist");
    server.answers([close_complete(), unknown.clone(), ready()]);
    bob.gets([unknown, ready()]);
}
