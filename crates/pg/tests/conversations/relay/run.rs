//! Query strings that run as prepared statements: the replies of servers.

use refrain_pg_wire::back::field;
use refrain_sql::normalize::{Analysis, Plan, REFUSALS, Slot};

use crate::talk::*;

/// Returns the analysis of a text of three literals, of which the first becomes a parameter.
fn parameters_and_kept() -> Analysis {
    let Analysis::Normalized(plan) = one_parameter(&[]) else { panic!("it is a plan") };
    let kept = Slot::Keep(&REFUSALS[0].0);
    Analysis::Normalized(Plan { slots: Box::new([plan.slots[0], kept, kept]), ..plan })
}

/// Has a client run [`TEXT`] once more, up to the server's answer.
fn runs_again(talk: &Conversation) -> (Party, Party) {
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(talk, &server);
    alice.sends([query(TEXT)]);
    server.gets(run_with("7"));
    (alice, server)
}

#[test]
fn a_statement_refused_before_its_values_are_bound_has_the_text_run_as_it_was_sent() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([error("22P02", "invalid input syntax for type integer")]);
    server.gets([query(TEXT)]).answers([ready()]).answers(one_row());
    alice.gets(one_row());
    assert_eq!(talk.counters().protocol.auto_fallbacks, 1);
}

#[test]
fn an_error_of_a_statement_that_runs_stands() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([bind_complete(), columns(&["a"]), error("22012", "division by zero"), ready()]);
    alice.gets([columns(&["a"]), error("22012", "division by zero"), ready()]);
    server.gets_nothing();
}

#[test]
fn an_error_that_says_nothing_of_the_text_stands() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([error("57014", "canceling statement due to user request"), ready()]);
    alice.gets([error("57014", "canceling statement due to user request"), ready()]);
    server.gets_nothing();
}

#[test]
fn in_a_transaction_block_the_error_stands_and_points_into_the_clients_text() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    let text = "select a from t where b = 700 and 1/c = 1";
    alice.sends([query(text)]);
    talk.analysed(talk.case(), parameters_and_kept());
    server.forgets();
    server.answers(verified([columns(&["a"]), columns(&["a"])], &[]));
    server.forgets();
    server.answers(run_answer());
    alice.gets(one_row());
    alice.opens_block(&server);
    alice.sends([query(text)]);
    server.forgets();
    server.answers([bind_complete(), columns(&["a"])]);
    // In the prepared text, $1 is one byte shorter than 700.
    let at = |position| error_with("22012", "division by zero", &[(field::POSITION, position)]);
    server.answers([at("35"), ready_failed()]);
    alice.gets([columns(&["a"]), at("36"), ready_failed()]);
}

#[test]
fn a_notice_before_the_values_are_bound_is_held_back_until_the_statement_runs() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([notice("word")]);
    alice.gets_nothing();
    server.answers([bind_complete()]);
    alice.gets([notice("word")]);
    server.answers(one_row());
    alice.gets(one_row());
}

#[test]
fn a_notice_of_a_statement_that_does_not_run_is_not_told_twice() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([notice("word"), error("22P02", "invalid"), ready()]);
    server.gets([query(TEXT)]);
    server.answers([vec![notice("word")], one_row()].concat());
    alice.gets([vec![notice("word")], one_row()].concat());
}

#[test]
fn a_query_that_keeps_failing_as_a_statement_is_given_up() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_autoprepared(&talk, &server);
    for (there, next) in [("~1", "~1.1"), ("~1.1", "~1.2"), ("~1.2", "")] {
        alice.sends([query(TEXT)]);
        let run = [bind_value("", there, "7"), describe_portal(""), execute(""), sync()];
        let words = "invalid input syntax for type integer: \"secret\"";
        server.gets(run).answers([error("22P02", words), ready()]);
        server.gets([query(TEXT)]).answers(one_row());
        alice.gets(one_row());
        if next.is_empty() {
            break;
        }
        // The server is asked once more whether it may be prepared.
        alice.sends([query(TEXT)]);
        let mut asked = verification(TEXT, NORMALIZED, next);
        asked.insert(10, close_statement(there));
        let mut answer = verified([columns(&["a"]), columns(&["a"])], &[]);
        answer.insert(11, close_complete());
        server.gets(asked).answers(answer);
        let run = [bind_value("", next, "7"), describe_portal(""), execute(""), sync()];
        server.gets(run).answers(run_answer());
        alice.gets(one_row());
    }
    alice.asks(&server, TEXT, one_row());
    // The server's words may have literals in them.
    let row = &talk.snapshot().protocol.normalized_queries[0];
    let reason = "22P02: the server refused to prepare it";
    assert_eq!((row.state, &*row.reason), ("refused", reason));
}

#[test]
fn the_end_of_a_statement_is_held_back_until_its_transaction_has_been_committed() {
    let talk = autopreparing(1);
    let (alice, server) = runs_again(&talk);
    server.answers([bind_complete(), columns(&["a"]), row(&["1"]), complete("SELECT 1")]);
    alice.gets([columns(&["a"]), row(&["1"])]);
    server.answers([error_with("23503", "deferred", &[(field::DETAIL, "no key")]), ready()]);
    alice.gets([error_with("23503", "deferred", &[(field::DETAIL, "no key")]), ready()]);
}
