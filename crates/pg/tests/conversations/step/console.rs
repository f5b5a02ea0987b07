//! Clients of the admin console. The program makes the replies.

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

#[test]
fn extended_messages_get_one_error_and_are_dropped_up_to_the_sync() {
    let talk = one_server();
    let alice = admin(&talk);
    let refused = || error_like("the admin console takes simple queries only");
    alice.sends([parse("", "SHOW POOLS"), bind("", ""), describe_portal("")]);
    alice.gets([refused()]);
    alice.sends([execute(""), flush(), query("SHOW POOLS"), close_statement("")]);
    alice.gets_nothing();
    alice.sends([sync()]).gets([ready()]);
    // The same for each first message, and for a message that is too long to be read.
    for first in [bind("", ""), describe_portal(""), execute(""), close_statement("")] {
        alice.sends([first, parse("", "SHOW POOLS"), sync()]).gets([refused(), ready()]);
    }
    alice.sends([parse("", &"x".repeat(100_000)), bind("", ""), sync()]);
    alice.gets([error("54000", "a command of the console has at most 65536 bytes"), ready()]);
    alice.sends([bind("", ""), parse("", &"x".repeat(100_000)), sync()]);
    alice.gets([refused(), ready()]);
    alice.sends([sync(), query("SHOW POOLS")]).gets([ready()]);
    let question = talk.question();
    talk.answers(&question, &[complete("SHOW")]);
    alice.gets([complete("SHOW"), ready()]);
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
