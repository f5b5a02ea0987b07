//! Session mode: a client has one server for as long as it stays.

use refrain_mysql_wire::{Capabilities, command, packet};

use crate::packets::command as written;
use crate::world::{USUAL, World, talk};

const SESSION: &str = "pool_mode = \"session\"";

#[test]
fn replies_reach_the_client() {
    for (agreed, rows) in [
        (USUAL, "columns 1, column, row r, row r, end"),
        (USUAL - Capabilities::DEPRECATE_EOF, "columns 1, column, eof, row r, row r, eof"),
    ] {
        talk(SESSION, |world| {
            let client = world.client(agreed, "shop");
            assert_eq!(world.query(client, "ok"), "ok");
            assert_eq!(world.query(client, "rows:2"), rows);
            assert_eq!(world.query(client, "err"), "err 1064 42000");
            assert_eq!(world.query(client, "ok ok err"), "ok more, ok more, err 1064 42000");
            let more = rows.replace("end", "end more").replace("eof", "eof more");
            assert_eq!(world.query(client, "rows:2 ok"), format!("{more}, ok"));
            assert_eq!(world.ask(client, command::PING, b""), "ok");
            assert_eq!(world.servers(), 1);
        });
    }
}

#[test]
fn commands_under_way_are_answered_in_turn() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        let mut bytes = written(command::QUERY, b"rows:1");
        bytes.extend(written(command::QUERY, b"err"));
        bytes.extend(written(command::PING, b""));
        bytes.extend(written(0x0F, b"unknown"));
        bytes.extend(written(command::QUERY, b"ok"));
        world.send(client, &bytes);
        let due = "columns 1, column, row r, end, err 1064 42000, ok, err 1047 08S01, ok";
        assert_eq!(world.heard(client), due);
    });
}

#[test]
fn statements_pass_one_to_one() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        world.log();
        assert_eq!(world.ask(client, command::STMT_PREPARE, b"ok"), "prepared 1");
        assert_eq!(world.ask(client, command::STMT_EXECUTE, &[1, 0, 0, 0, 0, 1, 0, 0, 0]), "ok");
        assert_eq!(world.ask(client, command::STMT_CLOSE, &[1, 0, 0, 0]), "");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.log(), ["PREPARE ok", "EXECUTE 1", "ok"]);
    });
}

#[test]
fn a_file_of_the_client() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        world.log();
        assert_eq!(world.query(client, "file:x load"), "file x");
        let mut bytes = Vec::new();
        let next = packet::message(&mut bytes, 2, |out| out.extend_from_slice(b"one"));
        let next = packet::message(&mut bytes, next, |out| out.extend_from_slice(b"two"));
        packet::message(&mut bytes, next, |_| {});
        world.send(client, &bytes);
        assert_eq!(world.heard_from(client, 5), "ok");
        assert_eq!(world.log(), ["file:x load", "FILE onetwo"]);
        assert_eq!(world.query(client, "ok"), "ok");
    });
}

#[test]
fn a_file_that_nobody_offers_ends_the_server() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "file:x"), "err 2013 08S01");
        assert!(!world.is_open(client));
    });
}

#[test]
fn the_next_client_finds_a_session_as_new() {
    talk(SESSION, |world| {
        let first = world.client(USUAL, "shop");
        assert_eq!(world.query(first, "begin"), "ok trans");
        world.log();
        world.leave(first);
        let log = world.log();
        assert_eq!(log.first().map(String::as_str), Some("RESET"), "{log:?}");
        assert_eq!(log.len(), 2, "{log:?}");
        let second = world.client(USUAL, "shop");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_message_of_several_packets() {
    for (length, reply) in [(0xFF_FFFE, 1), (0xFF_FFFF, 2), (0x100_0000, 2)] {
        hold(&mut World::new(SESSION, 1 << 20), length, reply);
    }
}

/// Sends a text that makes a message of this length. The reply has this sequence id.
fn hold(world: &mut World, length: usize, reply: u8) {
    let client = world.client(USUAL, "shop");
    world.log();
    let mut text = b"ok".to_vec();
    text.resize(length - 1, b' ');
    world.send(client, &written(command::QUERY, &text));
    assert_eq!(world.heard_from(client, reply), "ok");
    assert_eq!(world.log(), [format!("{} bytes", length - 1)]);
    assert_eq!(world.query(client, "ok"), "ok");
}

#[test]
fn a_client_that_leaves_amid_a_file_takes_the_server_along() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "file:x load"), "file x");
        let mut bytes = Vec::new();
        packet::message(&mut bytes, 2, |out| out.extend_from_slice(b"one"));
        world.send(client, &bytes);
        world.leave(client);
        assert_eq!(world.servers(), 0);
    });
}

#[test]
fn a_client_that_leaves_amid_a_command_takes_the_server_along() {
    talk(SESSION, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "begin"), "ok trans");
        assert_eq!(world.ask(client, command::STMT_PREPARE, b"ok"), "prepared 1");
        let mut body = [0; 100];
        body[0] = 1;
        let bytes = written(command::STMT_EXECUTE, &body);
        world.send(client, &bytes[..50]);
        world.leave(client);
        assert_eq!(world.servers(), 0);
    });
}

#[test]
fn a_value_of_several_packets() {
    let mut world = World::new(SESSION, 1 << 19);
    let client = world.client(USUAL, "shop");
    for length in [0xFF_FFFA, 0xFF_FFFB, 0xFF_FFFC, 0x100_0000] {
        let told = world.query(client, &format!("long:{length} ok"));
        let due = format!("columns 1, column, {}, end more, ok", LongRow(length));
        assert_eq!(told, due);
    }
}

/// A row with one long value, as it is printed: a message of one packet or two.
struct LongRow(usize);

impl std::fmt::Display for LongRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value has its length in front, in four bytes or nine.
        let message = self.0 + if self.0 < 0x100_0000 { 4 } else { 9 };
        match message.checked_sub(0xFF_FFFF) {
            None => write!(f, "{message} bytes"),
            Some(rest) => write!(f, "{} bytes and {rest}", 0xFF_FFFF),
        }
    }
}

#[test]
fn a_file_has_nothing_of_refrain_in_it() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        world.log();
        world.silence(true);
        let sets = written(command::QUERY, b"set:character_set_connection=latin1");
        let loads = written(command::QUERY, b"file:x load session_track_schema");
        world.send(client, &[sets, loads].concat());
        world.silence(false);
        assert!(world.heard(client).ends_with("file x"));
        let mut file = Vec::new();
        packet::message(&mut file, 2, |out| out.extend_from_slice(b"one"));
        packet::message(&mut file, 3, |_| {});
        world.send(client, &file);
        assert_eq!(world.heard_from(client, 4), "ok");
        let log = world.log();
        assert_eq!(log[1], "SELECT @@collation_connection LIMIT 1");
        assert_eq!(log[3..5], ["file:x load session_track_schema", "FILE one"]);
        assert!(log[5].starts_with("SELECT @@session_track_schema"), "{log:?}");
    });
}
