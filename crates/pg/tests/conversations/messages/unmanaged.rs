//! With `prepared_statements = false` a statement belongs to the server it was prepared on.

use crate::talk::*;

fn unmanaged() -> Conversation {
    Conversation::new(options("pool_size = 1\nprepared_statements = false"))
}

#[test]
fn names_and_texts_are_passed_on_as_they_are() {
    let talk = unmanaged();
    let (alice, server) = (talk.client(), talk.server(1));
    let said = || {
        [
            parse("s", "update t set a = $1"),
            describe_statement("s"),
            bind_value("", "s", "1"),
            execute(""),
            close_statement("s"),
            sync(),
        ]
    };
    alice.sends(said());
    server.gets(said());
    server.answers([parse_complete(), parameters(&[25]), no_data(), bind_complete()]);
    server.answers([complete("UPDATE 1"), close_complete(), ready()]);
    alice.gets(
        [parse_complete(), parameters(&[25]), no_data(), bind_complete()].into_iter().chain([
            complete("UPDATE 1"),
            close_complete(),
            ready(),
        ]),
    );
}

#[test]
fn a_statement_that_leaves_something_is_known_by_its_name_on_this_server() {
    let talk = unmanaged();
    let (alice, server) = (talk.client(), talk.server(1));
    let said = || [parse("s", "create temp table t (a int)"), bind("", "s"), execute(""), sync()];
    alice.opens_block(&server);
    alice.sends(said());
    server.gets(said());
    let reply = [parse_complete(), bind_complete(), complete("CREATE TABLE"), ready_in_block()];
    server.answers(reply.clone());
    alice.gets(reply);
    alice.commits(&server);
    assert_eq!(talk.pinned(), "temporary tables");
}

#[test]
fn a_parse_of_a_taken_name_is_the_servers_to_refuse() {
    let talk = unmanaged();
    let (alice, server) = (talk.client(), talk.server(1));
    let said = || [parse("s", "select 1"), parse("s", "select 2"), sync()];
    alice.sends(said());
    server.gets(said());
    server.answers([parse_complete(), error("42P05", "taken"), ready()]);
    alice.gets([parse_complete(), error("42P05", "taken"), ready()]);
}

#[test]
fn a_server_with_such_a_statement_is_reset_when_its_client_leaves() {
    let talk = unmanaged();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.sends([parse("s", "select 1"), sync()]);
    server.gets([parse("s", "select 1"), sync()]).answers([parse_complete(), ready_in_block()]);
    alice.gets([parse_complete(), ready_in_block()]);
    alice.breaks();
    server.gets([query("ROLLBACK")]).answers([complete("ROLLBACK"), ready()]);
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
}
