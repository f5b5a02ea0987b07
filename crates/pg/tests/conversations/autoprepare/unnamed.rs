//! Unnamed statements that run as named ones: from the client to the server.

use refrain_sql::normalize::{Analysis, REFUSALS};

use crate::talk::*;

/// Has a client with a prepared unnamed statement.
fn prepared() -> (Conversation, Party, Party) {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    (talk, alice, server)
}

#[test]
fn a_parse_is_answered_and_the_bind_has_the_name_that_the_server_knows() {
    let (talk, alice, server) = prepared();
    alice.sends(unnamed(NORMALIZED, "12"));
    server.gets(unnamed_by_name("~1", "12")).answers(bound());
    alice.gets(parsed_and_bound());
    let counters = talk.counters().protocol;
    assert_eq!((counters.auto_unnamed, counters.auto_verified), (2, 1));
    let known = &talk.snapshot().protocol.normalized_queries[0];
    assert_eq!((known.state, known.protocol, &*known.query), ("ready", "extended", NORMALIZED));
}

#[test]
fn a_text_runs_as_it_was_sent_until_it_was_seen_often_enough() {
    let talk = autopreparing(3);
    let (alice, server) = (talk.client(), talk.server(1));
    let other = "select b from t where a = $1";
    for _ in 0..2 {
        alice.runs_as_sent(&server, NORMALIZED);
        alice.runs_as_sent(&server, other);
    }
    assert_eq!(talk.cases(), 0);
    alice.runs_as_sent(&server, NORMALIZED);
    let case = talk.case();
    assert_eq!((&*case.text, case.spans.len()), (NORMALIZED.as_bytes(), 0));
}

#[test]
fn autoprepare_off_looks_at_no_unnamed_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    for _ in 0..8 {
        alice.runs_as_sent(&server, NORMALIZED);
        alice.runs_as_sent(&server, "select b from t where a = $1");
    }
    assert!(talk.snapshot().protocol.normalized_queries.is_empty());
}

#[test]
fn the_types_of_a_parse_are_part_of_the_statement() {
    let (_talk, alice, server) = prepared();
    let typed =
        || vec![parse_typed("", NORMALIZED, &[23]), bind_value("", "", "7"), execute(""), sync()];
    alice.sends(typed());
    let talk = _talk;
    talk.analysed(talk.case(), all_kept(false));
    let mut asked = unnamed_verification(NORMALIZED, "~2");
    for line in &mut asked {
        for name in ["~aside", "~2"] {
            if *line == parse(name, NORMALIZED) {
                *line = parse_typed(name, NORMALIZED, &[23]);
            }
        }
    }
    server.gets(asked).answers(verified([columns(&["a"]), columns(&["a"])], &[]));
    server.gets([bind_value("", "~2", "7"), execute(""), sync()]);
    server.answers([bind_complete(), complete("SELECT 0"), ready()]);
    alice.gets([parse_complete(), bind_complete(), complete("SELECT 0"), ready()]);
}

#[test]
fn a_describe_of_the_statement_tells_of_the_named_one_and_the_bind_follows() {
    let (talk, alice, server) = prepared();
    alice.sends([parse("", NORMALIZED), describe_statement(""), sync()]);
    server.gets([describe_statement("~1"), sync()]);
    server.answers([parameters(&[23]), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), parameters(&[23]), columns(&["a"]), ready()]);
    alice.sends([bind_value("", "", "7"), execute(""), sync()]);
    server.gets([bind_value("", "~1", "7"), execute(""), sync()]);
    let reply = [bind_complete(), row(&["1"]), complete("SELECT 1"), ready()];
    server.answers(reply.clone());
    alice.gets(reply);
    assert_eq!(talk.snapshot().protocol.normalized_queries[0].hits, 2);
}

#[test]
fn a_query_string_ends_the_life_of_the_unnamed_statement() {
    let (_talk, alice, server) = prepared();
    alice.asks(&server, "show work_mem", one_row());
    alice.sends([bind_value("", "", "7"), execute(""), sync()]);
    server.gets([bind_value("", "", "7"), execute(""), sync()]);
    server.answers([error("26000", "unnamed prepared statement does not exist"), ready()]);
    alice.gets([error("26000", "unnamed prepared statement does not exist"), ready()]);
}

#[test]
fn the_unnamed_statement_lives_on_until_the_next_parse() {
    let (_talk, alice, server) = prepared();
    alice.sends([bind_value("", "", "8"), execute(""), sync()]);
    // The client has seen the columns of its portal; those of the copy are asked for once.
    server.gets([describe_statement("~1"), flush()]).answers([parameters(&[23]), columns(&["a"])]);
    server.gets([bind_value("", "~1", "8"), execute(""), sync()]);
    let reply = [bind_complete(), complete("SELECT 0"), ready()];
    server.answers(reply.clone());
    alice.gets(reply);
    alice.sends([parse("", "x"), bind_value("", "", "8"), execute(""), sync()]);
    server.gets([parse("", "x"), bind_value("", "", "8"), execute(""), sync()]);
    server.answers([error("42601", "x"), ready()]);
    alice.gets([error("42601", "x"), ready()]);
    alice.sends([bind_value("", "", "8"), execute(""), sync()]);
    server.gets([bind_value("", "", "8"), execute(""), sync()]);
    server.answers([error("26000", "unnamed prepared statement does not exist"), ready()]);
    alice.gets([error("26000", "unnamed prepared statement does not exist"), ready()]);
}

#[test]
fn a_server_that_has_dropped_the_name_gets_the_text_in_front_of_a_later_bind() {
    let (_talk, alice, server) = prepared();
    alice.asks(&server, "begin", [complete("BEGIN"), ready_in_block()]);
    alice.sends(unnamed(NORMALIZED, "7"));
    server.gets(unnamed_by_name("~1", "7")).answers([bind_complete(), columns(&["a"])]);
    server.answers([complete("SELECT 0"), ready_in_block()]);
    alice.gets(
        [parse_complete(), bind_complete(), columns(&["a"]), complete("SELECT 0")]
            .into_iter()
            .chain([ready_in_block()]),
    );
    alice.sends([query("deallocate all; select 1")]);
    server.gets([query("deallocate all; select 1")]);
    server.answers([
        complete("DEALLOCATE ALL"),
        columns(&["a"]),
        complete("SELECT 0"),
        ready_in_block(),
    ]);
    alice.gets([
        complete("DEALLOCATE ALL"),
        columns(&["a"]),
        complete("SELECT 0"),
        ready_in_block(),
    ]);
    alice.sends(unnamed(NORMALIZED, "7"));
    server.gets(unnamed(NORMALIZED, "7"));
    server.answers([parse_complete(), bind_complete(), columns(&["a"]), complete("SELECT 0")]);
    server.answers([ready_in_block()]);
    alice.gets([
        parse_complete(),
        bind_complete(),
        columns(&["a"]),
        complete("SELECT 0"),
        ready_in_block(),
    ]);
}

#[test]
fn a_failed_transaction_refuses_the_parse() {
    let (_talk, alice, server) = prepared();
    alice.opens_block(&server);
    alice.asks(&server, "x", [error("42601", "x"), ready_failed()]);
    alice.sends(unnamed(NORMALIZED, "7"));
    server.gets(unnamed(NORMALIZED, "7")).answers([error("25P02", "aborted"), ready_failed()]);
    alice.gets([error("25P02", "aborted"), ready_failed()]);
}

#[test]
fn several_statements_in_one_segment_run_as_they_were_sent() {
    let (talk, alice, server) = prepared();
    let one = |text| unnamed(text, "7")[..4].to_vec();
    let both = || [one(NORMALIZED), one("select $1"), vec![sync()]].concat();
    alice.sends(both());
    server.gets(both());
    let reply = || vec![parse_complete(), bind_complete(), columns(&["a"]), complete("SELECT 0")];
    server.answers([reply(), reply(), vec![ready()]].concat());
    alice.gets([reply(), reply(), vec![ready()]].concat());
    assert_eq!(talk.counters().protocol.auto_unnamed, 1);
}

#[test]
fn segments_in_one_pipeline_run_as_they_were_sent() {
    let (talk, alice, server) = prepared();
    let both = || [unnamed(NORMALIZED, "7"), unnamed("select 1", "8")].concat();
    alice.sends(both());
    server.gets(both());
    server.answers([parsed_and_bound(), parsed_and_bound()].concat());
    alice.gets([parsed_and_bound(), parsed_and_bound()].concat());
    assert_eq!(talk.counters().protocol.auto_unnamed, 1);
}

#[test]
fn what_is_not_worth_a_plan_is_not_looked_at() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    let texts = ["show work_mem", "analyze t", "create table t ()"];
    for text in texts {
        let run = || vec![parse("", text), bind("", ""), execute(""), sync()];
        alice.sends(run());
        server.gets(run());
        server.answers([parse_complete(), bind_complete(), complete("X"), ready()]);
        alice.gets([parse_complete(), bind_complete(), complete("X"), ready()]);
    }
    assert!(talk.snapshot().protocol.normalized_queries.is_empty());
}

#[test]
fn a_text_whose_literals_move_is_never_prepared() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.runs_as_sent(&server, "select $1::timestamp > 'now'");
    let known = &talk.snapshot().protocol.normalized_queries[0];
    assert_eq!((talk.cases(), known.state, &*known.reason), (0, "never", "moving-time"));
}

#[test]
fn a_text_that_the_grammar_refuses_is_never_prepared() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends(unnamed(NORMALIZED, "7"));
    talk.analysed(talk.case(), Analysis::Never(&REFUSALS[0].0));
    server.gets(unnamed(NORMALIZED, "7")).answers(parsed_and_bound());
    alice.gets(parsed_and_bound());
}

#[test]
fn within_a_block_a_star_has_the_text_run_as_it_was_sent() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    let text = "select * from t where b = $1";
    alice.sends(unnamed(text, "7"));
    talk.analysed(talk.case(), all_kept(true));
    server.gets(unnamed_verification(text, "~1"));
    server.answers(verified([columns(&["a"]), columns(&["a"])], &[]));
    server.gets(unnamed_by_name("~1", "7")).answers(bound());
    alice.gets(parsed_and_bound());
    alice.opens_block(&server);
    alice.sends(unnamed(text, "7"));
    server.gets(unnamed(text, "7"));
    let reply = [
        parse_complete(),
        bind_complete(),
        columns(&["a"]),
        complete("SELECT 0"),
        ready_in_block(),
    ];
    server.answers(reply.clone());
    alice.gets(reply);
}

#[test]
fn another_environment_is_another_statement() {
    let (talk, alice, server) = prepared();
    alice.asks(&server, "set search_path = other", [complete("SET"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[&["search_path", "other", "1"]]));
    alice.sends(unnamed(NORMALIZED, "7"));
    assert_eq!(talk.cases(), 1, "it is analysed as a text of its own");
    server.forgets();
}

#[test]
fn the_next_message_waits_until_the_messages_need_not_be_sent_again() {
    let (_talk, alice, server) = prepared();
    alice.sends(unnamed(NORMALIZED, "7"));
    alice.sends([query("show work_mem")]);
    server.gets(unnamed_by_name("~1", "7"));
    server.answers([bind_complete()]);
    server.gets([query("show work_mem")]);
    server.answers(one_row()).answers(one_row());
    alice.gets([parsed_and_bound(), one_row()].concat());
}

#[test]
fn columns_that_a_portal_told_of_are_those_that_later_binds_return() {
    let talk = Conversation::new(options(
        "pool_size = 2\nautoprepare = \"on\"\nautoprepare_threshold = 1",
    ));
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &first);
    bob.opens_block(&first);
    alice.sends([bind_value("", "", "8"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("", NORMALIZED), describe_statement(""), flush()]);
    let other = [parse_complete(), parameters(&[23]), columns(&["a", "b"])];
    second.answers(other.clone());
    second.gets([bind_value("", "", "8"), describe_statement("~none"), execute(""), sync()]);
    let none = error("26000", "prepared statement \"~none\" does not exist");
    second.answers([bind_complete(), none, ready()]);
    alice.gets([error_like("cached plan must not change result type"), ready()]);
}
