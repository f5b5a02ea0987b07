//! A protocol that speaks first: Refrain greets its clients before they say anything. The lines of
//! a client have numbers, and so has the error that ends its session.

use std::time::Duration;

use refrain_echo::login;
use refrain_echo::parts::Greeting;
use refrain_pool::event::Command;

use crate::harness::{ClientId, Connects, World};

/// Greets a client that has waited for it.
fn greet(world: &mut World, client: ClientId) {
    let conn = world.client_part(client).conn();
    world.in_step(0, |step| login::greet(step, conn));
}

#[test]
fn a_client_that_has_said_nothing_is_greeted() {
    let mut world = World::new("");
    world.greets(Greeting::AtOnce);
    let anna = world.silent_client(0);
    assert_eq!(world.heard(anna), "hello 0\n");
    assert!(world.asks(anna, "shop app").starts_with("welcome"));
    assert_eq!(world.asks(anna, "one"), "one\n");
}

#[test]
fn a_greeting_may_come_later() {
    let mut world = World::new("");
    world.greets(Greeting::Later);
    let anna = world.silent_client(0);
    assert_eq!(world.heard(anna), "");
    greet(&mut world, anna);
    assert_eq!(world.heard(anna), "hello 0\n");
}

#[test]
fn who_makes_way_for_another_does_so_for_one_that_is_greeted() {
    let mut world = World::new("max_login_conn = 1\n[pool]\n");
    world.greets(Greeting::AtOnce);
    let (anna, bob) = (world.silent_client(0), world.silent_client(0));
    assert_eq!((world.is_there(anna), world.is_there(bob)), (false, true));
    assert_eq!(world.heard(bob), "hello 0\n");
}

#[test]
fn an_error_has_the_number_of_the_next_line() {
    let mut world = World::new("client_idle_timeout = \"5s\"");
    world.greets(Greeting::AtOnce);
    let [anna, bob, carl] = [0; 3].map(|core| world.silent_client(core));
    for client in [anna, bob] {
        world.says(client, "shop app");
    }
    world.asks(bob, "one");
    world.says(carl, "no names at all");
    assert_eq!(world.heard(carl), "hello 0\nerror client_protocol 1\n");
    world.heard(anna);
    world.heard(bob);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.heard(anna), "error client_idle_timeout 2\n");
    assert_eq!(world.heard(bob), "error client_idle_timeout 3\n");
}

#[test]
fn an_error_may_come_in_place_of_the_greeting() {
    let mut world = World::new("client_login_timeout = \"5s\"\n[pool]\n");
    world.greets(Greeting::Later);
    let anna = world.silent_client(0);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.heard(anna), "error login_timeout 0\n");
    let bob = world.silent_client(0);
    world.command(&Command::Stop);
    assert_eq!(world.heard(bob), "error shutdown 0\n");
}

#[test]
fn clients_that_get_no_server_get_errors_with_their_numbers() {
    let mut world = World::new("");
    world.greets(Greeting::AtOnce);
    world.connects = Connects::Later;
    let (anna, bob) = (world.client(), world.client());
    let line = world.client_part(bob).session.count_line();
    assert_eq!(line, Some(1));
    for client in [anna, bob] {
        world.heard(client);
    }
    world.connect_fails(world.last_server());
    assert_eq!(world.heard(anna), "error server_down 1\n");
    assert_eq!(world.heard(bob), "error server_down 2\n");
}
