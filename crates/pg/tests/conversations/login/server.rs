//! Refrain logs in to servers.

use std::time::Duration;

use crate::talk::*;

/// Returns a client that waits for the first server, and the connection to that server.
fn waiting(options: String) -> (Conversation, Party, Party) {
    let talk = Conversation::new(options).by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(0, b"")]);
    let server = talk.connection(1);
    (talk, alice, server)
}

fn with_password() -> String {
    "auth = \"trust\"\n[databases.d]\nurl = \"postgres://app:secret@127.0.0.1:1/real\"\n".to_owned()
}

#[test]
fn the_startup_packet_has_the_user_the_database_and_the_parameters_of_the_options() {
    let options = "auth = \"trust\"\n[databases.d]\n\
        url = \"postgres://app:x@127.0.0.1:1/real\"\napplication_name = \"refrain\"\n\
        parameters = { search_path = \"app\" }\n";
    let (_talk, alice, server) = waiting(options.to_owned());
    assert_eq!(server.host(), "127.0.0.1:1");
    server.accepts();
    server.gets_bytes(
        &startup(
            0,
            &[
                ("user", "app"),
                ("database", "real"),
                ("application_name", "refrain"),
                ("search_path", "app"),
            ],
        )
        .bytes,
    );
    server.greets(1);
    alice.is_let_in();
}

#[test]
fn a_server_that_asks_for_a_password_gets_it() {
    let (_talk, alice, server) = waiting(with_password());
    server.accepts().forgets();
    server.sends([authentication(3, b"")]);
    server.gets([password(b"secret\0")]);
    server.greets(1);
    alice.is_let_in();
}

#[test]
fn a_server_that_cannot_be_reached_fails_the_clients_that_wait() {
    let (talk, alice, server) = waiting(with_password());
    server.fails("127.0.0.1:1: connection refused");
    alice.gets([fatal("57P03", "could not connect to server")]);
    assert!(alice.is_closed());
    let log = talk.log();
    assert!(log.contains(&("server_down", "127.0.0.1:1: connection refused".to_owned())));
}

#[test]
fn clients_may_wait_until_a_server_is_there_again() {
    let (talk, alice, server) = waiting(options("server_unavailable = \"wait\""));
    server.fails("connection refused");
    talk.waits(Duration::from_millis(1200));
    let starting = "the database system is starting up";
    let server = talk.connection(2);
    server.accepts().forgets();
    server.sends([fatal("57P03", starting)]);
    talk.waits(Duration::from_millis(1200));
    alice.gets([]);
    let server = talk.connection(3);
    server.accepts().forgets();
    server.greets(1);
    alice.is_let_in();
    // The same with a request instead of a login.
    server.breaks();
    alice.sends([query("select 1")]);
    talk.connection(4).fails("connection refused");
    talk.waits(Duration::from_millis(1200));
    alice.gets([]);
    let server = talk.connection(5);
    server.accepts().forgets();
    server.greets(2);
    server.gets([query("select 1")]);
}

#[test]
fn what_time_does_not_mend_is_told_to_clients_that_wait() {
    let (talk, alice, server) = waiting(options("server_unavailable = \"wait\""));
    server.fails("connection refused");
    talk.waits(Duration::from_millis(1200));
    let (server, words) = (talk.connection(2), "database \"real\" does not exist");
    server.accepts().forgets();
    server.sends([fatal("3D000", words)]);
    alice.gets([fatal("3D000", words)]);
    assert!(alice.is_closed());
}

#[test]
fn a_client_waits_no_longer_than_it_may() {
    let text = "server_unavailable = \"wait\"\nquery_wait_timeout = \"3s\"";
    let (talk, alice, server) = waiting(options(text));
    server.fails("connection refused");
    talk.waits(Duration::from_millis(1200));
    talk.connection(2).fails("connection refused");
    alice.gets([]);
    talk.waits(Duration::from_millis(2000));
    alice.gets([fatal("08P01", "query_wait_timeout")]);
    assert!(alice.is_closed());
}

#[test]
fn a_servers_error_is_passed_on() {
    for (sqlstate, words) in [
        ("3D000", "database \"real\" does not exist"),
        ("28P01", "password authentication failed for user \"app\""),
    ] {
        let (_talk, alice, server) = waiting(with_password());
        server.accepts().forgets();
        server.sends([fatal(sqlstate, words)]);
        alice.gets([fatal(sqlstate, words)]);
        assert!(alice.is_closed() && server.is_closed());
    }
}

/// The error of a server that refuses the password.
fn refusal() -> Line {
    fatal("28P01", "password authentication failed for user \"app\"")
}

/// A client logs in, and is refused at once as the server has refused the password before.
fn is_refused_at_once(talk: &Conversation) {
    let client = talk.newcomer();
    client.asks_to_log_in(&[]);
    client.gets([authentication(0, b""), refusal()]);
    assert!(client.is_closed());
}

/// A client logs in, for which a server is connected; that one refuses the password.
fn is_refused_by(talk: &Conversation, server: usize) {
    let client = talk.newcomer();
    client.asks_to_log_in(&[]);
    client.gets([authentication(0, b"")]);
    talk.connection(server).accepts().forgets();
    talk.connection(server).sends([refusal()]);
    client.gets([refusal()]);
    assert!(client.is_closed());
}

#[test]
fn a_refused_password_is_told_at_once_and_tried_again_ever_later() {
    let talk = Conversation::new(with_password()).by_hand();
    for (server, seconds) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        is_refused_by(&talk, server + 1);
        is_refused_at_once(&talk);
        talk.waits(Duration::from_secs(seconds) - Duration::from_millis(100));
        is_refused_at_once(&talk);
        assert_eq!(talk.connections(), server + 1);
        talk.waits(Duration::from_millis(100));
    }
    // A login that succeeds forgets the delay.
    let client = talk.newcomer();
    client.asks_to_log_in(&[]);
    client.gets([authentication(0, b"")]);
    talk.connection(9).accepts().forgets();
    talk.connection(9).greets(1);
    client.is_let_in();
    talk.connection(9).breaks();
    client.sends([query("select 1")]);
    talk.connection(10).accepts().forgets();
    talk.connection(10).sends([refusal()]);
    client.gets([refusal()]);
    talk.waits(Duration::from_secs(1));
    is_refused_by(&talk, 11);
}

#[test]
fn another_password_is_tried_at_once() {
    let talk = Conversation::new(with_password()).by_hand();
    is_refused_by(&talk, 1);
    is_refused_at_once(&talk);
    talk.reloads(&with_password().replace("secret", "other"));
    is_refused_by(&talk, 2);
    is_refused_at_once(&talk);
}

#[test]
fn after_a_failure_the_next_attempt_comes_after_a_while() {
    let (talk, alice, server) = waiting(options(""));
    server.fails("connection refused");
    alice.forgets();
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    bob.gets([authentication(0, b"")]);
    assert_eq!(talk.connections(), 1, "not at once");
    talk.waits(Duration::from_millis(1200));
    assert_eq!(talk.connections(), 2);
    talk.connection(2).accepts().forgets();
    talk.connection(2).greets(1);
    bob.is_let_in();
}

#[test]
fn a_server_that_speaks_out_of_turn_is_dropped() {
    for said in [row(&["1"]), raw(b"R\0\0\0\x05x"), raw(b"S\0\x10\0\0"), ready()] {
        let (_talk, alice, server) = waiting(options(""));
        server.accepts().forgets();
        server.sends([said]);
        alice.gets([fatal("08006", "server login failed")]);
        assert!(server.is_closed());
    }
}

#[test]
fn a_login_that_arrives_byte_by_byte_is_the_same_login() {
    let (_talk, alice, server) = waiting(options(""));
    server.accepts().forgets();
    let greeting = [authentication(0, b""), notice("hello"), parameter("TimeZone", "UTC")];
    server.sends_byte_by_byte(greeting.into_iter().chain([backend_key(1, b"key!"), ready()]));
    alice.is_let_in();
}
