//! Several hosts of one database: which of them servers are connected to, and what happens when one
//! dies or changes its state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::event::Command;

use crate::harness::{ClientId, World};

const A: &str = "a:1";
const B: &str = "b:2";
const C: &str = "c:3";
const TICK: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// Makes cores whose database has three hosts, with these further options of its.
fn world(cores: u16, options: &str) -> World {
    let database = "[databases.\"*\"]\nurl = \"postgres://a:1,b:2,c:3\"";
    World::of_cores(cores, &format!("{database}\n{options}\n"))
}

/// Connects clients that are let in.
fn clients<const N: usize>(world: &mut World) -> [ClientId; N] {
    std::array::from_fn(|_| world.client())
}

#[test]
fn servers_are_connected_to_the_first_host() {
    let mut world = world(1, "");
    let [anna, bob] = clients(&mut world);
    world.says(anna, "begin");
    world.says(bob, "begin");
    assert_eq!(world.hosts(), [A, A]);
}

#[test]
fn of_three_hosts_two_die() {
    let mut world = world(1, "pool_size = 2");
    let [anna, bob] = clients(&mut world);
    for (host, next) in [(A, B), (B, C)] {
        world.host_dies(host);
        let before = world.connects();
        assert_eq!(world.asks(anna, "one"), "one\n", "a client between transactions gets no error");
        world.says(bob, "begin");
        assert_eq!(world.asks(anna, "two"), "two\n");
        world.says(bob, "commit");
        assert_eq!(world.hosts(), [next, next]);
        let tried = world.hosts_since(before);
        assert_eq!(tried.iter().filter(|tried| **tried == host).count(), 1, "{tried:?}");
    }
}

#[test]
fn clients_wait_while_all_hosts_are_dead() {
    let mut world = world(1, "");
    let [anna] = clients(&mut world);
    for host in [A, B, C] {
        world.host_dies(host);
    }
    let before = world.connects();
    assert_eq!(world.asks(anna, "one"), "");
    let bob = world.silent_client(0);
    world.says(bob, "shop app");
    assert_eq!(world.hosts_since(before), [A, B, C], "one look for both");
    world.pass(SECOND);
    let looks = (world.connects() - before) / 3;
    assert!((3..=5).contains(&looks), "a look each 250 ms: {looks}");
    world.dead.retain(|host| host != B);
    world.pass(3 * TICK);
    assert_eq!(world.heard(anna), "one\n");
    assert!(world.heard(bob).starts_with("welcome"));
    assert_eq!(world.hosts(), [B]);
}

#[test]
fn one_look_is_for_all_pools_and_cores() {
    let mut world = world(2, "");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    let carl = world.client_of("shop carl");
    let dora = world.client_of("store app");
    for host in [A, B, C] {
        world.host_dies(host);
    }
    let before = world.connects();
    for client in [anna, bob, carl, dora] {
        world.says(client, "one");
    }
    assert_eq!(world.hosts_since(before), [A, B, C]);
    world.dead.clear();
    world.pass(3 * TICK);
    for client in [anna, bob, carl, dora] {
        assert_eq!(world.heard(client), "one\n");
    }
}

#[test]
fn a_silent_host_is_not_waited_for() {
    let mut world = world(1, "");
    world.silent = vec![A.to_owned()];
    let anna = world.silent_client(0);
    world.says(anna, "shop app");
    assert_eq!(world.hosts(), [A]);
    world.pass(4 * TICK);
    assert_eq!(world.hosts(), [A, B]);
    assert!(world.heard(anna).starts_with("welcome"));
    assert_eq!(world.asks(anna, "one"), "one\n");
    // The attempt at the silent host ends in time, and does no harm.
    world.pass(30 * SECOND);
    assert_eq!(world.pool(0).connecting(), 0);
}

#[test]
fn a_host_in_another_state_is_passed_over() {
    let mut world = world(1, "target_session_attrs = \"primary\"");
    world.unsuited = vec![A.to_owned(), B.to_owned()];
    let [anna] = clients(&mut world);
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.hosts(), [C]);
    assert_eq!(world.logged().iter().filter(|key| **key == "host_unsuited").count(), 2);
    assert_eq!(world.counters(0).server_login_failures, 0);
}

#[test]
fn a_host_that_changes_its_state_is_left() {
    let mut world = world(2, "target_session_attrs = \"primary\"");
    world.unsuited = vec![B.to_owned(), C.to_owned()];
    let (anna, bob, carl) = (world.client_at(0), world.client_at(0), world.client_at(1));
    world.says(bob, "begin");
    world.says(carl, "begin");
    world.says(anna, "begin");
    world.says(anna, "commit");
    assert_eq!(world.hosts(), [A, A, A]);
    world.unsuited = vec![A.to_owned()];
    let (of_bob, of_carl) = (world.server_of(bob), world.server_of(carl));
    world.server_says(of_bob.expect("it is lent"), "unsuited\n");
    assert_eq!(world.hosts(), [A, A], "the idle server is closed at once");
    assert_eq!(world.logged().iter().filter(|key| **key == "host_unsuited").count(), 1);
    world.says(bob, "commit");
    assert_eq!(world.hosts(), [A]);
    world.heard(anna);
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.hosts(), [A, B]);
    // Transactions under way end where they are.
    world.says(carl, "commit");
    assert_eq!(world.hosts(), [B]);
    assert!(!world.is_up(of_carl.expect("it was lent")));
}

#[test]
fn a_login_from_before_the_change_shows_nothing() {
    let mut world = world(2, "target_session_attrs = \"primary\"");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    world.servers_answer = false;
    world.says(bob, "one");
    let late = world.last_server();
    let of_anna = world.server_of(anna).expect("it is lent");
    world.server_says(of_anna, "unsuited\n");
    world.server_says(late, "welcome 1 key\n");
    assert!(!world.is_up(late), "it was asked for its state too early");
    world.unsuited = vec![A.to_owned()];
    world.all_answer();
    assert_eq!(world.heard(bob), "one\n");
    assert_eq!(world.hosts(), [A, B], "no other server was connected to the host");
}

#[test]
fn a_doubt_is_settled_by_one_new_server() {
    let mut world = world(1, "target_session_attrs = \"read-write\"");
    world.unsuited = vec![B.to_owned(), C.to_owned()];
    let [anna, bob] = clients(&mut world);
    world.says(anna, "begin");
    world.says(bob, "begin");
    let servers = [anna, bob].map(|client| world.server_of(client).expect("it is lent"));
    let before = world.connects();
    for (client, server) in [anna, bob].into_iter().zip(servers) {
        world.server_says(server, "doubtful\n");
        world.says(client, "commit");
        assert!(!world.is_up(server), "it is not lent again");
        world.heard(client);
    }
    assert_eq!(world.hosts_since(before), [A], "one look for both");
    assert_eq!(world.asks(anna, "one"), "one\n");
    // Now the host is in another state indeed.
    world.pass(3 * TICK);
    world.unsuited = vec![A.to_owned(), C.to_owned()];
    world.says(anna, "begin");
    let server = world.server_of(anna).expect("it is lent");
    world.server_says(server, "doubtful\n");
    world.says(anna, "commit");
    assert!(world.hosts().is_empty());
    assert_eq!(world.asks(bob, "two"), "two\n");
    assert_eq!(world.hosts(), [B]);
}

#[test]
fn servers_are_spread_over_hosts() {
    let mut world = world(1, "load_balance_hosts = \"round-robin\"");
    let some: [_; 6] = clients(&mut world);
    some.iter().for_each(|client| world.says(*client, "begin"));
    let mut hosts = world.hosts();
    hosts.sort_unstable();
    assert_eq!(hosts, [A, A, B, B, C, C]);
}

#[test]
fn a_preferred_state_is_dispensable() {
    let mut world = world(1, "target_session_attrs = \"prefer-standby\"");
    world.unsuited = vec![A.to_owned()];
    let [anna] = clients(&mut world);
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.hosts(), [B]);
}

#[test]
fn a_login_that_one_pool_cannot_make_keeps_no_other_from_the_host() {
    let mut world = world(1, "");
    world.servers_answer = false;
    let anna = world.silent_client(0);
    world.says(anna, "shop app");
    world.server_says(world.last_server(), "welcome 1 key\n");
    world.heard(anna);
    assert_eq!(world.hosts(), [A]);
    world.servers_answer = true;
    let bob = world.client_of("shop bob");
    assert_eq!(world.asks(bob, "one"), "one\n");
}

#[test]
fn addresses_that_a_name_has_lost_are_left() {
    let mut world = world(1, "");
    let [anna, bob, carl] = clients(&mut world);
    let addresses: [IpAddr; 2] =
        ["192.0.2.1", "192.0.2.2"].map(|it| it.parse().expect("it is one"));
    let servers =
        [(anna, addresses[0]), (bob, addresses[0]), (carl, addresses[1])].map(|(it, at)| {
            world.says(it, "begin");
            let server = world.server_of(it).expect("it is lent");
            world.is_at(server, at);
            server
        });
    world.says(anna, "commit");
    let gone = Arc::from(&addresses[..1]);
    world.command(&Command::LeaveAddresses("b".into(), addresses.into()));
    assert_eq!(servers.map(|server| world.is_up(server)), [true; 3], "another name has lost them");
    world.command(&Command::LeaveAddresses("a".into(), gone));
    assert_eq!(servers.map(|server| world.is_up(server)), [false, true, true]);
    for client in [bob, carl] {
        world.says(client, "commit");
    }
    assert_eq!(servers.map(|server| world.is_up(server)), [false, false, true]);
}

#[test]
fn a_cancel_request_goes_to_the_host_of_the_server() {
    let mut world = World::new("[databases.\"*\"]\nurl = \"postgres://a:1\"");
    let (anna, line) = crate::cancel::client(&mut world, 0);
    world.servers_answer = false;
    world.says(anna, "slow");
    // The servers move, and the one that works for the client is where it was.
    world.reload("[databases.\"*\"]\nurl = \"postgres://b:2\"");
    let before = world.connects();
    crate::cancel::cancel(&mut world, 0, &line);
    assert_eq!(world.hosts_since(before), [A]);
}
