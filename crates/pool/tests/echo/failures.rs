//! Failures: servers that are lost, cannot be reached or break the protocol.

use std::time::Duration;

use refrain_pool::event::Command;
use refrain_pool::inbox::Rest;

use crate::harness::{Connects, World};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_lost_server_ends_its_clients_session() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.server_leaves(world.last_server());
    assert_eq!(world.heard(anna), "begin\nerror server_gone\n");
    assert!(!world.is_there(anna));
    // There is room for a new server.
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.connects(), 2);
    assert!(world.logged().contains(&"server_gone"));
}

#[test]
fn a_lost_idle_server_is_nobodys_loss() {
    let mut world = World::new("");
    let anna = world.client();
    world.server_leaves(world.last_server());
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.connects(), 2);
}

#[test]
fn a_server_that_says_what_nobody_asked_is_dropped() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    let server = world.last_server();
    world.server_says(server, "what?\n");
    assert_eq!(world.heard(anna), "begin\nerror server_protocol\n");
    assert!(!world.is_up(server) && !world.is_there(anna));
}

#[test]
fn a_client_amid_a_message_gets_no_error() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    let server = world.last_server();
    world.server_part(server).inbox.expect(5, Rest::On);
    world.server_leaves(server);
    assert_eq!(world.heard(anna), "begin\n");
    assert!(!world.is_there(anna));
}

#[test]
fn a_server_amid_a_message_of_a_client_that_has_left_is_closed() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    let server = world.last_server();
    world.client_part(anna).inbox.expect(5, Rest::On);
    world.breaks(anna);
    assert!(!world.is_up(server));
}

#[test]
fn a_client_is_told_that_no_server_can_be_reached() {
    let mut world = World::new("");
    world.connects = Connects::Never;
    let anna = world.client();
    assert_eq!(world.heard(anna), "error server_down\n");
    assert_eq!(world.counters(0).server_login_failures, 1);
    assert!(world.notes.iter().any(|note| note.detail.ends_with(": refused")));
}

#[test]
fn a_failed_connect_is_tried_again_after_a_while() {
    let mut world = World::new("server_login_retry = \"1s\"");
    world.connects = Connects::Never;
    let _ = world.client();
    let bob = world.client();
    assert_eq!(world.connects(), 1);
    world.connects = Connects::AtOnce;
    world.pass(SECOND - Duration::from_millis(100));
    assert_eq!(world.connects(), 1);
    world.pass(Duration::from_millis(100));
    assert!(world.heard(bob).starts_with("welcome"));
}

#[test]
fn clients_wait_for_a_server_if_they_may() {
    let options = "server_login_retry = \"1s\"\nserver_unavailable = \"wait\"";
    let mut world = World::new(options);
    let anna = world.client();
    world.connects = Connects::Never;
    let server = world.last_server();
    world.server_leaves(server);
    world.says(anna, "mine");
    let bob = world.client();
    world.pass(SECOND * 3);
    assert!(world.counters(0).server_login_failures > 1);
    assert!(world.is_there(anna) && world.is_there(bob));
    world.connects = Connects::AtOnce;
    world.pass(SECOND);
    assert!(world.heard(anna).ends_with("mine\n"));
    assert!(world.heard(bob).starts_with("welcome"));
}

#[test]
fn a_failed_connect_does_no_harm_while_another_server_is_there() {
    let mut world = World::new("pool_size = 2");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.connects = Connects::Never;
    world.says(bob, "mine");
    assert!(world.is_there(bob));
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "mine\n");
}

#[test]
fn a_login_that_the_server_refuses_fails() {
    let mut world = World::new("");
    world.servers_answer = false;
    let anna = world.client();
    world.server_says(world.last_server(), "go away\n");
    assert_eq!(world.heard(anna), "error server_down\n");
    assert!(world.servers().is_empty());
}

#[test]
fn a_server_that_leaves_during_its_login_has_failed() {
    let mut world = World::new("");
    world.servers_answer = false;
    let anna = world.client();
    world.server_leaves(world.last_server());
    assert_eq!(world.heard(anna), "error server_down\n");
    assert_eq!(world.pool(0).connecting(), 0);
}

#[test]
fn a_server_is_connected_though_its_client_has_left_meanwhile() {
    let mut world = World::new("");
    world.connects = Connects::Later;
    let anna = world.client();
    world.breaks(anna);
    world.connects_now(world.last_server());
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn no_more_servers_are_connected_at_a_time_than_wait() {
    let mut world = World::new("pool_size = 20");
    let clients: Vec<_> = (0..12).map(|_| world.client()).collect();
    world.connects = Connects::Later;
    world.says(clients[0], "begin");
    world.says(clients[1], "begin");
    world.says(clients[2], "begin");
    assert_eq!(world.connects(), 1 + 2);
    clients[3..].iter().for_each(|client| world.says(*client, "begin"));
    assert_eq!(world.connects(), 1 + 8);
}

#[test]
fn a_client_that_has_ended_its_stream_gets_its_replies() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.sends(bob, "one\ntwo\n");
    world.ends_stream(bob);
    assert!(world.is_there(bob));
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "one\ntwo\n");
    assert!(!world.is_there(bob));
}

#[test]
fn a_client_that_leaves_while_it_waits_is_forgotten() {
    let mut world = World::new("pool_size = 1");
    let [anna, bob, carl] = [world.client(), world.client(), world.client()];
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.says(carl, "mine");
    world.breaks(bob);
    world.says(anna, "commit");
    assert_eq!(world.heard(carl), "mine\n");
}

#[test]
fn a_client_that_leaves_during_its_login_is_forgotten() {
    let mut world = World::new("");
    let anna = world.silent_client(0);
    world.sends(anna, "sho");
    world.ends_stream(anna);
    assert!(!world.is_there(anna));
    assert_eq!(world.shared.lobby.total(), 0);
}

#[test]
fn a_lost_server_is_replaced_for_those_who_wait() {
    let mut world = World::new("pool_size = 20");
    let clients: Vec<_> = (0..10).map(|_| world.client()).collect();
    world.says(clients[0], "begin");
    let first = world.last_server();
    world.connects = Connects::Later;
    clients[1..].iter().for_each(|client| world.says(*client, "begin"));
    assert_eq!(world.connects(), 1 + 8);
    world.connects_now(world.last_server());
    assert_eq!(world.connects(), 1 + 8, "no server is refused, and none is connected");
    world.server_leaves(first);
    assert_eq!(world.connects(), 1 + 9);
}

#[test]
fn a_client_that_waits_is_told_that_no_server_can_be_reached() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.server_leaves(world.last_server());
    world.connects = Connects::Later;
    world.says(anna, "one");
    world.says(bob, "two");
    world.server_leaves(world.last_server());
    assert_eq!(world.heard(anna), "error server_down\n");
    assert_eq!(world.heard(bob), "error server_down\n");
    assert!(!world.is_there(anna) && !world.is_there(bob));
}

#[test]
fn a_client_that_is_killed_amid_a_message_gets_no_error() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    world.servers_answer = false;
    world.server_part(world.last_server()).inbox.expect(5, Rest::On);
    let serial = world.client_part(anna).serial();
    world.command(&Command::KillClient(serial));
    assert_eq!(world.heard(anna), "begin\n");
    assert!(!world.is_there(anna));
}

#[test]
fn a_peer_that_leaves_without_reading_its_error_is_given_up() {
    let mut world = World::new("");
    let [anna, bob] = [world.silent_client(0), world.silent_client(0)];
    for client in [anna, bob] {
        world.stops_reading(client);
        world.says(client, "nonsense");
        assert!(world.is_there(client), "the error is on its way");
    }
    world.breaks(anna);
    assert!(!world.is_there(anna) && world.is_there(bob));
    // One that stays is closed after a while, though nothing else is there to look after.
    world.pass(6 * SECOND);
    assert!(!world.is_there(bob));
}
