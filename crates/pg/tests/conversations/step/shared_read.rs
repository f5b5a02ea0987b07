//! Which segments share a server: query strings and unnamed statements, as they are and as named
//! ones.

use std::time::Duration;

use refrain_pg_wire::back::field;

use crate::step::reads::READ;
use crate::step::share::others_come;
use crate::talk::*;

const SHARING: &str = "pool_size = 8\nshare_servers = \"reads\"\nshare_min_servers = 1";

/// Begins a conversation in which three servers are in transactions, and a fourth, which is
/// returned with it, has the statement in place of the clients' texts, which is known to be a short
/// read. `prepare` has the first client run it there, and `run` has it run again.
fn sharing(
    prepare: impl Fn(&Party, &Conversation, &Party),
    run: impl Fn(&Party, &Party),
) -> (Conversation, [Party; 3], Party) {
    let talk = Conversation::new(options(
        "pool_size = 8\nshare_servers = \"reads\"\nshare_min_servers = 1\n\
         autoprepare = \"on\"\nautoprepare_threshold = 1",
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    prepare(&alice, &talk, &server);
    (0..5).for_each(|_| run(&alice, &server));
    let [bob, carol] = others_come(&talk, &alice, &server);
    run(&alice, &server);
    (talk, [alice, bob, carol], server)
}

pub(crate) fn query_strings() -> (Conversation, [Party; 3], Party) {
    sharing(Party::has_autoprepared, |client, server| {
        client.sends([query(TEXT)]);
        server.gets(run_with("7")).answers(run_answer());
        client.gets(one_row());
    })
}

pub(crate) fn unnamed_statements() -> (Conversation, [Party; 3], Party) {
    sharing(Party::has_unnamed_prepared, |client, server| {
        client.sends(unnamed(NORMALIZED, "7"));
        server.gets(unnamed_by_name("~1", "7")).answers(bound());
        client.gets(parsed_and_bound());
    })
}

/// Begins a conversation without autoprepare, in which three servers are in transactions. The
/// unnamed statement of the clients is known to be a short read, which the first client has parsed
/// on a fourth server.
pub(crate) fn parsed_statements() -> (Conversation, [Party; 3], Party) {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.runs_as_sent(&server, READ);
    for _ in 0..5 {
        alice.sends(unnamed(READ, "7"));
        server.gets(unnamed_by_name("", "7")).answers(bound());
        alice.gets(parsed_and_bound());
    }
    let [bob, carol] = others_come(&talk, &alice, &server);
    alice.runs_as_sent(&server, READ);
    // A query string drops the server's unnamed statement.
    alice.asks(&server, "select 1", one_row());
    (talk, [alice, bob, carol], server)
}

pub(crate) fn rows(value: &str) -> Vec<Line> {
    vec![columns(&["a"]), row(&[value]), complete("SELECT 1"), ready()]
}

pub(crate) fn bound_rows(value: &str) -> Vec<Line> {
    [vec![bind_complete()], rows(value)].concat()
}

pub(crate) fn parsed_rows(value: &str) -> Vec<Line> {
    [vec![parse_complete()], bound_rows(value)].concat()
}

/// Has a server prepare the statement for a client that waits.
pub(crate) fn is_prepared_on(server: &Party, parse: Line) {
    server.gets([internal("'lock_timeout', '10ms'"), vec![parse, sync()]].concat());
    server.answers([internal_answer(&[]), vec![parse_complete(), ready()]].concat());
}

pub(crate) fn stale() -> Vec<Line> {
    let words = "cached plan must not change result type";
    vec![error_with("0A000", words, &[(field::ROUTINE, "RevalidateCachedQuery")]), ready()]
}

#[test]
fn query_strings_of_several_clients_share_a_server() {
    let (talk, [alice, bob, carol], server) = query_strings();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends([query(&format!("select a from t where b = {value}"))]);
        server.gets(run_with(value));
    }
    assert_eq!(talk.counters().pool.requests_shared, 2);
    server.answers(bound_rows("1"));
    alice.gets(rows("1"));
    bob.gets_nothing();
    server.answers([bound_rows("2"), bound_rows("3")].concat());
    bob.gets(rows("2"));
    carol.gets(rows("3"));
}

#[test]
fn unnamed_statements_of_several_clients_share_a_server() {
    let (talk, [alice, bob, carol], server) = unnamed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends(unnamed(NORMALIZED, value));
        server.gets(unnamed_by_name("~1", value));
    }
    assert_eq!(talk.counters().pool.requests_shared, 2);
    alice.gets([parse_complete()]);
    server.answers([bound_rows("1"), bound_rows("2")].concat());
    alice.gets(bound_rows("1"));
    bob.gets(parsed_rows("2"));
    carol.gets([parse_complete()]);
    server.answers(bound_rows("3"));
    carol.gets(bound_rows("3"));
}

#[test]
fn a_query_string_whose_statement_is_stale_runs_elsewhere() {
    let (talk, [alice, bob, carol], server) = query_strings();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends([query(&format!("select a from t where b = {value}"))]);
        server.gets(run_with(value));
    }
    server.answers([bound_rows("1"), stale(), bound_rows("3")].concat());
    alice.gets(rows("1"));
    carol.gets(rows("3"));
    bob.gets_nothing();
    assert_eq!(talk.counters().pool.requests_resent, 1);
    // The schema has changed, so the next server verifies the statement first.
    let mut asked = verification("select a from t where b = 2", NORMALIZED, "~1.1");
    let mut answer = verified([columns(&["b"]), columns(&["b"])], &[]);
    asked.insert(10, close_statement("~1"));
    answer.insert(11, close_complete());
    server.gets(asked).answers(answer);
    server
        .gets([bind_value("", "~1.1", "2"), describe_portal(""), execute(""), sync()])
        .answers(bound_rows("2"));
    bob.gets(rows("2"));
}

#[test]
fn the_first_client_too_gives_way_if_others_may_join() {
    let (talk, [alice, ..], server) = query_strings();
    let refused = [error("22P02", "invalid input"), ready()];
    alice.sends([query(TEXT)]);
    server.gets(run_with("7")).answers(refused.clone());
    assert_eq!(talk.counters().pool.requests_resent, 1);
    server.gets(run_with("7")).answers(refused.clone());
    server.gets([query(TEXT)]).answers(refused.clone());
    alice.gets(refused);
}

#[test]
fn unnamed_statements_share_a_server_without_being_prepared_by_name() {
    let (talk, [alice, bob, carol], server) = parsed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends(unnamed(READ, value));
        server.gets(unnamed(READ, value));
    }
    assert_eq!(talk.counters().pool.requests_shared, 2);
    server.answers([parsed_rows("1"), parsed_rows("2")].concat());
    alice.gets(parsed_rows("1"));
    bob.gets(parsed_rows("2"));
    server.answers(parsed_rows("3"));
    carol.gets(parsed_rows("3"));
    // The server's unnamed statement is the text of all of them.
    alice.sends(unnamed(READ, "4"));
    server.gets(unnamed_by_name("", "4"));
    bob.sends(unnamed(READ, "5"));
    server.gets(unnamed_by_name("", "5")).answers([bound_rows("4"), bound_rows("5")].concat());
    alice.gets(parsed_rows("4"));
    bob.gets(parsed_rows("5"));
}

#[test]
fn a_later_bind_finds_the_clients_own_unnamed_statement() {
    let (_talk, [alice, bob, carol], server) = parsed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2")] {
        client.sends(unnamed(READ, value));
        server.gets(unnamed(READ, value));
    }
    server.answers([parsed_rows("1"), parsed_rows("2")].concat());
    alice.gets(parsed_rows("1"));
    bob.gets(parsed_rows("2"));
    carol.runs_as_sent(&server, "select 2");
    bob.sends(unnamed_by_name("", "3"));
    server.gets([parse("", READ), describe_statement(""), flush()]);
    server.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    server.gets(unnamed_by_name("", "3")).answers(bound());
    bob.gets(bound());
}

#[test]
fn the_unnamed_statement_of_a_client_whose_parse_fails_is_gone() {
    let (_talk, [alice, bob, _], server) = parsed_statements();
    let refused = [error("42P01", "relation \"t\" does not exist"), ready()];
    alice.sends(unnamed(READ, "1"));
    bob.sends(unnamed(READ, "2"));
    server.gets([unnamed(READ, "1"), unnamed(READ, "2")].concat());
    server.answers([&refused[..], &parsed_rows("2")].concat());
    alice.gets(refused);
    bob.gets(parsed_rows("2"));
    // The server's unnamed statement is bob's, so it is hidden from alice.
    alice.sends([bind_value("", "", "1"), execute(""), sync()]);
    server.gets([close_statement(""), bind_value("", "", "1"), execute(""), sync()]);
    let unknown = [error("26000", "unnamed prepared statement does not exist"), ready()];
    server.answers([&[close_complete()], &unknown[..]].concat());
    alice.gets(unknown);
}

#[test]
fn an_error_behind_a_parse_ends_the_read_of_its_own_client() {
    let (_talk, [alice, bob, carol], server) = parsed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "x"), (&carol, "3")] {
        client.sends(unnamed(READ, value));
        server.gets(unnamed(READ, value));
    }
    let refused = [parse_complete(), error("22P02", "invalid input"), ready()];
    server.answers([parsed_rows("1"), refused.to_vec(), parsed_rows("3")].concat());
    alice.gets(parsed_rows("1"));
    bob.gets(refused);
    carol.gets(parsed_rows("3"));
    // Its statement is there all the same.
    bob.sends(unnamed_by_name("", "2"));
    server.gets(unnamed_by_name("", "2")).answers(bound());
    bob.gets(bound());
}

#[test]
fn a_parse_that_the_server_has_answered_is_not_sent_again() {
    let (talk, [alice, bob, _], server) = parsed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2")] {
        client.sends(unnamed(READ, value));
        server.gets(unnamed(READ, value));
    }
    server.answers([parsed_rows("1"), vec![parse_complete()]].concat());
    alice.gets(parsed_rows("1"));
    bob.gets([parse_complete()]);
    server.breaks();
    let other = talk.server(5);
    other.gets(unnamed(READ, "2")).answers(parsed_rows("2"));
    bob.gets(bound_rows("2"));
}

#[test]
fn an_unnamed_statement_behind_a_late_one_runs_elsewhere_once() {
    let (talk, [alice, bob, _], server) = parsed_statements();
    for (client, value) in [(&alice, "1"), (&bob, "2")] {
        client.sends(unnamed(READ, value));
        server.gets(unnamed(READ, value));
    }
    talk.waits(Duration::from_millis(6));
    assert_eq!(talk.counters().pool.requests_resent, 1);
    let other = talk.server(5);
    other.gets(unnamed(READ, "2")).answers(parsed_rows("2"));
    bob.gets(parsed_rows("2"));
    server.answers([parsed_rows("1"), parsed_rows("2")].concat());
    alice.gets(parsed_rows("1"));
    bob.gets_nothing();
}

#[test]
fn an_unnamed_statement_shares_only_from_its_parse_to_its_sync() {
    let (talk, [alice, bob, carol], server) = parsed_statements();
    alice.sends(unnamed(READ, "1"));
    server.gets(unnamed(READ, "1"));
    // More follows than its Sync.
    bob.sends([unnamed(READ, "2"), unnamed(READ, "3")].concat());
    talk.server(5).forgets();
    // The end has not come yet.
    carol.sends(unnamed(READ, "4")[..3].to_vec());
    talk.server(6).forgets();
    server.gets_nothing();
    assert_eq!(talk.counters().pool.requests_shared, 0);
}

#[test]
fn an_unnamed_statement_of_a_client_with_other_settings_does_not_share() {
    let (talk, [alice, bob, _], server) = parsed_statements();
    bob.sends([query("set timezone = 'Asia/Tokyo'")]);
    server.gets([query("set timezone = 'Asia/Tokyo'")]);
    server.answers([complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()]);
    bob.forgets();
    alice.sends(unnamed(READ, "1"));
    server.forgets();
    bob.sends(unnamed(READ, "2"));
    let set = query_with("'timezone','Asia/Tokyo'");
    talk.server(5).gets([vec![set], unnamed(READ, "2")].concat());
    server.gets_nothing();
}

/// Begins a conversation without autoprepare, in which query strings may share a server.
fn plain_strings() -> (Conversation, [Party; 3], Party) {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    talk.client();
    for value in 1..=6 {
        alice.asks(&server, &text(value), one_row());
    }
    let [bob, carol] = others_come(&talk, &alice, &server);
    alice.asks(&server, &text(7), one_row());
    (talk, [alice, bob, carol], server)
}

fn text(value: u32) -> String {
    format!("select a from t where b = {value}")
}

#[test]
fn query_strings_of_a_client_that_is_alone_are_not_looked_at() {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    for value in 1..=6 {
        alice.asks(&server, &text(value), one_row());
    }
    talk.waits(Duration::from_secs(1));
    assert_eq!(talk.read_cases(), 0);
    // From now on another client could join.
    talk.client();
    for value in 1..=6 {
        alice.asks(&server, &text(value), one_row());
    }
    talk.waits(Duration::from_secs(1));
    assert_eq!(talk.read_cases(), 1);
}

#[test]
fn query_strings_share_a_server_without_being_prepared() {
    let (talk, [alice, bob, carol], server) = plain_strings();
    for (client, value) in [(&alice, 1), (&bob, 2), (&carol, 3)] {
        client.sends([query(&text(value))]);
        server.gets([query(&text(value))]);
    }
    assert_eq!(talk.counters().pool.requests_shared, 2);
    server.answers([rows("1"), rows("2")].concat());
    alice.gets(rows("1"));
    bob.gets(rows("2"));
    server.answers(rows("3"));
    carol.gets(rows("3"));
    // Nothing is known of another text.
    alice.sends([query(&text(4))]);
    bob.sends([query("select a from t where c = 4")]);
    server.gets([query(&text(4))]);
    talk.server(5).gets([query("select a from t where c = 4")]);
}

#[test]
fn a_query_string_that_fails_ends_the_read_of_its_own_client() {
    let (_talk, [alice, bob, carol], server) = plain_strings();
    for (client, value) in [(&alice, 1), (&bob, 2), (&carol, 3)] {
        client.sends([query(&text(value))]);
        server.gets([query(&text(value))]);
    }
    let refused = [columns(&["a"]), error("22012", "division by zero"), ready()];
    server.answers([rows("1"), refused.to_vec(), rows("3")].concat());
    alice.gets(rows("1"));
    bob.gets(refused);
    carol.gets(rows("3"));
}

#[test]
fn a_shared_query_string_drops_unnamed_statements() {
    let (_talk, [alice, bob, carol], server) = plain_strings();
    bob.runs_as_sent(&server, "select 1");
    carol.runs_as_sent(&server, READ);
    for (client, value) in [(&alice, 1), (&bob, 2)] {
        client.sends([query(&text(value))]);
        server.gets([query(&text(value))]);
    }
    server.answers([rows("1"), rows("2")].concat());
    alice.gets(rows("1"));
    bob.gets(rows("2"));
    // The server's has gone, and bob's own, but not carol's.
    let unknown = [error("26000", "unnamed prepared statement does not exist"), ready()];
    bob.sends(unnamed_by_name("", "3"));
    server.gets(unnamed_by_name("", "3")).answers(unknown.clone());
    bob.gets(unknown);
    carol.sends(unnamed_by_name("", "3"));
    server.gets([parse("", READ), describe_statement(""), flush()]);
}

#[test]
fn a_query_string_runs_elsewhere_if_its_client_has_got_nothing() {
    for (begun, server_of) in [(false, Some(5)), (true, None)] {
        let (talk, [alice, bob, _], server) = plain_strings();
        for (client, value) in [(&alice, 1), (&bob, 2)] {
            client.sends([query(&text(value))]);
            server.gets([query(&text(value))]);
        }
        server.answers(rows("1"));
        alice.gets(rows("1"));
        let end = fatal("57P01", "terminating connection");
        let before = if begun { vec![columns(&["a"])] } else { Vec::new() };
        server.answers([&before[..], std::slice::from_ref(&end)].concat());
        match server_of {
            Some(number) => {
                talk.server(number).gets([query(&text(2))]).answers(rows("2"));
                bob.gets(rows("2"));
            }
            None => {
                bob.gets([before, vec![end]].concat());
                assert!(bob.is_closed());
            }
        }
    }
}
