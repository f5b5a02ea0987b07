//! Clients of the admin console. The program makes the replies.

use refrain_pg::console::reply::{Format, ReplyForm};

use crate::login::console::admin;
use crate::talk::*;

#[test]
fn a_command_goes_to_the_program_and_its_reply_to_the_client() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([query("SHOW POOLS")]);
    let question = talk.question();
    assert_eq!((&*question.user, question.admin, &*question.query), ("u", true, "SHOW POOLS"));
    talk.answers(&question, &[complete("SHOW")]);
    alice.gets([complete("SHOW"), ready()]);
    assert_eq!(talk.connections(), 0, "no server takes part");
}

#[test]
fn the_next_command_is_read_once_the_last_has_its_reply() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([query("PAUSE"), query("RESUME"), terminate()]);
    let first = talk.question();
    assert_eq!(first.query, "PAUSE");
    alice.gets_nothing();
    talk.answers(&first, &[complete("PAUSE")]);
    let second = talk.question();
    assert_eq!(second.query, "RESUME");
    talk.answers(&second, &[complete("RESUME")]);
    alice.gets([complete("PAUSE"), ready(), complete("RESUME"), ready()]);
    assert!(alice.is_closed());
}

/// Returns the question, which has this text, and is about this part of the reply.
fn asked(talk: &Conversation, query: &str, form: &ReplyForm) -> Question {
    let question = talk.question();
    assert_eq!((&*question.query, &question.form), (query, form));
    question
}

/// Returns a Bind with this body.
fn bind_as(body: &[u8]) -> Line {
    let length = u32::try_from(body.len() + 4).expect("a short body");
    raw(&[&b"B"[..], &length.to_be_bytes(), body].concat())
}

/// Returns the form of rows with these columns.
fn rows_of(columns: &[(&str, Format)]) -> ReplyForm {
    let column = |(name, format): &(&str, Format)| (column(name), *format);
    ReplyForm::Rows(columns.iter().map(column).collect())
}

#[test]
fn a_command_is_prepared_described_and_run_as_often_as_a_driver_likes() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([parse("s", "SHOW POOLS"), describe_statement("s"), sync()]);
    talk.describes(&asked(&talk, "SHOW POOLS", &ReplyForm::Columns), &["a", "b"]);
    alice.gets([parse_complete(), parameters(&[]), columns(&["a", "b"]), ready()]);
    for _ in 0..2 {
        alice.sends([bind("", "s"), describe_portal(""), execute(""), sync()]);
        let question =
            asked(&talk, "SHOW POOLS", &rows_of(&[("a", Format::Text), ("b", Format::Text)]));
        alice.gets([bind_complete(), columns(&["a", "b"])]);
        talk.answers(&question, &[row(&["1", "2"]), complete("SHOW")]);
        alice.gets([row(&["1", "2"]), complete("SHOW"), ready()]);
    }
    // A command without rows.
    alice.sends([parse("", "RELOAD"), bind("", ""), describe_portal(""), execute(""), sync()]);
    talk.describes(&asked(&talk, "RELOAD", &ReplyForm::Columns), &[]);
    alice.gets([parse_complete(), bind_complete(), no_data()]);
    talk.answers(&asked(&talk, "RELOAD", &rows_of(&[])), &[complete("RELOAD")]);
    alice.gets([complete("RELOAD"), ready()]);
    alice.sends([close_statement("s"), close_statement("s"), bind("", "s"), sync()]);
    let gone = error("26000", "prepared statement \"s\" does not exist");
    alice.gets([close_complete(), close_complete(), gone, ready()]);
}

#[test]
fn rows_come_in_the_formats_of_the_bind_and_as_many_as_the_execute_wants() {
    let talk = one_server();
    let alice = admin(&talk);
    let bound = b"p\0s\0\0\0\0\0\0\x02\0\x01\0\0";
    alice.sends([parse("s", "SHOW X"), bind_as(bound), execute_rows("p", 2), sync()]);
    talk.describes(&asked(&talk, "SHOW X", &ReplyForm::Columns), &["a", "b"]);
    let formats = rows_of(&[("a", Format::Binary), ("b", Format::Text)]);
    let question = asked(&talk, "SHOW X", &formats);
    let rows = ["1", "2", "3"].map(|value| row(&[value, "x"]));
    let [one, two, three] = rows.clone();
    alice.gets([parse_complete(), bind_complete()]);
    talk.answers(&question, &[&rows[..], &[complete("SHOW")]].concat());
    // A Sync outside of a block ends the portal.
    alice.gets([one.clone(), two.clone(), suspended(), ready()]);
    let gone = error("34000", "portal \"p\" does not exist");
    alice.sends([execute_rows("p", 2), sync()]).gets([gone, ready()]);
    alice.sends([query("BEGIN")]).gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([bind_as(bound), execute_rows("p", 2), sync()]);
    talk.answers(&asked(&talk, "SHOW X", &formats), &[&rows[..], &[complete("SHOW")]].concat());
    alice.gets([bind_complete(), one, two, suspended(), ready_in_block()]);
    alice.sends([execute_rows("p", 2), execute("p"), sync()]);
    alice.gets([three, complete("SHOW"), complete("SHOW"), ready_in_block()]);
}

#[test]
fn an_error_drops_messages_up_to_the_sync() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([parse("s", "SHOW POLS"), bind("", "s"), execute(""), query("SHOW POOLS")]);
    let refused = error("42601", "invalid command");
    talk.refuses(&asked(&talk, "SHOW POLS", &ReplyForm::Columns), &refused);
    alice.gets([refused]).sends([sync()]).gets([ready()]);
    alice.sends([parse("s", "PAUSE x"), bind("", "s"), execute(""), flush(), execute(""), sync()]);
    talk.describes(&asked(&talk, "PAUSE x", &ReplyForm::Columns), &[]);
    alice.gets([parse_complete(), bind_complete()]);
    let refused = error("3D000", "no such database: x");
    talk.refuses(&asked(&talk, "PAUSE x", &rows_of(&[])), &refused);
    alice.gets([refused, ready()]);
    let cases = [
        (parse("s", "SHOW X"), error("42P05", "prepared statement \"s\" already exists")),
        (bind("", "t"), error("26000", "prepared statement \"t\" does not exist")),
        (bind("", ""), error("26000", "unnamed prepared statement does not exist")),
        (execute("q"), error("34000", "portal \"q\" does not exist")),
        (describe_portal("q"), error("34000", "portal \"q\" does not exist")),
        (
            bind_as(b"\0s\0\0\0\0\x01\0\0\0\x01x\0\0"),
            error(
                "08P01",
                "bind message supplies 1 parameters, but prepared statement \"s\" requires 0",
            ),
        ),
        (bind_as(b"\0s\0\0\0\0\0\0\x01\0\x02"), error("22023", "unsupported format code: 2")),
        (
            bind_as(b"\0s\0\0\0\0\0\0\x02\0\0\0\0"),
            error("08P01", "bind message has 2 result formats but query has 0 columns"),
        ),
    ];
    for (wrong, refused) in cases {
        alice.sends([wrong, execute(""), sync()]).gets([refused, ready()]);
    }
    // For a message that is too long to be read as well.
    alice.sends([parse("", &"x".repeat(100_000)), bind("", ""), sync()]);
    alice.gets([error("54000", "a command of the console has at most 65536 bytes"), ready()]);
    alice.sends([bind("", "t"), parse("", &"x".repeat(100_000)), sync()]);
    alice.gets([error("26000", "prepared statement \"t\" does not exist"), ready()]);
    // A Bind that is cut short ends the session.
    alice.sends([bind_as(b"\0s\0\0\0\0\0")]);
    alice.gets([fatal("08P01", "invalid message")]);
    assert!(alice.is_closed());
}

#[test]
fn drivers_may_prepare_what_begins_a_block_and_drop_statements() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([parse("b", "BEGIN"), describe_statement("b"), bind("", "b"), execute(""), sync()]);
    let described = [parse_complete(), parameters(&[]), no_data(), bind_complete()];
    alice.gets(described.into_iter().chain([complete("BEGIN"), ready_in_block()]));
    for (command, tag) in [("DEALLOCATE \"b\"", "DEALLOCATE"), ("DISCARD ALL;", "DISCARD ALL")] {
        alice.sends([query(command)]);
        talk.answers(&asked(&talk, command, &ReplyForm::Whole), &[complete(tag)]);
        alice.gets([complete(tag), ready_in_block()]);
        alice.sends([bind("", "b"), sync()]);
        let gone = error("26000", "prepared statement \"b\" does not exist");
        alice.gets([gone, ready_in_block()]);
        alice.sends([parse("b", "COMMIT"), sync()]).gets([parse_complete(), ready_in_block()]);
    }
    alice.sends([bind("", "b"), execute(""), sync()]);
    alice.gets([bind_complete(), complete("COMMIT"), ready()]);
}

#[test]
fn a_transaction_block_is_a_status() {
    let talk = one_server();
    let alice = admin(&talk);
    let commands = [
        ("begin isolation level serializable;", "BEGIN", ready_in_block()),
        ("savepoint a", "SAVEPOINT", ready_in_block()),
        ("Rollback to savepoint a", "ROLLBACK", ready_in_block()),
        ("release a", "RELEASE", ready_in_block()),
        (" COMMIT ; ", "COMMIT", ready()),
        ("start\ttransaction read only", "START TRANSACTION", ready_in_block()),
        ("rollback", "ROLLBACK", ready()),
        ("rollback", "ROLLBACK", ready()),
    ];
    for (command, tag, status) in commands {
        alice.sends([query(command)]).gets([complete(tag), status]);
    }
    alice.sends([query("begin"), query("SHOW POOLS")]);
    let question = talk.question();
    talk.answers(&question, &[complete("SHOW")]);
    alice.gets([complete("BEGIN"), ready_in_block(), complete("SHOW"), ready_in_block()]);
    // What follows in the same query is the program's matter.
    alice.sends([query("begin; reload")]);
    assert_eq!(talk.question().query, "begin; reload");
}

#[test]
fn a_command_that_is_too_long_is_refused_and_its_rest_dropped() {
    let talk = one_server();
    let alice = admin(&talk);
    let long = query(&"x".repeat(100_000)).bytes;
    alice.sends_bytes(&long[..10]);
    alice.gets([error("54000", "a command of the console has at most 65536 bytes"), ready()]);
    alice.sends_bytes(&long[10..]).sends([query("SHOW HELP")]);
    assert_eq!(talk.question().query, "SHOW HELP");
}
