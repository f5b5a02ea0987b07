//! Timeouts, ages and purges, in virtual time.

use std::time::Duration;

use crate::talk::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_query_that_takes_too_long_is_cancelled_and_its_client_told() {
    let talk = Conversation::new(options("pool_size = 1\nquery_timeout = \"2s\""));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    server.gets([query("select pg_sleep(9)")]);
    talk.waits(SECOND);
    alice.gets_nothing();
    talk.waits(SECOND + SECOND / 5);
    alice.gets([fatal("57014", "query timeout")]);
    talk.cancel(1).gets_bytes(&cancel_request(1, b"key!").bytes);
    assert!(alice.is_closed());
}

#[test]
fn a_client_that_waits_too_long_for_a_server_is_told() {
    let talk = Conversation::new(options("pool_size = 1\nquery_wait_timeout = \"2s\""));
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    talk.waits(SECOND);
    bob.gets_nothing();
    talk.waits(SECOND * 2);
    bob.gets([fatal("08P01", "query_wait_timeout")]);
    assert!(bob.is_closed() && !alice.is_closed());
}

#[test]
fn each_kind_of_idleness_has_its_own_timeout_and_error() {
    let block = |alice: &Party, server: &Party| alice.opens_block(server);
    let nothing = |_: &Party, _: &Party| {};
    type Does = fn(&Party, &Party);
    let cases: [(&str, Does, Line); 3] = [
        ("client_idle_timeout", nothing, fatal("57P05", "client idle timeout")),
        (
            "idle_transaction_timeout",
            block,
            fatal("25P03", "terminating connection due to idle-in-transaction timeout"),
        ),
        (
            "transaction_timeout",
            block,
            fatal("25P04", "terminating connection due to transaction timeout"),
        ),
    ];
    for (option, does, told) in cases {
        let talk = Conversation::new(options(&format!("pool_size = 1\n{option} = \"2s\"")));
        let (alice, server) = (talk.client(), talk.server(1));
        does(&alice, &server);
        talk.waits(SECOND);
        alice.gets_nothing();
        talk.waits(SECOND * 2);
        alice.gets([told]);
        assert!(alice.is_closed(), "{option}");
        server.forgets();
    }
}

#[test]
fn timeouts_are_told_in_the_words_that_the_options_choose() {
    let block = |alice: &Party, server: &Party| alice.opens_block(server);
    let nothing = |_: &Party, _: &Party| {};
    let asks = |alice: &Party, _: &Party| {
        alice.sends([query("select 1")]);
    };
    type Does = fn(&Party, &Party);
    let cases: [(&str, Does, &str); 4] = [
        ("client_idle_timeout", nothing, "client_idle_timeout"),
        ("idle_transaction_timeout", block, "idle transaction timeout"),
        ("transaction_timeout", block, "transaction timeout"),
        ("query_timeout", asks, "query timeout"),
    ];
    for (option, does, words) in cases {
        let options = options(&format!("pool_size = 1\n{option} = \"2s\""));
        let talk = Conversation::new(format!("pooler_errors = \"pgbouncer\"\n{options}"));
        let (alice, server) = (talk.client(), talk.server(1));
        does(&alice, &server);
        talk.waits(SECOND * 3);
        alice.gets([fatal("08P01", words)]);
        assert!(alice.is_closed(), "{option}");
        server.forgets();
        if option == "query_timeout" {
            talk.cancel(1).forgets();
        }
    }
}

/// Has a client set its own timeout of idle sessions.
fn sets_idle_timeout(client: &Party, server: &Party, value: &str) {
    let text = format!("set idle_session_timeout = '{value}'");
    client.asks(server, &text, [complete("SET"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[&["idle_session_timeout", value]]));
}

/// The answer of a server that resets the settings that it reports as well.
fn defaults_synced() -> Vec<Line> {
    synced(&["UTF8", "on", "UTC"]).into_iter().collect()
}

fn idle_session() -> Line {
    fatal("57P05", "terminating connection due to idle-session timeout")
}

#[test]
fn a_client_is_idle_for_as_long_as_its_own_settings_say() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    sets_idle_timeout(&alice, &server, "10s");
    bob.sends([query("select 1")]);
    server.gets([query_with("'idle_session_timeout',NULL,false"), query("select 1")]);
    server.answers(defaults_synced()).answers(one_row());
    bob.gets(one_row());
    talk.waits(SECOND * 9);
    alice.gets_nothing();
    talk.waits(SECOND * 5 / 4);
    alice.gets([idle_session()]);
    assert!(alice.is_closed() && !bob.is_closed() && !server.is_closed());
    bob.asks(&server, "select 2", one_row());
}

#[test]
fn a_client_that_waits_for_a_server_or_is_in_a_transaction_is_not_idle() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    sets_idle_timeout(&alice, &server, "2s");
    bob.sends([query("begin")]);
    server.gets([query_with("'idle_session_timeout',NULL,false"), query("begin")]);
    server.answers(defaults_synced()).answers([complete("BEGIN"), ready_in_block()]);
    bob.gets([complete("BEGIN"), ready_in_block()]);
    alice.sends([query("begin")]);
    talk.waits(SECOND * 5);
    bob.asks(&server, "commit", [complete("COMMIT"), ready()]);
    server.gets([query_with("'idle_session_timeout','2s',false"), query("begin")]);
    server.answers(synced(&["2s"])).answers([complete("BEGIN"), ready_in_block()]);
    alice.gets([complete("BEGIN"), ready_in_block()]);
    talk.waits(SECOND * 5);
    alice.asks(&server, "commit", [complete("COMMIT"), ready()]);
    talk.waits(SECOND);
    alice.gets_nothing();
    server.gets([query_with("'idle_session_timeout',NULL,false")]);
}

#[test]
fn a_timeout_that_is_reset_ends_no_client() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    sets_idle_timeout(&alice, &server, "2s");
    let reset = "reset idle_session_timeout";
    alice.sends([query(reset)]);
    server.gets([query_with("'timezone',NULL"), query(reset)]);
    server.answers(defaults_synced()).answers([complete("RESET"), ready()]);
    alice.gets([complete("RESET"), ready()]);
    server.gets(settings_asked()).answers(settings_answer(&[]));
    talk.waits(SECOND * 5);
    alice.gets_nothing();
    assert!(!alice.is_closed());
}

#[test]
fn an_idle_server_does_not_keep_the_timeout_of_its_last_client() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    sets_idle_timeout(&alice, &server, "10s");
    talk.waits(SECOND * 4);
    server.gets_nothing();
    talk.waits(SECOND * 5 / 4);
    server.gets([query_with("pg_catalog.set_config('idle_session_timeout',NULL,false)")]);
    // A client waits for the answer.
    bob.sends([query("select 1")]);
    server.gets_nothing();
    server.answers(synced(&["0"]));
    server.gets([query_with("'timezone',NULL"), query("select 1")]);
    server.answers(defaults_synced()).answers(one_row());
    bob.gets(one_row());
    alice.sends([query("select 1")]);
    server.gets([query_with("'idle_session_timeout','10s',false"), query("select 1")]);
    server.answers(synced(&["10s"])).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn a_server_that_keeps_the_timeout_after_all_is_reset() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    sets_idle_timeout(&alice, &server, "4s");
    talk.waits(SECOND * 5 / 2);
    server.gets([query_with("pg_catalog.set_config('idle_session_timeout',NULL,false)")]);
    server.answers([error("53200", "out of memory"), ready()]);
    server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
    assert!(!server.is_closed() && !alice.is_closed());
}

#[test]
fn a_transaction_that_goes_on_is_not_idle() {
    let talk = Conversation::new(options("pool_size = 1\nidle_transaction_timeout = \"2s\""));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    for _ in 0..5 {
        talk.waits(SECOND);
        let reply = [columns(&["a"]), row(&["1"]), complete("SELECT 1"), ready_in_block()];
        alice.asks(&server, "select 1", reply);
    }
}

#[test]
fn a_peer_that_does_not_log_in_is_closed() {
    let talk = Conversation::new(format!("client_login_timeout = \"2s\"\n{}", options("")));
    let silent = talk.newcomer();
    talk.waits(SECOND * 3);
    silent.gets_nothing();
    assert!(silent.is_closed());
}

#[test]
fn an_unused_server_goes_unless_the_pool_keeps_a_minimum() {
    for (min, stays) in [(0, false), (1, true)] {
        let talk = Conversation::new(options(&format!(
            "pool_size = 2\nserver_idle_timeout = \"2s\"\nmin_pool_size = {min}"
        )));
        let (alice, server) = (talk.client(), talk.server(1));
        alice.asks(&server, "select 1", one_row());
        talk.waits(SECOND * 3);
        assert_eq!(!server.is_closed(), stays);
        assert_eq!(talk.connections(), 1);
    }
}

#[test]
fn a_server_that_is_too_old_goes_when_it_is_free() {
    let talk = Conversation::new(options(
        "pool_size = 1\nserver_lifetime = \"2s\"\nserver_lifetime_jitter = \"0%\"",
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    talk.waits(SECOND * 3);
    assert!(!server.is_closed());
    alice.commits(&server);
    assert!(server.is_closed());
}

#[test]
fn a_server_that_does_not_answer_the_login_is_given_up() {
    let talk = Conversation::new(options("pool_size = 1\nserver_connect_timeout = \"2s\""));
    let talk = talk.by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    talk.waits(SECOND * 3);
    alice.gets([authentication(0, b""), fatal("57P03", "could not connect to server")]);
    assert!(talk.connection(1).is_closed());
}

#[test]
fn a_server_that_does_not_finish_for_a_client_that_left_is_cancelled_and_closed() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(99)")]);
    server.gets([query("select pg_sleep(99)")]);
    alice.breaks();
    talk.waits(SECOND * 4);
    assert!(!server.is_closed());
    talk.waits(SECOND * 2);
    assert!(server.is_closed());
    talk.cancel(1).gets_bytes(&cancel_request(1, b"key!").bytes);
}

#[test]
fn no_tick_is_due_when_nobody_is_there() {
    let talk =
        Conversation::new(options("pool_idle_timeout = \"2s\"\nserver_idle_timeout = \"1s\""));
    assert_eq!(talk.next_tick(), None);
    let alice = talk.client();
    assert!(talk.next_tick().is_some());
    alice.sends([terminate()]);
    talk.waits(SECOND * 5);
    assert_eq!(talk.next_tick(), None);
    assert!(talk.snapshot().pools.is_empty(), "the pool is forgotten");
}

#[test]
fn a_client_that_waits_for_long_gets_a_notice() {
    let talk = Conversation::new(options("pool_size = 1\nquery_wait_notify = \"5s\""));
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select 1")]);
    talk.waits(Duration::from_secs(6));
    let words = "No server connection available in postgres backend, client being queued";
    bob.gets([notice(words)]);
    alice.commits(&server);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}
