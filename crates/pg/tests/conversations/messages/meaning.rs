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
