//! The operator's commands: pause, resume, reconnect, kill, reload, drain and stop.

use std::sync::Arc;
use std::time::Duration;

use refrain_pool::client::Phase;
use refrain_pool::event::Command;

use crate::harness::World;

const TICK: Duration = Duration::from_millis(100);

fn shop() -> Option<Arc<str>> {
    Some(Arc::from("shop"))
}

#[test]
fn a_paused_database_lends_no_server_until_it_is_resumed() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    let server = world.last_server();
    world.command(&Command::Pause(shop()));
    assert!(world.is_up(server), "a transaction may end first");
    world.says(anna, "commit");
    assert!(!world.is_up(server));
    assert_eq!(world.asks(bob, "mine"), "");
    world.pass(TICK);
    assert_eq!(world.connects(), 1);
    world.command(&Command::Resume(shop()));
    assert_eq!(world.heard(bob), "mine\n");
}

#[test]
fn a_pause_closes_idle_servers_of_its_database() {
    let mut world = World::new("");
    let _ = world.client();
    let shops = world.last_server();
    let bob = world.client_of("bank app");
    let banks = world.last_server();
    world.command(&Command::Pause(shop()));
    assert!(!world.is_up(shops) && world.is_up(banks));
    assert_eq!(world.asks(bob, "one"), "one\n");
}

#[test]
fn a_pool_that_is_opened_later_is_paused_too() {
    let mut world = World::new("");
    world.shared.set_paused(shop().as_ref(), true);
    let anna = world.client();
    assert_eq!((world.asks(anna, "one").as_str(), world.connects()), ("", 0));
    assert!(world.is_there(anna));
    world.shared.set_paused(None, false);
    world.command(&Command::Resume(None));
    assert_eq!(world.heard(anna), "one\n");
}

#[test]
fn a_reconnect_closes_servers_as_they_come_free() {
    let mut world = World::new("pool_size = 2");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "begin");
    world.says(bob, "commit");
    let [held, idle] = [world.servers()[0], world.servers()[1]];
    world.command(&Command::Reconnect(shop()));
    assert!(world.is_up(held) && !world.is_up(idle));
    world.says(anna, "commit");
    assert!(!world.is_up(held));
    assert_eq!(world.asks(bob, "one"), "begin\ncommit\none\n");
}

#[test]
fn a_reconnect_at_the_host_closes_idle_servers_with_the_next_tick() {
    let mut world = World::new("");
    let _ = world.client();
    let server = world.last_server();
    world.shared.renew("elsewhere:1");
    world.pass(TICK);
    assert!(world.is_up(server));
    world.shared.renew("127.0.0.1:1");
    world.pass(TICK);
    assert!(!world.is_up(server));
}

#[test]
fn a_kill_ends_the_sessions_and_servers_of_a_database() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.client_of("bank app"));
    world.says(anna, "begin");
    let server = world.server_of(anna).expect("it is lent");
    world.command(&Command::Kill(shop()));
    assert_eq!(world.heard(anna), "begin\nerror killed\n");
    assert!(!world.is_there(anna) && world.is_there(bob) && !world.is_up(server));
    assert!(world.pool(0).is_paused(), "it is paused as well");
}

#[test]
fn one_client_can_be_killed() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.client());
    let serial = world.client_part(bob).serial();
    world.command(&Command::KillClient(serial));
    assert!(world.is_there(anna) && !world.is_there(bob));
}

#[test]
fn one_client_can_be_killed_from_any_core() {
    let mut world = World::of_cores(3, "");
    let clients = [0, 1, 2].map(|core| world.client_at(core));
    for (client, from) in clients.into_iter().zip([0, 2, 1]) {
        let serial = world.client_part(client).serial();
        world.in_step(from, |step| step.kill_anywhere(serial));
        assert!(!world.is_there(client));
    }
}

#[test]
fn a_reload_ends_the_sessions_of_a_database_that_is_removed() {
    let url = "url = \"postgres://127.0.0.1:1\"\n";
    let mut world = World::new(&format!("[databases.shop]\n{url}[databases.bank]\n{url}"));
    let [anna, bob, carl] =
        ["shop app", "shop app", "bank app"].map(|names| world.client_of(names));
    world.says(anna, "begin");
    let held = world.server_of(anna).expect("it is lent");
    world.reload(&format!("[databases.bank]\n{url}"));
    assert_eq!(world.heard(bob), "error removed\n");
    assert!(world.is_there(anna) && world.is_up(held), "a transaction may end first");
    world.says(anna, "commit");
    assert_eq!(world.heard(anna), "begin\ncommit\nerror removed\n");
    assert!(!world.is_there(anna) && !world.is_up(held) && world.is_there(carl));
    let late = world.client_of("shop app");
    assert_eq!(world.heard(late), "error unknown_database\n");
}

#[test]
fn a_drain_waits_for_the_end_of_transactions() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.command(&Command::Drain);
    assert_eq!(world.heard(bob), "error shutdown\n");
    assert!(world.is_there(anna));
    assert!(!world.engine(0).is_drained());
    world.says(anna, "commit");
    assert_eq!(world.heard(anna), "begin\ncommit\nerror shutdown\n");
    assert!(world.engine(0).is_drained());
    assert!(world.servers().is_empty());
}

#[test]
fn a_drain_serves_clients_that_wait() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.command(&Command::Drain);
    world.pass(TICK);
    assert!(world.is_there(bob));
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "mine\nerror shutdown\n");
    assert!(world.engine(0).is_drained());
}

#[test]
fn a_drain_waits_for_the_rest_of_a_line() {
    let mut world = World::new("");
    let anna = world.client();
    world.sends(anna, "o");
    world.command(&Command::Drain);
    world.pass(TICK);
    assert!(world.is_there(anna));
    assert_eq!(world.asks(anna, "ne"), "one\nerror shutdown\n");
    assert!(!world.is_there(anna));
}

#[test]
fn a_stop_ends_everything_at_once() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.silent_client(0));
    world.says(anna, "begin");
    world.command(&Command::Stop);
    assert_eq!(world.heard(anna), "begin\nerror shutdown\n");
    assert!(!world.is_there(bob) && world.servers().is_empty());
    assert!(world.engine(0).is_drained());
}

#[test]
fn a_database_that_is_drained_loses_its_idle_servers_at_all_cores() {
    let mut world = World::of_cores(2, "");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    world.says(bob, "begin");
    world.says(bob, "commit");
    let (held, idle) = (world.server_of(anna).expect("it is lent"), world.last_server());
    let (conn, now) = (world.client_part(anna).conn(), world.now);
    world.engine(0).core_state.database_drain.ask(b"shop", conn, now);
    world.in_step(0, |step| step.drain_everywhere());
    assert!(world.is_up(held) && !world.is_up(idle));
    // A client that waits still gets a server, which is closed afterwards.
    assert_eq!(world.asks(bob, "one"), "begin\ncommit\none\n");
    assert!(!world.is_up(world.last_server()));
    world.in_step(0, |step| step.drained_database(conn));
    world.says(bob, "two");
    assert!(world.is_up(world.last_server()));
}

#[test]
fn a_snapshot_says_who_has_which_server() {
    use refrain_pool::snapshot::{ClientViewState, ServerViewState};
    let mut world = World::new("pool_size = 1");
    let [anna, bob, _silent] = [world.client(), world.client(), world.silent_client(0)];
    world.says(anna, "begin");
    world.says(bob, "mine");
    world.pass(TICK);
    let now = world.now;
    let snapshot = world.engine(0).snapshot(now);
    let states: Vec<_> = snapshot.clients.iter().map(|client| client.state).collect();
    assert_eq!(states, [ClientViewState::Active, ClientViewState::Waiting]);
    let [server] = &snapshot.servers[..] else { panic!("there is one server") };
    assert_eq!((server.state, server.pid), (ServerViewState::Active, 100));
    assert_eq!(server.client, Some(snapshot.clients[0].serial));
    assert_eq!(snapshot.clients[0].server, Some(server.serial));
    let [pool] = &snapshot.pools[..] else { panic!("there is one pool") };
    assert_eq!((&*pool.database, pool.waiting, pool.max_wait_us), ("shop", 1, 100_000));
    assert_eq!(snapshot.logging_in, 1);
}

#[test]
fn a_reconnect_at_the_host_closes_a_held_server_as_it_comes_free() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    let server = world.last_server();
    world.shared.renew("127.0.0.1:1");
    world.pass(TICK);
    assert!(world.is_up(server));
    world.says(anna, "commit");
    assert!(!world.is_up(server));
}

#[test]
fn a_server_that_is_to_go_may_leave_its_client_between_transactions() {
    let mut world = World::new("pool_mode = \"session\"\nserver_fast_close = true");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "one");
    world.says(bob, "begin");
    let [idle, busy] = [anna, bob].map(|client| world.server_of(client).expect("it is lent"));
    world.pass(TICK);
    assert!(world.is_there(anna));
    world.command(&Command::Reconnect(shop()));
    world.pass(TICK);
    assert_eq!(world.heard(anna), "one\nerror server_obsolete\n");
    assert!(!world.is_up(idle) && world.is_up(busy));
    world.says(bob, "commit");
    world.pass(TICK);
    assert_eq!(world.heard(bob), "begin\ncommit\nerror server_obsolete\n");
    assert!(!world.is_up(busy));
}

#[test]
fn a_server_at_another_place_leaves_its_client_only_if_it_is_to() {
    for (option, stays) in [("", true), ("server_fast_close = true", false)] {
        let at = |host: &str| {
            let pool = format!("[pool]\npool_mode = \"session\"\n{option}\n");
            format!("{pool}[databases.shop]\nurl = \"postgres://{host}:1\"\n")
        };
        let mut world = World::new(&at("127.0.0.1"));
        let anna = world.client();
        world.says(anna, "one");
        world.reload(&at("127.0.0.2"));
        world.pass(TICK);
        assert_eq!(world.is_there(anna), stays, "{option}");
    }
}

#[test]
fn a_server_whose_defaults_alone_are_old_stays_with_its_client() {
    let mut world = World::new("pool_mode = \"session\"\nserver_fast_close = true");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "one");
    let server = world.server_of(anna).expect("it is lent");
    // Somebody has changed the defaults of new sessions (`ALTER ROLE ... SET`).
    world.shared.renew("127.0.0.1:1");
    world.pass(TICK);
    assert_eq!((world.heard(anna).as_str(), world.is_up(server)), ("one\n", true));
    world.ends_stream(anna);
    world.pass(TICK);
    assert!(!world.is_up(server), "nobody else gets it");
    assert_eq!(world.asks(bob, "two"), "two\n");
}

#[test]
fn a_server_that_is_not_logged_in_gets_no_goodbye() {
    let mut world = World::new("");
    world.servers_answer = false;
    let _ = world.client();
    world.command(&Command::Kill(None));
    assert_eq!(world.server_heard(world.last_server()), "hello shop app\n");
    assert!(world.servers().is_empty());
}

#[test]
fn a_drain_closes_idle_servers_at_once_and_connects_no_others() {
    let mut world = World::new("min_pool_size = 2");
    let (anna, _bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.pass(TICK);
    assert_eq!(world.pool(0).idle().len(), 1);
    world.command(&Command::Drain);
    assert!(world.pool(0).idle().is_empty());
    let connects = world.connects();
    world.pass(10 * TICK);
    assert_eq!(world.connects(), connects);
}

#[test]
fn a_drain_waits_for_a_client_that_is_checked_as_soon_as_it_has_a_server() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.client_part(bob).session.phase = Phase::Checking;
    let conn = world.client_part(bob).conn();
    world.in_step(0, |step| assert_eq!(step.lend(conn), None));
    world.command(&Command::Drain);
    world.pass(TICK);
    assert!(world.is_there(bob));
}
