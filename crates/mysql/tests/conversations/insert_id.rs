//! LAST_INSERT_ID() in transaction mode: each client has its own number.

use refrain_mysql_wire::{command, packet};

use crate::packets::command as written;
use crate::world::{ClientId, USUAL, World, talk};

/// A pool of one server.
const ONE: &str = "pool_size = 1";

/// Returns what LAST_INSERT_ID() tells a client.
fn number(world: &mut World, client: ClientId) -> String {
    let told = world.query(client, "SELECT LAST_INSERT_ID()");
    match told.split("row ").nth(1) {
        Some(row) => row.split(',').next().unwrap_or_default().to_owned(),
        None => told,
    }
}

#[test]
fn a_number_that_a_statement_names_leaves_the_one_before() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "insert:5"), "ok");
        assert_eq!(world.query(second, "replace:7"), "ok");
        assert_eq!(number(world, second), "0");
        assert_eq!(world.query(first, "replace:9"), "ok");
        assert_eq!(number(world, first), "5");
        assert_eq!(number(world, second), "0");
    });
}

#[test]
fn the_number_follows_its_client() {
    talk("pool_size = 2", |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin insert:5"), "ok trans more, ok trans");
        assert_eq!(number(world, first), "5");
        assert_eq!(world.query(second, "insert:7"), "ok");
        assert_eq!(number(world, second), "7");
        assert_eq!(world.query(first, "commit"), "ok");
        // The server that was given back last is taken first.
        world.log();
        assert_eq!(number(world, second), "7");
        assert_eq!(world.log(), ["SET @@session.last_insert_id=7", "SELECT LAST_INSERT_ID()"]);
        assert_eq!(number(world, first), "5");
    });
}

#[test]
fn the_number_of_a_text_needs_none_from_before() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "insert:5"), "ok");
        let told = world.query(second, "insert:6 ; LAST_INSERT_ID()");
        assert!(told.contains("row 6"), "{told}");
        assert_eq!(number(world, first), "5");
        assert_eq!(number(world, second), "6");
    });
}

#[test]
fn a_number_behind_warnings_is_not_asked_for() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "insert:5 err"), "ok more, err 1064 42000");
        assert_eq!(world.query(first, "SHOW WARNINGS"), "ok more, ok");
        assert_eq!(number(world, first), "5");
        assert_eq!(world.query(first, "insert:6 err"), "ok more, err 1064 42000");
        assert_eq!(world.query(second, "insert:7"), "ok");
        assert_eq!(number(world, first), "err 3566 HY000");
        // The next row has a number again, and one that a statement names has none.
        assert_eq!(world.query(first, "replace:8"), "ok");
        assert_eq!(number(world, first), "err 3566 HY000");
        assert_eq!(world.query(first, "begin insert:9"), "ok trans more, ok trans");
        assert_eq!(number(world, first), "9");
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(number(world, second), "7");
        assert_eq!(number(world, first), "9");
    });
}

#[test]
fn a_pool_without_readers_is_not_asked() {
    let mut world = World::new(ONE, usize::MAX);
    let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
    for _ in 0..1000 {
        assert_eq!(world.query(first, "insert:5"), "ok");
    }
    world.log();
    assert_eq!(world.query(first, "insert:5"), "ok");
    assert_eq!(world.query(second, "insert:6"), "ok");
    assert_eq!(world.log(), ["insert:5", "insert:6"]);
    assert_eq!(number(&mut world, first), "err 3566 HY000");
    // There is a reader now.
    assert_eq!(world.query(first, "insert:7"), "ok");
    assert_eq!(world.query(second, "insert:8"), "ok");
    assert_eq!(number(&mut world, first), "7");
}

#[test]
fn a_reset_leaves_no_number() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "insert:5"), "ok");
        assert_eq!(world.ask(first, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(number(world, first), "0");
        let inserts = written(command::QUERY, b"insert:6");
        let asks = written(command::QUERY, b"SELECT LAST_INSERT_ID()");
        world.send(second, &[inserts, asks].concat());
        assert!(world.heard(second).contains("row 6"));
        assert_eq!(number(world, first), "0");
    });
}

#[test]
fn the_number_of_a_file_s_rows_follows_its_client() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "file:x load"), "file x");
        let mut bytes = Vec::new();
        let next = packet::message(&mut bytes, 2, |out| out.extend_from_slice(b"three"));
        packet::message(&mut bytes, next, |_| {});
        world.send(first, &bytes);
        assert_eq!(world.heard_from(first, 4), "ok");
        // The OK packet has no number, and the server has one.
        assert_eq!(number(world, second), "0");
        assert_eq!(number(world, first), "5");
        assert_eq!(number(world, second), "0");
    });
}
