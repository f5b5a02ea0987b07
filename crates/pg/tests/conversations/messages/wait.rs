//! Messages that wait: what they mean depends on replies that are still to come.

use crate::talk::*;

const WRITE: &str = "update t set a = 1";

#[test]
fn a_bind_of_a_name_that_an_earlier_segment_parses_waits_for_that_parse() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("s", WRITE), describe_statement("s"), sync(), bind("", "s"), sync()]);
    server.gets([parse("", WRITE), describe_statement(""), sync()]);
    server.answers([parse_complete(), parameters(&[]), no_data(), ready()]);
    server.gets([bind("", ""), sync()]).answers([bind_complete(), ready()]);
    alice.gets(
        [parse_complete(), parameters(&[]), no_data(), ready()]
            .into_iter()
            .chain([bind_complete(), ready()]),
    );
}

#[test]
fn a_parse_of_a_name_that_an_earlier_segment_closes_waits_for_that_segment() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.sends([execute("nope"), close_statement("s"), sync()]);
    server.gets([execute("nope"), sync()]);
    alice.sends([parse("s", "select 2"), sync()]);
    server.gets_nothing();
    server.answers([error("34000", "portal \"nope\" does not exist"), ready_failed()]);
    alice.gets([error("34000", "portal \"nope\" does not exist"), ready_failed()]);
    // The Close was skipped: the name is taken.
    server.gets(
        [close_statement("~aside"), parse("~aside", ""), parse("~aside", "select 2")]
            .into_iter()
            .chain([sync()]),
    );
    server.answers([close_complete(), error("25P02", "aborted"), ready_failed()]);
    alice.gets([error("25P02", "aborted"), ready_failed()]);
}

#[test]
fn deallocate_waits_until_nothing_is_outstanding() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("begin"), query("deallocate s")]);
    server.gets([query("begin")]).answers([complete("BEGIN"), ready_in_block()]);
    server.gets([query("SELECT ''")]);
    server.answers([complete("SELECT 1"), ready_in_block()]);
    alice.gets([complete("BEGIN"), ready_in_block(), complete("DEALLOCATE"), ready_in_block()]);
}

#[test]
fn a_text_with_constants_waits_until_it_is_known_how_they_are_read() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([
        query("set timezone = 'Asia/Tokyo'"),
        parse("s", "update t set a = timestamptz '2020-01-01 00:00'"),
        sync(),
    ]);
    server.gets([query("set timezone = 'Asia/Tokyo'")]);
    server.answers([complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()]);
    server.gets([
        parse("", "update t set a = timestamptz '2020-01-01 00:00'"),
        describe_statement(""),
        sync(),
    ]);
    server.answers([parse_complete(), parameters(&[]), no_data(), ready()]);
    alice.gets(
        [complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()]
            .into_iter()
            .chain([parse_complete(), ready()]),
    );
}
