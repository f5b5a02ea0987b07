//! Idle servers that are asked whether they are there, before they are lent.

use std::time::Duration;

use refrain_echo::parts::Check;

use crate::harness::{ClientId, ServerId, World};

const PAST: Duration = Duration::from_secs(20);

/// Makes a world in which two clients have used a server each, which are idle since.
fn two_idle() -> (World, [ClientId; 2], [ServerId; 2]) {
    two_idle_of("pool_size = 2\nserver_check_delay = \"10s\"")
}

/// Makes such a world with these options.
fn two_idle_of(options: &str) -> (World, [ClientId; 2], [ServerId; 2]) {
    let mut world = World::new(options);
    let clients = [world.client(), world.client()];
    clients.into_iter().for_each(|client| world.says(client, "begin"));
    let servers = clients.map(|client| world.server_of(client).expect("it has one"));
    clients.into_iter().for_each(|client| {
        world.asks(client, "commit");
    });
    servers.into_iter().for_each(|server| drop(world.server_heard(server)));
    (world, clients, servers)
}

#[test]
fn a_server_that_was_idle_for_long_is_asked_and_lent_once_it_has_answered() {
    let mut world = World::new("server_check_delay = \"10s\"");
    let client = world.client();
    let server = world.last_server();
    world.server_heard(server);
    world.pass(Duration::from_secs(9));
    assert_eq!(world.asks(client, "early"), "early\n");
    assert_eq!(world.server_heard(server), "early\n");
    world.pass(PAST);
    world.servers_answer = false;
    assert_eq!(world.asks(client, "late"), "");
    assert_eq!(world.server_heard(server), "there\n");
    world.all_answer();
    assert_eq!((world.heard(client).as_str(), world.connects()), ("late\n", 1));
}

#[test]
fn no_server_is_asked_by_default() {
    let mut world = World::new("server_idle_timeout = \"never\"");
    let client = world.client();
    world.server_heard(world.last_server());
    world.pass(100 * PAST);
    world.asks(client, "late");
    assert_eq!(world.server_heard(world.last_server()), "late\n");
}

#[test]
fn as_many_servers_are_asked_as_clients_wait() {
    let (mut world, [anna, bob], servers) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    let heard = servers.map(|server| world.server_heard(server));
    assert_eq!(heard.concat(), "there\n", "one of them");
    world.says(bob, "his");
    let heard = servers.map(|server| world.server_heard(server));
    assert_eq!(heard.concat(), "there\n", "the other");
    world.all_answer();
    assert_eq!((world.heard(anna), world.heard(bob)), ("mine\n".to_owned(), "his\n".to_owned()));
    assert_eq!(world.connects(), 2);
}

#[test]
fn where_a_server_gives_no_answer_the_other_idle_ones_go_as_well() {
    let (mut world, [anna, _], servers) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    world.pass(Duration::from_secs(6));
    assert_eq!(servers.map(|server| world.is_up(server)), [false; 2]);
    world.all_answer();
    assert_eq!((world.heard(anna).as_str(), world.connects()), ("mine\n", 3));
}

#[test]
fn a_server_that_leaves_when_it_is_asked_costs_no_client_its_session() {
    let (mut world, [anna, _], [one, other]) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    let asked = if world.server_heard(one).is_empty() { other } else { one };
    world.servers_answer = true;
    world.server_leaves(asked);
    assert_eq!(world.heard(anna), "mine\n");
    assert!(!world.is_up(one) && !world.is_up(other));
}

#[test]
fn a_server_is_asked_before_it_goes_to_another_core() {
    let options = "pool_size = 1\nserver_check_delay = \"10s\"";
    let mut world = World::of_cores(2, options);
    let (_anna, bob) = (world.client_at(0), world.client_at(1));
    let server = world.last_server();
    world.pass(PAST);
    world.server_heard(server);
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!(world.server_heard(server), "there\nmine\n");
    assert_eq!((world.core_of(server), world.connects()), (1, 1));
}

#[test]
fn a_job_gives_a_client_no_server_that_was_not_asked() {
    for is_needed in [true, false] {
        let (mut world, [anna, _], servers) = two_idle();
        world.pass(PAST);
        world.servers_answer = false;
        world.says(anna, "mine");
        let pool = world.pool_id();
        world.in_step(0, |step| step.queue_job(pool, Check { is_needed }));
        assert_eq!(servers.map(|server| world.server_heard(server)), ["there\n", "there\n"]);
        world.all_answer();
        assert_eq!(
            (world.heard(anna).as_str(), world.checks(0).made),
            ("mine\n", is_needed.into())
        );
        assert_eq!(world.connects(), 2);
    }
}

#[test]
fn a_job_for_which_nothing_is_left_to_do_makes_no_server_look_fresh() {
    let (mut world, [anna, _], servers) = two_idle();
    world.pass(PAST);
    world.servers_answer = false;
    let pool = world.pool_id();
    world.in_step(0, |step| step.queue_job(pool, Check { is_needed: false }));
    world.says(anna, "mine");
    assert_eq!(servers.map(|server| world.server_heard(server)), ["there\n", "there\n"]);
}

#[test]
fn a_client_behind_a_job_that_waits_for_an_asked_server_gets_another_one() {
    let mut world = World::new("pool_size = 2\nserver_check_delay = \"10s\"");
    let anna = world.client();
    let server = world.last_server();
    world.server_heard(server);
    world.pass(PAST);
    world.servers_answer = false;
    let pool = world.pool_id();
    world.in_step(0, |step| step.queue_job(pool, Check { is_needed: true }));
    assert_eq!((world.server_heard(server).as_str(), world.connects()), ("there\n", 1));
    world.says(anna, "mine");
    assert_eq!(world.connects(), 2);
}

#[test]
fn clients_that_wait_for_an_answer_are_no_crowd() {
    let options = "pool_size = 2\nmax_waiting = 1\nserver_check_delay = \"10s\"";
    let (mut world, [anna, bob], servers) = two_idle_of(options);
    let [carl, dora] = [world.client(), world.client()];
    world.pass(PAST);
    world.servers_answer = false;
    world.says(anna, "mine");
    world.says(bob, "his");
    assert_eq!(servers.map(|server| world.server_heard(server)), ["there\n", "there\n"]);
    assert!(world.is_there(anna) && world.is_there(bob));
    // The third waits until another is done, and one may.
    world.says(carl, "late");
    assert!(world.is_there(carl));
    world.says(dora, "later");
    assert!(!world.is_there(dora));
    world.all_answer();
    assert_eq!([anna, bob, carl].map(|client| world.heard(client)), ["mine\n", "his\n", "late\n"]);
}

#[test]
fn clients_that_wait_behind_a_job_or_another_core_are_a_crowd() {
    let options = "pool_size = 1\nmax_waiting = 1\nserver_check_delay = \"10s\"";
    for is_job in [true, false] {
        let mut world = World::of_cores(2, options);
        let [anna, bob, carl] = [0, 0, 1].map(|core| world.client_at(core));
        world.pass(PAST);
        world.servers_answer = false;
        let pool = world.pool_id();
        match is_job {
            true => world.in_step(0, |step| step.queue_job(pool, Check { is_needed: true })),
            false => world.says(carl, "theirs"),
        }
        world.says(anna, "mine");
        world.says(bob, "his");
        assert!(world.is_there(anna) && !world.is_there(bob));
    }
}
