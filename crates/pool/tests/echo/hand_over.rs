//! Hand-overs: a core whose client waits gets an idle server of another core.

use std::time::Duration;

use refrain_pool::message::CoreMessage;
use refrain_pool::{Core, Event};

use crate::harness::World;

#[test]
fn an_idle_server_goes_to_the_core_whose_client_waits() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (_anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    assert_eq!(world.core_of(server), 0);
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!((world.core_of(server), world.connects()), (1, 1));
    assert_eq!(world.counters(0).handovers, 1);
    assert_eq!((world.pool(0).servers(), world.pool(1).servers()), (0, 1));
}

#[test]
fn a_core_that_asked_gets_the_server_once_it_is_free() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    assert_eq!(world.asks(bob, "mine"), "");
    assert_eq!(world.pool(0).asking(), 1);
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.pool(0).asking(), 0);
}

#[test]
fn a_client_here_comes_first_unless_the_other_has_waited_longer() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl] = [0, 0, 1].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(carl, "theirs");
    world.now = world.now.after(Duration::from_micros(4_000));
    world.says(bob, "ours");
    world.server_heard(world.last_server());
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("ours\n", "theirs\n"));
    assert_eq!(world.server_heard(world.last_server()), "commit\nours\ntheirs\n");
    assert_eq!(world.core_of(world.last_server()), 1);
}

#[test]
fn a_client_of_another_core_that_has_waited_longer_comes_first() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl] = [0, 0, 1].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(carl, "begin");
    world.now = world.now.after(Duration::from_micros(6_000));
    world.says(bob, "ours");
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("", "begin\n"));
    // The other client's core asks for the server in turn.
    world.pass(Duration::from_millis(100));
    world.says(carl, "commit");
    assert_eq!(world.heard(bob), "ours\n");
}

#[test]
fn a_core_that_waits_no_more_says_so() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.breaks(bob);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.pool(0).asking(), 0);
    world.says(anna, "commit");
    assert_eq!(world.core_of(world.last_server()), 0);
}

#[test]
fn a_server_that_arrives_serves_all_who_wait_there() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl] = [0, 1, 1].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(bob, "begin");
    world.says(carl, "begin");
    world.says(anna, "commit");
    world.says(bob, "commit");
    assert_eq!(world.heard(carl), "begin\n");
    world.says(carl, "commit");
    assert_eq!(world.counters(0).handovers + world.counters(1).handovers, 1);
}

#[test]
fn a_core_asks_again_with_each_tick() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl] = [0, 0, 1].map(|core| world.client_at(core));
    world.says(carl, "begin");
    // The first core asks for the server and gets it, and asks again for the next client.
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.says(carl, "commit");
    world.says(carl, "begin");
    world.pass(Duration::from_millis(100));
    world.says(anna, "commit");
    world.pass(Duration::from_millis(100));
    world.says(carl, "commit");
    assert!(world.heard(bob).ends_with("mine\n"));
}

#[test]
fn a_server_is_handed_over_once_its_output_is_sent() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.says(anna, "begin");
    world.server_stops_reading(server);
    world.says(anna, "commit");
    world.says(bob, "mine");
    // As far as the engine can tell, the server has not read the line to the end.
    world.server_says(server, "commit\n");
    assert_eq!(world.core_of(server), 0);
    world.servers_answer = false;
    world.server_reads_on(server);
    assert_eq!(world.core_of(server), 1);
}

#[test]
fn a_server_that_arrives_after_a_reconnect_is_closed() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.shared.reconnect(None);
    world.says(anna, "commit");
    assert!(!world.is_up(server));
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.connects(), 2);
}

#[test]
fn a_client_is_let_in_when_another_core_reaches_a_server() {
    let mut world = World::of_cores(2, "pool_size = 1");
    world.servers_answer = false;
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    assert_eq!((world.heard(anna).as_str(), world.heard(bob).as_str()), ("", ""));
    world.all_answer();
    assert!(world.heard(anna).starts_with("welcome"));
    assert!(world.heard(bob).starts_with("welcome"));
    assert_eq!(world.connects(), 1);
}

#[test]
fn an_idle_server_stays_until_its_output_is_sent() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.server_stops_reading(server);
    world.says(anna, "one");
    world.server_says(server, "one\n");
    assert_eq!(world.pool(0).idle().len(), 1);
    world.says(bob, "mine");
    assert_eq!(world.core_of(server), 0);
}

#[test]
fn a_server_is_not_handed_over_while_some_of_its_output_is_left() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.server_stops_reading(server);
    world.says(anna, "begin");
    // The first line is on its way, and the second one is queued behind it.
    world.says(anna, "commit");
    world.server_says(server, "begin\ncommit\n");
    world.says(bob, "mine");
    assert_eq!(world.core_of(server), 0);
    world.server_reads_on(server);
    assert_eq!(world.core_of(server), 1);
}

#[test]
fn a_core_whose_next_client_waits_asks_again_when_a_server_arrives() {
    let mut world = World::of_cores(2, "pool_size = 2");
    let [anna, abe, bob, carl] = [0, 0, 1, 1].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(abe, "begin");
    world.says(bob, "begin");
    world.says(carl, "begin");
    world.says(anna, "commit");
    world.says(abe, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("begin\n", "begin\n"));
}

#[test]
fn a_core_that_asked_keeps_its_turn_when_another_of_its_clients_waits() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl, dave] = [0, 0, 1, 1].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(carl, "theirs");
    world.pass(Duration::from_millis(100));
    world.now = world.now.after(Duration::from_micros(4_000));
    world.says(dave, "theirs");
    world.now = world.now.after(Duration::from_micros(3_000));
    world.says(bob, "begin");
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("", "theirs\n"));
}

#[test]
fn a_core_that_waits_asks_again_with_each_tick() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    world.says(bob, "mine");
    // The other core has lost sight of the wish.
    let pool = world.pool_id();
    let message = CoreMessage::GotServer { pool, core: Core(1) };
    world.in_step(0, |step| step.engine.step(step.now, Event::Message(message), step.ports));
    assert_eq!(world.pool(0).asking(), 0);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.pool(0).asking(), 1);
}

#[test]
fn the_output_of_a_server_on_the_way_goes_along() {
    let mut world = World::of_cores(2, "");
    let _ = world.client_at(0);
    let server = world.last_server();
    let (conn, pool) = (world.server_part(server).conn(), world.pool_id());
    world.in_step(0, |step| {
        let message = CoreMessage::WantsServer { pool, core: Core(1), since: step.now };
        step.engine.step(step.now, Event::Message(message), step.ports);
        step.engine.step(step.now, Event::Bytes { conn, bytes: b"what?\n" }, step.ports);
    });
    assert_eq!(world.core_of(server), 1);
    assert!(!world.is_up(server), "it has broken the protocol");
}
