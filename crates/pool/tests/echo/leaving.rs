//! Clients that go from one pool to another.

use std::time::Duration;

use refrain_pool::Conn;
use refrain_pool::client::Phase;
use refrain_pool::lobby::Counted;

use crate::harness::{ClientId, World};

/// Takes a client out of its pool, as a protocol does whose clients log in again.
fn leaves(world: &mut World, client: ClientId) -> Conn {
    let conn = world.client_part(client).conn();
    world.in_step(0, |step| {
        step.leave_pool(conn);
        let client = step.engine.connections.client(conn).expect("the client stays");
        client.session.phase = Phase::Login;
    });
    conn
}

/// Moves a client to the pool of a user.
fn moves(world: &mut World, client: ClientId, user: &str) {
    let conn = leaves(world, client);
    world.in_step(0, |step| {
        let shared = step.engine.core_state.shared.clone();
        let pool = shared.pool("shop", user).expect("a pool");
        assert!(step.count_as(conn, Counted::Client), "the client has its place");
        shared.admit_client(&pool, user).expect("room");
        let client = step.engine.connections.client(conn).expect("the client is there");
        client.session.phase = Phase::Entering;
        step.enter(conn, &pool, user);
    });
    world.settle();
}

#[test]
fn a_client_goes_to_another_pool_and_leaves_its_server() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client_of("shop app"), world.client_of("shop app"));
    assert_eq!(world.asks(anna, "begin"), "begin\n");
    assert_eq!(world.asks(bob, "mine"), "", "the only server is lent");
    world.heard(anna);
    moves(&mut world, anna, "other");
    assert_eq!(world.heard(bob), "mine\n", "the transaction was rolled back");
    assert!(world.heard(anna).starts_with("welcome"));
    assert_eq!(world.asks(anna, "two"), "two\n");
    moves(&mut world, anna, "app");
    world.heard(anna);
    assert_eq!(world.asks(anna, "three"), "three\n");
}

#[test]
fn a_client_that_goes_to_another_pool_makes_room() {
    let mut world = World::new("max_client_conn = 1\n[users.app]\nmax_client_connections = 1\n");
    let anna = world.client_of("shop app");
    moves(&mut world, anna, "other");
    assert!(world.heard(anna).starts_with("welcome"));
    moves(&mut world, anna, "app");
    assert!(world.heard(anna).starts_with("welcome"));
}

#[test]
fn a_client_that_logs_in_again_has_as_much_time_as_at_first() {
    let mut world = World::new("client_login_timeout = \"5s\"\n[pool]\n");
    let anna = world.client_of("shop app");
    world.pass(Duration::from_secs(60));
    leaves(&mut world, anna);
    world.pass(Duration::from_secs(4));
    assert!(world.is_there(anna));
    world.pass(Duration::from_secs(2));
    assert_eq!(world.heard(anna), "error login_timeout\n");
    assert!(!world.is_there(anna));
}
