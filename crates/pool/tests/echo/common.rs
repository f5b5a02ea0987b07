//! Pools that users share, because servers log in as one user.

use std::time::Duration;

use crate::harness::{Connects, World};

/// A database with a fixed user, and these other tables.
fn fixed(pool: &str, more: &str) -> String {
    let database = "[databases.shop]\nurl = \"postgres://u@127.0.0.1:1\"\npassword = \"p\"";
    format!("[pool]\n{pool}\n{database}\n{more}")
}

#[test]
fn ten_users_have_the_servers_of_one_pool() {
    let mut world = World::new(&fixed("pool_size = 2", ""));
    let clients = (0..10).map(|user| world.client_of(&format!("shop user{user}")));
    let clients: Vec<_> = clients.collect();
    clients.iter().for_each(|client| world.says(*client, "begin"));
    assert_eq!(world.connects(), 2);
    clients.iter().for_each(|client| world.says(*client, "commit"));
    assert!(clients.iter().all(|client| world.heard(*client) == "begin\ncommit\n"));
    assert_eq!(world.connects(), 2);
    assert_eq!(world.shared.pools().len(), 1);
}

#[test]
fn a_user_with_options_has_a_pool_of_its_own() {
    let own = "[users.anna]\npool_size = 1\n[users.bob]\nmax_connections = 1\n[users.carl]\n\
               max_client_connections = 9\n";
    let mut world = World::new(&fixed("pool_size = 2", own));
    for user in ["anna", "bob", "carl", "dora", "u"] {
        world.client_of(&format!("shop {user}"));
    }
    let mut pools: Vec<_> = world.shared.pools().iter().map(|pool| pool.user.to_string()).collect();
    pools.sort();
    assert_eq!(pools, ["anna", "bob", "u"], "carl, dora and the servers' user share the third");
}

#[test]
fn what_is_known_of_a_client_has_its_own_name() {
    let limit = "[users.anna]\nmax_client_connections = 1\n";
    let mut world = World::new(&fixed("pool_size = 2", limit));
    let (anna, bob) = (world.client_of("shop anna"), world.client_of("shop bob"));
    let again = world.client_of("shop anna");
    assert!(world.is_there(anna) && world.is_there(bob) && !world.is_there(again));
    let now = world.now;
    let snapshot = world.engine(0).snapshot(now);
    let names = snapshot.clients.iter().map(|client| (&*client.user, &*client.pool_user));
    assert_eq!(names.collect::<Vec<_>>(), [("anna", "u"), ("bob", "u")]);
    assert_eq!(snapshot.pools.iter().map(|pool| &*pool.user).collect::<Vec<_>>(), ["u"]);
    world.notes.clear();
    world.breaks(bob);
    let user = world.notes.iter().find_map(|note| note.user.clone());
    assert_eq!(user.as_deref(), Some("bob"));
    // The name is free again.
    world.breaks(anna);
    let again = world.client_of("shop anna");
    assert!(world.is_there(again));
}

#[test]
fn a_user_that_is_removed_leaves_and_the_others_stay() {
    let users = |names: &[&str]| {
        let users = names.iter().map(|name| format!("[users.{name}]\n"));
        format!("trust_unknown = false\n{}", fixed("pool_size = 3", &users.collect::<String>()))
    };
    let mut world = World::new(&users(&["anna", "bob", "carl"]));
    let [anna, bob, carl] = ["anna", "bob", "carl"].map(|u| world.client_of(&format!("shop {u}")));
    world.says(carl, "begin");
    world.reload(&users(&["anna"]));
    assert!(world.is_there(anna) && !world.is_there(bob));
    assert!(world.is_there(carl), "its transaction is under way");
    assert_eq!(world.asks(carl, "commit"), "begin\ncommit\n");
    world.pass(Duration::from_millis(200));
    assert!(!world.is_there(carl));
    assert_eq!(world.asks(anna, "mine"), "mine\n");
    let late = world.client_of("shop bob");
    assert!(!world.is_there(late));
}

#[test]
fn a_client_keeps_its_name_at_another_core() {
    let mut world = World::of_cores(2, &fixed("pool_size = 2", ""));
    let anna = world.client_of("shop anna");
    assert_eq!(world.asks(anna, "mine"), "mine\n");
    world.event(0, refrain_pool::Event::GiveClients { to: refrain_pool::Core(1), most: 1 });
    world.settle();
    assert_eq!(&**world.client_part(anna).user(), "anna");
    world.breaks(anna);
}

#[test]
fn a_pool_goes_when_its_database_has_no_fixed_user_any_more() {
    let mut world = World::new(&fixed("pool_size = 2", ""));
    let anna = world.client_of("shop anna");
    world.reload("[pool]\n[databases.shop]\nurl = \"postgres://127.0.0.1:1\"\n");
    assert!(!world.is_there(anna));
    let again = world.client_of("shop anna");
    assert_eq!(world.asks(again, "mine"), "mine\n");
    assert_eq!(world.server_heard(world.last_server()), "hello shop anna\nmine\n");
}

#[test]
fn a_pool_that_keeps_servers_tries_again_where_its_database_did_not_exist() {
    let mut world = World::new(&fixed("min_pool_size = 1\nserver_login_retry = \"1s\"", ""));
    world.connects = Connects::Never;
    world.pass(Duration::from_millis(500));
    assert_eq!((world.connects(), world.servers().len()), (1, 0));
    let id = world.shared.pools()[0].id;
    world.in_step(0, |step| step.supply().forget_soon(id));
    world.connects = Connects::AtOnce;
    world.pass(Duration::from_secs(2));
    assert_eq!((world.connects(), world.servers().len()), (2, 1));
}

#[test]
fn a_pool_that_keeps_no_server_is_forgotten_where_its_database_does_not_exist() {
    let mut world = World::new(&fixed("server_login_retry = \"1s\"", ""));
    world.connects = Connects::Never;
    let anna = world.client_of("shop anna");
    assert!(!world.is_there(anna));
    let id = world.shared.pools()[0].id;
    world.in_step(0, |step| step.supply().forget_soon(id));
    assert!(world.shared.pools().is_empty());
}
