//! Which segments share a server: query strings and unnamed statements that run as named ones.

use refrain_wire::back::field;

use crate::step::share::others_come;
use crate::talk::*;

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
    server.gets([internal("'lock_timeout','10ms'"), vec![parse, sync()]].concat());
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
