//! KILL that comes late, and hits what its server does next: never a command of Refrain's own.

use refrain_mysql_wire::prepared::Execute;
use refrain_mysql_wire::{Capabilities, command};

use crate::packets::command as written;
use crate::world::{ClientId, USUAL, World, talk};

const ONE: &str = "pool_size = 1";
/// The place of the only server among the connections. A probe was there before.
const SERVER: usize = 1;
/// The place of the side connection.
const SIDE: usize = 2;

/// Has a client send commands, the first of which is killed by another client. The server has
/// answered it by then, and KILL hits what the server does behind so many others.
fn strike_behind(world: &mut World, [victim, killer]: [ClientId; 2], commands: &[u8], behind: u32) {
    world.silence(true);
    world.send(victim, commands);
    world.mutes = true;
    let text = format!("KILL QUERY {}", world.number(victim));
    assert_eq!(world.query(killer, &text), "ok");
    world.silence_one(SIDE, false);
    world.strike(SERVER, behind + 1);
    world.log();
    world.silence_one(SERVER, false);
}

fn strike(world: &mut World, clients: [ClientId; 2], text: &str) {
    strike_behind(world, clients, &written(command::QUERY, text.as_bytes()), 0);
}

fn two(world: &mut World) -> [ClientId; 2] {
    [world.client(USUAL, "shop"), world.client(USUAL, "shop")]
}

#[test]
fn the_question_of_mariadb_is_not_hit() {
    for before in ["begin", "set:@a get_lock"] {
        talk(ONE, |world| {
            world.is_mariadb = true;
            let clients @ [victim, _] = two(world);
            world.query(victim, before);
            strike(world, clients, "untold:sql_mode=ANSI err");
            assert_eq!(world.heard(victim), "err 1064 42000");
            let due = ["untold:sql_mode=ANSI err", "HIT DO 0", "TELL", "TELL_STATE"];
            assert_eq!(world.log(), due);
            assert!(world.query(victim, "ok").starts_with("ok"));
        });
    }
}

#[test]
fn the_question_in_front_of_a_prepare_is_not_hit() {
    talk(ONE, |world| {
        world.is_mariadb = true;
        let clients @ [victim, _] = two(world);
        assert_eq!(world.query(victim, "begin"), "ok trans");
        let fails = written(command::QUERY, b"untold:sql_mode=ANSI err");
        let prepare = written(command::STMT_PREPARE, b"ok");
        strike_behind(world, clients, &[fails, prepare].concat(), 0);
        let due = ["untold:sql_mode=ANSI err", "HIT DO 0", "TELL", "TELL_STATE", "PREPARE ok"];
        assert_eq!(world.log(), due);
        assert!(world.is_open(victim));
    });
}

#[test]
fn the_question_for_the_collation_is_not_hit() {
    talk(ONE, |world| {
        let [victim, killer] = two(world);
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"set:character_set_connection=latin1"));
        world.mutes = true;
        let text = format!("KILL QUERY {}", world.number(victim));
        assert_eq!(world.query(killer, &text), "ok");
        world.silence_one(SERVER, false);
        world.strike(SERVER, 0);
        world.log();
        world.silence_one(SIDE, false);
        let log = world.log();
        let question = "SELECT @@collation_connection LIMIT 1";
        assert!(log.starts_with(&["HIT DO 0".to_owned(), question.to_owned()]), "{log:?}");
        assert!(world.heard(victim).starts_with("ok"));
        assert_eq!(world.query(victim, "ok"), "ok");
    });
}

#[test]
fn the_wishes_of_a_client_are_not_hit() {
    talk(ONE, |world| {
        let clients @ [victim, _] = two(world);
        assert_eq!(world.query(victim, "begin"), "ok trans");
        strike_behind(world, clients, &written(command::QUERY, b"ok"), 0);
        assert_eq!(world.heard(victim), "ok trans");
        assert_eq!(world.query(victim, "ok session_track_schema"), "ok trans more, ok trans");
        assert_eq!(world.log()[..2], ["ok", "HIT DO 0"]);
    });
}

#[test]
fn a_server_that_is_made_as_new_is_not_hit() {
    talk(ONE, |world| {
        let [victim, killer] = two(world);
        world.query(victim, "set:@a get_lock");
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"ok"));
        let text = format!("KILL QUERY {}", world.number(victim));
        assert_eq!(world.query(killer, &text), "ok");
        world.leave(victim);
        world.strike(SERVER, 1);
        world.log();
        world.silence(false);
        let log = world.log();
        assert_eq!(log[..3], ["ok", "HIT DO 0", "RESET"], "in one write");
        assert_eq!(world.query(killer, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn ping_leaves_kill_for_the_next_statement() {
    talk(ONE, |world| {
        let clients @ [victim, killer] = two(world);
        strike(world, clients, "err");
        assert_eq!(world.heard(victim), "err 1064 42000");
        assert_eq!(world.query(killer, "ok"), "ok");
        let log: Vec<_> = world.log().into_iter().filter(|text| text != "QUIT").collect();
        assert_eq!(log, ["err", "PING", "HIT DO 0", "ok"]);
    });
}

#[test]
fn a_client_that_keeps_its_server_may_be_hit_as_it_would_be_directly() {
    talk(ONE, |world| {
        let clients @ [victim, _] = two(world);
        assert_eq!(world.query(victim, "begin"), "ok trans");
        strike(world, clients, "err");
        assert_eq!(world.heard(victim), "err 1064 42000");
        assert_eq!(world.query(victim, "ok"), "err 1317 70100");
        assert_eq!(world.query(victim, "commit"), "ok");
        // That was all: no other statement has to take it.
        assert_eq!(world.log(), ["err", "PING", "HIT ok", "PING", "commit"]);
    });
}

#[test]
fn a_statement_that_is_prepared_again_is_not_hit() {
    talk("pool_size = 1\nmax_server_statements = 1", |world| {
        let clients @ [victim, _] = two(world);
        for text in [&b"ok"[..], b"rows:1"] {
            let told = world.ask(victim, command::STMT_PREPARE, text);
            assert!(told.starts_with("prepared"), "{told}");
        }
        assert_eq!(world.query(victim, "begin"), "ok trans");
        strike_behind(world, clients, &written(command::QUERY, b"ok"), 0);
        assert_eq!(world.heard(victim), "ok trans");
        world.log();
        let head =
            Execute { statement: 1, flags: 0, parameters: 0, nulls: b"", types: None, values: b"" };
        let mut body = Vec::new();
        head.write(&mut body, Capabilities::NONE);
        assert_eq!(world.ask(victim, command::STMT_EXECUTE, &body), "ok trans");
        let log = world.log();
        assert!(log.iter().any(|text| text == "HIT DO 0"), "{log:?}");
    });
}

#[test]
fn a_reset_by_the_client_leaves_nothing_that_is_hit() {
    talk(ONE, |world| {
        let clients @ [victim, _] = two(world);
        assert_eq!(world.query(victim, "begin"), "ok trans");
        strike_behind(world, clients, &written(command::QUERY, b"ok"), 1);
        assert_eq!(world.heard(victim), "ok trans");
        assert_eq!(world.ask(victim, command::RESET_CONNECTION, b""), "ok");
        let log = world.log();
        assert_eq!(log[..3], ["ok", "RESET", "HIT DO 0"], "{log:?}");
        assert_eq!(world.query(victim, "ok"), "ok");
    });
}

#[test]
fn what_the_statement_that_does_nothing_tells_is_learnt() {
    talk(ONE, |world| {
        let killer = world.client(USUAL, "shop");
        let victim = world.client(USUAL - Capabilities::DEPRECATE_EOF, "shop");
        let text = "due:sql_mode=ANSI f(5) rows:1";
        world.silence(true);
        world.send(victim, &written(command::QUERY, text.as_bytes()));
        let kill = format!("KILL QUERY {}", world.number(victim));
        assert_eq!(world.query(killer, &kill), "ok");
        world.log();
        world.silence(false);
        assert!(world.log().contains(&"DO 0".to_owned()));
        world.heard(victim);
        let other = world.client(USUAL - Capabilities::DEPRECATE_EOF, "shop");
        world.log();
        assert_eq!(world.query(other, "ok"), "ok");
        let log = world.log();
        assert!(log.contains(&"RESET".to_owned()), "{log:?}");
        assert_eq!(world.query(victim, "ok"), "ok");
        assert!(world.log().contains(&"SET @@session.sql_mode='ANSI'".to_owned()));
    });
}
