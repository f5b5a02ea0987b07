//! Limits: the numbers of servers and clients that may exist, and the answer to one more.

use std::sync::Arc;
use std::time::Duration;

use refrain_echo::parts::Echo;
use refrain_pool::Event;
use refrain_pool::client_counts::LimitReached;
use refrain_pool::message::CoreMessage;
use refrain_pool::shared::Shared;

use crate::harness::{ClientId, World, options};

/// Begins a transaction of each of some clients, and returns how many clients have a server.
fn begin(world: &mut World, names: &str, clients: usize) -> (Vec<ClientId>, usize) {
    let all: Vec<_> = (0..clients).map(|_| world.client_of(names)).collect();
    all.iter().for_each(|client| world.says(*client, "begin"));
    let lent = all.iter().filter(|client| world.server_of(**client).is_some()).count();
    (all, lent)
}

#[test]
fn a_pool_has_no_more_servers_than_its_size() {
    let mut world = World::new("pool_size = 3");
    let (_, lent) = begin(&mut world, "shop app", 5);
    assert_eq!((lent, world.connects(), world.pool(0).waiting()), (3, 3, 2));
}

#[test]
fn the_cores_share_one_limit() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    assert_eq!(world.asks(bob, "mine"), "");
    assert_eq!(world.connects(), 1);
}

#[test]
fn a_database_has_no_more_servers_than_it_may_have() {
    let limit = "max_connections = 2\nurl = \"postgres://127.0.0.1:1\"";
    let mut world =
        World::new(&format!("[pool]\nserver_idle_timeout = \"1s\"\n[databases.shop]\n{limit}\n"));
    let (anna, lent) = begin(&mut world, "shop anna", 2);
    assert_eq!(lent, 2);
    let bob = world.silent_client(0);
    world.says(bob, "shop bob");
    assert_eq!(world.heard(bob), "", "no server of this user's pool was reached");
    // A server that goes makes room for another pool.
    world.breaks(anna[0]);
    world.pass(Duration::from_secs(2));
    assert!(world.heard(bob).starts_with("welcome"));
}

#[test]
fn a_user_has_no_more_servers_than_it_may_have() {
    let mut world = World::new("[users.anna]\nmax_connections = 1\n");
    let (_, lent) = begin(&mut world, "shop anna", 2);
    assert_eq!(lent, 1);
    let (_, lent) = begin(&mut world, "shop bob", 2);
    assert_eq!(lent, 2);
}

#[test]
fn the_reserve_is_for_a_client_that_has_waited() {
    let mut world =
        World::new("pool_size = 1\nreserve_pool_size = 1\nreserve_pool_timeout = \"1s\"");
    let (clients, lent) = begin(&mut world, "shop app", 3);
    assert_eq!(lent, 1);
    world.pass(Duration::from_millis(900));
    assert_eq!(world.connects(), 1);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.connects(), 2);
    assert_eq!(world.heard(clients[1]), "begin\n");
    assert_eq!(world.heard(clients[2]), "");
}

#[test]
fn a_pool_keeps_its_least_number_of_servers() {
    let mut world = World::new("min_pool_size = 2\nserver_idle_timeout = \"1s\"");
    let _ = world.client();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.servers().len(), 2);
}

#[test]
fn a_queue_takes_no_more_than_it_may() {
    let mut world = World::new("pool_size = 1\nmax_waiting = 1");
    let [anna, bob, carl] = [world.client(), world.client(), world.client()];
    world.says(anna, "begin");
    world.says(bob, "mine");
    assert_eq!(world.asks(carl, "mine"), "error too_many_waiting\n");
    assert!(!world.is_there(carl));
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "mine\n");
}

#[test]
fn a_client_too_many_is_turned_away() {
    let mut world = World::new("max_client_conn = 1\n[pool]\npool_size = 1\n");
    let (anna, bob) = (world.client(), world.client());
    assert!(world.is_there(anna) && !world.is_there(bob));
    assert_eq!(world.heard(bob), "error too_many_clients\n");
    world.breaks(anna);
    let carl = world.client();
    assert!(world.is_there(carl));
}

#[test]
fn a_user_has_no_more_clients_than_it_may_have() {
    let mut world = World::new("[users.anna]\nmax_client_connections = 1\n");
    let (first, second) = (world.client_of("shop anna"), world.client_of("shop anna"));
    assert!(world.is_there(first) && !world.is_there(second));
    world.breaks(first);
    let third = world.client_of("shop anna");
    assert!(world.is_there(third));
}

#[test]
fn the_oldest_silent_connection_makes_way() {
    let mut world = World::of_cores(2, "max_login_conn = 2\n[pool]\n");
    let [first, second, third] = [0, 1, 0].map(|core| world.silent_client(core));
    assert!(!world.is_there(first) && world.is_there(second) && world.is_there(third));
    // The next oldest is at another core.
    let fourth = world.silent_client(0);
    assert!(!world.is_there(second) && world.is_there(third) && world.is_there(fourth));
    assert_eq!(world.logged(), ["crowded_out", "crowded_out", "crowded_out"]);
}

#[test]
fn a_database_that_is_not_configured_is_refused() {
    let mut world = World::new("[databases.shop]\nurl = \"postgres://127.0.0.1:1\"\n");
    let anna = world.client_of("bank app");
    assert_eq!(world.heard(anna), "error unknown_database\n");
    assert!(!world.is_there(anna));
}

#[test]
fn a_pool_that_may_have_less_closes_idle_servers() {
    let mut world = World::new("pool_size = 3");
    let (clients, _) = begin(&mut world, "shop app", 3);
    clients.iter().for_each(|client| world.says(*client, "commit"));
    assert_eq!(world.servers().len(), 3);
    world.reload("pool_size = 1");
    world.pass(Duration::from_millis(200));
    assert_eq!(world.servers().len(), 1);
}

#[test]
fn the_least_number_of_servers_stays_though_nobody_uses_them() {
    let mut world = World::new("min_pool_size = 2\nserver_idle_timeout = \"1s\"");
    let _ = world.client();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.connects(), 2, "none was closed and connected anew");
}

#[test]
fn the_first_core_keeps_the_least_number_of_servers() {
    let mut world = World::of_cores(2, "min_pool_size = 3");
    let _ = (world.client_at(0), world.client_at(1));
    world.pass(Duration::from_secs(1));
    assert_eq!((world.pool(0).servers(), world.pool(1).servers()), (3, 0));
}

#[test]
fn only_the_connection_that_was_named_makes_way() {
    let mut world = World::new("");
    let [anna, bob] = [world.silent_client(0), world.silent_client(0)];
    let (conn, serial) = (world.client_part(anna).conn(), world.client_part(bob).serial());
    let message = CoreMessage::MakeWay { conn, serial };
    world.in_step(0, |step| step.engine.step(step.now, Event::Message(message), step.ports));
    assert!(world.is_there(anna) && world.is_there(bob));
}

#[test]
fn a_client_that_has_logged_in_is_counted_as_one_and_no_longer_as_a_login() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.silent_client(0));
    assert_eq!((world.shared.lobby.logins(), world.shared.lobby.total()), (1, 2));
    world.breaks(bob);
    world.breaks(anna);
    assert_eq!((world.shared.lobby.logins(), world.shared.lobby.total()), (0, 0));
}

#[test]
fn each_variant_of_a_pool_is_one_of_its_own() {
    let world = World::new("pool_size = 7");
    let pool =
        |variant| world.shared.pool_of_variant("shop", "app", variant).expect("there is one");
    let (plain, other) = (pool(0), pool(5));
    assert_ne!(plain.id, other.id);
    assert_eq!((plain.id, other.id), (pool(0).id, pool(5).id));
    assert_eq!((plain.variant, other.variant), (0, 5));
    assert_eq!(other.settings().options.pool_size, 7);
    assert_eq!(world.shared.find_pool("shop", "app").map(|pool| pool.id), Some(plain.id));
}

/// Returns a configuration of two servers at least, of which the database `shop` logs in to its
/// servers as this user, whose password is known.
fn kept(user: &str) -> String {
    format!(
        "[pool]\nmin_pool_size = 2\nserver_idle_timeout = \"1s\"\n[users.app]\npassword = \"x\"\n\
         [databases.\"*\"]\nurl = \"postgres://{user}127.0.0.1:1\"\n\
         [databases.shop]\nurl = \"postgres://{user}127.0.0.1:1\"\n"
    )
}

#[test]
fn a_pool_whose_user_is_known_keeps_its_least_number_of_servers_before_any_client_comes() {
    let mut world = World::of_cores(2, &kept("app@"));
    world.pass(Duration::from_secs(5));
    assert_eq!(world.connects(), 2, "none was closed and connected anew");
    let client = world.client();
    assert_eq!(world.asks(client, "begin"), "begin\n");
    assert_eq!(world.connects(), 2, "the client has one of those");
}

#[test]
fn a_pool_keeps_no_servers_for_a_user_or_a_password_that_clients_bring() {
    for user in ["", "other@"] {
        let mut world = World::new(&kept(user));
        world.pass(Duration::from_secs(5));
        assert_eq!(world.connects(), 0, "{user:?}");
    }
}

#[test]
fn a_reload_has_a_pool_keep_servers_or_lets_them_go() {
    let mut world = World::new(&kept(""));
    world.pass(Duration::from_secs(1));
    world.reload(&kept("app@"));
    world.pass(Duration::from_secs(5));
    assert_eq!((world.servers().len(), world.connects()), (2, 2));
    world.reload(&kept("app@").replace("min_pool_size = 2\n", ""));
    world.pass(Duration::from_secs(5));
    assert_eq!(world.servers().len(), 0);
}

#[test]
fn two_protocols_of_a_process_have_one_count_of_clients_and_pause_together() {
    let options = options("[pool]\n[users.app]\nmax_client_connections = 1\n");
    let process = Arc::default();
    let [one, other] = [(); 2].map(|()| {
        let (process, options) = (Arc::clone(&process), options.clone());
        Shared::<Echo>::in_process(process, options, 1, &mut |bytes| bytes.fill(7))
    });
    let [shop, bank] = [(&one, "shop"), (&other, "bank")]
        .map(|(shared, database)| shared.pool(database, "app").expect("it is configured"));
    assert_eq!(one.admit_client(&shop, "app"), Ok(()));
    assert_eq!(other.admit_client(&bank, "app"), Err(LimitReached::User));
    one.set_paused(Some(&"bank".into()), true);
    assert!(other.is_paused("bank") && !other.is_paused("shop"));
}
