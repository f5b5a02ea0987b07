//! Back-pressure: a peer that does not read stops the one that feeds it.

use crate::harness::World;

const SMALL: &str = "buffer_high = \"8KiB\"\nbuffer_low = \"1KiB\"\npool_size = 1";

fn line(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[test]
fn a_server_is_not_read_while_its_client_does_not_read() {
    let mut world = World::new(SMALL);
    let anna = world.client();
    world.stops_reading(anna);
    world.says(anna, "begin");
    let server = world.last_server();
    for _ in 0..10 {
        world.says(anna, &line(1000));
    }
    assert!(world.is_server_held_back(server));
    world.reads_on(anna);
    assert!(!world.is_server_held_back(server));
    assert_eq!(world.heard(anna).len(), 6 + 10 * 1001);
}

#[test]
fn a_client_is_not_read_while_its_server_does_not_read() {
    let mut world = World::new(SMALL);
    let anna = world.client();
    let server = world.last_server();
    world.server_stops_reading(server);
    world.says(anna, &line(4000));
    assert!(!world.is_held_back(anna));
    world.says(anna, &line(5000));
    assert!(world.is_held_back(anna));
    world.server_reads_on(server);
    assert!(!world.is_held_back(anna));
    assert_eq!(world.heard(anna).len(), 9002);
}

#[test]
fn a_client_that_waits_is_read_up_to_a_limit() {
    let mut world = World::new(SMALL);
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, &line(64 * 1024 - 1));
    assert!(!world.is_held_back(bob));
    world.says(bob, "more");
    assert!(world.is_held_back(bob));
    world.says(anna, "commit");
    assert!(!world.is_held_back(bob));
    assert_eq!(world.heard(bob).len(), 64 * 1024 + 5);
}

#[test]
fn a_server_that_goes_back_is_read_again() {
    let mut world = World::new(SMALL);
    let (anna, bob) = (world.client(), world.client());
    world.stops_reading(anna);
    world.says(anna, &line(9000));
    let server = world.last_server();
    assert!(!world.is_server_held_back(server), "it has nothing to do with the client any more");
    assert_eq!(world.asks(bob, "mine"), "mine\n");
}

#[test]
fn a_server_whose_client_leaves_is_read_again() {
    let mut world = World::new(SMALL);
    let anna = world.client();
    world.stops_reading(anna);
    world.says(anna, "begin");
    world.says(anna, &line(9000));
    let server = world.last_server();
    assert!(world.is_server_held_back(server));
    world.breaks(anna);
    assert!(!world.is_server_held_back(server));
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_client_is_read_again_once_its_held_input_is_on_its_way() {
    let mut world = World::new("buffer_high = \"1MiB\"\nbuffer_low = \"512KiB\"\npool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    let server = world.last_server();
    world.says(anna, "begin");
    world.server_stops_reading(server);
    world.sends(bob, &format!("begin\n{}\n", line(64 * 1024)));
    assert!(world.is_held_back(bob));
    world.says(anna, "commit");
    world.server_says(server, "commit\n");
    assert!(!world.is_held_back(bob), "little is queued to its server");
}

#[test]
fn a_client_that_did_not_read_is_read_again_once_it_has() {
    let mut world = World::new(SMALL);
    let anna = world.client();
    world.stops_reading(anna);
    world.says(anna, "begin");
    for _ in 0..10 {
        world.says(anna, &line(1000));
    }
    assert!(world.is_held_back(anna));
    world.reads_on(anna);
    assert!(!world.is_held_back(anna));
}
