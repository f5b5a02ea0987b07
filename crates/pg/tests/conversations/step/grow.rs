//! New servers, as far as the limits allow.

use std::time::Duration;

use crate::talk::*;

#[test]
fn a_client_that_waits_has_one_more_server_connected_up_to_the_limit() {
    let talk = two_servers();
    let clients = [talk.client(), talk.client(), talk.client()];
    assert_eq!(talk.connections(), 1, "one server serves all while none of them waits");
    clients[0].opens_block(&talk.server(1));
    clients[1].sends([query("begin")]);
    let begun = [complete("BEGIN"), ready_in_block()];
    talk.server(2).gets([query("begin")]).answers(begun.clone());
    clients[1].gets(begun);
    clients[2].sends([query("select 1")]);
    assert_eq!(talk.connections(), 2);
    clients[0].commits(&talk.server(1));
    talk.server(1).gets([query("select 1")]).answers(one_row());
    clients[2].gets(one_row());
}

#[test]
fn as_many_servers_are_connected_at_once_as_clients_wait() {
    let talk = Conversation::new(options("pool_size = 20"));
    let clients: Vec<_> = (0..12).map(|_| talk.client()).collect();
    let talk = talk.by_hand();
    clients[0].opens_block(&talk.server(1));
    for client in &clients[1..] {
        client.sends([query("select 1")]);
    }
    assert_eq!(talk.connections(), 1 + 8, "no more than eight at the same time");
}

#[test]
fn the_reserve_is_for_clients_that_have_waited() {
    let talk = Conversation::new(options(
        "pool_size = 1\nreserve_pool_size = 1\nreserve_pool_timeout = \"2s\"",
    ));
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    talk.waits(Duration::from_secs(1));
    assert_eq!(talk.connections(), 1);
    talk.waits(Duration::from_millis(1200));
    talk.server(2).gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_database_may_have_a_limit_of_servers_over_all_its_pools() {
    let talk = Conversation::new(
        "auth = \"trust\"\n[databases.d]\nurl = \"postgres://u@127.0.0.1:1\"\nmax_connections = 1\n"
            .to_owned(),
    );
    let (alice, bob) = (talk.client(), talk.newcomer());
    alice.opens_block(&talk.server(1));
    bob.sends([startup(0, &[("user", "bob"), ("database", "d")])]);
    bob.gets([authentication(0, b"")]);
    assert_eq!(talk.connections(), 1, "there is no room for a pool of bob's");
    alice.commits(&talk.server(1));
    alice.sends([terminate()]);
}
