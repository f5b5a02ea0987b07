//! Room: the servers of one pool that go for another, where both share a limit that is reached.

use std::time::Duration;

use crate::harness::{ClientId, World};

/// A database with this limit.
fn limited(servers: usize, more: &str) -> String {
    let database = "[databases.shop]\nurl = \"postgres://127.0.0.1:1\"";
    format!("[pool]\npool_size = 20\n{more}\n{database}\nmax_connections = {servers}\n")
}

/// Has clients of a user each hold a server at the same time, and give it back.
fn fill(world: &mut World, names: &str, servers: usize) -> Vec<ClientId> {
    let clients: Vec<_> = (0..servers).map(|_| world.client_of(names)).collect();
    clients.iter().for_each(|client| world.says(*client, "begin"));
    clients.iter().for_each(|client| world.says(*client, "commit"));
    clients
}

/// Returns how many servers the pool of a user has, and how many have gone for others.
fn pool(world: &mut World, user: &str) -> (u32, u64) {
    let id = world.shared.find_pool("shop", user).expect("the pool is there").id;
    let pool = world.engine(0).core_state.peek_pool(id);
    let evicted = pool.map_or(0, |pool| pool.counters.pool.servers_evicted);
    (world.shared.counts.servers(id), evicted)
}

#[test]
fn an_idle_server_of_another_pool_goes() {
    let mut world = World::new(&limited(3, ""));
    fill(&mut world, "shop anna", 3);
    world.logged();
    let bob = world.client_of("shop bob");
    assert_eq!(world.asks(bob, "mine"), "mine\n", "no time has passed");
    assert_eq!((pool(&mut world, "anna"), pool(&mut world, "bob")), ((2, 1), (1, 0)));
    assert_eq!(world.logged(), ["server_evicted", "server_connected", "client_login"]);
    assert_eq!((world.connects(), world.servers().len()), (4, 3));
}

#[test]
fn an_idle_server_at_another_core_goes() {
    let mut world = World::of_cores(2, &limited(2, ""));
    fill(&mut world, "shop anna", 2);
    let bob = world.silent_client(1);
    world.says(bob, "shop bob");
    world.heard(bob);
    assert_eq!(world.asks(bob, "mine"), "mine\n", "no time has passed");
    assert_eq!((pool(&mut world, "anna"), pool(&mut world, "bob").0), ((1, 1), 1));
}

#[test]
fn one_of_several_cores_makes_room() {
    let mut world = World::of_cores(3, &limited(4, ""));
    // Each of the other cores has two servers.
    for core in [1, 2] {
        let clients = [0, 1].map(|_| world.silent_client(core));
        clients.iter().for_each(|client| world.says(*client, &format!("shop user{core}")));
        clients.iter().for_each(|client| world.says(*client, "begin"));
        clients.iter().for_each(|client| world.says(*client, "commit"));
    }
    assert_eq!(world.servers().len(), 4);
    let bob = world.client_of("shop bob");
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!((world.connects(), world.servers().len()), (5, 4));
}

#[test]
fn the_longest_idle_server_goes() {
    let mut world = World::new(&limited(4, ""));
    for user in ["anna", "carl"] {
        fill(&mut world, &format!("shop {user}"), 2);
        world.pass(Duration::from_secs(1));
    }
    let bob = world.client_of("shop bob");
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!((pool(&mut world, "anna"), pool(&mut world, "carl")), ((1, 1), (2, 0)));
}

#[test]
fn a_limit_of_the_user_is_shared_by_databases() {
    let mut world = World::new("[pool]\npool_size = 5\n[users.anna]\nmax_connections = 2\n");
    fill(&mut world, "shop anna", 2);
    let other = world.client_of("bank anna");
    assert_eq!(world.asks(other, "mine"), "mine\n");
    let stranger = world.client_of("bank bob");
    assert_eq!(world.asks(stranger, "mine"), "mine\n");
    assert_eq!(pool(&mut world, "anna"), (1, 1));
}

#[test]
fn both_limits_make_room_one_after_the_other() {
    let limits = "max_connections = 2\n[users.bob]\nmax_connections = 1\n";
    let database = "[databases.shop]\nurl = \"postgres://127.0.0.1:1\"";
    let other = "[databases.bank]\nurl = \"postgres://127.0.0.1:1\"";
    let mut world = World::new(&format!("[pool]\npool_size = 5\n{other}\n{database}\n{limits}"));
    fill(&mut world, "bank bob", 1);
    fill(&mut world, "shop anna", 2);
    let bob = world.client_of("shop bob");
    world.pass(Duration::from_secs(1));
    world.heard(bob);
    assert_eq!(world.asks(bob, "mine"), "mine\n");
}

#[test]
fn a_busy_pool_makes_room_when_a_server_comes_free() {
    let mut world = World::new(&limited(2, ""));
    let anna = fill(&mut world, "shop anna", 2);
    anna.iter().for_each(|client| world.says(*client, "begin"));
    let bob = world.silent_client(0);
    world.says(bob, "shop bob");
    world.now = world.now.after(Duration::from_millis(1));
    let late = world.client_of("shop anna");
    world.says(late, "late");
    world.says(anna[0], "commit");
    assert!(world.heard(bob).starts_with("welcome"), "bob has waited for longer");
    assert!(!world.heard(late).contains("late"));
    world.says(anna[1], "commit");
    assert_eq!(world.heard(late), "late\n");
    assert_eq!((pool(&mut world, "anna"), pool(&mut world, "bob")), ((1, 1), (1, 0)));
}

#[test]
fn a_client_of_the_busy_pool_that_has_waited_for_longer_comes_first() {
    let mut world = World::new(&limited(2, ""));
    let anna = fill(&mut world, "shop anna", 3);
    anna.iter().for_each(|client| world.says(*client, "begin"));
    world.now = world.now.after(Duration::from_millis(1));
    let bob = world.silent_client(0);
    world.says(bob, "shop bob");
    world.heard(anna[2]);
    world.says(anna[0], "commit");
    assert_eq!((world.heard(anna[2]).as_str(), world.heard(bob).as_str()), ("begin\n", ""));
    world.says(anna[1], "commit");
    assert!(world.heard(bob).starts_with("welcome"));
}

#[test]
fn room_is_made_for_those_only_who_still_wait() {
    let mut world = World::new(&limited(2, ""));
    let anna = fill(&mut world, "shop anna", 2);
    anna.iter().for_each(|client| world.says(*client, "begin"));
    let bob = world.silent_client(0);
    world.says(bob, "shop bob");
    world.breaks(bob);
    world.pass(Duration::from_secs(1));
    anna.iter().for_each(|client| world.says(*client, "commit"));
    assert_eq!(pool(&mut world, "anna"), (2, 0));
}

#[test]
fn pools_that_all_want_more_get_the_same() {
    let mut world = World::new(&limited(6, ""));
    let users = ["anna", "bob", "carl"].map(|user| format!("shop {user}"));
    // The first pool has all servers, and work for more.
    let mut clients = Vec::new();
    for user in &users {
        let all: Vec<_> = (0..6).map(|_| world.silent_client(0)).collect();
        all.iter().for_each(|client| world.sends(*client, &format!("{user}\nbegin\n")));
        clients.extend(all);
    }
    // Each client that is served works for 50 ms and begins anew.
    for _ in 0..200 {
        world.pass(Duration::from_millis(50));
        for client in &clients {
            if world.server_of(*client).is_some() {
                world.says(*client, "commit");
                world.says(*client, "begin");
            }
        }
    }
    let sizes = ["anna", "bob", "carl"].map(|user| pool(&mut world, user).0);
    assert_eq!(sizes, [2, 2, 2]);
    assert!(world.connects() < 6 + 10, "{} servers for 1,200 transactions", world.connects());
}

#[test]
fn two_pools_take_turns_at_the_only_server() {
    let mut world = World::new(&limited(1, ""));
    let clients = ["shop anna", "shop bob"].map(|names| {
        let client = world.silent_client(0);
        world.sends(client, &format!("{names}\n"));
        client
    });
    let mut served = [0, 0];
    for _ in 0..2_000 {
        world.pass(Duration::from_millis(1));
        for (client, served) in clients.iter().zip(&mut served) {
            world.says(*client, "mine");
            *served += world.heard(*client).matches("mine\n").count();
        }
    }
    // Both are served; not half of the transactions need a new server, but 20 each second at most.
    assert!(served.iter().all(|served| *served > 500), "{served:?}");
    assert!(world.connects() <= 41, "{} servers for {served:?} transactions", world.connects());
}

/// Runs transactions of 3,000 clients in 1,000 pools, 64 at a time, 5 in a millisecond. Returns the
/// number of servers that were connected for the second half of them.
fn thousand_pools(world: &mut World, transactions: usize) -> usize {
    world.checks = false;
    let mut dice = 7u64;
    let mut random = move |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        usize::try_from(dice % below as u64).expect("it is below")
    };
    let mut clients = Vec::new();
    for user in (0..1_000).flat_map(|user| [user; 3]) {
        let client = world.silent_client(0);
        world.says(client, &format!("shop user{user}"));
        clients.push(client);
    }
    world.pass(Duration::from_secs(2));
    let (mut under_way, mut connects) = (Vec::new(), 0);
    for number in 0..transactions {
        while under_way.len() < 64 {
            let client = clients.swap_remove(random(clients.len()));
            world.says(client, "begin");
            under_way.push(client);
        }
        if number % 5 == 0 {
            world.pass(Duration::from_millis(1));
        }
        if number == transactions / 2 {
            connects = world.connects();
        }
        if let Some(at) = under_way.iter().position(|client| world.server_of(*client).is_some()) {
            let client = under_way.remove(at);
            world.says(client, "commit");
            clients.push(client);
        }
    }
    assert!(clients.iter().all(|client| world.is_there(*client)));
    world.connects() - connects
}

#[test]
fn a_thousand_pools_at_the_limit_connect_few_servers() {
    let mut world = World::new(&limited(1_010, ""));
    let connects = thousand_pools(&mut world, 5_000);
    assert!(connects < 25, "{connects} servers for 2,500 transactions");
}

#[test]
fn a_thousand_pools_at_a_full_host_try_few_servers() {
    let mut world = World::new("pool_size = 20");
    world.room = 1_010;
    let connects = thousand_pools(&mut world, 5_000);
    assert!(connects < 25, "{connects} servers for 2,500 transactions");
}

#[test]
fn a_server_goes_where_the_host_is_full() {
    let mut world = World::of_cores(2, "pool_size = 5");
    world.room = 3;
    fill(&mut world, "shop anna", 3);
    let bob = world.silent_client(1);
    world.says(bob, "shop bob");
    assert_eq!(world.heard(bob), "");
    // The process of the server that goes needs a moment to end.
    world.pass(Duration::from_millis(200));
    assert!(world.heard(bob).starts_with("welcome"));
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!((pool(&mut world, "anna"), pool(&mut world, "bob").0), ((2, 1), 1));
}

#[test]
fn a_host_that_is_full_by_others_refuses() {
    let mut world = World::new("pool_size = 5");
    world.room = 0;
    let anna = world.silent_client(0);
    world.says(anna, "shop anna");
    assert!(!world.is_there(anna));
}
