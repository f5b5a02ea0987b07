//! Side connections: what is said on them, when they end, and what becomes of a server that one
//! holds.

use std::time::Duration;

use refrain_echo::parts::Greeting;
use refrain_pool::event::Command;

use crate::cancel::{cancel, client};
use crate::harness::{ClientId, Connects, ServerId, World};

/// Makes a world in which each client waits for its greeting until Refrain has asked the host.
fn world_with_probes() -> World {
    let mut world = World::new("");
    world.greets(Greeting::Probed);
    world
}

/// Makes a world of one server at which a cancel request takes several lines, with two clients. The
/// first has a request under way, for which a cancel request has come, and the second waits.
fn world_with_a_kill() -> (World, [ClientId; 2], [ServerId; 2]) {
    let mut world = World::new("cancel_timeout = \"1s\"\n[pool]\npool_size = 1\n");
    world.engine(0).core_state.protocol.kills = true;
    let (anna, line) = client(&mut world, 0);
    let bob = world.client();
    world.servers_answer = false;
    world.says(anna, "slow");
    world.says(bob, "mine");
    let server = world.servers()[0];
    world.server_heard(server);
    cancel(&mut world, 0, &line);
    let side = world.last_server();
    world.server_says(server, "slow\n");
    assert_eq!((world.heard(anna).as_str(), world.server_heard(server).as_str()), ("slow\n", ""));
    (world, [anna, bob], [server, side])
}

#[test]
fn several_things_are_said_in_both_directions() {
    let mut world = world_with_probes();
    let anna = world.silent_client(0);
    let side = world.last_server();
    assert_eq!((world.heard(anna).as_str(), world.server_heard(side).as_str()), ("", ""));
    world.server_says(side, "ho");
    assert_eq!(world.server_heard(side), "");
    world.server_says(side, "st\n");
    assert_eq!(world.server_heard(side), "sure\nquit\n");
    assert_eq!((world.heard(anna).as_str(), world.is_up(side)), ("hello 0\n", false));
    world.says(anna, "shop app");
    assert!(world.heard(anna).starts_with("welcome"));
    assert!(world.side_ends(0).is_empty(), "the protocol has ended it");
}

#[test]
fn one_that_gets_no_answer_is_over_at_its_deadline() {
    let mut world = world_with_probes();
    let anna = world.silent_client(0);
    let side = world.last_server();
    world.pass(Duration::from_millis(2_900));
    assert!(world.is_up(side));
    world.pass(Duration::from_millis(100));
    assert!(!world.is_up(side));
    assert_eq!(world.heard(anna), "error server_down 0\n");
    assert_eq!(world.side_ends(0), ["Late"]);
}

#[test]
fn a_host_that_cannot_be_reached_ends_one() {
    let mut world = world_with_probes();
    world.connects = Connects::Never;
    let anna = world.silent_client(0);
    assert_eq!(world.heard(anna), "error server_down 0\n");
    assert_eq!(world.side_ends(0), ["Failed(\"refused\")"]);
    assert!(world.servers().is_empty());
}

#[test]
fn a_host_that_hangs_up_ends_one() {
    let mut world = world_with_probes();
    let anna = world.silent_client(0);
    world.server_leaves(world.last_server());
    assert_eq!(world.heard(anna), "error server_down 0\n");
    assert_eq!(world.side_ends(0), ["Closed"]);
}

#[test]
fn a_host_that_says_too_much_ends_one() {
    let mut world = world_with_probes();
    world.silent_client(0);
    let side = world.last_server();
    world.server_says(side, &"x".repeat(64 * 1024));
    assert!(world.is_up(side));
    world.server_says(side, "x");
    assert!(!world.is_up(side));
    assert_eq!(world.side_ends(0), ["Failed(\"too many bytes came\")"]);
}

#[test]
fn their_number_is_limited() {
    let mut world = world_with_probes();
    let clients = [0; 17].map(|core| world.silent_client(core));
    assert_eq!(world.connects(), 16);
    assert_eq!(world.heard(clients[16]), "error too_many_clients 0\n");
    world.server_leaves(world.last_server());
    world.silent_client(0);
    assert_eq!(world.connects(), 17);
}

#[test]
fn a_stop_ends_those_that_are_open() {
    let mut world = world_with_probes();
    world.silent_client(0);
    world.command(&Command::Stop);
    assert_eq!(world.side_ends(0), ["Stopped"]);
    assert!(world.servers().is_empty());
}

#[test]
fn a_server_is_held_until_the_last_thing_is_said() {
    let (mut world, [_, bob], [server, side]) = world_with_a_kill();
    assert_eq!(world.server_heard(side), "login\n");
    world.server_says(side, "login\n");
    assert_eq!(world.server_heard(side), "cancel 100 secret\n");
    assert_eq!(world.server_heard(server), "", "bob has to wait");
    world.server_says(side, "done\n");
    assert_eq!(world.server_heard(side), "quit\n");
    assert_eq!(world.server_heard(server), "mine\n");
    world.server_says(server, "mine\n");
    assert_eq!(world.heard(bob), "mine\n");
    assert!(world.is_up(server) && !world.is_up(side) && world.side_ends(0).is_empty());
}

#[test]
fn a_server_is_not_used_again_if_nobody_knows_what_became_of_the_cancel() {
    let (mut world, [_, bob], [server, side]) = world_with_a_kill();
    world.server_leaves(side);
    assert_eq!(world.side_ends(0), ["Closed"]);
    assert!(!world.is_up(server));
    world.all_answer();
    assert_eq!(world.heard(bob), "mine\n", "another server answers");
}

#[test]
fn a_server_is_not_used_again_if_the_cancel_comes_to_no_end() {
    let (mut world, [_, bob], [server, side]) = world_with_a_kill();
    world.server_says(side, "login\n");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.side_ends(0), ["Late"]);
    assert!(!world.is_up(server) && !world.is_up(side));
    world.all_answer();
    assert_eq!(world.heard(bob), "mine\n", "another server answers");
}

#[test]
fn one_outlives_the_server_that_it_holds() {
    let (mut world, _, [server, side]) = world_with_a_kill();
    world.server_leaves(server);
    assert!(world.is_up(side));
    world.server_says(side, "login\ndone\n");
    assert!(!world.is_up(side));
}
