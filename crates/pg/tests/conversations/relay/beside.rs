//! A role, and a path for the transaction: what no setting shows.

use crate::talk::*;

const TEXT: &str = "update t set a = 1";

/// Ends the client's use of its statement.
fn ends(alice: &Party, server: &Party) {
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_role_makes_another_statement_until_it_is_reset() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let uses = || [bind("", "s"), execute(""), sync()];
    alice.prepares_by_name(&server, "s", TEXT, "~1");
    alice.asks(&server, "set role r", [complete("SET"), ready()]);
    alice.sends(uses());
    server.gets([parse("", TEXT), describe_statement(""), flush()]);
    server.answers([parse_complete(), parameters(&[25]), no_data()]);
    server.gets([bind("", ""), execute(""), sync()]);
    ends(&alice, &server);
    alice.sends(uses());
    server.gets([parse("~2", TEXT), describe_statement("~2"), flush()]);
    server.answers([parse_complete(), parameters(&[25]), no_data()]);
    server.gets([bind("", "~2"), execute(""), sync()]);
    ends(&alice, &server);
    alice.asks(&server, "reset role", [complete("RESET"), ready()]);
    alice.sends(uses());
    // The client has seen the columns under the role alone.
    server.gets([describe_statement("~1"), flush()]);
    server.answers([parameters(&[25]), no_data()]);
    server.gets([bind("", "~1"), execute(""), sync()]);
    ends(&alice, &server);
}
