//! Messages on their way to the server: unchanged, under a rewritten header, or behind a barrier.

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

#[test]
fn a_long_bind_streams_under_its_new_header_before_it_has_arrived() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "statement", WRITE, "~1");
    let (long, due) = ("x".repeat(100_000), bind_value("", "~1", &"x".repeat(100_000)));
    let said = bind_value("", "statement", &long).bytes;
    alice.sends_bytes(&said[..50_000]);
    assert!(server.has_got() > 49_000, "the server has the beginning");
    alice.sends_bytes(&said[50_000..]).sends([sync()]);
    server.gets([due, sync()]).answers([bind_complete(), ready()]);
    alice.gets([bind_complete(), ready()]);
}

#[test]
fn the_message_behind_discard_all_waits_until_it_has_dropped_the_statements() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([query("discard all"), bind("", "s"), sync()]);
    server.gets([query("discard all")]).answers([complete("DISCARD ALL"), ready()]);
    alice.gets([complete("DISCARD ALL"), ready()]);
    server.gets([bind("", "s"), sync()]).answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
}

#[test]
fn a_close_is_answered_behind_the_replies_before_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("select 1"), close_statement("s"), sync()]);
    server.gets([query("select 1"), sync()]);
    alice.gets_nothing();
    server.answers(one_row());
    alice.gets([one_row(), vec![close_complete()]].concat());
    server.answers([ready()]);
    alice.gets([ready()]);
}

#[test]
fn a_message_amid_copy_data_is_named_in_the_error_by_its_type() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "copy t from stdin", [copy_in_response()]);
    alice.sends([parse("", "select 1")]);
    alice.gets([
        error("08P01", "unexpected message type 0x50 during COPY from stdin"),
        fatal("08P01", "terminating connection because protocol synchronization was lost"),
    ]);
    assert!(server.is_closed(), "it cannot be brought back to order");
}
