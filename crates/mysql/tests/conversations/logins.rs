//! Logins of clients.

use refrain_mysql_wire::Capabilities;

use crate::world::{USUAL, talk, version};

#[test]
fn a_client_is_greeted_as_its_server_greets() {
    talk("", |world| {
        let client = world.connect();
        let got = world.got(client);
        assert_eq!(version(&got), "8.0.15-model");
        assert_eq!(world.log(), [""; 0], "the probe says nothing");
    });
}

#[test]
fn a_client_gets_an_error_in_place_of_the_greeting() {
    talk("", |world| {
        world.connects = false;
        let client = world.connect();
        assert_eq!(world.heard_from(client, 0), "err 2003 HY000");
        assert!(!world.is_open(client));
    });
}

#[test]
fn the_log_says_why_no_server_greets() {
    talk("", |world| {
        world.connects = false;
        let client = world.connect();
        assert_eq!(world.heard_from(client, 0), "err 2003 HY000");
        let told = world.notes.last().expect("a line of the log");
        assert_eq!((told.cause, &*told.detail), ("server_down", "refused"));
    });
}

#[test]
fn the_next_host_is_asked_if_one_does_not_greet() {
    for down in ["127.0.0.1:1", "127.0.0.1:2"] {
        talk("\n[databases.far]\nurl = \"mysql://127.0.0.1:2/\"", |world| {
            world.down = down;
            let client = world.connect();
            assert_eq!(version(&world.got(client)), "8.0.15-model", "{down} is down");
        });
    }
}

#[test]
fn a_schema_is_asked_for_at_the_login() {
    talk("", |world| {
        let client = world.connect();
        assert_eq!(world.log_in(client, USUAL, "shop"), "ok schema=shop");
        let log = world.log();
        assert_eq!(log.last().map(String::as_str), Some("INIT_DB shop"), "{log:?}");
        let client = world.connect();
        assert_eq!(world.log_in(client, USUAL, "nowhere"), "err 1049 42000");
        assert!(!world.is_open(client));
        let other = world.client(USUAL, "shop");
        assert_eq!(world.query(other, "ok"), "ok");
    });
}

#[test]
fn a_client_without_a_schema_asks_no_server() {
    talk("", |world| {
        let client = world.connect();
        assert_eq!(world.log_in(client, USUAL, ""), "ok");
        let tracked = "autocommit,character_set_client,character_set_connection,\
                       character_set_results,collation_connection,lock_wait_timeout,sql_mode,\
                       version";
        let tracks = format!("TRACK {tracked}");
        assert_eq!(world.log(), ["RESET", "CATALOG", &tracks]);
    });
}

#[test]
fn a_client_of_an_old_protocol_is_refused() {
    talk("", |world| {
        let client = world.connect();
        let told = world.log_in(client, USUAL - Capabilities::PROTOCOL_41, "");
        assert_eq!(told, "err 1251 08004");
    });
}
