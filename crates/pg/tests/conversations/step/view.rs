//! Snapshots of a core, for the console and the metrics.

use refrain_pg::Snapshot;
use refrain_pool::snapshot::{ClientViewState, Extent, ServerViewState};

use crate::talk::*;

#[test]
fn clients_and_servers_are_shown_as_they_are() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select 1")]);
    let view = talk.snapshot();
    let states: Vec<_> = view.clients.iter().map(|client| client.state).collect();
    assert_eq!(states, [ClientViewState::Active, ClientViewState::Waiting]);
    assert_eq!(view.servers[0].state, ServerViewState::Active);
    assert_eq!(view.servers[0].client, Some(view.clients[0].serial));
    assert_eq!(view.clients[0].server, Some(view.servers[0].serial));
    assert_eq!((view.pools[0].waiting, &*view.pools[0].database), (1, "d"));
    alice.commits(&server);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row());
    assert_eq!(talk.snapshot().servers[0].state, ServerViewState::Idle);
}

#[test]
fn a_pool_for_replication_is_shown_as_one_whose_servers_have_one_client_each() {
    let talk = one_server();
    let (_alice, _bob) = (talk.client(), talk.client_with(&[("replication", "true")]));
    talk.server(2).gets_nothing();
    let view = talk.snapshot();
    let pools: Vec<_> = view.pools.iter().map(|pool| pool.is_dedicated).collect();
    assert_eq!(pools, [false, true]);
    let servers: Vec<_> = view.servers.iter().map(|server| server.is_dedicated).collect();
    assert_eq!(servers, [false, true]);
}

#[test]
fn connections_at_their_login_are_counted_apart() {
    let talk = one_server().by_hand();
    let (_silent, alice) = (talk.newcomer(), talk.newcomer());
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(0, b"")]);
    let view = talk.snapshot();
    assert_eq!((view.clients.len(), view.logging_in), (0, 2));
    assert_eq!(view.servers[0].state, ServerViewState::Login);
}

#[test]
fn statements_and_hits_are_counted_for_client_and_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", "update t set a = 1", "~1");
    alice.runs(&server, "s", [bind("", "~1")]);
    let view = talk.snapshot();
    assert_eq!(view.clients[0].session.statements, 1);
    let server = &view.servers[0];
    assert_eq!(
        (server.session.statements, server.session.prepare_hits, server.session.prepare_misses),
        (1, 2, 1)
    );
    assert_eq!(view.pools[0].counters.protocol.server_parses, 2);
}

#[test]
fn the_wait_of_the_first_client_in_line_is_told() {
    let talk = one_server();
    let (alice, bob) = (talk.client(), talk.client());
    alice.opens_block(&talk.server(1));
    bob.sends([query("select 1")]);
    talk.waits(std::time::Duration::from_secs(3));
    let waited = talk.snapshot().pools[0].max_wait_us;
    assert!((3_000_000..3_200_000).contains(&waited), "{waited}");
}

#[test]
fn a_part_of_a_snapshot_has_the_clients_that_it_says_and_counts_the_others() {
    let talk = one_server();
    let (alice, bob, _carol, server) =
        (talk.client(), talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, "create temp table t (a int)", [complete("CREATE TABLE"), ready()]);
    bob.sends([query("select 1")]);
    let all: Vec<_> = talk.snapshot().clients.iter().map(|client| client.serial).collect();
    let notable = talk.snapshot_of(Extent::NOTABLE);
    let shown: Vec<_> = notable.clients.iter().map(|client| client.serial).collect();
    assert_eq!(shown, all[..2], "one keeps its server, and one waits");
    let counts = |view: &Snapshot| (view.pools[0].active, view.pools[0].waiting, view.connections);
    assert_eq!(counts(&notable), (2, 1, 3));
    assert_eq!((notable.servers.len(), notable.logging_in), (1, 0));
    let outline = talk.snapshot_of(Extent::OUTLINE);
    assert!(outline.clients.is_empty());
    assert_eq!(counts(&outline), (0, 1, 3));
    assert_eq!(outline.servers[0].state, ServerViewState::Active);
    assert_eq!(outline.pools[0].counters.pool.queries, notable.pools[0].counters.pool.queries);
}
