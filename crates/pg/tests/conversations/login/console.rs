//! Logins to the admin console.

use refrain_pool::ids::Peer;

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

/// Connects a client over a Unix socket, from a process of the same user of the operating system or
/// of another, which asks for a database.
fn calls(talk: &Conversation, is_own: bool, user: &str, database: &str) -> Party {
    let client = talk.newcomer_from(0, Peer::Unix { uid: Some(7), is_own, name: None });
    client.sends([startup(0, &[("user", user), ("database", database)])]);
    client
}

#[test]
fn the_user_that_the_program_runs_as_needs_no_password() {
    let options = "auth = \"scram\"\nadmin_users = [\"u\"]\n[users.u]\n\
                   password = \"secret\"\n[databases.d]\nhost = \"127.0.0.1\"\n";
    let talk = Conversation::new(options.to_owned());
    for name in ["pgbouncer", "refrain"] {
        let owner = calls(&talk, true, "pgbouncer", name);
        assert_eq!(owner.forgets().last(), Some(&ready()));
        owner.sends([query("RELOAD")]);
        let question = talk.question();
        assert!(question.admin);
        talk.answers(&question, &[complete("RELOAD")]);
        owner.gets([complete("RELOAD"), ready()]);
    }
    // Others authenticate themselves: another name, another database, another user of the system,
    // a client over TCP.
    let others = [
        calls(&talk, true, "u", "pgbouncer"),
        calls(&talk, true, "pgbouncer", "d"),
        calls(&talk, false, "pgbouncer", "pgbouncer"),
        knocks(&talk, "pgbouncer"),
    ];
    for other in others {
        other.gets([authentication(10, b"SCRAM-SHA-256\0\0")]);
    }
}
