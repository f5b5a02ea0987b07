//! Jobs of the proxy's own: they wait for a server in line with the clients, or concern one server,
//! which does its job before it is lent, or between two transactions of a session.

use std::time::Duration;

use refrain_pool::event::Command;

use crate::harness::{Connects, World};
use refrain_echo::parts::Check;

/// Puts a check in line.
fn queue(world: &mut World) {
    let pool = world.pool_id();
    world.in_step(0, |step| step.queue_job(pool, Check { is_needed: true }));
}

#[test]
fn a_job_stands_in_line_among_the_clients() {
    let mut world = World::new("pool_size = 1");
    let [anna, bob, carl] = [world.client(), world.client(), world.client()];
    world.says(anna, "begin");
    world.says(bob, "before");
    queue(&mut world);
    world.says(carl, "behind");
    assert_eq!((world.pool(0).waiting(), world.pool(0).waiting_jobs()), (2, 1));
    world.server_heard(world.last_server());
    world.says(anna, "commit");
    assert_eq!(world.server_heard(world.last_server()), "commit\nbefore\ncheck\nbehind\n");
    assert_eq!(world.checks(0).made, 1);
}

#[test]
fn a_job_begins_at_once_on_an_idle_server() {
    let mut world = World::new("");
    let _ = world.client();
    queue(&mut world);
    assert_eq!((world.checks(0).made, world.pool(0).idle().len()), (1, 1));
}

#[test]
fn a_job_waits_for_the_answer_of_the_server_whose_turn_it_is() {
    let options = "pool_size = 2\nserver_round_robin = true\nserver_check_delay = \"1s\"";
    let mut world = World::new(options);
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "begin");
    let first = world.server_of(anna).expect("it is lent");
    world.says(anna, "commit");
    world.pass(Duration::from_secs(2));
    // The second is fresh.
    world.says(bob, "commit");
    world.server_heard(first);
    world.servers_answer = false;
    queue(&mut world);
    assert_eq!(world.server_heard(first), "there\n");
    world.all_answer();
    assert_eq!(world.checks(0).made, 1);
}

#[test]
fn a_job_for_which_nothing_is_left_to_do_makes_way() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    let pool = world.pool_id();
    world.in_step(0, |step| step.queue_job(pool, Check { is_needed: false }));
    world.says(bob, "mine");
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.checks(0).made), ("mine\n", 0));
}

#[test]
fn a_job_connects_no_server_and_takes_none_from_another_core() {
    let mut world = World::of_cores(2, "pool_size = 2\nserver_idle_timeout = \"1s\"");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(bob, "begin");
    world.pass(Duration::from_secs(2));
    let before = world.connects();
    queue(&mut world);
    world.pass(Duration::from_secs(2));
    world.says(bob, "commit");
    assert_eq!((world.connects(), world.pool(0).servers()), (before, 0));
    assert_eq!((world.pool(1).asking(), world.pool(0).waiting_jobs()), (0, 1));
    // The job has waited longer than the client that needs the server.
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.checks(0).made, 1);
}

#[test]
fn a_job_is_no_client_to_the_limit_of_clients_that_wait() {
    let mut world = World::new("pool_size = 1\nmax_waiting = 1");
    let [anna, bob, carl] = [world.client(), world.client(), world.client()];
    world.says(anna, "begin");
    queue(&mut world);
    world.says(bob, "mine");
    assert!(world.is_there(bob));
    world.says(carl, "mine");
    assert!(!world.is_there(carl));
}

#[test]
fn a_job_keeps_its_place_while_its_pool_is_paused() {
    let mut world = World::new("query_wait_timeout = \"1s\"");
    let anna = world.client();
    world.command(&Command::Pause(None));
    queue(&mut world);
    world.pass(Duration::from_secs(2));
    world.command(&Command::Resume(None));
    assert_eq!(world.pool(0).waiting_jobs(), 1);
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!((world.checks(0).made, world.checks(0).lost), (1, 0));
}

#[test]
fn a_job_of_a_pool_that_is_removed_is_lost() {
    let url = "url = \"postgres://127.0.0.1:1\"\n";
    let mut world = World::new(&format!("[databases.shop]\n{url}[databases.bank]\n{url}"));
    let anna = world.client();
    world.says(anna, "begin");
    queue(&mut world);
    world.reload(&format!("[databases.bank]\n{url}"));
    assert_eq!((world.checks(0).lost, world.pool(0).waiting_jobs()), (1, 0));
    queue(&mut world);
    assert_eq!((world.checks(0).lost, world.pool(0).waiting_jobs()), (2, 0));
}

#[test]
fn a_job_is_lost_if_no_server_can_be_reached() {
    let mut world = World::new("");
    let (anna, bob) = (world.client(), world.client());
    world.server_leaves(world.last_server());
    queue(&mut world);
    world.connects = Connects::Never;
    world.says(anna, "one");
    assert_eq!(world.heard(anna), "error server_down\n");
    assert_eq!((world.checks(0).lost, world.pool(0).waiting_jobs()), (1, 0));
    assert!(world.is_there(bob));
}

#[test]
fn no_job_begins_on_a_server_that_has_to_leave() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    queue(&mut world);
    world.checks(0).due = 1;
    world.says(bob, "mine");
    world.command(&Command::Drain);
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "mine\nerror shutdown\n");
    assert_eq!((world.checks(0).made, world.servers().len()), (0, 0));
}

#[test]
fn a_job_begins_when_its_database_is_drained_no_more() {
    for runs_out in [false, true] {
        let mut world = World::of_cores(2, "pool_size = 1");
        let (anna, bob) = (world.client_at(0), world.client_at(1));
        world.says(anna, "begin");
        world.says(bob, "mine");
        let (conn, now) = (world.client_part(anna).conn(), world.now);
        world.engine(0).core_state.database_drain.ask(b"shop", conn, now);
        queue(&mut world);
        // The other core wants the server, which stays until it has read its input.
        world.server_stops_reading(world.last_server());
        world.says(anna, "commit");
        world.server_says(world.last_server(), "commit\n");
        assert_eq!((world.pool(0).idle().len(), world.pool(0).waiting_jobs()), (1, 1));
        match runs_out {
            true => world.pass(Duration::from_secs(8)),
            false => world.in_step(0, |step| step.drained_database(conn)),
        }
        assert_eq!((world.pool(0).idle().len(), world.pool(0).waiting_jobs()), (0, 0));
    }
}

#[test]
fn a_client_of_another_core_comes_before_a_job() {
    let mut world = World::of_cores(2, "pool_size = 1");
    let (anna, bob) = (world.client_at(0), world.client_at(1));
    world.says(anna, "begin");
    queue(&mut world);
    world.says(bob, "mine");
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.checks(0).made), ("mine\n", 0));
}

#[test]
fn a_free_server_does_a_job_of_its_own_and_goes_to_the_pool() {
    let mut world = World::new("");
    let anna = world.client();
    world.checks(0).due = 1;
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.checks(0).made, 1);
    assert_eq!(world.server_heard(world.last_server()), "hello shop app\none\ncheck\n");
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_session_gets_its_server_back_behind_a_job() {
    let mut world = World::new("pool_mode = \"session\"");
    let anna = world.client();
    world.says(anna, "one");
    world.checks(0).due = 1;
    world.servers_answer = false;
    let server = world.last_server();
    world.says(anna, "two");
    world.server_says(server, "two\n");
    assert!(world.server_part(server).is_at_work());
    // The line that the client sends meanwhile waits.
    world.server_heard(server);
    world.says(anna, "three");
    assert_eq!(world.server_heard(server), "");
    world.server_says(server, "check\n");
    assert_eq!(world.server_heard(server), "three\n");
    assert_eq!((world.server_of(anna), world.checks(0).made), (Some(server), 1));
}

#[test]
fn a_job_goes_on_without_the_client_that_waited() {
    let mut world = World::new("pool_mode = \"session\"");
    let anna = world.client();
    world.checks(0).due = 1;
    world.servers_answer = false;
    let server = world.last_server();
    world.says(anna, "one");
    world.server_says(server, "one\n");
    world.breaks(anna);
    assert!(world.server_part(server).is_at_work());
    world.server_says(server, "check\n");
    assert_eq!((world.pool(0).idle().len(), world.checks(0).made), (1, 1));
}

#[test]
fn a_job_is_lost_with_its_server() {
    let mut world = World::new("pool_mode = \"session\"");
    let anna = world.client();
    world.checks(0).due = 1;
    world.servers_answer = false;
    world.says(anna, "one");
    let server = world.last_server();
    world.server_says(server, "one\n");
    world.server_leaves(server);
    assert_eq!((world.checks(0).lost, world.checks(0).made), (1, 0));
    assert_eq!(world.heard(anna), "one\nerror server_gone\n");
}

#[test]
fn a_job_may_take_so_long_without_a_client() {
    let mut world = World::new("");
    let anna = world.client();
    world.says(anna, "begin");
    world.checks(0).due = 1;
    world.servers_answer = false;
    let server = world.last_server();
    world.says(anna, "commit");
    world.server_says(server, "commit\n");
    assert!(world.server_part(server).is_at_work());
    world.pass(Duration::from_secs(5));
    assert!(!world.is_up(server));
    assert_eq!(world.checks(0).lost, 1);
}
