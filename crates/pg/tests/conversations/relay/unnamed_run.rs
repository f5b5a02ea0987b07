//! Unnamed statements that run as named ones: the replies of servers.

use std::time::Duration;

use refrain_pg_wire::back::field;

use crate::talk::*;

const STALE: &str = "cached plan must not change result type";

fn stale() -> Line {
    error_with("0A000", STALE, &[(field::ROUTINE, "RevalidateCachedQuery")])
}

/// Has a client run its unnamed statement by name, up to the server's answer.
fn runs() -> (Conversation, Party, Party) {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    alice.sends(unnamed(NORMALIZED, "7"));
    server.gets(unnamed_by_name("~1", "7"));
    (talk, alice, server)
}

#[test]
fn a_stale_plan_has_the_text_parsed_as_it_was_sent() {
    let (talk, alice, server) = runs();
    server.answers([stale(), ready()]);
    server.gets(unnamed(NORMALIZED, "7")).answers(parsed_and_bound());
    alice.gets(parsed_and_bound());
    assert_eq!(talk.counters().protocol.auto_fallbacks, 1);
    // The copy is as old as the schema was: the server prepares another before it runs by name.
    alice.sends(unnamed(NORMALIZED, "8"));
    let mut asked = unnamed_verification(NORMALIZED, "~1.1");
    asked.insert(10, close_statement("~1"));
    let mut answer = verified([columns(&["b"]), columns(&["b"])], &[]);
    answer.insert(11, close_complete());
    server.gets(asked).answers(answer);
    server.gets(unnamed_by_name("~1.1", "8")).answers(bound());
    alice.gets(parsed_and_bound());
}

#[test]
fn a_value_that_does_not_fit_fails_as_it_does_as_sent() {
    let (_talk, alice, server) = runs();
    server.answers([error("22P02", "invalid input"), ready()]);
    server.gets(unnamed(NORMALIZED, "7"));
    server.answers([parse_complete(), error("22P02", "invalid input"), ready()]);
    alice.gets([parse_complete(), error("22P02", "invalid input"), ready()]);
}

#[test]
fn an_error_of_a_statement_that_runs_stands() {
    let (_talk, alice, server) = runs();
    server.answers([bind_complete(), columns(&["a"]), error("22012", "division"), ready()]);
    alice.gets([
        parse_complete(),
        bind_complete(),
        columns(&["a"]),
        error("22012", "division"),
        ready(),
    ]);
    server.gets_nothing();
}

#[test]
fn an_error_that_says_nothing_of_the_text_stands() {
    let (_talk, alice, server) = runs();
    server.answers([error("57014", "canceling statement due to user request"), ready()]);
    alice.gets([
        parse_complete(),
        error("57014", "canceling statement due to user request"),
        ready(),
    ]);
    server.gets_nothing();
}

#[test]
fn within_a_block_the_error_stands_and_is_counted() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    alice.opens_block(&server);
    alice.sends(unnamed(NORMALIZED, "7"));
    server.gets(unnamed_by_name("~1", "7")).answers([stale(), ready_failed()]);
    alice.gets([parse_complete(), stale(), ready_failed()]);
    server.gets_nothing();
    assert_eq!(talk.counters().protocol.auto_failures_in_transaction, 1);
}

#[test]
fn a_describe_that_is_refused_is_sent_again() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    let asks = || vec![parse("", NORMALIZED), describe_statement(""), sync()];
    alice.sends(asks());
    server.gets([describe_statement("~1"), sync()]).answers([parameters(&[23])]);
    alice.gets([parse_complete()]);
    server.answers([stale(), ready()]);
    server.gets(asks());
    server.answers([parse_complete(), parameters(&[20]), columns(&["b"]), ready()]);
    alice.gets([parameters(&[20]), columns(&["b"]), ready()]);
    alice.sends([bind_value("", "", "7"), execute(""), sync()]);
    server.gets([bind_value("", "", "7"), execute(""), sync()]);
    let reply = [bind_complete(), complete("SELECT 0"), ready()];
    server.answers(reply.clone());
    alice.gets(reply);
}

#[test]
fn a_bind_behind_a_described_statement_is_not_sent_again() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    let [head, tail] = [&unnamed(NORMALIZED, "7")[..1], &unnamed(NORMALIZED, "7")[1..]];
    alice.sends([head, &[describe_statement("")], tail].concat());
    server.gets([vec![describe_statement("~1")], unnamed_by_name("~1", "7")].concat());
    server.answers([parameters(&[23]), columns(&["a"]), stale(), ready()]);
    alice.gets([parse_complete(), parameters(&[23]), columns(&["a"]), stale(), ready()]);
    server.gets_nothing();
}

#[test]
fn what_a_client_has_sent_runs_though_the_client_has_left() {
    let (_talk, alice, server) = runs();
    alice.gets([parse_complete()]);
    alice.breaks();
    server.answers([stale(), ready()]);
    server.gets(unnamed(NORMALIZED, "7")).answers(parsed_and_bound());
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
}

#[test]
fn a_statement_that_keeps_failing_by_name_is_given_up() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    for there in ["~1", "~1.1", "~1.2"] {
        if there != "~1" {
            alice.sends(unnamed(NORMALIZED, "7"));
            server.forgets();
            let mut answer = verified([columns(&["a"]), columns(&["a"])], &[]);
            answer.insert(11, close_complete());
            server.answers(answer);
            server.gets(unnamed_by_name(there, "7")).answers(bound());
            alice.gets(parsed_and_bound());
        }
        alice.sends(unnamed(NORMALIZED, "7"));
        server.gets(unnamed_by_name(there, "7")).answers([error("22P02", "invalid"), ready()]);
        server.gets(unnamed(NORMALIZED, "7")).answers(parsed_and_bound());
        alice.gets(parsed_and_bound());
    }
    assert_eq!(talk.snapshot().protocol.normalized_queries[0].state, "refused");
}

#[test]
fn a_statement_that_is_slower_by_name_is_given_up_and_planned_for_its_values() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    let state = || talk.snapshot().protocol.normalized_queries[0].state;
    let mut left = 1000;
    while state() == "ready" && left > 0 {
        left -= 1;
        alice.sends(unnamed(NORMALIZED, "7"));
        let named = server.forgets().len() == unnamed_by_name("~1", "7").len();
        talk.waits(Duration::from_millis(if named { 10 } else { 2 }));
        server.answers(if named { bound() } else { parsed_and_bound() });
        alice.gets(parsed_and_bound());
    }
    assert_eq!((state(), talk.counters().protocol.auto_too_slow), ("refused", 1));
    // The server's unnamed statement is this very text, and would keep its plan.
    alice.runs_as_sent(&server, NORMALIZED);
    alice.runs_as_sent(&server, NORMALIZED);
}
