//! KILL: which statement and whose session it ends, and that it ends no other.

use refrain_mysql_wire::{command, packet};

use crate::packets::command as written;
use crate::world::{ClientId, USUAL, World, talk};

const ONE: &str = "pool_size = 1";
/// The place of the only server among the connections. A probe was there before.
const SERVER: usize = 1;
/// The place of the first side connection.
const SIDE: usize = 2;

fn kill(world: &mut World, killer: ClientId, what: &str, victim: ClientId) -> String {
    let text = format!("KILL {what} {}", world.number(victim));
    world.query(killer, &text)
}

/// Returns whether the servers were told to end what that one does.
fn has_killed(world: &mut World) -> bool {
    world.log().contains(&"KILL QUERY 7".to_owned())
}

#[test]
fn a_statement_under_way_is_killed() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        assert!(has_killed(world));
        world.silence(false);
        assert_eq!(world.heard(victim), "columns 1, column, row r, end");
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        assert!(!has_killed(world), "it does nothing any more");
        assert_eq!(world.query(killer, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_server_is_held_until_the_answer_has_come() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        world.mutes = true;
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.silence_one(SERVER, false);
        assert_eq!(world.heard(victim), "columns 1, column, row r, end");
        world.log();
        world.send(killer, &written(command::QUERY, b"ok"));
        assert_eq!(world.heard(killer), "", "the server may be hit still");
        world.send(victim, &written(command::QUERY, b"err"));
        assert_eq!(world.heard(victim), "", "so it may for its own client");
        assert_eq!(world.log(), Vec::<String>::new());
        world.silence_one(SIDE, false);
        assert_eq!(world.heard(victim), "err 1064 42000");
        assert_eq!(world.heard(killer), "ok");
    });
}

#[test]
fn a_server_that_is_to_be_as_new_waits_for_the_answer() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.query(victim, "set:@a get_lock");
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"ok"));
        world.mutes = true;
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.leave(victim);
        world.log();
        world.silence_one(SERVER, false);
        assert!(!world.log().contains(&"RESET".to_owned()), "it might be hit");
        world.silence_one(SIDE, false);
        assert!(world.log().contains(&"RESET".to_owned()));
        assert_eq!(world.query(killer, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_statement_that_is_answered_is_not_killed_nor_is_the_one_behind_it() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        assert_eq!(world.query(victim, "begin"), "ok trans");
        // Refrain asks the server whether the transaction is open still, which is silent by then.
        assert_eq!(world.query(victim, "last err"), "err 1064 42000");
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.send(victim, &written(command::QUERY, b"commit"));
        assert_eq!(world.heard(victim), "");
        world.log();
        world.silence(false);
        assert_eq!(world.heard(victim), "ok");
        assert_eq!(world.log(), ["PING", "commit"]);
    });
}

#[test]
fn what_refrain_asks_behind_a_file_is_not_killed() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        assert_eq!(world.query(victim, "file:x load session_track_schema"), "file x");
        world.log();
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        assert!(!has_killed(world), "the question behind the file might be hit");
        let mut file = Vec::new();
        packet::message(&mut file, 2, |out| out.extend_from_slice(b"one"));
        packet::message(&mut file, 3, |_| {});
        world.send(victim, &file);
        assert_eq!(world.heard_from(victim, 4), "ok");
        assert!(!has_killed(world));
        assert_eq!(world.query(victim, "ok"), "ok");
    });
}

#[test]
fn one_kill_of_a_server_is_under_way_at_most() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        world.mutes = true;
        for what in ["QUERY", "QUERY", ""] {
            assert_eq!(kill(world, killer, what, victim), "ok");
            assert_eq!(world.servers(), 2, "the server, and one that kills");
        }
        world.log();
        world.silence_one(SIDE, false);
        assert!(has_killed(world));
        world.silence_one(SERVER, false);
        assert_eq!(world.query(killer, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_client_that_leaves_amid_its_rows_is_killed_once() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        world.mutes = true;
        world.servers_say(&[1, 0, 0, 1, 1]);
        assert_eq!(world.heard(victim), "columns 1");
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.leave(victim);
        assert_eq!(world.servers(), 2, "the server, and one that kills");
    });
}

#[test]
fn a_client_names_itself_though_another_was_told_its_number() {
    talk(ONE, |world| {
        // Clients are counted, and the model's servers have this number.
        let clients = [(); 7].map(|()| world.client(USUAL, "shop"));
        let [.., other, client] = clients;
        assert_eq!(world.number(client), 7);
        assert_eq!(world.query(other, "connection_id()"), "ok");
        assert_eq!(world.query(other, "KILL QUERY 7"), "err 1235 42000");
        assert_eq!(world.query(client, "KILL QUERY CONNECTION_ID()"), "err 1317 70100");
    });
}

#[test]
fn a_host_that_does_not_let_the_killer_in() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        world.connects = false;
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        assert!(world.notes.iter().any(|note| note.detail.contains("could not be ended")));
        world.silence(false);
        assert_eq!(world.heard(victim), "columns 1, column, row r, end");
        assert_eq!(world.query(killer, "ok"), "ok");
    });
}

#[test]
fn a_server_is_left_if_its_kill_is_not_answered() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        world.leaves = true;
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.log();
        world.silence(false);
        assert_eq!(world.heard(victim), "columns 1, column, row r, end");
        assert_eq!(world.log(), ["rows:1", "DO 0", "QUIT"], "KILL may come still");
        assert_eq!(world.query(killer, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_client_that_waits_is_told() {
    talk(ONE, |world| {
        let clients = [(); 3].map(|()| world.client(USUAL, "shop"));
        let [first, victim, killer] = clients;
        assert_eq!(world.query(first, "begin"), "ok trans");
        world.send(victim, &written(command::QUERY, b"ok"));
        assert_eq!(world.heard(victim), "");
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        assert_eq!(world.heard(victim), "err 1317 70100");
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(world.query(victim, "ok"), "ok");
    });
}

#[test]
fn a_session_is_killed() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"rows:1"));
        assert_eq!(kill(world, killer, "", victim), "ok");
        assert!(has_killed(world));
        assert_eq!(world.heard(victim), "err 3169 HY000");
        assert!(!world.is_open(victim));
        assert_eq!(kill(world, killer, "CONNECTION", victim), "err 1094 HY000");
        world.silence(false);
        assert_eq!(world.query(killer, "ok"), "ok");
    });
}

#[test]
fn a_client_kills_itself() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(kill(world, client, "QUERY", client), "err 1317 70100");
        assert_eq!(world.query(client, "KILL QUERY CONNECTION_ID()"), "err 1317 70100");
        assert_eq!(world.query(client, "KILL CONNECTION_ID()"), "err 1317 70100");
        assert!(!world.is_open(client));
    });
}

#[test]
fn a_number_that_only_one_client_was_told_names_that_one() {
    talk(ONE, |world| {
        let clients = [(); 3].map(|()| world.client(USUAL, "shop"));
        let [victim, killer, other] = clients;
        assert_eq!(world.query(killer, "KILL QUERY 7"), "err 1094 HY000");
        assert_eq!(world.query(victim, "connection_id()"), "ok");
        assert_eq!(world.query(killer, "KILL QUERY 7"), "ok");
        assert_eq!(world.query(other, "connection_id()"), "ok");
        assert_eq!(world.query(killer, "KILL QUERY 7"), "err 1235 42000");
        world.leave(other);
        assert_eq!(world.query(killer, "KILL 7"), "ok");
        assert!(!world.is_open(victim));
    });
}

#[test]
fn nothing_else_is_served() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        for text in ["KILL USER app", "KILL QUERY ID 5", "KILL 1 + 1", "ok; KILL 5"] {
            assert_eq!(world.query(client, text), "err 1235 42000", "{text}");
        }
        assert_eq!(world.ask(client, command::STMT_PREPARE, b"KILL 5"), "err 1235 42000");
    });
}

#[test]
fn what_may_be_hit_late_is_a_statement_that_does_nothing() {
    talk(ONE, |world| {
        let [victim, killer] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"ok"));
        world.mutes = true;
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        // The reply was on its way when KILL came.
        world.silence_one(SERVER, false);
        assert_eq!(world.heard(victim), "ok");
        world.log();
        world.send(killer, &written(command::QUERY, b"commit"));
        world.silence_one(SIDE, false);
        assert_eq!(world.heard(killer), "ok");
        let log: Vec<_> = world.log().into_iter().filter(|text| !text.contains("KILL")).collect();
        assert_eq!(log, ["DO 0", "commit", "QUIT"]);
        // A client that leaves takes along what may hit the next one.
        world.silence(true);
        world.send(victim, &written(command::QUERY, b"ok"));
        assert_eq!(kill(world, killer, "QUERY", victim), "ok");
        world.leave(victim);
        world.log();
        world.silence(false);
        assert!(world.log().contains(&"DO 0".to_owned()));
        assert_eq!(world.query(killer, "ok"), "ok");
    });
}
