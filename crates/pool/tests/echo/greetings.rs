//! A protocol that speaks first: Refrain greets its clients before they say anything.

use crate::harness::{ClientId, World};
use crate::login;
use crate::parts::Greeting;

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
    assert_eq!(world.heard(anna), "hello\n");
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
    assert_eq!(world.heard(anna), "hello\n");
}

#[test]
fn who_makes_way_for_another_does_so_for_one_that_is_greeted() {
    let mut world = World::new("max_login_conn = 1\n[pool]\n");
    world.greets(Greeting::AtOnce);
    let (anna, bob) = (world.silent_client(0), world.silent_client(0));
    assert_eq!((world.is_there(anna), world.is_there(bob)), (false, true));
    assert_eq!(world.heard(bob), "hello\n");
}
