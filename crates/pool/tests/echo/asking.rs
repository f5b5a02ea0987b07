//! Idle servers that are asked whether they are there, before they are lent.

use std::time::Duration;

use crate::harness::{ClientId, ServerId, World};

const PAST: Duration = Duration::from_secs(20);

/// Makes a world in which two clients have used a server each, which are idle since.
fn two_idle() -> (World, [ClientId; 2], [ServerId; 2]) {
    let mut world = World::new("pool_size = 2\nserver_check_delay = \"10s\"");
    let clients = [world.client(), world.client()];
    clients.into_iter().for_each(|client| world.says(client, "begin"));
    let servers = clients.map(|client| world.server_of(client).expect("it has one"));
    clients.into_iter().for_each(|client| {
        world.asks(client, "commit");
    });
    servers.into_iter().for_each(|server| drop(world.server_heard(server)));
    (world, clients, servers)
}

#[test]
fn a_server_that_was_idle_for_long_is_asked_and_lent_once_it_has_answered() {
    let mut world = World::new("server_check_delay = \"10s\"");
    let client = world.client();
    let server = world.last_server();
    world.server_heard(server);
    world.pass(Duration::from_secs(9));
    assert_eq!(world.asks(client, "early"), "early\n");
    assert_eq!(world.server_heard(server), "early\n");
    world.pass(PAST);
    world.servers_answer = false;
    assert_eq!(world.asks(client, "late"), "");
    assert_eq!(world.server_heard(server), "there\n");
    world.all_answer();
    assert_eq!((world.heard(client).as_str(), world.connects()), ("late\n", 1));
}

#[test]
fn no_server_is_asked_by_default() {
    let mut world = World::new("server_idle_timeout = \"never\"");
    let client = world.client();
    world.server_heard(world.last_server());
    world.pass(100 * PAST);
    world.asks(client, "late");
    assert_eq!(world.server_heard(world.last_server()), "late\n");
}

#[test]
fn as_many_servers_are_asked_as_clients_wait() {
    let (mut world, [anna, bob], servers) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    let heard = servers.map(|server| world.server_heard(server));
    assert_eq!(heard.concat(), "there\n", "one of them");
    world.says(bob, "his");
    let heard = servers.map(|server| world.server_heard(server));
    assert_eq!(heard.concat(), "there\n", "the other");
    world.all_answer();
    assert_eq!((world.heard(anna), world.heard(bob)), ("mine\n".to_owned(), "his\n".to_owned()));
    assert_eq!(world.connects(), 2);
}

#[test]
fn where_a_server_gives_no_answer_the_other_idle_ones_go_as_well() {
    let (mut world, [anna, _], servers) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    world.pass(Duration::from_secs(6));
    assert_eq!(servers.map(|server| world.is_up(server)), [false; 2]);
    world.all_answer();
    assert_eq!((world.heard(anna).as_str(), world.connects()), ("mine\n", 3));
}

#[test]
fn a_server_that_leaves_when_it_is_asked_costs_no_client_its_session() {
    let (mut world, [anna, _], [one, other]) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    let asked = if world.server_heard(one).is_empty() { other } else { one };
    world.servers_answer = true;
    world.server_leaves(asked);
    assert_eq!(world.heard(anna), "mine\n");
    assert!(!world.is_up(one) && !world.is_up(other));
}

#[test]
fn a_server_is_asked_before_it_goes_to_another_core() {
    let options = "pool_size = 1\nserver_check_delay = \"10s\"";
    let mut world = World::of_cores(2, options);
    let (_anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.pass(PAST);
    world.server_heard(server);
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!(world.server_heard(server), "there\nmine\n");
    assert_eq!((world.core_of(server), world.connects()), (1, 1));
}
