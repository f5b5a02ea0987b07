//! Shared servers: reads of several clients under way on one server.

use std::collections::HashSet;
use std::time::Duration;

use refrain_pool::event::Command;

use crate::cancel::{cancel, client};
use crate::harness::{ClientId, ServerId, World};

/// Makes a world in which three servers are in transactions, and the first that runs a read is
/// shared. Servers do not answer.
fn busy_world(options: &str) -> World {
    let mut world = World::new(&format!("pool_size = 6\nshare_min_servers = 1\n{options}"));
    for _ in 0..3 {
        let client = world.client();
        world.says(client, "begin");
    }
    world.servers_answer = false;
    world
}

/// Has clients read on one server, in this order.
fn readers<const N: usize>(world: &mut World, texts: [&str; N]) -> ([ClientId; N], ServerId) {
    let clients = texts.map(|_| world.client());
    for (client, text) in clients.iter().zip(texts) {
        world.says(*client, text);
        next_server(world, *client);
    }
    let server = world.server_of(clients[0]).expect("a server works for the first client");
    assert!(clients.iter().all(|client| world.server_of(*client) == Some(server)));
    (clients, server)
}

/// Returns the server of a client, which logs in first if need be.
fn next_server(world: &mut World, client: ClientId) -> ServerId {
    if world.server_of(client).is_none() {
        let server = world.last_server();
        world.server_says(server, "welcome 104 secret\n");
    }
    world.server_of(client).expect("a server works for the client")
}

#[test]
fn each_client_gets_the_reply_to_its_own_read() {
    let mut world = busy_world("");
    let ([anna, bob, carl], server) = readers(&mut world, ["get a", "get b", "get c"]);
    assert_eq!(world.server_heard(server), "hello shop app\nget a\nget b\nget c\n");
    world.server_says(server, "get a\nget b\n");
    assert_eq!((world.heard(anna), world.heard(bob)), ("get a\n".into(), "get b\n".into()));
    assert_eq!(world.heard(carl), "");
    world.server_says(server, "get c\n");
    assert_eq!(world.heard(carl), "get c\n");
    assert_eq!(world.server_of(carl), None);
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn servers_in_transactions_do_not_make_reads_share() {
    let mut world = World::new("pool_size = 12\nshare_min_servers = 4");
    for _ in 0..5 {
        let client = world.client();
        world.says(client, "begin");
    }
    world.servers_answer = false;
    let mut servers = Vec::new();
    for _ in 0..5 {
        let client = world.client();
        world.says(client, "get a");
        servers.push(next_server(&mut world, client));
    }
    assert_eq!(servers.pop(), Some(servers[0]));
    let used: HashSet<usize> = servers.iter().map(|server| server.0).collect();
    assert_eq!(used.len(), 4, "four run reads");
}

#[test]
fn a_line_beyond_the_width_ends() {
    let mut world = busy_world("share_depth = 2");
    let (_, server) = readers(&mut world, ["get a", "get b"]);
    let ([carl], other) = readers(&mut world, ["get c"]);
    assert_ne!(server, other, "the first line is full");
    world.server_says(server, "get a\n");
    // There is room behind both, and the line that is beyond the width is left alone.
    let (_, third) = readers(&mut world, ["get d"]);
    assert_eq!(third, server);
    world.server_says(other, "get c\n");
    assert_eq!(world.heard(carl), "get c\n");
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn more_servers_are_used_if_they_answer_more() {
    let options = "share_min_servers = 4\nshare_depth = 64\nshare_statement_time = \"1min\"";
    let mut world = World::new(&format!("pool_size = 12\n{options}"));
    let clients: Vec<ClientId> = (0..200).map(|_| world.client()).collect();
    // All servers are there.
    clients[..12].iter().for_each(|client| world.says(*client, "begin"));
    clients[..12].iter().for_each(|client| world.says(*client, "commit"));
    (world.servers_answer, world.checks) = (false, false);
    let mut used = Vec::new();
    for _ in 0..150 {
        for client in &clients {
            if world.server_of(*client).is_none() {
                world.says(*client, "get a");
            }
        }
        let owed: Vec<(ServerId, u32)> = world
            .servers()
            .into_iter()
            .map(|server| (server, world.server_part(server).session.owed))
            .collect();
        used.push(owed.iter().filter(|(_, owed)| *owed > 0).count());
        // In the time between two ticks, each server answers so many reads at most.
        for (server, owed) in owed {
            world.server_says(server, &"get a\n".repeat(owed.min(15) as usize));
        }
        world.pass(Duration::from_millis(100));
    }
    assert_eq!(used[1..4], [4; 3]);
    assert_eq!(used.last(), Some(&12), "{used:?}");
}

#[test]
fn reads_that_wait_join_when_a_server_is_free() {
    let mut world = World::new("pool_size = 1\nshare_min_servers = 1\nshare_depth = 3");
    let first = world.client();
    world.says(first, "begin");
    let clients: [ClientId; 6] = [(); 6].map(|()| world.client());
    world.servers_answer = false;
    for (client, text) in clients.iter().zip(["get a", "set b", "get c", "get d", "set e", "get f"])
    {
        world.says(*client, text);
    }
    let server = world.server_of(first).expect("it is lent");
    world.server_heard(server);
    world.says(first, "commit");
    world.server_says(server, "commit\n");
    // Who asks for something else waits for a server of its own, and the line has an end.
    assert_eq!(world.server_heard(server), "commit\nget a\nget c\n");
    let late = world.client();
    world.says(late, "get g");
    world.server_says(server, "get a\nget c\n");
    assert_eq!(world.server_heard(server), "set b\n");
    world.server_says(server, "set b\n");
    assert_eq!(world.server_heard(server), "get d\nget f\n");
    world.server_says(server, "get d\nget f\n");
    assert_eq!(world.server_heard(server), "set e\n");
    world.server_says(server, "set e\n");
    assert_eq!(world.server_heard(server), "get g\n");
    for (client, text) in clients.iter().zip(["get a", "set b", "get c", "get d", "set e", "get f"])
    {
        assert_eq!(world.heard(*client), format!("{text}\n"));
    }
}

#[test]
fn the_time_of_a_read_counts_from_the_end_of_the_one_before_though_its_client_left() {
    let mut world = busy_world("share_statement_time = \"200ms\"");
    let ([_, bob, _, dora], server) = readers(&mut world, ["get a", "get b", "get c", "get d"]);
    world.breaks(bob);
    world.pass(Duration::from_millis(150));
    world.server_says(server, "get a\n");
    world.pass(Duration::from_millis(150));
    world.server_says(server, "get b\n");
    world.pass(Duration::from_millis(150));
    assert_eq!(world.server_of(dora), Some(server), "the server has just begun");
    world.pass(Duration::from_millis(50));
    assert_ne!(world.server_of(dora), Some(server));
}

#[test]
fn servers_are_not_shared_while_few_are_at_work() {
    let mut world = World::new("pool_size = 6");
    let (anna, bob) = (world.client(), world.client());
    world.says(anna, "begin");
    world.says(anna, "commit");
    world.servers_answer = false;
    world.says(anna, "get a");
    world.says(bob, "get b");
    assert_ne!(world.server_of(anna), world.server_of(bob));
}

#[test]
fn a_server_with_more_than_a_read_is_not_shared() {
    let mut world = busy_world("");
    let [anna, bob] = [world.client(), world.client()];
    world.sends(anna, "get a\nget a\n");
    let server = world.last_server();
    world.server_says(server, "welcome 104 secret\n");
    world.says(bob, "get b");
    assert_eq!(world.server_of(anna), Some(server));
    assert_ne!(world.server_of(bob), Some(server));
}

#[test]
fn the_next_request_of_a_client_comes_behind_its_reply() {
    let mut world = busy_world("");
    let ([anna, bob], server) = readers(&mut world, ["get a", "get b"]);
    world.says(anna, "set a");
    assert_eq!(world.server_heard(server), "hello shop app\nget a\nget b\n");
    world.server_says(server, "get a\n");
    assert_eq!(world.server_of(bob), Some(server));
    let other = next_server(&mut world, anna);
    world.server_says(other, "set a\n");
    world.server_says(server, "get b\n");
    assert_eq!(world.heard(anna), "get a\nset a\n");
    assert_eq!(world.heard(bob), "get b\n");
}

#[test]
fn a_line_has_no_more_requests_than_share_depth() {
    let mut world = busy_world("share_depth = 2");
    let (_, server) = readers(&mut world, ["get a", "get b"]);
    let carl = world.client();
    world.says(carl, "get c");
    assert_ne!(world.server_of(carl), Some(server));
}

#[test]
fn those_behind_a_slow_read_go_elsewhere() {
    let mut world = busy_world("share_statement_time = \"200ms\"");
    let ([anna, bob, carl], server) = readers(&mut world, ["get a", "get b", "get c"]);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.server_of(bob), Some(server));
    world.pass(Duration::from_millis(100));
    assert_eq!(world.counters(0).requests_resent, 2);
    for (client, text) in [(bob, "get b\n"), (carl, "get c\n")] {
        let new = next_server(&mut world, client);
        assert_ne!(new, server);
        world.server_says(new, text);
        assert_eq!(world.heard(client), text);
    }
    // Nobody gets the late replies, and the server goes back to the pool.
    let idle = world.pool(0).idle().len();
    world.server_says(server, "get a\nget b\n");
    assert_eq!(world.heard(anna), "get a\n");
    assert_eq!(world.pool(0).idle().len(), idle);
    world.server_says(server, "get c\n");
    assert_eq!(world.pool(0).idle().len(), idle + 1);
    assert_eq!((world.heard(bob), world.heard(carl)), (String::new(), String::new()));
}

#[test]
fn a_read_that_was_sent_again_has_its_server_to_itself() {
    let mut world = busy_world("share_statement_time = \"200ms\"");
    let ([_, bob], server) = readers(&mut world, ["get a", "get b"]);
    world.pass(Duration::from_millis(200));
    let new = next_server(&mut world, bob);
    assert_ne!(new, server);
    let carl = world.client();
    world.says(carl, "get c");
    assert_ne!(world.server_of(carl), Some(new));
}

#[test]
fn reads_behind_a_lost_server_run_elsewhere() {
    let mut world = busy_world("");
    let ([anna, bob], server) = readers(&mut world, ["get a", "get b"]);
    world.servers_answer = true;
    world.server_leaves(server);
    assert_eq!((world.heard(anna), world.heard(bob)), ("get a\n".into(), "get b\n".into()));
    assert_eq!(world.counters(0).requests_resent, 2);
}

#[test]
fn a_read_that_has_cost_two_servers_runs_on_no_third() {
    let mut world = busy_world("");
    let ([anna], server) = readers(&mut world, ["get a"]);
    world.server_leaves(server);
    let other = next_server(&mut world, anna);
    world.server_leaves(other);
    assert!(!world.is_there(anna));
}

#[test]
fn a_client_that_has_sent_more_than_a_read_leaves_with_its_server() {
    let mut world = busy_world("");
    let ([anna], server) = readers(&mut world, ["get a"]);
    world.says(anna, "set a");
    world.server_leaves(server);
    assert!(!world.is_there(anna));
}

#[test]
fn a_client_that_leaves_the_line_takes_nothing_with_it() {
    let mut world = busy_world("");
    let ([anna, bob, carl], server) = readers(&mut world, ["get a", "get b", "get c"]);
    world.breaks(bob);
    world.server_says(server, "get a\nget b\nget c\n");
    assert_eq!((world.heard(anna), world.heard(carl)), ("get a\n".into(), "get c\n".into()));
    assert_eq!(world.pool(0).idle().len(), 1);
}

#[test]
fn a_holder_that_leaves_leaves_the_server_to_the_next() {
    let mut world = busy_world("");
    let ([anna, bob], server) = readers(&mut world, ["get a", "get b"]);
    world.breaks(anna);
    assert_eq!(world.server_of(bob), Some(server));
    world.server_says(server, "get a\n");
    assert_eq!(world.heard(bob), "");
    world.server_says(server, "get b\n");
    assert_eq!(world.heard(bob), "get b\n");
}

#[test]
fn a_holder_that_reads_slowly_is_left_alone() {
    let mut world = busy_world("buffer_high = \"8KiB\"\nbuffer_low = \"1KiB\"");
    let ([anna, bob], server) = readers(&mut world, ["get a", "get b"]);
    world.stops_reading(anna);
    world.server_says(server, &format!("{}\n", "x".repeat(20_000)));
    let new = next_server(&mut world, bob);
    assert_ne!(new, server);
    world.server_says(new, "get b\n");
    assert_eq!(world.heard(bob), "get b\n");
    let counters = world.counters(0);
    assert_eq!((counters.requests_moved, counters.requests_resent), (1, 0));
}

#[test]
fn a_cancel_request_hits_its_own_statement() {
    let mut world = busy_world("");
    let (anna, (bob, key), carl) = (world.client(), client(&mut world, 0), world.client());
    for (client, text) in [(anna, "get a"), (bob, "get b"), (carl, "get c")] {
        world.says(client, text);
        next_server(&mut world, client);
    }
    let server = world.server_of(anna).expect("it is lent");
    let connects = world.connects();
    cancel(&mut world, 0, &key);
    assert_eq!(world.connects(), connects, "the server works for another client");
    world.server_says(server, "get a\n");
    // Now it is the client's turn: the request goes out, and the client behind goes elsewhere.
    assert_ne!(world.server_of(carl), Some(server));
    assert_eq!(world.server_of(bob), Some(server));
    assert_eq!(world.counters(0).cancels, 1);
}

#[test]
fn a_long_request_shares_no_server() {
    let mut world = busy_world("");
    let long = format!("get {}", "x".repeat(9000));
    let ([anna], server) = readers(&mut world, ["get a"]);
    let bob = world.client();
    world.says(bob, &long);
    let other = next_server(&mut world, bob);
    assert_ne!(other, server, "nor is it kept");
    assert!(world.client_part(bob).request().is_none());
    assert!(world.client_part(anna).request().is_some());
    assert_eq!(world.counters(0).requests_alone_large, 1);
}

#[test]
fn requests_alone_are_counted_by_reason() {
    let mut world = busy_world("share_depth = 2");
    readers(&mut world, ["get a", "get b"]);
    let carl = world.client();
    world.says(carl, "get c");
    assert_eq!(world.counters(0).requests_alone_full, 1);
    let other = next_server(&mut world, carl);
    world.server_part(other).session.in_transaction = true;
    let dora = world.client();
    world.says(dora, "get d");
    next_server(&mut world, dora);
    assert_eq!(world.counters(0).requests_alone_unfit, 1);
    // All servers are in use, so the next one waits, and the one behind it.
    for _ in 0..3 {
        let client = world.client();
        world.says(client, "get e");
    }
    let counters = world.counters(0);
    assert_eq!((counters.requests_alone_wait, counters.requests_shared), (1, 2));
}

#[test]
fn the_time_in_line_is_counted() {
    let mut world = busy_world("share_statement_time = \"1s\"");
    let (_, server) = readers(&mut world, ["get a", "get b"]);
    world.pass(Duration::from_millis(300));
    world.server_says(server, "get a\n");
    let times = &world.pool(0).counters.turn_time;
    assert_eq!((times.total(), times.sum_us), (1, 300_000));
}

#[test]
fn nobody_joins_a_server_that_has_to_leave() {
    for command in [Command::Pause(None), Command::Reconnect(None)] {
        let mut world = busy_world("");
        let ([anna, _], server) = readers(&mut world, ["get a", "get b"]);
        let carl = world.client();
        world.command(&command);
        world.says(carl, "get c");
        assert_ne!(world.server_of(carl), Some(server), "{command:?}");
        // So the server comes to its end, however many others read.
        world.server_says(server, "get a\nget b\n");
        assert_eq!(world.heard(anna), "get a\n");
        assert!(!world.is_up(server), "{command:?}");
    }
}

#[test]
fn nobody_joins_while_another_core_wants_a_server() {
    let mut world = World::of_cores(2, "pool_size = 4");
    for _ in 0..3 {
        let client = world.client();
        world.says(client, "begin");
    }
    world.servers_answer = false;
    let ([anna], server) = readers(&mut world, ["get a"]);
    let other = world.client_at(1);
    world.says(other, "get o");
    world.now = world.now.after(Duration::from_millis(10));
    let bob = world.client();
    world.says(bob, "get b");
    assert_ne!(world.server_of(bob), Some(server));
    world.server_says(server, "get a\n");
    assert_eq!((world.heard(anna), world.core_of(server)), ("get a\n".into(), 1));
}

#[test]
fn nobody_joins_a_server_whose_client_has_left() {
    let mut world = busy_world("");
    let ([anna], server) = readers(&mut world, ["get a"]);
    world.breaks(anna);
    let bob = world.client();
    world.says(bob, "get b");
    assert_ne!(world.server_of(bob), Some(server));
}

#[test]
fn reads_share_as_long_as_they_take_no_longer_together_than_one_may() {
    let mut world = busy_world("share_statement_time = \"5ms\"");
    let ([anna, ..], server) = readers(&mut world, ["get a 2000", "get b 2000"]);
    let carl = world.client();
    world.says(carl, "get c 2000");
    assert_ne!(next_server(&mut world, carl), server, "three would take 6 ms");
    // The first is over, and its time counts no more.
    world.server_says(server, "get a 2000\n");
    assert_eq!(world.heard(anna), "get a 2000\n");
    let dora = world.client();
    world.says(dora, "get d 1000");
    assert_eq!(world.server_of(dora), Some(server));
}
