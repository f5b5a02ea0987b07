//! Logins to the admin console.

use crate::talk::*;

/// Connects a client that asks for the console.
fn knocks(talk: &Conversation, user: &str) -> Party {
    let client = talk.newcomer();
    client.sends([startup(0, &[("user", user), ("database", "pgbouncer")])]);
    client
}

/// Connects a client, which is let into the console.
pub(crate) fn admin(talk: &Conversation) -> Party {
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
fn the_console_is_open_while_there_are_too_many_clients() {
    let talk = Conversation::new(format!("max_client_conn = 1\n{}", options("")));
    let _only = talk.client();
    admin(&talk);
}
