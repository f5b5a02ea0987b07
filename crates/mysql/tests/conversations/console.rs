//! Clients of the admin console: the program's part is played by the test.

use refrain_mysql::console::reply::{
    Column, ConsoleReply, Form, Needed, ReplyPart, Rows, ValueKind, in_form,
};
use refrain_mysql_wire::request::{ChangeUser, Request as Packet};
use refrain_mysql_wire::{Capabilities, command as commands, packet};
use refrain_pool::event::Command;
use refrain_pool::lobby::CONSOLES_MAX;

use crate::packets::command;
use crate::world::{ClientId, USUAL, World, talk};

/// A table of one value.
fn table(value: &str) -> Vec<ReplyPart> {
    let columns = vec![Column { name: "a".to_owned(), kind: ValueKind::Text }];
    vec![ReplyPart::Rows(Rows { columns, rows: vec![vec![Some(value.to_owned())]] })]
}

/// Answers the question of a client, which has to be this one.
fn answer(world: &mut World, question: &str, parts: &[ReplyPart]) {
    let asked = world.asked.remove(0);
    assert_eq!(asked.query, question);
    world.answer(asked.client, in_form(parts, &asked.form));
}

#[test]
fn a_command_is_asked_of_the_program_and_needs_no_server() {
    for agreed in [USUAL, USUAL - Capabilities::DEPRECATE_EOF] {
        talk("", |world| {
            let client = world.client(agreed, "refrain");
            world.send(client, &command(commands::QUERY, b"SHOW POOLS"));
            assert!(world.got(client).is_empty(), "the program has not answered");
            answer(world, "SHOW POOLS", &table("x"));
            let due = match agreed.has(Capabilities::DEPRECATE_EOF) {
                true => "columns 1, column, row x, end",
                false => "columns 1, column, eof, row x, eof",
            };
            assert_eq!(world.heard(client), due);
            assert_eq!(world.query(client, "SET NAMES utf8mb4"), "ok");
            assert_eq!(world.query(client, "SELECT @@nothing"), "err 1193 HY000");
            assert_eq!(world.ask(client, commands::FIELD_LIST, b"t\0"), "err 1047 08S01");
            assert_eq!(world.log(), [""; 0], "the probe says nothing");
            world.send(client, &command(commands::QUIT, b""));
            assert!(!world.is_open(client));
        });
    }
}

/// Each command waits for the reply to the one before, also if they come in one write.
#[test]
fn commands_are_answered_one_at_a_time() {
    talk("", |world| {
        let client = world.client(USUAL, "pgbouncer");
        let several = [&b"SHOW A"[..], b"BEGIN", b"SHOW B"];
        let bytes: Vec<u8> =
            several.iter().flat_map(|text| command(commands::QUERY, text)).collect();
        world.send(client, &bytes);
        assert_eq!(world.asked.len(), 1);
        answer(world, "SHOW A", &table("1"));
        assert_eq!(world.heard(client), "columns 1, column, row 1, end, ok");
        answer(world, "SHOW B", &table("2"));
        assert_eq!(world.heard(client), "columns 1, column, row 2, end");
    });
}

#[test]
fn statements_are_prepared_and_executed() {
    talk("", |world| {
        let client = world.client(USUAL, "refrain");
        world.send(client, &command(commands::STMT_PREPARE, b"SHOW A"));
        assert_eq!(world.asked[0].form.wanted, Needed::Columns);
        answer(world, "SHOW A", &table("x"));
        assert_eq!(world.heard(client), "prepared 1, column");
        world.send(client, &command(commands::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0"));
        let form = Form { wanted: Needed::Binary, capabilities: USUAL, has_several: true };
        assert_eq!(world.asked[0].form, form);
        answer(world, "SHOW A", &table("x"));
        assert_eq!(world.heard(client), "columns 1, column, 4 bytes, end");
        world.send(client, &command(commands::STMT_CLOSE, b"\x01\0\0\0"));
        let told = world.ask(client, commands::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0");
        assert_eq!(told, "err 1243 HY000");
    });
}

#[test]
fn a_reply_for_a_client_that_has_left_goes_nowhere() {
    talk("", |world| {
        let client = world.client(USUAL, "refrain");
        world.send(client, &command(commands::QUERY, b"SHOW A"));
        world.leave(client);
        let asked = world.asked.remove(0);
        let other = world.client(USUAL, "refrain");
        world.answer(asked.client, ConsoleReply::Packets(b"\x01\0\0\x01\0".to_vec()));
        assert!(world.got(other).is_empty());
        assert_eq!(world.query(other, "BEGIN"), "ok");
    });
}

/// Returns what a client hears that changes its user.
fn change_user(world: &mut World, client: ClientId, schema: &str) -> String {
    let mut payload = Vec::new();
    let change = ChangeUser {
        user: b"app",
        database: schema.as_bytes(),
        collation: Some(45),
        plugin: b"mysql_native_password",
        ..ChangeUser::default()
    };
    Packet::ChangeUser(change).write(&mut payload, USUAL);
    let (byte, body) = payload.split_first().expect("a command");
    world.send(client, &command(*byte, body));
    assert_eq!(world.got(client)[4], 0xFE, "it is asked for a proof");
    let mut proof = Vec::new();
    packet::message(&mut proof, 2, |out| out.extend_from_slice(&[7; 20]));
    world.send(client, &proof);
    world.heard_from(client, 3)
}

#[test]
fn a_change_of_user_leads_into_the_console_and_out_of_it() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(change_user(world, client, "refrain"), "ok");
        world.send(client, &command(commands::QUERY, b"SHOW A"));
        answer(world, "SHOW A", &table("x"));
        assert_eq!(world.heard(client), "columns 1, column, row x, end");
        world.log();
        assert_eq!(change_user(world, client, "shop"), "ok schema=shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(change_user(world, client, "refrain"), "ok");
        assert_eq!(world.query(client, "BEGIN"), "ok");
    });
}

#[test]
fn a_command_that_is_too_long_is_dropped_as_it_comes() {
    let mut world = World::new("", 4096);
    let client = world.client(USUAL, "refrain");
    let long = vec![b'x'; 70_000];
    assert_eq!(world.ask(client, commands::QUERY, &long), "err 1153 08S01");
    assert_eq!(world.query(client, "BEGIN"), "ok", "the session goes on");
    let mut bytes = command(commands::QUERY, b"BEGIN");
    bytes[3] = 1;
    world.send(client, &bytes);
    assert_eq!(world.heard_from(client, 0), "err 1156 08S01");
    assert!(!world.is_open(client));
}

#[test]
fn clients_of_the_console_are_counted_apart() {
    let mut world = World::new("", usize::MAX);
    let all: Vec<_> = (0..CONSOLES_MAX).map(|_| world.client(USUAL, "refrain")).collect();
    let next = world.connect();
    assert_eq!(world.log_in(next, USUAL, "refrain"), "err 1040 08004");
    world.leave(all[0]);
    let next = world.connect();
    assert_eq!(world.log_in(next, USUAL, "refrain"), "ok");
    world.client(USUAL, "shop");
}

#[test]
fn the_console_is_there_until_the_end() {
    talk("", |world| {
        let client = world.client(USUAL, "refrain");
        let other = world.client(USUAL, "shop");
        world.command(Command::Drain);
        assert!(!world.is_open(other) && world.is_open(client));
        world.send(client, &command(commands::QUERY, b"SHOW A"));
        answer(world, "SHOW A", &table("x"));
        assert_eq!(world.heard(client), "columns 1, column, row x, end");
    });
}
