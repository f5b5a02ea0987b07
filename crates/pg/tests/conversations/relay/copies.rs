//! Copies of statements on a server: closed to make room, and back after an error.

use crate::talk::*;

#[test]
fn the_least_recently_used_statement_is_closed_right_before_a_new_one() {
    let talk = Conversation::new(options("pool_size = 1\nmax_server_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "a", "update t set a = 1", "~1");
    alice.prepares(&server, "b", "update t set b = 1");
    alice.runs(&server, "b", [bind("", "")]);
    alice.sends([bind("", "b"), execute(""), sync()]);
    server.gets([
        close_statement("~1"),
        parse("~2", "update t set b = 1"),
        bind("", "~2"),
        execute(""),
        sync(),
    ]);
    server.answers([close_complete(), parse_complete()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    assert_eq!(talk.counters().protocol.evictions, 1);
}

#[test]
fn a_statement_that_was_closed_for_another_is_parsed_again_and_no_client_sees_26000() {
    let talk = Conversation::new(options("pool_size = 1\nmax_server_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "a", "update t set a = 1", "~1");
    alice.prepares(&server, "b", "update t set b = 1");
    alice.runs(&server, "b", [bind("", "")]);
    for (name, there, gone, text) in
        [("b", "~2", "~1", "update t set b = 1"), ("a", "~1", "~2", "update t set a = 1")]
    {
        alice.sends([bind("", name), execute(""), sync()]);
        server.gets([close_statement(gone), parse(there, text)].into_iter().chain([
            bind("", there),
            execute(""),
            sync(),
        ]));
        server.answers([close_complete(), parse_complete()]);
        server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
        alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    }
    assert_eq!(talk.counters().protocol.lost_statements, 0);
}

#[test]
fn an_eviction_that_an_error_skips_is_undone() {
    let talk = Conversation::new(options("pool_size = 1\nmax_server_statements = 1"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "a", "update t set a = 1", "~1");
    alice.prepares(&server, "b", "update t set b = 1");
    alice.runs(&server, "b", [bind("", "")]);
    alice.asks(&server, "select 1", one_row());
    alice.sends([bind("", "nope"), bind("", "b"), sync()]);
    server.gets([
        bind("", "nope"),
        close_statement("~1"),
        parse("~2", "update t set b = 1"),
        bind("", "~2"),
        sync(),
    ]);
    server.answers([error("26000", "prepared statement \"nope\" does not exist"), ready()]);
    alice.gets([error("26000", "prepared statement \"nope\" does not exist"), ready()]);
    alice.runs(&server, "a", [bind("", "~1")]);
}
