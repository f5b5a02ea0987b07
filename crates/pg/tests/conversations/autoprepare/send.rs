//! Query strings that run as prepared statements: from the client to the server.

use refrain_sql::normalize::{Analysis, REFUSALS};

use crate::talk::*;

#[test]
fn a_query_string_runs_as_a_statement_with_its_literal_as_the_value() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(&talk, &server);
    alice.sends([query(OTHER_TEXT)]);
    server.gets(run_with("12")).answers(run_answer());
    alice.gets(one_row());
    assert_eq!(talk.counters().protocol.auto_hits, 2);
}

#[test]
fn in_a_transaction_block_the_portal_is_closed_behind_it() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(&talk, &server);
    alice.opens_block(&server);
    alice.sends([query(TEXT)]);
    let mut run = run_with("7");
    run.insert(3, close_portal(""));
    server.gets(run);
    server.answers([bind_complete(), columns(&["a"]), complete("SELECT 0"), close_complete()]);
    server.answers([ready_in_block()]);
    alice.gets([columns(&["a"]), complete("SELECT 0"), ready_in_block()]);
}

#[test]
fn the_clients_next_message_waits_until_the_text_need_not_be_run_after_all() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(&talk, &server);
    alice.sends([query(TEXT), query("show work_mem")]);
    server.gets(run_with("7"));
    server.answers(run_answer());
    server.gets([query("show work_mem")]).answers(one_row());
    alice.gets([one_row(), one_row()].concat());
}

#[test]
fn settings_that_end_with_the_transaction_have_texts_run_as_they_were_sent() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(&talk, &server);
    alice.opens_block(&server);
    alice.asks(&server, "set local search_path = other", [complete("SET"), ready_in_block()]);
    alice.asks(&server, TEXT, [columns(&["a"]), complete("SELECT 0"), ready_in_block()]);
}

#[test]
fn a_text_that_the_grammar_refuses_is_never_prepared() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query(TEXT)]);
    talk.analysed(talk.case(), Analysis::Never(&REFUSALS[0].0));
    server.gets([query(TEXT)]).answers(one_row());
    alice.gets(one_row());
    alice.asks(&server, OTHER_TEXT, one_row());
    assert_eq!((talk.cases(), talk.snapshot().protocol.normalized_queries[0].state), (0, "never"));
}

#[test]
fn a_text_runs_as_it_was_sent_until_it_was_seen_often_enough() {
    let talk = autopreparing(3);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, TEXT, one_row());
    alice.asks(&server, OTHER_TEXT, one_row());
    assert_eq!(talk.cases(), 0);
    alice.asks(&server, TEXT, one_row());
    assert_eq!(&*talk.case().text, TEXT.as_bytes());
}

#[test]
fn several_commands_or_a_command_that_sets_something_are_not_looked_at() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "select 1; select 2", one_row());
    alice.asks(&server, "listen news", [complete("LISTEN"), ready()]);
    assert!(talk.snapshot().protocol.normalized_queries.is_empty());
}
