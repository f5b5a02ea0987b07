//! Clients that move between cores.

use std::time::Duration;

use refrain_pool::event::Command;
use refrain_pool::{Core, Event};

use crate::cancel::{cancel, client};
use crate::harness::World;

/// Gives clients of the first core to the second, at most so many.
fn give(world: &mut World, most: usize) {
    world.event(0, Event::GiveClients { to: Core(1), most });
    world.settle();
}

#[test]
fn a_client_that_has_moved_is_served_by_its_new_core() {
    let mut world = World::of_cores(2, "");
    let anna = world.client_at(0);
    assert_eq!(world.asks(anna, "one"), "one\n");
    give(&mut world, 1);
    assert_eq!((world.engine(0).client_count(), world.engine(1).client_count()), (0, 1));
    assert_eq!(world.asks(anna, "two"), "two\n");
    assert_eq!(world.counters(0).client_moves, 1);
    assert_eq!(world.counters(1).server_assignments, 1);
    world.breaks(anna);
    assert_eq!(world.engine(1).client_count(), 0);
}

#[test]
fn no_more_clients_move_than_are_wanted() {
    let mut world = World::of_cores(2, "");
    let clients = [0; 4].map(|core| world.client_at(core));
    give(&mut world, 3);
    assert_eq!((world.engine(0).client_count(), world.engine(1).client_count()), (1, 3));
    give(&mut world, 3);
    assert_eq!(world.engine(1).client_count(), 4);
    clients.into_iter().for_each(|client| assert_eq!(world.asks(client, "x"), "x\n"));
}

#[test]
fn a_client_with_something_under_way_stays() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let [anna, bob, carl, dora] = [0; 4].map(|core| world.client_at(core));
    world.says(anna, "begin");
    world.says(bob, "waits");
    world.sends(carl, "half a line");
    world.stops_reading(dora);
    give(&mut world, 9);
    assert_eq!(world.engine(1).client_count(), 1, "the one that does nothing");
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "waits\n");
    world.sends(carl, "\n");
    give(&mut world, 9);
    assert_eq!(world.engine(1).client_count(), 4);
}

#[test]
fn a_client_that_did_nothing_lately_stays() {
    let mut world = World::of_cores(2, "");
    let [_idle, busy] = [0; 2].map(|core| world.client_at(core));
    world.pass(Duration::from_secs(2));
    world.asks(busy, "x");
    let now = world.now;
    assert_eq!(world.engine(0).active_clients(now), 1);
    give(&mut world, 9);
    assert_eq!((world.engine(0).client_count(), world.engine(1).client_count()), (1, 1));
}

#[test]
fn a_cancel_request_finds_a_client_that_has_moved() {
    let mut world = World::of_cores(2, "");
    let (anna, line) = client(&mut world, 0);
    give(&mut world, 1);
    world.asks(anna, "here");
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line);
    assert_eq!(world.counters(1).cancels, 1);
    world.breaks(anna);
    cancel(&mut world, 1, &line);
    assert_eq!(world.counters(1).cancels, 1);
}

#[test]
fn a_cancel_request_counts_once_for_a_client_that_has_come_back_to_its_place() {
    let mut world = World::of_cores(2, "");
    let (anna, line) = client(&mut world, 0);
    give(&mut world, 1);
    world.event(1, Event::GiveClients { to: Core(0), most: 1 });
    world.settle();
    assert_eq!((world.engine(0).client_count(), world.engine(1).client_count()), (1, 0));
    world.asks(anna, "here");
    world.servers_answer = false;
    world.says(anna, "slow");
    cancel(&mut world, 0, &line);
    assert_eq!(world.counters(0).cancels, 1, "a second one could hit what she asks next");
}

#[test]
fn a_client_that_arrives_in_a_shutdown_leaves() {
    let mut world = World::of_cores(2, "");
    let anna = world.client_at(0);
    world.event(0, Event::GiveClients { to: Core(1), most: 1 });
    world.command(&Command::Drain);
    assert!(!world.is_there(anna));
    assert!(world.engine(0).is_drained() && world.engine(1).is_drained());
}

#[test]
fn a_kill_reaches_a_client_on_the_way() {
    let mut world = World::of_cores(2, "");
    let anna = world.client_at(0);
    world.event(0, Event::GiveClients { to: Core(1), most: 1 });
    world.shared.kill(None);
    world.command(&Command::Kill(None));
    assert!(!world.is_there(anna));
    world.command(&Command::Resume(None));
    world.shared.set_paused(None, false);
    let bob = world.client_at(0);
    give(&mut world, 1);
    assert_eq!(world.asks(bob, "later"), "later\n", "who came later is not killed");
}

#[test]
fn one_client_can_be_killed_on_the_way() {
    let mut world = World::of_cores(2, "");
    let [anna, bob] = [0; 2].map(|core| world.client_at(core));
    let serial = world.client_part(anna).serial();
    world.event(0, Event::GiveClients { to: Core(1), most: 2 });
    world.command(&Command::KillClient(serial));
    assert!(!world.is_there(anna) && world.is_there(bob));
}

#[test]
fn a_client_can_be_killed_that_has_left_before_the_command_and_come_behind_it() {
    let mut world = World::of_cores(2, "");
    let anna = world.client_at(0);
    let serial = world.client_part(anna).serial();
    world.event(1, Event::Command(Command::KillClient(serial)));
    give(&mut world, 1);
    assert!(world.is_there(anna));
    world.event(0, Event::Command(Command::KillClient(serial)));
    world.settle();
    assert!(!world.is_there(anna));
}
