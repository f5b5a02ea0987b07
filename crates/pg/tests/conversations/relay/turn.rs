//! The turns of clients at a shared server: what a client has got before its request is sent again.

use std::time::Duration;

use crate::step::shared_read::*;
use crate::talk::*;

#[test]
fn the_replies_to_a_client_that_has_left_reach_nobody() {
    let (_talk, [alice, bob, carol], server) = unnamed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends(unnamed(NORMALIZED, value));
        server.gets(unnamed_by_name("~1", value));
    }
    bob.breaks();
    server.answers([bound_rows("1"), stale(), bound_rows("3")].concat());
    alice.gets(parsed_rows("1"));
    carol.gets(parsed_rows("3"));
    server.gets_nothing();
}

#[test]
fn an_unnamed_statement_that_is_sent_again_is_parsed_once_for_its_client() {
    let (talk, [alice, bob, _], server) = unnamed_statements();
    alice.sends(unnamed(NORMALIZED, "1"));
    alice.gets([parse_complete()]);
    bob.sends(unnamed(NORMALIZED, "2"));
    server.gets([unnamed_by_name("~1", "1"), unnamed_by_name("~1", "2")].concat());
    talk.waits(Duration::from_millis(6));
    let other = talk.server(5);
    is_prepared_on(&other, parse("~1", NORMALIZED));
    other.gets(unnamed_by_name("~1", "2")).answers(bound_rows("2"));
    bob.gets(parsed_rows("2"));
    server.answers([bound_rows("1"), bound_rows("2")].concat());
    alice.gets(bound_rows("1"));
}

#[test]
fn a_parse_that_was_answered_is_not_sent_again() {
    let (talk, [alice, bob, carol], server) = unnamed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends(unnamed(NORMALIZED, value));
        server.gets(unnamed_by_name("~1", value));
    }
    server.answers(bound_rows("1"));
    alice.gets(parsed_rows("1"));
    bob.gets([parse_complete()]);
    server.answers([error("22P02", "invalid input"), ready()]);
    carol.gets([parse_complete()]);
    let other = talk.server(5);
    // Nobody knows that the unnamed statement would run by its name here: it runs as it was sent.
    other.gets(unnamed(NORMALIZED, "2"));
    other.answers([parse_complete(), error("22P02", "invalid input"), ready()]);
    bob.gets([error("22P02", "invalid input"), ready()]);
    server.answers(bound_rows("3"));
    carol.gets(bound_rows("3"));
}
