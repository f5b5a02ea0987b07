//! Lending: a client gets a server for a transaction, waits its turn, and gives the server back.

use crate::harness::World;

#[test]
fn a_client_is_let_in_once_a_server_is_reached() {
    let mut world = World::new("");
    let anna = world.silent_client(0);
    world.says(anna, "shop app");
    assert!(world.heard(anna).starts_with("welcome 1 "));
    assert_eq!(world.connects(), 1);
    // The database is there: the next client needs no server of its own.
    let _ = world.client();
    assert_eq!(world.connects(), 1);
    assert_eq!(world.engine(0).client_count(), 2);
}

#[test]
fn a_line_is_echoed_and_the_server_goes_back() {
    let mut world = World::new("");
    let anna = world.client();
    assert_eq!(world.asks(anna, "hello"), "hello\n");
    assert_eq!(world.server_of(anna), None);
    assert_eq!(world.pool(0).idle().len(), 1);
    let counters = world.counters(0);
    assert_eq!((counters.server_assignments, counters.xacts, counters.queries), (1, 1, 1));
    assert_eq!(counters.bytes_received, 6);
}

#[test]
fn a_login_and_a_line_may_arrive_in_pieces_or_at_once() {
    let mut world = World::new("");
    let anna = world.silent_client(0);
    world.sends(anna, "sh");
    world.sends(anna, "op app\none\ntw");
    world.sends(anna, "o\n");
    assert!(world.heard(anna).ends_with("\none\ntwo\n"));
}

#[test]
fn a_transaction_holds_the_server() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    assert_eq!(world.asks(anna, "begin"), "begin\n");
    assert!(world.server_of(anna).is_some());
    assert_eq!(world.asks(bob, "mine"), "");
    assert_eq!(world.pool(0).waiting(), 1);
    assert_eq!(world.asks(anna, "commit"), "commit\n");
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.counters(0).server_assignments, 2);
    assert_eq!(world.counters(0).xacts, 2);
    assert_eq!(world.pool(0).counters.wait_time.total(), 1);
}

#[test]
fn a_session_holds_the_server_in_session_mode() {
    let mut world = World::new("pool_mode = \"session\"\npool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    assert_eq!(world.asks(anna, "one"), "one\n");
    let server = world.server_of(anna).expect("a session keeps its server");
    assert_eq!(world.asks(bob, "mine"), "");
    assert_eq!(world.counters(0).xacts, 1);
    world.ends_stream(anna);
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.server_of(bob), Some(server));
}

#[test]
fn clients_are_served_in_the_order_in_which_they_came() {
    let mut world = World::new("pool_size = 1");
    let [anna, bob, carl] = [world.client(), world.client(), world.client()];
    world.says(anna, "begin");
    world.says(bob, "begin");
    world.says(carl, "begin");
    world.says(anna, "commit");
    assert_eq!((world.heard(bob).as_str(), world.heard(carl).as_str()), ("begin\n", ""));
    // A client that comes back stands behind those that wait.
    world.says(anna, "again");
    world.says(bob, "commit");
    assert_eq!(world.heard(carl), "begin\n");
    assert!(!world.heard(anna).contains("again"));
    world.says(carl, "commit");
    assert_eq!(world.heard(anna), "again\n");
}

#[test]
fn the_server_used_last_is_lent_first() {
    let mut world = World::new("pool_size = 2");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "begin");
    let [first, second] = [anna, bob].map(|client| world.server_of(client).expect("it is lent"));
    assert_ne!(first, second);
    world.says(bob, "commit");
    world.says(anna, "commit");
    world.says(bob, "begin");
    assert_eq!(world.server_of(bob), Some(first));
}

#[test]
fn servers_take_turns_if_they_are_to() {
    let mut world = World::new("pool_size = 2\nserver_round_robin = true");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "begin");
    let [first, second] = [anna, bob].map(|client| world.server_of(client).expect("it is lent"));
    world.says(anna, "commit");
    world.says(bob, "commit");
    let lent = |world: &mut World| {
        world.says(anna, "begin");
        let server = world.server_of(anna).expect("it is lent");
        world.says(anna, "commit");
        server
    };
    assert_eq!([0; 3].map(|_| lent(&mut world)), [first, second, first]);
    world.reload("pool_size = 2");
    assert_eq!([0; 3].map(|_| lent(&mut world)), [first; 3]);
    world.reload("pool_size = 2\nserver_round_robin = true");
    assert_eq!([0; 2].map(|_| lent(&mut world)), [second, first]);
}

#[test]
fn a_server_that_was_idle_for_too_long_is_passed_over_in_its_turn() {
    let options = "pool_size = 2\nserver_round_robin = true\nserver_check_delay = \"1s\"";
    let mut world = World::new(options);
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "begin");
    let second = world.server_of(bob).expect("it is lent");
    world.says(anna, "commit");
    world.pass(std::time::Duration::from_secs(2));
    world.says(bob, "commit");
    world.says(anna, "begin");
    assert_eq!(world.server_of(anna), Some(second));
}

#[test]
fn what_a_client_sends_while_it_waits_is_kept_in_order() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.sends(bob, "one\ntw");
    world.sends(bob, "o\nthree\n");
    world.says(anna, "commit");
    assert_eq!(world.heard(bob), "one\ntwo\nthree\n");
}

#[test]
fn a_pool_has_servers_of_its_own() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client_of("shop anna"), world.client_of("shop bob"));
    world.says(anna, "begin");
    assert_eq!(world.asks(bob, "mine"), "mine\n");
    assert_eq!(world.connects(), 2);
    assert_eq!(world.server_heard(world.last_server()), "hello shop bob\nmine\n");
}

#[test]
fn a_client_that_leaves_amid_a_transaction_leaves_none_behind() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(bob, "mine");
    let server = world.server_of(anna).expect("it is lent");
    world.server_heard(server);
    world.breaks(anna);
    assert_eq!(world.heard(bob), "mine\n");
    assert_eq!(world.server_heard(server), "rollback\nmine\n");
    assert!(!world.is_there(anna));
}

#[test]
fn a_server_finishes_for_a_client_that_has_left() {
    let mut world = World::new("pool_size = 1");
    let (anna, bob) = (world.client(), world.client());
    world.servers_answer = false;
    world.sends(anna, "one\ntwo\n");
    world.says(bob, "mine");
    world.breaks(anna);
    let server = world.last_server();
    assert_eq!(world.pool(0).waiting(), 1, "the server owes two lines");
    world.server_says(server, "one\n");
    assert_eq!(world.pool(0).waiting(), 1, "the server owes a line");
    world.server_says(server, "two\n");
    world.server_says(server, "mine\n");
    assert_eq!(world.heard(bob), "mine\n");
}
