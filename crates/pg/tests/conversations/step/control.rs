//! Commands of the operator, and messages from other cores.

use std::time::Duration;

use refrain_pool::event::Command;

use crate::talk::*;

fn shutdown() -> Line {
    fatal("57P01", "terminating connection due to administrator command")
}

#[test]
fn a_paused_pool_lends_nothing_and_closes_each_server_when_its_client_is_done() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    talk.commands(Command::Pause(None));
    bob.sends([query("select 1")]);
    alice.commits(&server);
    assert!(server.is_closed());
    talk.waits(Duration::from_secs(1));
    assert_eq!(talk.connections(), 1, "nothing is connected while paused");
    talk.commands(Command::Resume(None));
    talk.server(2).gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_pause_of_another_database_concerns_nobody_here() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    talk.commands(Command::Pause(Some("other".into())));
    alice.asks(&server, "select 1", one_row());
}

#[test]
fn reconnect_closes_idle_servers_at_once_and_the_others_when_they_are_free() {
    let talk = two_servers();
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.asks_another(&talk, 2, "select 1");
    talk.commands(Command::Reconnect(None));
    assert!(talk.server(2).is_closed() && !talk.server(1).is_closed());
    alice.commits(&talk.server(1));
    assert!(talk.server(1).is_closed());
    bob.asks_another(&talk, 3, "select 1");
}

#[test]
fn kill_ends_all_sessions_of_the_database_and_pauses_it() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    talk.commands(Command::Kill(Some("d".into())));
    alice.gets([shutdown()]);
    bob.gets([shutdown()]);
    assert!(alice.is_closed() && bob.is_closed() && server.is_closed());
    server.forgets();
    let carol = talk.client(); // the settings are known: it may log in
    carol.sends([query("select 1")]);
    assert_eq!(talk.connections(), 1);
}

#[test]
fn one_client_can_be_killed_by_its_number() {
    let talk = one_server();
    let (alice, bob) = (talk.client(), talk.client());
    let first = talk.snapshot().clients[0].serial;
    talk.commands(Command::KillClient(first));
    alice.gets([shutdown()]);
    assert!(alice.is_closed() && !bob.is_closed());
}

#[test]
fn a_reload_that_removes_the_database_lets_a_transaction_end_first() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    talk.reloads("auth = \"trust\"\n[databases.other]\nurl = \"postgres://u@127.0.0.1:1\"\n");
    bob.gets([shutdown()]);
    assert!(bob.is_closed() && !alice.is_closed());
    alice.sends([query("commit")]);
    server.gets([query("commit")]).answers([complete("COMMIT"), ready()]);
    alice.gets([complete("COMMIT"), ready(), shutdown()]);
    assert!(alice.is_closed() && server.is_closed());
}

#[test]
fn a_reload_changes_limits_at_once() {
    let talk = one_server();
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    assert_eq!(talk.connections(), 1);
    talk.reloads(&options("pool_size = 2"));
    talk.waits(Duration::from_millis(200));
    talk.server(2).gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_drain_takes_no_new_clients_and_lets_transactions_end() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    talk.commands(Command::Drain);
    bob.gets([shutdown()]);
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    carol.gets([fatal("57P03", "the database system is shutting down")]);
    assert!(!alice.is_closed() && !talk.is_drained());
    alice.sends([query("commit")]);
    server.gets([query("commit")]).answers([complete("COMMIT"), ready()]);
    alice.gets([complete("COMMIT"), ready(), shutdown()]);
    assert!(talk.is_drained() && server.is_closed());
}

#[test]
fn stop_closes_everything_at_once() {
    let talk = one_server();
    let (alice, newcomer, server) = (talk.client(), talk.newcomer(), talk.server(1));
    alice.opens_block(&server);
    talk.commands(Command::Stop);
    alice.gets([shutdown()]);
    newcomer.gets([shutdown()]);
    server.forgets();
    assert!(alice.is_closed() && newcomer.is_closed() && server.is_closed());
}

#[test]
fn drop_database_has_the_idle_servers_of_every_core_leave_it() {
    let talk = Conversation::on_cores(
        2,
        "auth = \"trust\"\n[databases.d]\nurl = \"postgres://u@127.0.0.1:1/d\"\n\
         [databases.postgres]\nurl = \"postgres://u@127.0.0.1:1/postgres\"\n"
            .to_owned(),
    );
    let (alice, bob) = (talk.client_on(1), talk.newcomer_on(0));
    alice.asks(&talk.server(1), "select 1", one_row());
    bob.sends([startup(0, &[("user", "u"), ("database", "postgres")])]);
    bob.is_let_in();
    bob.sends([query("drop database d")]);
    talk.server(1).gets([terminate()]);
    assert!(talk.server(1).is_closed());
    talk.server(2).gets([query("drop database d")]);
    talk.server(2).answers([complete("DROP DATABASE"), ready()]);
    bob.gets([complete("DROP DATABASE"), ready()]);
}
