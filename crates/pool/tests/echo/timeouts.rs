//! Timeouts and ages: a session or a server that takes too long ends, and at the exact tick.

use std::time::Duration;

use crate::harness::{Connects, World};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

#[test]
fn a_login_may_take_so_long() {
    let mut world = World::new("client_login_timeout = \"1s\"\n[pool]\n");
    let anna = world.silent_client(0);
    world.sends(anna, "shop");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error login_timeout\n");
    assert_eq!(world.shared.lobby.timed_out(), 1);
}

#[test]
fn a_query_may_take_so_long_and_is_cancelled() {
    let mut world = World::new("query_timeout = \"1s\"");
    let anna = world.client();
    world.servers_answer = false;
    world.pass(2 * SECOND);
    world.says(anna, "slow");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error query_timeout\n");
    assert_eq!(world.server_heard(world.last_server()), "cancel 100 secret\n");
}

#[test]
fn each_query_has_its_own_time() {
    let mut world = World::new("query_timeout = \"1s\"");
    let anna = world.client();
    world.servers_answer = false;
    let server = world.last_server();
    world.sends(anna, "one\ntwo\n");
    world.pass(SECOND - TICK);
    world.server_says(server, "one\n");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert!(!world.is_there(anna));
}

#[test]
fn a_query_is_not_given_more_time_by_the_next() {
    let mut world = World::new("query_timeout = \"1s\"");
    let anna = world.client();
    world.servers_answer = false;
    world.says(anna, "one");
    world.pass(SECOND - TICK);
    world.says(anna, "two");
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error query_timeout\n");
}

#[test]
fn a_client_may_wait_so_long_for_a_server() {
    let mut world = World::new("pool_size = 1\nquery_wait_timeout = \"1s\"");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.pass(2 * SECOND);
    world.says(bob, "mine");
    world.pass(SECOND - TICK);
    assert!(world.is_there(bob));
    world.pass(TICK);
    assert_eq!(world.heard(bob), "error query_wait_timeout\n");
    assert!(world.is_there(anna));
}

#[test]
fn a_client_may_wait_so_long_to_be_let_in() {
    let mut world = World::new("query_wait_timeout = \"1s\"");
    world.connects = Connects::Later;
    let anna = world.client();
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error query_wait_timeout\n");
}

#[test]
fn a_client_may_be_idle_so_long() {
    let mut world = World::new("client_idle_timeout = \"1s\"");
    let anna = world.client();
    world.pass(SECOND - TICK);
    assert_eq!(world.asks(anna, "one"), "one\n");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error client_idle_timeout\n");
}

#[test]
fn a_session_with_a_server_may_be_idle_so_long() {
    let mut world = World::new("client_idle_timeout = \"1s\"\npool_mode = \"session\"");
    let anna = world.client();
    world.says(anna, "one");
    world.pass(SECOND);
    assert_eq!(world.heard(anna), "one\nerror client_idle_timeout\n");
}

#[test]
fn a_transaction_may_take_so_long() {
    let mut world = World::new("transaction_timeout = \"1s\"");
    let anna = world.client();
    world.pass(SECOND);
    world.says(anna, "begin");
    world.pass(SECOND - TICK);
    assert_eq!(world.asks(anna, "one"), "begin\none\n");
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error transaction_timeout\n");
}

#[test]
fn a_transaction_may_be_idle_so_long() {
    let mut world = World::new("idle_transaction_timeout = \"1s\"");
    let anna = world.client();
    world.says(anna, "begin");
    world.pass(SECOND - TICK);
    assert_eq!(world.asks(anna, "one"), "begin\none\n");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error idle_transaction_timeout\n");
    // The client's server is rolled back and free.
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_server_may_take_so_long_to_connect() {
    let mut world = World::new("server_connect_timeout = \"1s\"");
    world.connects = Connects::Later;
    let anna = world.client();
    world.pass(SECOND - TICK);
    assert!(world.is_up(world.last_server()));
    world.pass(TICK);
    assert!(!world.is_up(world.last_server()));
    assert_eq!(world.heard(anna), "error server_down\n");
    assert!(world.notes.iter().any(|note| note.detail.ends_with("server_connect_timeout")));
}

#[test]
fn a_server_may_be_idle_so_long() {
    let mut world = World::new("server_idle_timeout = \"1s\"");
    let anna = world.client();
    world.pass(SECOND - TICK);
    world.says(anna, "one");
    world.pass(SECOND - TICK);
    let server = world.last_server();
    assert!(world.is_up(server));
    world.pass(TICK);
    assert!(!world.is_up(server));
    assert!(world.server_heard(server).ends_with("quit\n"));
}

#[test]
fn a_server_may_grow_so_old() {
    let mut world = World::new("server_lifetime = \"10s\"\nserver_lifetime_jitter = \"0%\"");
    let anna = world.client();
    let server = world.last_server();
    world.says(anna, "begin");
    world.pass(11 * SECOND);
    assert!(world.is_up(server), "a client has it");
    world.says(anna, "commit");
    assert!(!world.is_up(server));
    world.says(anna, "one");
    let next = world.last_server();
    world.pass(10 * SECOND - TICK);
    assert!(world.is_up(next));
    world.pass(TICK);
    assert!(!world.is_up(next));
}

#[test]
fn lifetimes_are_shortened_by_chance() {
    let mut world = World::new("server_lifetime = \"10s\"\nserver_lifetime_jitter = \"50%\"");
    let _ = world.client();
    let server = world.last_server();
    // The random byte is 9, of 256.
    world.pass(Duration::from_millis(9_800));
    assert!(world.is_up(server));
    world.pass(TICK);
    assert!(!world.is_up(server));
}

#[test]
fn a_server_may_take_so_long_to_finish_for_a_client_that_has_left() {
    let mut world = World::new("");
    let anna = world.client();
    world.servers_answer = false;
    let server = world.last_server();
    world.says(anna, "slow");
    world.pass(3 * SECOND);
    world.breaks(anna);
    world.pass(5 * SECOND - TICK);
    assert!(world.is_up(server));
    world.pass(TICK);
    assert!(!world.is_up(server));
    assert_eq!(world.server_heard(world.last_server()), "cancel 100 secret\n");
}

#[test]
fn a_client_that_has_ended_its_stream_may_wait_so_long() {
    let mut world = World::new("");
    let anna = world.client();
    world.servers_answer = false;
    world.says(anna, "slow");
    world.ends_stream(anna);
    world.pass(5 * SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert!(!world.is_there(anna));
    assert_eq!(world.counters(0).cancels, 1);
}

#[test]
fn a_pool_that_nobody_uses_is_forgotten() {
    let mut world = World::new("server_idle_timeout = \"1s\"\npool_idle_timeout = \"2s\"");
    let anna = world.client();
    world.breaks(anna);
    world.pass(2 * SECOND);
    assert!(world.shared.find_pool("shop", "app").is_some());
    world.pass(2 * SECOND);
    assert!(world.shared.find_pool("shop", "app").is_none());
    assert_eq!(world.engine(0).core_state.forgotten().pool.pools_forgotten, 1);
    let ports = refrain_pool::Ports::default();
    assert_eq!(world.engine(0).next_tick(&ports), None, "nothing can be due");
}

#[test]
fn a_pool_that_no_core_has_open_is_forgotten_with_the_next_sweep() {
    let mut world = World::new("");
    let _ = world.client();
    assert!(world.shared.pool("bank", "app").is_some());
    world.pass(11 * SECOND);
    assert!(world.shared.find_pool("bank", "app").is_none());
}

#[test]
fn a_client_that_waits_for_long_is_told_once() {
    let mut world = World::new("pool_size = 1\nquery_wait_notify = \"5s\"");
    let (anna, bob, carl) = (world.client(), world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.pass(Duration::from_secs(4));
    world.says(carl, "his");
    assert_eq!(world.heard(bob), "");
    world.pass(Duration::from_secs(2));
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("wait\n", ""));
    world.pass(Duration::from_secs(20));
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("", "wait\n"));
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("mine\n", "his\n"));
    // The next wait is another one.
    world.says(anna, "begin");
    world.says(bob, "again");
    world.pass(Duration::from_secs(6));
    assert_eq!(world.heard(bob), "wait\n");
}
