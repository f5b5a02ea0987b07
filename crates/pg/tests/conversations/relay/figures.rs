//! Figures of statements: calls, rows, errors and times.

use std::time::Duration;

use crate::talk::*;

/// Returns the calls, rows, errors and milliseconds of each statement that has any, by its text.
fn figures(talk: &Conversation) -> Vec<(String, [u64; 4])> {
    let of = talk.statements().into_iter().map(|view| {
        let counts = view.figures.counts;
        (view.text, [counts.calls, counts.rows, counts.errors, counts.time_us / 1_000])
    });
    of.filter(|(_, counts)| *counts != [0; 4]).collect()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_statement_counts_its_calls_rows_errors_and_time() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let text = "update t set a = $1 where b = 'secret'";
    alice.prepares_by_name(&server, "q", text, "~1");
    alice.sends([bind("", "q"), execute(""), sync()]);
    server.forgets();
    talk.waits(ms(30));
    server.answers([bind_complete(), complete("UPDATE 40"), ready()]);
    alice.sends([bind("", "q"), execute(""), sync()]);
    server.forgets();
    server.answers([bind_complete(), error("23505", "taken"), ready()]);
    alice.forgets();
    let shown = "update t set a = $1 where b = ''".to_owned();
    // Two were run before.
    assert_eq!(figures(&talk), [(shown, [3, 42, 1, 30])]);
    let view = &talk.statements()[0];
    assert_eq!((view.figures.quantile_us(0.5) / 1_000, view.figures.mean_us() / 1_000), (0, 10));
    assert!((29_400..=30_600).contains(&view.figures.quantile_us(0.99)));
}

#[test]
fn each_command_of_a_segment_counts_from_the_end_of_the_one_before() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([
        parse("", "update t set a = 1"),
        bind("", ""),
        execute(""),
        parse("", "delete from t"),
        bind("", ""),
        execute(""),
        sync(),
    ]);
    server.forgets();
    talk.waits(ms(20));
    server.answers([parse_complete(), bind_complete(), complete("UPDATE 1")]);
    talk.waits(ms(50));
    server.answers([parse_complete(), bind_complete(), complete("DELETE 7"), ready()]);
    alice.forgets();
    let due = [("update t set a = 0", [1, 1, 0, 20]), ("delete from t", [1, 7, 0, 50])];
    assert_eq!(figures(&talk), due.map(|(text, counts)| (text.to_owned(), counts)));
}

#[test]
fn commands_whose_statement_is_not_known_count_together() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let both = [complete("INSERT 0 3"), complete("SELECT 2"), ready()];
    alice.asks(&server, "insert into t select 1; select 2", both);
    alice.asks(&server, "selec", [error("42601", "syntax"), ready()]);
    // The server runs two portals, and nothing says in which order.
    let text = "delete from t";
    alice.sends([parse("", text), bind("a", ""), bind("b", ""), execute("a"), execute("b")]);
    alice.sends([sync()]);
    server.forgets();
    let bound = [parse_complete(), bind_complete(), bind_complete()];
    server.answers(bound).answers([complete("DELETE 1"), complete("DELETE 1"), ready()]);
    alice.forgets();
    assert_eq!(figures(&talk), [("(not prepared)".to_owned(), [4, 7, 1, 0])]);
}

#[test]
fn a_portal_that_was_not_run_counts_for_nothing_later() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", "delete from t"), bind("", ""), sync()]);
    server.forgets();
    server.answers([parse_complete(), bind_complete(), ready()]);
    alice.forgets();
    alice.asks(&server, "select 2", one_row());
    assert_eq!(figures(&talk), [("(not prepared)".to_owned(), [1, 1, 0, 0])]);
}

#[test]
fn a_portal_that_stops_at_its_row_limit_has_run() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let text = "delete from t returning 1";
    alice.sends([parse("", text), bind("", ""), describe_portal(""), execute_rows("", 1), sync()]);
    server.forgets();
    server.answers([parse_complete(), bind_complete(), columns(&["a"]), row(&["1"])]);
    server.answers([suspended(), ready()]);
    alice.forgets();
    assert_eq!(figures(&talk), [("delete from t returning 0".to_owned(), [1, 0, 0, 0])]);
}

#[test]
fn without_room_nothing_is_counted() {
    let without = |max: &str| format!("stat_statements_max = {max}\n{}", options("pool_size = 1"));
    let talk = Conversation::new(without("0"));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "select 2", one_row());
    assert_eq!(figures(&talk), []);
    talk.reloads(&without("10"));
    talk.waits(Duration::from_secs(1));
    alice.asks(&server, "select 2", one_row());
    assert_eq!(figures(&talk).len(), 1);
}
