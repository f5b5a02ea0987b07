//! COM_CHANGE_USER: a client logs in again, and leaves nothing behind.

use refrain_mysql_wire::handshake::{AuthReply, NONCE_BYTES};
use refrain_mysql_wire::{Capabilities, command, packet};

use crate::packets::{command as written, printed, split};
use crate::world::{ClientId, USUAL, World, talk};

/// The fields of COM_CHANGE_USER, with a proof that means nothing.
fn request(user: &str, schema: &str) -> Vec<u8> {
    let mut body = format!("{user}\0").into_bytes();
    body.extend_from_slice(b"\x02xy");
    body.extend_from_slice(format!("{schema}\0\x2d\0mysql_native_password\0").as_bytes());
    body
}

/// Takes the server's request for a new proof, which is all that has come, and its nonce.
fn nonce(got: &[u8]) -> [u8; NONCE_BYTES] {
    let [(1, payload)] = &split(got)[..] else { panic!("{}", got.escape_ascii()) };
    let asked = AuthReply::read(payload, Capabilities::NONE);
    let Ok(AuthReply::Switch(switch)) = asked else { panic!("{asked:?}") };
    assert_eq!(switch.plugin, b"mysql_native_password");
    switch.data.try_into().expect("a nonce")
}

/// Changes a client's user. Returns the end of the exchange in words.
fn change(world: &mut World, client: ClientId, user: &str, schema: &str) -> String {
    world.send(client, &written(command::CHANGE_USER, &request(user, schema)));
    nonce(&world.got(client));
    prove(world, client)
}

fn prove(world: &mut World, client: ClientId) -> String {
    let mut proof = Vec::new();
    packet::message(&mut proof, 2, |out| out.extend_from_slice(&[7; 20]));
    world.send(client, &proof);
    printed(&world.got(client), 3, USUAL)
}

#[test]
fn a_client_goes_to_the_pool_of_its_new_user() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(change(world, client, "other", "store"), "ok schema=store");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.servers(), 2);
        assert_eq!(change(world, client, "app", "shop"), "ok schema=shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.servers(), 2, "the first user's server was free");
    });
}

#[test]
fn a_transaction_and_a_pin_are_left_behind() {
    for text in ["begin", "state"] {
        talk("pool_size = 1", |world| {
            let client = world.client(USUAL, "shop");
            world.query(client, text);
            world.log();
            assert_eq!(change(world, client, "other", "shop"), "ok schema=shop");
            assert!(world.log().contains(&"RESET".to_owned()), "{text}");
            assert_eq!(world.query(client, "ok"), "ok");
            let next = world.client(USUAL, "shop");
            assert_eq!(world.query(next, "ok"), "ok");
        });
    }
}

#[test]
fn a_routine_s_server_is_as_new_behind_a_change_to_the_same_user() {
    talk("pool_size = 1", |world| {
        let client = world.client(USUAL, "shop");
        world.query(client, "call");
        world.log();
        assert_eq!(change(world, client, "app", "shop"), "ok schema=shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert!(world.log().contains(&"RESET".to_owned()));
    });
}

#[test]
fn a_change_waits_for_the_replies_before_it() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        world.query(client, "ok");
        world.silence(true);
        let mut bytes = written(command::QUERY, b"rows:1");
        bytes.extend(written(command::CHANGE_USER, &request("other", "")));
        world.send(client, &bytes);
        assert_eq!(world.heard(client), "");
        world.silence(false);
        let got = world.got(client);
        let packets = split(&got);
        let (last, reply) = packets.split_last().expect("a reply");
        assert_eq!((reply.len(), last.0, last.1[0]), (4, 1, 0xFE));
        assert_eq!(prove(world, client), "ok");
    });
}

#[test]
fn a_command_behind_a_change_is_taken_for_the_proof() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        let mut bytes = written(command::CHANGE_USER, &request("other", ""));
        bytes.extend(written(command::QUERY, b"ok"));
        world.send(client, &bytes);
        assert!(!world.is_open(client));
        let other = world.client(USUAL, "shop");
        assert_eq!(world.query(other, "ok"), "ok");
    });
}

#[test]
fn a_schema_that_is_not_there_ends_the_session() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(change(world, client, "other", "nowhere"), "err 1049 42000");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_change_that_is_none_changes_nothing() {
    talk("", |world| {
        let client = world.client(USUAL, "shop");
        for none in [&b"other"[..], &[b'x'; 130_000], &[b'x'; 140_000]] {
            assert_eq!(world.ask(client, command::CHANGE_USER, none), "err 1047 08S01");
        }
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_client_that_cannot_be_asked_is_asked_nothing() {
    talk("", |world| {
        let agreed = USUAL - Capabilities::PLUGIN_AUTH;
        let client = world.client(agreed, "shop");
        world.send(client, &written(command::CHANGE_USER, &request("other", "store")));
        assert_eq!(world.heard(client), "ok schema=store");
        assert_eq!(world.query(client, "ok"), "ok");
    });
}

#[test]
fn a_change_of_the_user_ignores_spaces_again_on_mysql() {
    for is_mariadb in [false, true] {
        talk("", |world| {
            world.is_mariadb = is_mariadb;
            let client = world.client(USUAL | Capabilities::IGNORE_SPACE, "shop");
            world.log();
            assert_eq!(world.query(client, "ok"), "ok");
            assert_eq!(world.log(), ["SET @@session.sql_mode='STRICT,IGNORE_SPACE'", "ok"]);
            assert_eq!(change(world, client, "app", "shop"), "ok schema=shop");
            world.log();
            assert_eq!(world.query(client, "ok"), "ok");
            let has_set = world.log().contains(&"SET @@session.sql_mode='STRICT'".to_owned());
            assert_eq!(has_set, is_mariadb);
        });
    }
}
