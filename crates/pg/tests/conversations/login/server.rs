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

/// Begins a conversation over two hosts, of which Refrain wants one in this state.
fn two_hosts(wants: &str) -> Conversation {
    let url = format!("postgres://u@127.0.0.1:1,127.0.0.1:2?target_session_attrs={wants}");
    let pool = "[pool]\ntrack_functions = \"off\"\nshare_servers = \"off\"\npool_size = 1\n";
    Conversation::new(format!("auth = \"trust\"\n{pool}[databases.d]\nurl = \"{url}\"\n"))
}

/// Lets Refrain in as a server in this state would.
fn greets_as(talk: &Conversation, server: &Party, pid: u32, standby: &str, read_only: &str) {
    talk.servers_report("in_hot_standby", standby);
    talk.servers_report("default_transaction_read_only", read_only);
    server.accepts().forgets();
    server.greets(pid);
}

#[test]
fn a_server_in_another_state_is_left_for_the_next_host() {
    for (wants, standby, read_only) in [
        ("primary", "on", "off"),
        ("read-write", "on", "off"),
        ("read-write", "off", "on"),
        ("read-only", "off", "off"),
        ("standby", "off", "on"),
        ("prefer-standby", "off", "off"),
    ] {
        let talk = two_hosts(wants).by_hand();
        let alice = talk.newcomer();
        alice.asks_to_log_in(&[]);
        alice.gets([authentication(0, b"")]);
        let first = talk.connection(1);
        assert_eq!(first.host(), "127.0.0.1:1");
        greets_as(&talk, &first, 1, standby, read_only);
        first.gets([terminate()]);
        assert!(first.is_closed(), "{wants}");
        let second = talk.connection(2);
        assert_eq!(second.host(), "127.0.0.1:2");
        let on = |is: bool| if is { "on" } else { "off" };
        let wants_standby = matches!(wants, "read-only" | "standby" | "prefer-standby");
        greets_as(&talk, &second, 2, on(wants_standby), "off");
        alice.is_let_in();
        let log = talk.log();
        assert_eq!(log.iter().filter(|(cause, _)| *cause == "host_unsuited").count(), 1);
    }
}

#[test]
fn a_server_that_does_not_report_its_state_is_asked() {
    let talk = two_hosts("primary").by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(0, b"")]);
    let asked = "SELECT pg_catalog.pg_is_in_recovery(), \
        pg_catalog.current_setting('transaction_read_only')";
    for (number, state) in [(1, ["t", "on"]), (2, ["f", "off"])] {
        let server = talk.connection(number);
        server.accepts().forgets();
        server.greets(7);
        server.gets([query(asked)]);
        let names = columns(&["pg_is_in_recovery", "current_setting"]);
        server.sends([names, row(&state), complete("SELECT 1"), ready()]);
        if number == 1 {
            server.gets([terminate()]);
        }
    }
    alice.is_let_in();
}

#[test]
fn a_preferred_state_is_dispensable_if_no_host_has_it() {
    let talk = two_hosts("prefer-standby").by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(0, b"")]);
    for number in [1, 2] {
        let server = talk.connection(number);
        greets_as(&talk, &server, 1, "off", "off");
        server.gets([terminate()]);
    }
    greets_as(&talk, &talk.connection(3), 1, "off", "off");
    alice.is_let_in();
}

#[test]
fn a_server_that_refuses_to_write_is_not_lent_again() {
    let talk = two_hosts("read-write");
    talk.servers_report("in_hot_standby", "off");
    talk.servers_report("default_transaction_read_only", "off");
    let alice = talk.client();
    let first = talk.server(1);
    assert_eq!(first.host(), "127.0.0.1:1");
    let refused = error("25006", "cannot execute INSERT in a read-only transaction");
    alice.sends([query("insert into t values (1)")]);
    first.gets([query("insert into t values (1)")]);
    // The new server at the same host shows that all sessions are so.
    talk.servers_report("default_transaction_read_only", "on");
    first.sends([refused.clone(), ready()]);
    alice.gets([refused, ready()]);
    first.gets([terminate()]);
    let second = talk.connection(2);
    assert_eq!(second.host(), "127.0.0.1:1");
    second.forgets();
    assert!(second.is_closed());
    talk.servers_report("default_transaction_read_only", "off");
    alice.sends([query("insert into t values (1)")]);
    talk.waits(Duration::from_millis(600));
    let last = talk.connection(talk.connections());
    assert!(!last.is_closed());
    last.gets([query("insert into t values (1)")]);
    last.sends([complete("INSERT 0 1"), ready()]);
    alice.gets([complete("INSERT 0 1"), ready()]);
}

#[test]
fn a_server_that_becomes_a_standby_is_not_lent_again() {
    let talk = two_hosts("primary");
    talk.servers_report("in_hot_standby", "off");
    talk.servers_report("default_transaction_read_only", "off");
    let alice = talk.client();
    let first = talk.server(1);
    alice.sends([query("select 1")]);
    first.gets([query("select 1")]);
    let report = parameter("in_hot_standby", "on");
    let reply = [columns(&["x"]), row(&["1"]), complete("SELECT 1"), report, ready()];
    first.sends(reply.clone());
    alice.gets(reply);
    first.gets([terminate()]);
    alice.sends([query("select 2")]);
    let second = talk.server(2);
    assert_eq!(second.host(), "127.0.0.1:2");
    second.gets([query("select 2")]);
    second.sends([columns(&["x"]), row(&["2"]), complete("SELECT 1"), ready()]);
    alice.gets([columns(&["x"]), row(&["2"]), complete("SELECT 1"), ready()]);
}

#[test]
fn clients_wait_while_no_host_lets_anybody_in() {
    let talk = two_hosts("read-write").by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(0, b"")]);
    talk.connection(1).fails("connection refused");
    let second = talk.connection(2);
    second.accepts().forgets();
    second.sends([fatal("57P03", "the database system is starting up")]);
    talk.waits(Duration::from_millis(200));
    assert_eq!(talk.connections(), 2);
    talk.waits(Duration::from_millis(200));
    assert_eq!(talk.connections(), 3);
    alice.gets([]);
    greets_as(&talk, &talk.connection(3), 1, "off", "off");
    alice.is_let_in();
}

#[test]
fn a_clients_password_takes_the_place_of_a_hash_that_is_its_own_alone() {
    // The MD5 of "secretu" and of "otheru", by md5sum.
    let own = "md514ac701963725e89bfe34a2219d114a2";
    let others = "md5347057efca40093680ce41a052c72007";
    for (hash, is_own) in [(own, true), (others, false)] {
        let talk = Conversation::new(format!(
            "auth = \"password\"\n[users.u]\npassword = \"secret\"\n[databases.d]\n\
             host = \"127.0.0.1\"\nuser = \"u\"\npassword = \"{hash}\"\n"
        ));
        let talk = talk.by_hand();
        let alice = talk.newcomer();
        alice.asks_to_log_in(&[]);
        alice.gets([authentication(3, b"")]).sends([password(b"secret\0")]);
        let server = talk.connection(1);
        server.accepts().forgets();
        // A hash alone does not serve where a server asks for the password.
        server.sends([authentication(3, b"")]);
        match is_own {
            true => assert_eq!(server.take(), [password(b"secret\0")]),
            false => assert!(!server.take().contains(&password(b"secret\0"))),
        }
        alice.forgets();
    }
}
