//! Clients of the admin console. The program makes the replies.

use crate::talk::*;

/// Connects a client that asks for the console.
fn knocks(talk: &Conversation, user: &str) -> Party {
    let client = talk.newcomer();
    client.sends([startup(0, &[("user", user), ("database", "pgbouncer")])]);
    client
}

/// Connects a client, which is let into the console.
fn admin(talk: &Conversation) -> Party {
    let client = knocks(talk, "u");
    client.gets([
        authentication(0, b""),
        parameter("server_version", "1.24.1/bouncer"),
        parameter("client_encoding", "UTF8"),
        parameter("server_encoding", "UTF8"),
        parameter("DateStyle", "ISO"),
        parameter("standard_conforming_strings", "on"),
        ready(),
    ]);
    client
}

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
fn only_users_of_the_options_get_in_and_some_may_only_look() {
    let talk = Conversation::new(format!(
        "admin_users = [\"root\"]\nstats_users = [\"eye\"]\n{}",
        options("")
    ));
    let (eye, mallory) = (knocks(&talk, "eye"), knocks(&talk, "mallory"));
    assert_eq!(eye.forgets().last(), Some(&ready()));
    eye.sends([query("SHOW POOLS")]);
    assert!(!talk.question().admin);
    mallory.gets([authentication(0, b""), error_like("not allowed to use the admin console")]);
    assert!(mallory.is_closed());
}

#[test]
fn extended_messages_are_refused_and_a_sync_is_answered() {
    let talk = one_server();
    let alice = admin(&talk);
    alice.sends([parse("", "SHOW POOLS"), sync()]);
    alice.gets([error("0A000", "the admin console takes simple queries only"), ready()]);
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

#[test]
fn the_console_is_open_while_there_are_too_many_clients() {
    let talk = Conversation::new(format!("max_client_conn = 1\n{}", options("")));
    let _only = talk.client();
    admin(&talk);
}
