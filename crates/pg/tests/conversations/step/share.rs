//! Shared servers: reads of several clients under way on one server.

use std::time::Duration;

use crate::step::reads::{NAMES, READ, answer, mentioned, question};
use crate::talk::*;

/// Begins a conversation in which three servers are in transactions, and a fourth, which is
/// returned with it, has the statement `s` of the two clients, which is known to be a short read.
fn sharing(options_more: &str) -> (Conversation, [Party; 3], Party) {
    let pool =
        format!("pool_size = 8\nshare_servers = \"reads\"\nshare_min_servers = 1\n{options_more}");
    let talk = Conversation::new(options(&pool));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.uses(&server, "s", READ, "~1");
    let [bob, carol] = others_come(&talk, &alice, &server);
    for client in [&bob, &carol] {
        client.sends([parse("s", READ), sync()]).gets([parse_complete(), ready()]);
    }
    alice.reads(&server, "s", "~1");
    (talk, [alice, bob, carol], server)
}

/// Has Refrain find out that a client's statement is a read, which the first server has. Then three
/// other servers are in transactions, and two more clients come.
pub(crate) fn others_come(talk: &Conversation, alice: &Party, server: &Party) -> [Party; 2] {
    talk.waits(Duration::from_secs(1));
    talk.read(talk.read_case(), Ok(mentioned()));
    server.gets(question(NAMES)).answers(answer(&[]));
    alice.opens_block(server);
    for number in 2..5 {
        let (client, begun) = (talk.client(), [complete("BEGIN"), ready_in_block()]);
        client.sends([query("begin")]);
        talk.server(number).gets([query("begin")]).answers(begun.clone());
        client.gets(begun);
    }
    alice.commits(server);
    [talk.client(), talk.client()]
}

fn read(value: &str) -> [Line; 3] {
    [bind_value("", "s", value), execute(""), sync()]
}

fn there(value: &str) -> [Line; 3] {
    [bind_value("", "~1", value), execute(""), sync()]
}

/// Has a server prepare the statement, and run it with this value.
fn is_given_the_statement(server: &Party, value: &str) {
    let given = [parse("~1", READ), describe_statement("~1")];
    server.gets([&given[..], &there(value)].concat());
    server.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
}

fn reply(value: &str) -> [Line; 4] {
    [bind_complete(), row(&[value]), complete("SELECT 1"), ready()]
}

#[test]
fn each_client_gets_the_rows_of_its_own_read() {
    let (_talk, [alice, bob, carol], server) = sharing("");
    for (client, value) in [(&alice, "1"), (&bob, "2"), (&carol, "3")] {
        client.sends(read(value));
        server.gets(there(value));
    }
    server.answers(reply("1"));
    alice.gets(reply("1"));
    bob.gets_nothing();
    server.answers([reply("2"), reply("3")].concat());
    bob.gets(reply("2"));
    carol.gets(reply("3"));
    bob.reads(&server, "s", "~1");
}

#[test]
fn a_read_with_a_limit_of_rows_shares_a_server() {
    let (_talk, [alice, bob, _], server) = sharing("");
    let limited = |name, value| [bind_value("", name, value), execute_rows("", 1), sync()];
    let reply = |value| [bind_complete(), row(&[value]), suspended(), ready()];
    for (client, value) in [(&alice, "1"), (&bob, "2")] {
        client.sends(limited("s", value));
        server.gets(limited("~1", value));
    }
    server.answers([reply("1"), reply("2")].concat());
    alice.gets(reply("1"));
    bob.gets(reply("2"));
}

#[test]
fn an_error_ends_the_read_of_its_own_client() {
    let (_talk, [alice, bob, _], server) = sharing("");
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat());
    let failure = [bind_complete(), error("22012", "division by zero"), ready()];
    server.answers([&failure[..], &reply("2")].concat());
    alice.gets(failure);
    bob.gets(reply("2"));
}

#[test]
fn what_is_no_read_has_a_server_to_itself() {
    let (talk, [alice, bob, _], server) = sharing("");
    alice.sends(read("1"));
    server.gets(there("1"));
    bob.sends([query("update t set a = 1")]);
    talk.server(5).gets([query("update t set a = 1")]);
    server.gets_nothing();
    // Nor has a read that more follows than its Sync.
    server.answers(reply("1"));
    alice.gets(reply("1"));
    alice.sends([read("1"), read("2")].concat());
    server.gets([there("1"), there("2")].concat());
    bob.forgets();
}

#[test]
fn the_next_request_of_a_client_waits_for_its_reply() {
    let (talk, [alice, bob, _], server) = sharing("");
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat());
    alice.sends([query("update t set a = 1")]);
    server.gets_nothing();
    server.answers(reply("1"));
    alice.gets(reply("1"));
    talk.server(5).gets([query("update t set a = 1")]);
    server.gets_nothing();
}

#[test]
fn a_read_behind_a_late_one_runs_elsewhere_once() {
    let (talk, [alice, bob, carol], server) = sharing("");
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat());
    talk.waits(Duration::from_millis(6));
    assert_eq!(talk.counters().pool.requests_resent, 1);
    let other = talk.server(5);
    is_given_the_statement(&other, "2");
    other.answers(reply("2"));
    bob.gets(reply("2"));
    // The late replies reach nobody, and then the server works for others again.
    carol.sends(read("3"));
    other.gets(there("3")).answers(reply("3"));
    carol.gets(reply("3"));
    server.answers([reply("1"), reply("2")].concat());
    alice.gets(reply("1"));
    bob.gets_nothing();
    alice.reads(&server, "s", "~1");
}

#[test]
fn reads_behind_a_lost_server_run_elsewhere() {
    let (talk, [alice, bob, _], server) = sharing("");
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat()).breaks();
    for (number, client, value) in [(5, &alice, "1"), (6, &bob, "2")] {
        is_given_the_statement(&talk.server(number), value);
        talk.server(number).answers(reply(value));
        client.gets(reply(value));
    }
}

#[test]
fn a_read_runs_elsewhere_if_the_server_ends_before_it_answers() {
    let (talk, [alice, bob, _], server) = sharing("");
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat());
    server.answers([&reply("1")[..], &[fatal("57P01", "terminating connection")]].concat());
    alice.gets(reply("1"));
    bob.gets_nothing();
    let other = talk.server(5);
    is_given_the_statement(&other, "2");
    // Not a second time, and not after the client has got something.
    other.answers([fatal("57P01", "terminating connection")]);
    bob.gets([fatal("57P01", "terminating connection")]);
    assert!(bob.is_closed());
}

#[test]
fn a_client_that_has_got_a_part_of_its_rows_hears_of_the_end() {
    let (_talk, [alice, ..], server) = sharing("");
    alice.sends(read("1"));
    server.gets(there("1"));
    server.answers([bind_complete(), fatal("57P01", "terminating connection")]);
    alice.gets([bind_complete(), fatal("57P01", "terminating connection")]);
    assert!(alice.is_closed());
}

#[test]
fn a_client_with_other_settings_does_not_share() {
    let (talk, [alice, bob, _], server) = sharing("");
    bob.sends([query("set timezone = 'Asia/Tokyo'")]);
    server.gets([query("set timezone = 'Asia/Tokyo'")]);
    server.answers([complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()]);
    bob.forgets();
    alice.sends(read("1"));
    server.forgets();
    bob.sends(read("2"));
    talk.server(5).gets([query_with("'timezone','Asia/Tokyo'")]);
    server.gets_nothing();
}

#[test]
fn servers_are_not_shared_where_the_option_is_off() {
    let (talk, [alice, bob, _], server) = sharing("");
    talk.reloads(&options("pool_size = 8"));
    alice.sends(read("1"));
    server.gets(there("1"));
    bob.sends(read("2"));
    talk.server(5).forgets();
    server.gets_nothing();
}

#[test]
fn reads_that_wait_for_a_server_share_it() {
    let (talk, [alice, bob, carol], server) = sharing("");
    alice.opens_block(&server);
    for number in 5..9 {
        let (client, begun) = (talk.client(), [complete("BEGIN"), ready_in_block()]);
        client.sends([query("begin")]);
        talk.server(number).gets([query("begin")]).answers(begun.clone());
        client.gets(begun);
    }
    let dora = talk.client();
    bob.sends(read("2"));
    dora.sends([query("update t set a = 1")]);
    carol.sends(read("3"));
    server.gets_nothing();
    alice.commits(&server);
    server.gets([there("2"), there("3")].concat());
    server.answers([reply("2"), reply("3")].concat());
    bob.gets(reply("2"));
    carol.gets(reply("3"));
    server.gets([query("update t set a = 1")]);
}

#[test]
fn a_statement_with_long_results_does_not_share() {
    let (talk, [alice, bob, _], server) = sharing("");
    // The mean of the last results is long from the second on.
    let long = "x".repeat(80_000);
    for _ in 0..2 {
        alice.sends(read("1"));
        let (first, rest) = (reply(&long)[..2].to_vec(), reply(&long)[2..].to_vec());
        server.gets(there("1")).answers(first);
        server.answers(rest);
        alice.gets(reply(&long));
    }
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets(there("1"));
    is_given_the_statement(&talk.server(5), "2");
    // Short results make it share again.
    talk.server(5).answers(reply("2"));
    server.answers(reply("1"));
    alice.forgets();
    bob.forgets();
    for _ in 0..10 {
        alice.reads(&server, "s", "~1");
    }
    alice.sends(read("1"));
    bob.sends(read("2"));
    server.gets([there("1"), there("2")].concat());
}

#[test]
fn requests_alone_are_counted_by_reason() {
    let (talk, [alice, bob, carol], server) = sharing("");
    let asked = [parse("", "select b from t"), describe_statement(""), sync()];
    carol.sends([parse("new", "select b from t"), sync()]);
    server.gets(asked).answers([parse_complete(), no_data(), ready()]);
    carol.gets([parse_complete(), ready()]);
    alice.sends(read("1"));
    server.gets(there("1"));
    bob.sends([query("update t set a = 1")]);
    carol.sends([bind("", "new"), execute(""), sync()]);
    let counters = talk.counters().protocol;
    assert_eq!((counters.requests_alone_kind, counters.requests_alone_unknown), (1, 1));
    talk.server(5).forgets();
    talk.server(6).forgets();
}
