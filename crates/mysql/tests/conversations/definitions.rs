//! A PREPARE whose reply is known needs no server.

use std::time::Duration;

use refrain_mysql_wire::{Capabilities, command};

use crate::packets::{command as written, split};
use crate::world::{ClientId, USUAL, World, talk};

const ONE: &str = "pool_size = 1";
const TWO: &str = "pool_size = 2";

/// Definitions end in an EOF packet.
const WITH_EOF: Capabilities =
    Capabilities::from_bits(USUAL.bits() & !Capabilities::DEPRECATE_EOF.bits());

fn prepare(world: &mut World, client: ClientId, text: &str) -> String {
    world.ask(client, command::STMT_PREPARE, text.as_bytes())
}

/// Prepares a text. Returns whether a server had to.
fn needs_a_server(world: &mut World, client: ClientId, text: &str) -> bool {
    world.log();
    assert!(prepare(world, client, text).starts_with("prepared "));
    world.log().contains(&format!("PREPARE {text}"))
}

/// Makes two clients of a pool. The first has prepared a text.
fn prepared(world: &mut World, text: &str) -> [ClientId; 2] {
    let [first, second] = [(); 2].map(|()| world.client(USUAL, "shop"));
    assert!(needs_a_server(world, first, text));
    [first, second]
}

#[test]
fn the_reply_is_the_servers_but_for_the_number() {
    for agreed in [USUAL, WITH_EOF] {
        talk(ONE, |world| {
            let [first, second] = [(); 2].map(|()| world.client(agreed, "shop"));
            let mut replies = [first, second, second].map(|client| {
                world.send(client, &written(command::STMT_PREPARE, b"ok ? ?"));
                split(&world.got(client))
            });
            let numbers = replies.each_mut().map(|reply| take_number(&mut reply[0].1[1..5]));
            assert_eq!(numbers, [1, 1, 2]);
            assert_eq!(replies[0].len(), if agreed == USUAL { 3 } else { 4 });
            assert_eq!(replies[0], replies[1]);
            assert_eq!(replies[0], replies[2]);
            let log = world.log();
            let times = log.iter().filter(|line| line.starts_with("PREPARE")).count();
            assert_eq!(times, 1, "{log:?}");
        });
    }
}

/// Puts zeros in place of a number. Returns the number.
fn take_number(bytes: &mut [u8]) -> u32 {
    let number = u32::from_le_bytes((&*bytes).try_into().expect("four bytes"));
    bytes.fill(0);
    number
}

#[test]
fn the_flags_are_those_of_the_client() {
    talk(ONE, |world| {
        let [first, second] = [(); 2].map(|()| world.client(WITH_EOF, "shop"));
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column, eof");
        assert_eq!(prepare(world, first, "ok ?"), "prepared 2, column, eof");
        assert_eq!(world.query(second, "begin"), "ok trans");
        assert_eq!(prepare(world, second, "ok ?"), "prepared 1, column, eof trans");
        assert_eq!(prepare(world, first, "ok ?"), "prepared 3, column, eof");
    });
}

#[test]
fn a_text_of_another_environment_is_another_one() {
    talk(ONE, |world| {
        let [first, second] = prepared(world, "ok");
        assert_eq!(world.query(second, "set:sql_mode=ANSI"), "ok sql_mode=ANSI");
        assert!(needs_a_server(world, second, "ok"));
        assert!(!needs_a_server(world, second, "ok"));
        assert_eq!(world.query(second, "use:other"), "ok schema=other");
        assert!(needs_a_server(world, second, "ok"));
        assert!(!needs_a_server(world, first, "ok"));
        assert_eq!(world.query(first, "set:autocommit=OFF"), "ok manual autocommit=OFF");
        assert!(!needs_a_server(world, first, "ok"), "it changes no meaning");
    });
}

#[test]
fn a_table_that_may_have_changed_is_looked_at_again() {
    for changes in ["alter", "ok drop", "call", "execute", "grant", "changed", "CREATE"] {
        talk(ONE, |world| {
            let [first, second] = prepared(world, "ok");
            assert!(!needs_a_server(world, second, "ok"));
            world.query(first, changes);
            assert!(needs_a_server(world, second, "ok"), "{changes}");
            assert!(!needs_a_server(world, first, "ok"));
        });
    }
}

#[test]
fn a_prepared_change_of_a_table_counts_when_it_is_executed() {
    talk(ONE, |world| {
        let [first, second] = prepared(world, "ok");
        assert_eq!(prepare(world, first, "alter"), "prepared 2");
        assert!(!needs_a_server(world, second, "ok"));
        let body = [2, 0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(world.ask(first, command::STMT_EXECUTE, &body), "ok");
        assert!(needs_a_server(world, second, "ok"));
    });
}

#[test]
fn a_reply_under_way_while_a_table_changes_is_not_kept() {
    talk(TWO, |world| {
        let [first, second] = [(); 2].map(|()| world.client(USUAL, "shop"));
        world.silence(true);
        world.send(first, &written(command::QUERY, b"alter"));
        world.send(second, &written(command::STMT_PREPARE, b"ok"));
        world.silence(false);
        assert_eq!(
            (world.heard(first).as_str(), world.heard(second).as_str()),
            ("ok", "prepared 1")
        );
        assert!(needs_a_server(world, first, "ok"));
        assert!(!needs_a_server(world, second, "ok"));
    });
}

#[test]
fn a_client_that_leaves_while_it_changes_a_table_has_changed_it() {
    talk(TWO, |world| {
        let [first, second] = prepared(world, "ok");
        world.silence(true);
        world.send(first, &written(command::QUERY, b"alter"));
        world.leave(first);
        world.silence(false);
        assert!(needs_a_server(world, second, "ok"));
    });
}

#[test]
fn definitions_that_are_old_are_asked_for_again() {
    talk("pool_size = 1\ndefinition_max_age = \"10s\"", |world| {
        let [first, second] = prepared(world, "ok");
        world.pass(Duration::from_secs(9));
        assert!(!needs_a_server(world, second, "ok"));
        world.pass(Duration::from_secs(2));
        assert!(needs_a_server(world, second, "ok"));
        assert!(!needs_a_server(world, first, "ok"));
    });
    talk("pool_size = 1\ndefinition_max_age = \"0s\"", |world| {
        let [_, second] = prepared(world, "ok");
        assert!(needs_a_server(world, second, "ok"));
    });
}

#[test]
fn a_client_with_something_of_its_own_asks_its_server() {
    talk(TWO, |world| {
        let [first, second] = prepared(world, "ok");
        assert_eq!(world.query(second, "state"), "ok");
        assert!(needs_a_server(world, second, "ok"), "a temporary table may be among it");
        assert!(needs_a_server(world, second, "other"));
        assert!(needs_a_server(world, first, "other"), "what it was told counts for it alone");
    });
}

#[test]
fn preparing_forgets_warnings_on_the_server() {
    talk(ONE, |world| {
        let [first, second] = prepared(world, "ok");
        assert_eq!(world.query(second, "warned"), "ok");
        assert!(needs_a_server(world, second, "ok"));
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert!(needs_a_server(world, second, "ok"));
        assert_eq!(world.query(second, "ok"), "ok");
        assert!(!needs_a_server(world, second, "ok"));
        assert!(needs_a_server(world, first, "warned"), "with a warning");
        assert!(needs_a_server(world, first, "warned"), "so each has it");
    });
}

#[test]
fn counts_are_not_those_of_another_client_behind_a_prepare() {
    talk(TWO, |world| {
        let [first, second] = [(); 2].map(|()| world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(first, "commit"), "ok");
        // The server that was given back last is the first client's.
        assert!(needs_a_server(world, second, "ok"));
        assert_eq!(world.query(second, "row_count()"), "err 3566 HY000");
        assert_eq!(world.query(first, "row_count()"), "err 3566 HY000", "it was in between");
        assert_eq!(world.query(second, "ok"), "ok");
        assert!(!needs_a_server(world, first, "ok"));
        assert_eq!(world.query(second, "row_count()"), "ok", "nobody was in between");
    });
}
