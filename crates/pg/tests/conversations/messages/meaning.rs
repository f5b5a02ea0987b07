//! A client's statement after the client's settings, role or path have changed.

use crate::talk::*;

const TEXT: &str = "update t set a = timestamptz '2020-01-01 00:00'";

#[test]
fn a_copy_runs_under_no_settings_but_its_own() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", TEXT, "~1");
    alice.moves_to_tokyo(&server);
    alice.sends([bind("", "s"), execute(""), sync()]);
    server.gets([query_with("'client_encoding',NULL,false")]).answers(synced(&["UTF8", "on"]));
    server.gets(
        [
            internal("pg_catalog.set_config('timezone','UTC',true)"),
            vec![parse("~2", TEXT)],
            internal("pg_catalog.set_config('timezone','Asia/Tokyo',true)"),
            vec![sync(), bind("", "~2"), execute(""), sync()],
        ]
        .concat(),
    );
    server.answers([internal_answer(&[]), vec![parse_complete()], internal_answer(&[])].concat());
    server.answers([ready(), bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.sends([bind("", "s"), execute(""), sync()]);
    server.gets([bind("", "~2"), execute(""), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    bob.sends([parse("s", TEXT), sync()]);
    bob.gets([parse_complete(), ready()]);
    bob.sends([bind("", "s"), execute(""), sync()]);
    let back = query_with("'timezone',NULL,false");
    server.gets([back, bind("", "~1"), execute(""), sync()]);
    server.answers(synced(&["UTC"]));
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    bob.gets([bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_malformed_sync_fails_besides_the_copy_that_the_server_refused() {
    let malformed_sync = || raw(b"S\0\0\0\x08tail");
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", TEXT, "~1");
    alice.moves_to_tokyo(&server);
    alice.sends([bind("", "s"), malformed_sync()]);
    server.gets([query_with("'client_encoding',NULL,false")]).answers(synced(&["UTF8", "on"]));
    server.gets(
        [
            internal("pg_catalog.set_config('timezone','UTC',true)"),
            vec![parse("~2", TEXT)],
            internal("pg_catalog.set_config('timezone','Asia/Tokyo',true)"),
            vec![sync(), bind("", "~2"), flush()],
        ]
        .concat(),
    );
    let gone = error("42P01", "relation \"t\" does not exist");
    server.answers([internal_answer(&[]), vec![gone.clone(), ready()]].concat());
    server.answers([error("26000", "prepared statement \"~2\" does not exist")]);
    alice.gets([gone]);
    server.gets([malformed_sync()]);
    let malformed = error("08P01", "invalid message format");
    server.answers([malformed.clone(), ready()]);
    alice.gets([malformed, ready()]);
}
