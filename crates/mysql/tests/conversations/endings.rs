//! Sessions that end: the error has the place of the next packet.

use std::time::Duration;

use refrain_mysql_wire::command;
use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_pool::event::Command;

use crate::packets::{command as written, printed, split};
use crate::world::{ClientId, USUAL, World, talk};

/// Returns what a client has got: a reply, and behind it the error that ends its session.
fn told_and_ended(world: &mut World, client: ClientId) -> String {
    let got = world.got(client);
    let [(_, reply), (0, _)] = &split(&got)[..] else { panic!("{got:?}") };
    let (reply, error) = got.split_at(reply.len() + HEADER_BYTES);
    format!("{}, {}", printed(reply, 1, USUAL), printed(error, 0, USUAL))
}

#[test]
fn a_client_says_goodbye() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.ask(client, command::QUIT, b""), "");
        assert!(!world.is_open(client));
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_goodbye_waits_for_the_replies_before_it() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        world.silence(true);
        let bytes = [written(command::QUERY, b"rows:1"), written(command::QUIT, b"")].concat();
        world.send(client, &bytes);
        assert!(world.is_open(client));
        world.silence(false);
        assert_eq!(world.heard(client), "columns 1, column, row r, end");
        assert!(!world.is_open(client));
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_server_that_goes_under_a_command() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "gone"), "err 2013 08S01");
        assert!(!world.is_open(client));
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "odd"), "err 2013 08S01");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_server_that_goes_amid_a_reply() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        let told = world.query(client, "rows:1 gone");
        assert_eq!(told, "columns 1, column, row r, end more");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_packet_out_of_order() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        let mut bytes = written(command::PING, b"");
        bytes[3] = 5;
        world.send(client, &bytes);
        assert_eq!(world.heard_from(client, 0), "err 1156 08S01");
        assert!(!world.is_open(client));
    });
}

#[test]
fn an_idle_client_is_told_why_it_goes() {
    talk("client_idle_timeout = \"5 s\"", |world| {
        let client = world.client(USUAL, "shop");
        world.pass(Duration::from_secs(7));
        assert_eq!(world.heard_from(client, 0), "err 4031 HY000");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_command_that_takes_too_long() {
    talk("query_timeout = \"5 s\"", |world| {
        let client = world.client(USUAL, "shop");
        world.silence(true);
        assert_eq!(world.query(client, "ok"), "");
        world.pass(Duration::from_secs(7));
        assert_eq!(world.heard(client), "err 3024 HY000");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_shutdown_waits_for_the_transaction() {
    talk("", |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        world.command(Command::Drain);
        assert_eq!(world.heard_from(second, 0), "err 1053 08S01");
        assert_eq!(world.query(first, "ok"), "ok trans");
        world.send(first, &written(command::QUERY, b"commit"));
        assert_eq!(told_and_ended(world, first), "ok, err 1053 08S01");
        assert!(!world.is_open(first));
    });
}

#[test]
fn a_command_behind_one_under_way_is_not_run_in_a_shutdown() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        world.silence(true);
        world.send(client, &written(command::QUERY, b"ok"));
        world.command(Command::Drain);
        world.send(client, &written(command::QUERY, b"rows:1"));
        world.silence(false);
        assert_eq!(told_and_ended(world, client), "ok, err 1053 08S01");
        assert!(!world.is_open(client));
    });
}

#[test]
fn an_idle_server_may_end_its_session() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        let mut bytes = b"\x0b\x00\x00\x00\xff\x1d\x04#08S01bye".to_vec();
        bytes[0] = (bytes.len() - 4) as u8;
        world.servers_say(&bytes);
        assert_eq!(world.servers(), 0);
        assert_eq!(world.query(client, "ok"), "ok", "another server answers");
    });
}

#[test]
fn a_shutdown_amid_a_login() {
    talk("", |world| {
        let client = world.connect();
        world.command(Command::Drain);
        let got = split(&world.got(client));
        let [(0, greeting), (sequence, error)] = &got[..] else { panic!("{got:?}") };
        assert_eq!((greeting[0], error[0]), (10, 0xFF));
        assert_eq!(*sequence, 2, "the client reads it behind its own packet, which has number 1");
        assert!(!world.is_open(client));
    });
}
