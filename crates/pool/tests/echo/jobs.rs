//! Jobs of the proxy's own: a free server does one before it is lent, or between two transactions
//! of a session.

use crate::harness::World;

#[test]
fn a_free_server_does_a_job_and_goes_to_the_pool() {
    let mut world = World::new("");
    let anna = world.client();
    world.checks(0).due = 1;
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.checks(0).made, 1);
    assert_eq!(world.server_heard(world.last_server()), "hello shop app\none\ncheck\n");
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_client_that_waits_comes_before_a_second_job() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.checks(0).due = 2;
    world.says(bob, "mine");
    world.says(anna, "commit");
    let heard = world.server_heard(world.last_server());
    assert!(heard.ends_with("commit\ncheck\nmine\ncheck\n"), "{heard}");
    assert_eq!(world.heard(bob), "mine\n");
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
    world.pass(std::time::Duration::from_secs(5));
    assert!(!world.is_up(server));
    assert_eq!(world.checks(0).lost, 1);
}
