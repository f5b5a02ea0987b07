//! The work of a tick: it looks at what may be due, and not at everything that exists.

use std::time::Duration;

use refrain_pool::client::Phase;
use refrain_pool::ids::PoolId;

use crate::harness::{ClientId, Connects, World};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Lets ten ticks pass. Returns which of these clients any of the ticks looked at, and how many
/// ticks visited the pool of each of these databases.
fn looks(world: &mut World, clients: &[ClientId], pools: &[&str]) -> (Vec<bool>, Vec<u32>) {
    let id = |pool: &&str| world.shared.find_pool(pool, "app").expect("the pool is there").id;
    let ids: Vec<PoolId> = pools.iter().map(id).collect();
    let ticks = |world: &mut World| -> Vec<u32> {
        let core_state = &world.engine(0).core_state;
        let pool = |id: &PoolId| core_state.peek_pool(*id).expect("the pool is open");
        ids.iter().map(|id| pool(id).protocol.ticks).collect()
    };
    let before = ticks(world);
    for client in clients {
        world.client_part(*client).session.looks.set(0);
    }
    // To check the invariants is to look at everything.
    world.checks = false;
    world.pass(TICK * 10);
    world.checks = true;
    let looked = |client: &ClientId| world.client_part(*client).session.looks.get() > 0;
    let looked = clients.iter().map(looked).collect();
    let visits = ticks(world).iter().zip(before).map(|(after, before)| after - before).collect();
    (looked, visits)
}

#[test]
fn clients_and_pools_that_do_nothing_are_not_looked_at() {
    let mut world = World::new("query_timeout = \"1h\"\nclient_idle_timeout = \"1h\"");
    let idle = world.client_of("one app");
    let busy = world.client_of("two app");
    world.says(busy, "begin");
    world.pass(SECOND);
    let (clients, pools) = ([idle, busy], ["one", "two"]);
    assert_eq!(looks(&mut world, &clients, &pools), (vec![false, true], vec![0, 0]));
    world.says(idle, "hello");
    assert_eq!(looks(&mut world, &clients, &pools), (vec![false, true], vec![1, 0]));
}

#[test]
fn of_the_clients_that_wait_the_first_is_looked_at() {
    let mut world = World::new("pool_size = 1\nquery_wait_timeout = \"1h\"");
    let holder = world.client();
    world.says(holder, "begin");
    let waiting = [world.client(), world.client()];
    waiting.iter().for_each(|client| world.says(*client, "mine"));
    world.pass(SECOND);
    assert_eq!(looks(&mut world, &waiting, &["shop"]), (vec![true, false], vec![10]));
}

#[test]
fn a_pool_that_keeps_a_minimum_is_visited_by_each_tick() {
    let mut world = World::new("min_pool_size = 1");
    let client = world.client();
    world.pass(SECOND);
    assert_eq!(looks(&mut world, &[client], &["shop"]), (vec![false], vec![10]));
}

#[test]
fn a_pool_that_has_too_many_servers_is_visited_until_they_are_gone() {
    let mut world = World::new("pool_size = 2");
    let clients = [world.client(), world.client()];
    clients.iter().for_each(|client| world.says(*client, "begin"));
    world.reload("pool_size = 1");
    world.pass(SECOND);
    assert_eq!(looks(&mut world, &[], &["shop"]).1, [10]);
    world.says(clients[0], "commit");
    world.pass(SECOND);
    assert_eq!(world.servers().len(), 1);
    assert_eq!(looks(&mut world, &[], &["shop"]).1, [0]);
}

#[test]
fn clients_are_looked_at_until_they_are_in() {
    let mut world =
        World::new("client_login_timeout = \"1h\"\n[pool]\nquery_wait_timeout = \"1h\"");
    let silent = world.silent_client(0);
    world.connects = Connects::Later;
    let entering = world.client();
    let clients = [silent, entering];
    assert_eq!(looks(&mut world, &clients, &["shop"]), (vec![true, true], vec![10]));
    assert_eq!(world.client_part(entering).session.phase, Phase::Entering);
    world.connects_now(world.last_server());
    world.pass(SECOND);
    assert_eq!(looks(&mut world, &clients, &["shop"]), (vec![true, false], vec![0]));
}

#[test]
fn clients_are_idle_for_a_64th_part_too_long_at_most() {
    let mut world = World::new("client_idle_timeout = \"640s\"");
    let anna = world.client();
    world.pass(600 * SECOND);
    let bob = world.client();
    world.says(anna, "one");
    world.pass(50 * SECOND);
    assert_eq!(looks(&mut world, &[anna, bob], &[]).0, [false, false], "neither may be due");
    world.pass(588 * SECOND);
    assert!(world.is_there(anna) && world.is_there(bob));
    world.pass(11 * SECOND);
    assert_eq!(world.heard(anna), "one\nerror client_idle_timeout\n");
    assert_eq!(world.heard(bob), "error client_idle_timeout\n");
}

#[test]
fn a_timeout_that_a_reload_sets_holds_for_clients_that_do_nothing() {
    let mut world = World::new("");
    let anna = world.client();
    world.pass(SECOND);
    world.reload("client_idle_timeout = \"2s\"");
    world.pass(SECOND - TICK);
    assert!(world.is_there(anna));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "error client_idle_timeout\n");
}

#[test]
fn an_unused_pool_is_visited_when_it_may_be_forgotten() {
    let mut world = World::new("server_idle_timeout = \"1s\"\npool_idle_timeout = \"10s\"");
    let anna = world.client();
    world.breaks(anna);
    world.pass(2 * SECOND);
    let ports = refrain_pool::Ports::default();
    let due = world.engine(0).next_tick(&ports).expect("the pool is to be forgotten");
    assert!(due > world.now.after(5 * SECOND), "no tick is due before");
    // A client that comes and goes gives it as much time again.
    world.pass(7 * SECOND);
    let bob = world.client();
    world.breaks(bob);
    world.pass(9 * SECOND);
    assert!(world.shared.find_pool("shop", "app").is_some());
    world.pass(3 * SECOND);
    assert!(world.shared.find_pool("shop", "app").is_none());
}
