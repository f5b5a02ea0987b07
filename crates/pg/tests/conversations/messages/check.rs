//! A server that lacks a statement gets Parse, Describe and Bind in one write where the columns can
//! be looked at behind.

use crate::talk::*;

pub(crate) const READ: &str = "select a from t where a = $1";

/// Returns alice, who has prepared this on the first server, and bob, who holds that server:
/// alice's next message goes to the second.
pub(crate) fn prepared_elsewhere(talk: &Conversation, text: &str) -> (Party, Party) {
    let (alice, bob) = (talk.client(), talk.client());
    let first = talk.server(1);
    alice.sends([parse("s", text), describe_statement("s"), sync()]);
    first.gets([parse("", text), describe_statement(""), sync()]);
    first.answers([parse_complete(), parameters(&[23]), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), parameters(&[23]), columns(&["a"]), ready()]);
    bob.opens_block(&first);
    (alice, bob)
}

/// The messages that a server gets which lacks [`READ`]: it runs it under this name, with this
/// value.
pub(crate) fn in_one_write(name: &str, value: &str) -> [Line; 5] {
    let given = bind_value("", name, value);
    [parse(name, READ), describe_statement(name), given, execute(""), sync()]
}

#[test]
fn a_read_is_bound_in_the_same_write_as_its_parse() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "1"), describe_portal(""), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([
        parse("", READ),
        describe_statement(""),
        bind_value("", "", "1"),
        describe_portal(""),
        execute(""),
        sync(),
    ]);
    let found = [parse_complete(), parameters(&[23]), columns(&["a"])];
    let answer = [bind_complete(), columns(&["a"]), row(&["1"]), complete("SELECT 1"), ready()];
    second.answers(found);
    second.answers(answer.clone());
    alice.gets(answer);
    // From now on the columns of the copy are known.
    alice.sends([bind_value("", "s", "2"), execute(""), sync()]);
    second.gets(in_one_write("~1", "2"));
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    second.answers([bind_complete(), row(&["2"]), complete("SELECT 1"), ready()]);
    alice.gets([bind_complete(), row(&["2"]), complete("SELECT 1"), ready()]);
    // The columns of this copy are known.
    alice.sends([bind_value("", "s", "3"), execute(""), sync()]);
    second.gets([bind_value("", "~1", "3"), execute(""), sync()]);
}

#[test]
fn a_parse_that_fails_behind_fails_as_the_clients_own() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets(in_one_write("", "1"));
    second.answers([error("42P01", "relation \"t\" does not exist"), ready()]);
    alice.gets([error("42P01", "relation \"t\" does not exist"), ready()]);
}

#[test]
fn an_error_of_the_bind_reaches_the_client() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "x"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets(in_one_write("", "x"));
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    second.answers([error("22P02", "invalid input syntax"), ready()]);
    alice.gets([error("22P02", "invalid input syntax"), ready()]);
}

/// Has alice bind this text, which the server lacks, with these messages behind it: the server gets
/// the Bind once the columns are known.
fn waits(text: &str, behind: &[Line], begin: Option<&str>) {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, text);
    if let Some(begin) = begin {
        alice.sends([query(begin)]);
        talk.server(2).gets([query(begin)]).answers([complete("BEGIN"), ready_in_block()]);
        alice.gets([complete("BEGIN"), ready_in_block()]);
    }
    alice.sends([&[bind_value("", "s", "1")], behind].concat());
    let second = talk.server(2);
    second.gets([parse("", text), describe_statement(""), flush()]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    let bound = second.forgets();
    assert_eq!(bound.first(), Some(&bind_value("", "", "1")));
}

#[test]
fn what_may_do_something_waits_until_the_columns_are_known() {
    for text in [
        "select * from t where a = $1",
        "select f(a) from t where a = $1",
        "insert into t values ($1) returning a",
        "with w as (delete from t where a = $1 returning a) select a from w",
    ] {
        waits(text, &[execute(""), sync()], None);
    }
}

#[test]
fn a_read_waits_that_does_not_stand_alone() {
    waits(READ, &[execute(""), sync()], Some("begin"));
    waits(READ, &[execute("")], None);
    waits(READ, &[execute(""), bind_value("", "s", "2"), execute(""), sync()], None);
}

#[test]
fn a_read_waits_if_the_schema_has_changed_since() {
    let talk = two_servers();
    let (alice, bob) = prepared_elsewhere(&talk, READ);
    let first = talk.server(1);
    bob.sends([query("create table u (a int)")]);
    first.gets([query("create table u (a int)")]);
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    let second = talk.server(2);
    second.gets([parse("", READ), describe_statement(""), flush()]);
    second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
    second.gets([bind_value("", "", "1"), execute(""), sync()]);
}

#[test]
fn a_server_that_dies_before_its_answer_takes_the_client_along() {
    let talk = two_servers();
    let (alice, _bob) = prepared_elsewhere(&talk, READ);
    alice.sends([bind_value("", "s", "1"), execute(""), sync()]);
    let second = talk.server(2);
    second.forgets();
    second.answers([parse_complete(), parameters(&[23])]).breaks();
    alice.gets([error_like("server")]);
    assert!(alice.is_closed());
}
