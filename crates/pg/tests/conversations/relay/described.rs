//! Answers to the Describe of a copy whose columns or parameters are not those of the client.

use crate::messages::check::{READ, in_one_write, prepared_elsewhere};
use crate::talk::*;

#[test]
fn rows_of_other_columns_reach_nobody() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "1"), describe_portal(""), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([
        parse("", READ),
        describe_statement(""),
        bind_value("", "", "1"),
        describe_portal(""),
        execute(""),
        sync(),
    ]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["b"])]);
    alice.gets([error_like("cached plan must not change result type")]);
    second.answers([bind_complete(), columns(&["b"]), row(&["x"]), complete("SELECT 1"), ready()]);
    alice.gets([ready()]);
    // The schema has changed unseen: a new client gets a new copy, and the old one stays refused.
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    second.gets([parse("~1.1", READ), describe_statement("~1.1"), flush()]);
}

#[test]
fn other_parameters_are_refused_as_well_and_so_is_what_the_server_says_of_them() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "x"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets(in_one_write("", "x"));
    second.answers([parse_complete(), parameters(&[20]), columns(&["a"])]);
    alice.gets([error_like("cached plan must not change result type")]);
    second.answers([error("22P02", "invalid input syntax"), ready()]);
    alice.gets([ready()]);
}
