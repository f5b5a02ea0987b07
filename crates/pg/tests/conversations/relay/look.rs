//! Refrain looks at the session behind calls of functions that are not known as harmless.

use crate::talk::*;

/// The newest objects of the database, with a function of users' among them.
pub(super) const NEWEST: &[&str] = &["=newest", "16400 16384 1 1 1 1"];

pub(super) fn tracking(how: &str) -> Conversation {
    Conversation::new(options(&format!("pool_size = 1\ntrack_functions = \"{how}\"")))
}

/// Returns Refrain's question for everything that may be left in a session.
pub(super) fn asked() -> Vec<Line> {
    [internal("pg_my_temp_schema"), vec![sync()]].concat()
}

#[test]
fn a_function_that_left_a_temporary_table_ties_its_client_to_the_server() {
    let talk = tracking("on");
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked());
    bob.sends([query("select 1")]);
    server.answers(settings_answer(&[NEWEST, &["=temp", ""]]));
    server.gets_nothing();
    assert_eq!(talk.pinned(), "temporary tables");
    alice.asks(&server, "select a from t", one_row());
    bob.gets_nothing();
}

#[test]
fn calls_that_left_nothing_three_times_are_not_asked_about_again() {
    let talk = tracking("on");
    let (alice, server) = (talk.client(), talk.server(1));
    for _ in 0..3 {
        alice.asks(&server, "select f(1)", one_row());
        server.gets(asked()).answers(settings_answer(&[NEWEST]));
    }
    alice.asks(&server, "select f(1)", one_row());
    server.gets_nothing();
    assert_eq!(talk.counters().protocol.session_checks, 3);
}

#[test]
fn the_clients_next_message_waits_for_the_answer() {
    let talk = tracking("on");
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked());
    alice.sends([query("select 2")]);
    server.gets_nothing();
    server.answers(settings_answer(&[NEWEST]));
    server.gets([query("select 2")]).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn the_next_message_gets_in_line_behind_clients_that_wait_for_the_server() {
    let talk = tracking("on");
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked());
    bob.sends([query("select 1")]);
    alice.sends([query("select f(2)")]);
    server.answers(settings_answer(&[NEWEST]));
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
    server.gets([query("select f(2)")]).answers(one_row());
    alice.gets(one_row());
    server.gets(asked()).answers(settings_answer(&[NEWEST]));
}

#[test]
fn a_setting_that_a_function_made_is_the_clients_own() {
    let talk = tracking("on");
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked()).answers(settings_answer(&[NEWEST, &["work_mem", "8MB"]]));
    bob.sends([query("select 1")]);
    server.gets([query_with("pg_catalog.set_config('work_mem',NULL,false)"), query("select 1")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_setting_that_is_too_long_to_be_kept_ends_the_look_and_ties_its_client_to_the_server() {
    let talk = tracking("on");
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked());
    alice.sends([query("select 2")]);
    bob.sends([query("select 1")]);
    server.answers(settings_answer(&[NEWEST, &["search_path", &"x".repeat(33_000)]]));
    server.gets([query("select 2")]).answers(one_row());
    alice.gets(one_row());
    assert_eq!(talk.pinned(), "settings");
    bob.gets_nothing();
}

#[test]
fn a_question_that_was_cancelled_is_asked_once_more() {
    let talk = tracking("on");
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "select f(1)", one_row());
    server.gets(asked());
    server.answers([close_complete(), parse_complete(), error("57014", "canceling"), ready()]);
    server.gets(asked()).answers(settings_answer(&[NEWEST]));
    alice.gets_nothing();
}

#[test]
fn strict_asks_after_every_transaction_and_off_never() {
    for (how, asks) in [("strict", true), ("off", false)] {
        let talk = tracking(how);
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, "select 1", one_row());
        if asks {
            server.gets(asked()).answers(settings_answer(&[NEWEST]));
        }
        alice.asks(&server, "commit", [complete("COMMIT"), ready()]);
        server.gets_nothing();
    }
}
