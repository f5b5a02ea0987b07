//! A server's copy of a statement fits if it returns the columns that the client's Parse found.

use crate::talk::*;

const READ: &str = "select * from t where a = $1";

/// Returns alice, who has prepared [`READ`] on the first server, where its rows have these columns,
/// and bob, who holds that server: alice's next message goes to the second.
fn prepared_elsewhere(talk: &Conversation, names: &[&str]) -> (Party, Party) {
    let (alice, bob) = (talk.client(), talk.client());
    let first = talk.server(1);
    alice.sends([parse("s", READ), describe_statement("s"), sync()]);
    first.gets([parse("", READ), describe_statement(""), sync()]);
    first.answers([parse_complete(), parameters(&[23]), columns(names), ready()]);
    alice.gets([parse_complete(), parameters(&[23]), columns(names), ready()]);
    bob.opens_block(&first);
    (alice, bob)
}

/// Has alice run her statement on the second server, whose copies return other columns. Returns the
/// server.
fn finds_other_columns(talk: &Conversation, alice: &Party, binds: Line) -> Party {
    alice.sends([binds, execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("", READ), describe_statement(""), flush()]);
    let other = [parse_complete(), parameters(&[23]), columns(&["a", "b"])];
    second.answers(other.clone());
    // The schema has changed unseen: no older copy is used any more.
    second.gets([parse("~1.1", READ), describe_statement("~1.1"), flush()]).answers(other);
    second
}

#[test]
fn a_bind_waits_until_the_columns_of_a_new_copy_are_known() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, &["a"]);
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("", READ), describe_statement(""), flush()]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    second.gets([bind_value("", "", "1"), execute(""), sync()]);
    second.answers([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
    alice.gets([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
}

#[test]
fn a_copy_with_other_columns_is_refused_as_a_stale_plan() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, &["a"]);
    let second = finds_other_columns(&talk, &alice, bind_value("", "s", "1"));
    second.gets([bind_value("", "~1.1", "1"), describe_statement("~none"), execute(""), sync()]);
    let none = error("26000", "prepared statement \"~none\" does not exist");
    second.answers([bind_complete(), none, ready()]);
    alice.gets([error_like("cached plan must not change result type"), ready()]);
}

#[test]
fn an_error_of_the_parameters_comes_before_that_of_a_stale_plan() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, &["a"]);
    let second = finds_other_columns(&talk, &alice, bind("", "s"));
    second.gets([bind("", "~1.1"), describe_statement("~none"), execute(""), sync()]);
    let said = "bind message supplies 0 parameters, but prepared statement \"~1.1\" requires 1";
    second.answers([error("08P01", said), ready()]);
    alice.gets([error("08P01", &said.replace("~1.1", "s")), ready()]);
}

#[test]
fn an_error_of_rights_or_of_constants_comes_behind_that_of_a_stale_plan() {
    for said in
        [error("42501", "permission denied for table t"), error("22012", "division by zero")]
    {
        let talk = two_servers();
        let (alice, _bob) = prepared_elsewhere(&talk, &["a"]);
        let second = finds_other_columns(&talk, &alice, bind_value("", "s", "1"));
        second.forgets();
        second.answers([said, ready()]);
        alice.gets([error("0A000", "cached plan must not change result type"), ready()]);
    }
}

#[test]
fn columns_that_the_client_did_not_ask_for_are_those_of_its_parse_all_the_same() {
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([parse("s", READ), sync()]);
    first.gets([parse("", READ), describe_statement(""), sync()]);
    first.answers([parse_complete(), parameters(&[23]), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), ready()]);
    bob.opens_block(&first);
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("", READ), describe_statement(""), flush()]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["a", "b"])]);
    second.gets([parse("~1.1", READ), describe_statement("~1.1"), flush()]);
}

#[test]
fn a_describe_waits_for_the_columns_as_a_bind_does() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, &["a"]);
    alice.sends([describe_statement("s"), sync()]);
    let second = talk.server(2);
    second.gets([parse("", READ), describe_statement(""), flush()]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    second.gets([describe_statement(""), sync()]);
    second.answers([parameters(&[23]), columns(&["a"]), ready()]);
    alice.gets([parameters(&[23]), columns(&["a"]), ready()]);
}

#[test]
fn a_described_portal_tells_the_columns_of_the_unnamed_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let said = || [parse("", READ), bind_value("", "", "1"), describe_portal(""), sync()];
    alice.sends(said());
    server.gets(said());
    server.answers([parse_complete(), bind_complete(), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), bind_complete(), columns(&["a"]), ready()]);
}

#[test]
fn the_columns_of_a_copy_that_autoprepare_made_are_asked_for_when_a_client_prepares_it() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.has_unnamed_prepared(&talk, &server);
    let bob = talk.client();
    bob.sends([parse("s", NORMALIZED), sync()]);
    server.gets([describe_statement("~1"), sync()]);
    server.answers([parameters(&[23]), columns(&["a"]), ready()]);
    bob.gets([parse_complete(), ready()]);
    // They are known now: nobody asks again.
    let carl = talk.client();
    carl.sends([parse("s", NORMALIZED), sync()]);
    server.gets([sync()]).answers([ready()]);
    carl.gets([parse_complete(), ready()]);
}

#[test]
fn in_a_failed_transaction_a_statement_without_rows_is_described_from_memory() {
    let talk = two_servers();
    let (alice, bob) = (talk.client(), talk.client());
    let first = talk.server(1);
    let write = "update t set a = $1";
    alice.prepares(&first, "s", write);
    bob.opens_block(&first);
    alice.sends([query("begin; x")]);
    let second = talk.server(2);
    second.gets([query("begin; x")]).answers([error("42601", "x"), ready_failed()]);
    alice.gets([error("42601", "x"), ready_failed()]);
    alice.sends([describe_statement("s"), sync()]);
    second.gets([sync()]).answers([ready_failed()]);
    alice.gets([parameters(&[25]), no_data(), ready_failed()]);
}
