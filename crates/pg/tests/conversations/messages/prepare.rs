//! Refrain finds a client's statement, and prepares it on a server that lacks it.

use crate::talk::*;

#[test]
fn a_text_beyond_the_cache_is_a_statement_of_its_own_for_each_client() {
    let talk = Conversation::new(options("pool_size = 1\nmax_cached_statement_bytes = \"1KiB\""));
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    let long = format!("update t set a = '{}'", "x".repeat(2000));
    alice.prepares(&server, "s", &long);
    bob.prepares(&server, "s", &long);
    assert_eq!(talk.counters().protocol.statements_not_kept, 2);
}

#[test]
fn a_statement_is_parsed_under_the_settings_of_its_own_parse() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    let text = "update t set a = timestamptz '2020-01-01 00:00'";
    alice.prepares_by_name(&first, "s", text, "~1");
    alice.moves_to_tokyo(&first);
    bob.sends([query("begin")]);
    first.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("begin")]);
    first.answers(synced(&["UTF8", "on", "UTC"])).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([bind("", "s"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)")]);
    second.answers(synced(&["Asia/Tokyo"]));
    second.gets(
        [
            internal("pg_catalog.set_config('timezone','UTC',true)"),
            vec![parse("~2", text)],
            internal("pg_catalog.set_config('timezone','Asia/Tokyo',true)"),
            vec![sync(), bind("", "~2"), execute(""), sync()],
        ]
        .concat(),
    );
    second.answers([internal_answer(&[]), vec![parse_complete()], internal_answer(&[])].concat());
    second.answers([ready(), bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
}

/// A cancel request reaches the server while Refrain goes back to the client's settings: the
/// client's block has failed, so the client has to hear of it.
#[test]
fn a_cancel_that_hits_the_way_back_to_the_clients_settings_in_a_block_is_told() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    let text = "update t set a = timestamptz '2020-01-01 00:00'";
    alice.prepares_by_name(&first, "s", text, "~1");
    alice.moves_to_tokyo(&first);
    bob.sends([query("begin")]);
    first.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("begin")]);
    first.answers(synced(&["UTF8", "on", "UTC"])).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([query("begin")]);
    let second = talk.server(2);
    second
        .gets([query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)"), query("begin")]);
    second.answers(synced(&["Asia/Tokyo"])).answers([complete("BEGIN"), ready_in_block()]);
    alice.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([bind("", "s"), execute(""), sync()]);
    second.gets(
        [
            internal("pg_catalog.set_config('timezone','UTC',true)"),
            vec![parse("~2", text)],
            internal("pg_catalog.set_config('timezone','Asia/Tokyo',true)"),
            vec![sync(), bind("", "~2"), execute(""), sync()],
        ]
        .concat(),
    );
    second.answers([internal_answer(&[]), vec![parse_complete()]].concat());
    second.answers([
        close_complete(),
        parse_complete(),
        error("57014", "canceling statement due to user request"),
        ready_failed(),
    ]);
    alice.gets([error("57014", "canceling statement due to user request")]);
    second.answers([error("25P02", "current transaction is aborted"), ready_failed()]);
    alice.gets([ready_failed()]);
    alice.sends([query("rollback")]);
    second.gets([query("rollback")]).answers([complete("ROLLBACK"), ready()]);
    alice.gets([complete("ROLLBACK"), ready()]);
}
