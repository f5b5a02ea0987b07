//! Cancel requests: they reach the server that works for the client now, and no other client.

use std::time::Duration;

use refrain_pool::event::Command;

use crate::harness::{ClientId, Connects, World};

/// Connects a client and returns it with the line that cancels its requests.
pub(crate) fn client(world: &mut World, core: usize) -> (ClientId, String) {
    let client = world.silent_client(core);
    world.says(client, "shop app");
    let welcome = world.heard(client);
    (client, welcome.replace("welcome", "cancel").trim_end().to_owned())
}

/// Sends a cancel request from a connection of its own.
pub(crate) fn cancel(world: &mut World, core: usize, line: &str) {
    let stranger = world.silent_client(core);
    world.says(stranger, line);
    assert!(!world.is_there(stranger), "the connection is closed without an answer");
}

#[test]
fn a_cancel_request_goes_to_the_server_of_its_client() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line);
    let request = world.last_server();
    assert_eq!(world.server_heard(request), "cancel 100 secret\n");
    assert_eq!(world.counters(0).cancels, 1);
    world.server_leaves(request);
    assert!(!world.is_up(request));
}

#[test]
fn a_wrong_key_cancels_nothing() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line.replace("09090909", "09090908"));
    cancel(&mut world, 0, "cancel 1 0909");
    cancel(&mut world, 0, "cancel 77 09090909");
    assert_eq!(world.connects(), 1);
}

#[test]
fn a_cancel_request_finds_a_client_of_another_core() {
    let mut world = World::of_cores(2, "");
    let (anna, line) = client(&mut world, 1);
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line);
    assert_eq!(world.core_of(world.last_server()), 1);
    assert_eq!(world.connects(), 2);
}

#[test]
fn a_server_that_does_nothing_is_not_cancelled() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    cancel(&mut world, 0, &line);
    world.says(anna, "begin");
    cancel(&mut world, 0, &line);
    assert_eq!(world.connects(), 1);
}

#[test]
fn a_cancel_under_way_does_not_hit_the_next_client() {
    let mut world = World::new("pool_size = 1");
    let (anna, line) = client(&mut world, 0);
    let bob = world.client();
    world.servers_answer = false;
    world.says(anna, "slow");
    world.says(bob, "mine");
    cancel(&mut world, 0, &line);
    let (server, request) = (world.servers()[0], world.last_server());
    world.all_answer();
    assert_eq!((world.heard(anna).as_str(), world.heard(bob).as_str()), ("slow\n", ""));
    world.server_leaves(request);
    assert_eq!(world.heard(bob), "mine\n");
    assert!(world.is_up(server));
}

#[test]
fn the_requests_to_one_server_are_bounded() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    (0..20).for_each(|_| cancel(&mut world, 0, &line));
    assert_eq!(world.connects(), 1 + 8);
}

#[test]
fn a_request_that_takes_too_long_costs_the_server() {
    let mut world = World::new("cancel_timeout = \"1s\"\n[pool]\n");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    world.connects = Connects::Later;
    cancel(&mut world, 0, &line);
    world.pass(Duration::from_millis(900));
    assert!(world.is_up(world.last_server()));
    world.pass(Duration::from_millis(100));
    assert!(!world.is_up(world.last_server()));
    let server = world.servers()[0];
    world.all_answer();
    assert_eq!(world.heard(anna), "slow\n");
    assert!(!world.is_up(server), "the signal may still come");
}

#[test]
fn a_request_that_cannot_be_sent_is_over() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    world.connects = Connects::Never;
    cancel(&mut world, 0, &line);
    assert_eq!(world.servers().len(), 1);
    world.all_answer();
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_stop_gives_up_requests_under_way() {
    let mut world = World::new("");
    let (anna, line) = client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line);
    world.command(&Command::Stop);
    assert!(world.servers().is_empty());
}

#[test]
fn a_client_that_waits_for_a_server_is_cancelled_without_one() {
    let mut world = World::new("pool_size = 1");
    let anna = world.client();
    let (bob, line) = client(&mut world, 0);
    world.says(anna, "begin");
    world.says(bob, "first");
    world.says(bob, "second");
    world.heard(anna);
    cancel(&mut world, 0, &line);
    assert_eq!((world.heard(bob).as_str(), world.connects()), ("cancelled\n", 1));
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "second\n");
}
