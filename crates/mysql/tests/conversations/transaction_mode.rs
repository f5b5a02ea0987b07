//! Transaction mode: a server goes back when a transaction is over and nothing keeps it.

use refrain_mysql_wire::{Capabilities, command, packet};

use crate::packets::command as written;
use crate::world::{USUAL, World, talk};

const ONE: &str = "pool_size = 1";

#[test]
fn clients_take_turns_between_transactions() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "ok"), "", "the server is the first client's");
        assert_eq!(world.query(first, "rows:1"), "columns 1, column, row r, end trans");
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.query(first, "ok"), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn an_error_is_followed_by_a_question() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "begin err"), "ok trans more, err 1064 42000");
        assert_eq!(world.query(second, "ok"), "", "the transaction is open");
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert_eq!(world.query(first, "ok"), "ok");
        assert_eq!(world.log(), ["begin err", "PING", "commit", "ok", "err", "PING", "ok"]);
    });
}

#[test]
fn what_only_a_server_has_keeps_it() {
    for (text, reply) in [
        ("state", "ok"),
        ("ok /* */ , get_lock", "ok more, ok more, ok more, ok more, ok"),
        ("next:READ_ONLY", "ok"),
        ("set:timestamp=5", "ok"),
    ] {
        talk(ONE, |world| {
            let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
            assert_eq!(world.query(first, text), reply);
            assert_eq!(world.query(second, "ok"), "", "{text}");
            assert_eq!(world.ask(first, command::RESET_CONNECTION, b""), "ok");
            assert_eq!(world.heard(second), "ok", "{text}");
        });
    }
}

#[test]
fn commands_without_a_server_are_answered_here() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        world.log();
        let mut bytes = written(command::PING, b"");
        bytes.extend(written(command::RESET_CONNECTION, b""));
        bytes.extend(written(command::SET_OPTION, &[1, 0]));
        world.send(second, &bytes);
        assert_eq!(world.heard(second), "ok, ok, end");
        assert_eq!(world.log(), [""; 0]);
        assert_eq!(world.query(first, "commit"), "ok");
    });
}

#[test]
fn a_client_that_leaves_amid_a_transaction_leaves_nothing() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "ok"), "");
        world.log();
        world.leave(first);
        assert_eq!(world.heard(second), "ok");
        let log = world.log();
        assert_eq!(log[0], "RESET", "{log:?}");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn a_client_that_leaves_amid_a_reply_gets_none() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.silence(true);
        assert_eq!(world.query(first, "rows:3"), "");
        assert_eq!(world.query(second, "ok"), "");
        world.leave(first);
        world.silence(false);
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn clients_of_different_capabilities_have_different_servers() {
    talk(ONE, |world| {
        let first = world.client(USUAL, "shop");
        let second = world.client(USUAL | Capabilities::FOUND_ROWS, "shop");
        let third = world.client(USUAL - Capabilities::SESSION_TRACK, "shop");
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "begin"), "ok trans");
        assert_eq!(world.query(third, "ok"), "", "it shares the server of the first");
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(world.heard(third), "ok");
        assert_eq!(world.servers(), 2);
    });
}

#[test]
fn nobody_hears_of_the_statement_of_another() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "ok"), "ok");
        assert_eq!(world.query(first, "SHOW WARNINGS"), "ok more, ok");
        assert_eq!(world.query(second, "ok"), "ok");
        world.log();
        assert_eq!(world.query(first, "ROW_COUNT()"), "err 3566 HY000");
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert_eq!(world.query(first, "err"), "err 1064 42000");
        assert_eq!(world.query(second, "SHOW WARNINGS"), "err 3566 HY000");
        assert_eq!(world.query(first, "SHOW WARNINGS"), "ok more, ok");
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(first, "SHOW WARNINGS"), "ok trans more, ok trans");
    });
}

#[test]
fn nothing_keeps_a_server_that_owes_nothing() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "load"), "ok", "it might have loaded a file");
        assert_eq!(world.query(second, "ok"), "ok");
        let mut bytes = written(command::QUERY, b"err");
        bytes.extend(written(0x0F, b""));
        world.send(first, &bytes);
        assert_eq!(world.heard(first), "err 1064 42000, err 1047 08S01");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(first, "file:x load"), "file x");
        let mut end = Vec::new();
        packet::message(&mut end, 2, |_| {});
        world.send(first, &end);
        assert_eq!(world.heard_from(first, 3), "ok");
        assert_eq!(world.query(second, "ok"), "ok");
    });
}

#[test]
fn nobody_asks_about_an_error_of_refrain() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.ask(client, 0x0F, b""), "err 1047 08S01");
        assert_eq!(world.query(client, "SHOW WARNINGS"), "err 3566 HY000");
        assert_eq!(world.ask(client, command::STMT_PREPARE, b"ok"), "prepared 1");
        assert_eq!(world.query(client, "SHOW WARNINGS"), "err 3566 HY000");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(world.query(client, "SHOW WARNINGS"), "ok more, ok");
    });
}

#[test]
fn what_comes_behind_a_reset_keeps_the_server() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        let resets = written(command::RESET_CONNECTION, b"");
        let locks = written(command::QUERY, b"get_lock");
        world.send(first, &[resets, locks].concat());
        assert_eq!(world.heard(first), "ok, ok");
        assert_eq!(world.query(second, "ok"), "");
    });
}

#[test]
fn a_savepoint_of_which_nothing_shows_keeps_the_server() {
    let query = |text: &str| written(command::QUERY, text.as_bytes());
    for texts in [
        &["set:autocommit=OFF", "SAVEPOINT a"][..],
        &["set:autocommit=OFF", "begin", "commit", "SAVEPOINT a"],
        &["set:autocommit=OFF", "ok; SAVEPOINT a"],
    ] {
        talk(ONE, |world| {
            let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
            let bytes: Vec<_> = texts.iter().flat_map(|text| query(text)).collect();
            world.send(first, &bytes);
            assert!(world.heard(first).ends_with("ok manual"), "{texts:?}");
            assert_eq!(world.query(second, "ok"), "", "{texts:?}");
        });
    }
}

#[test]
fn the_flags_behind_an_error_are_those_of_the_session() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        let told = world.ask(client, command::STMT_PREPARE, b"ok");
        assert_eq!(told, "prepared 1");
        assert_eq!(world.query(client, "begin"), "ok trans");
        assert_eq!(world.query(client, "deadlock"), "err 1064 42000");
        assert_eq!(world.ask(client, command::PING, b""), "ok");
        assert_eq!(world.query(client, "begin"), "ok trans");
        let mut bytes = written(command::QUERY, b"deadlock");
        bytes.extend(written(command::STMT_RESET, &[1, 0, 0, 0]));
        world.send(client, &bytes);
        assert_eq!(world.heard(client), "err 1064 42000, ok");
    });
}

#[test]
fn a_login_on_a_server_is_between() {
    talk(ONE, |world| {
        let first = world.client(USUAL, "shop");
        assert_eq!(world.query(first, "insert:5"), "ok");
        world.client(USUAL, "shop");
        assert_eq!(world.query(first, "SELECT ROW_COUNT()"), "err 3566 HY000");
    });
}

#[test]
fn what_a_client_that_leaves_has_under_way_reaches_nobody() {
    for text in ["set:sql_mode=ANSI", "set:character_set_connection=latin1", "state"] {
        talk(ONE, |world| {
            let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
            world.log();
            world.silence(true);
            assert_eq!(world.query(first, text), "");
            world.leave(first);
            world.silence(false);
            assert_eq!(world.query(second, "ok"), "ok");
            assert!(world.log().contains(&"RESET".to_owned()), "{text}");
        });
    }
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        world.silence(true);
        assert_eq!(world.query(first, "use:store"), "");
        world.leave(first);
        world.silence(false);
        assert_eq!(world.query(second, "ok"), "ok");
        assert!(world.log().contains(&"INIT_DB shop".to_owned()), "a reset leaves the schema");
    });
}

#[test]
fn a_session_that_began_without_a_schema_keeps_one_behind_a_reset() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, ""), world.client(USUAL, ""));
        assert_eq!(world.query(first, "use:shop"), "ok schema=shop");
        assert_eq!(world.ask(first, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(world.query(second, "ok"), "", "a server without a schema is none's any more");
        assert_eq!(world.ask(first, command::QUIT, b""), "");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn what_a_transaction_was_begun_with_ends_with_it() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        let begun = world.query(first, "begin next:START_TRANSACTION");
        assert_eq!(begun, "ok trans more, ok trans");
        assert_eq!(world.query(first, "deadlock"), "err 1064 42000");
        assert_eq!(world.query(second, "ok"), "ok", "no report comes behind the error");
    });
}

#[test]
fn an_error_that_mariadb_keeps_stays_on_its_server() {
    talk("pool_size = 2", |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert_eq!(world.query(first, "commit"), "ok");
        // It uses no table, so the error is still there to ask about, and not on this server.
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(second, "show errors"), "err 3566 HY000");
        // A statement with a table leaves no error of before anywhere.
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "insert:5"), "ok");
        assert_eq!(world.query(second, "show errors"), "ok more, ok");
    });
}

#[test]
fn nobody_hears_of_the_error_of_another() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(second, "show warnings"), "ok more, ok", "nobody has left anything");
        assert_eq!(world.query(first, "err"), "err 1064 42000");
        // A statement that uses no table leaves the warnings of the one before.
        assert_eq!(world.query(second, "ok"), "ok");
        world.log();
        assert_eq!(world.query(second, "show warnings"), "ok more, ok", "it has left none");
        let clears = "DO (SELECT 1 FROM (SELECT 1) AS t)";
        assert_eq!(world.log(), [clears, "show warnings"]);
        let both = [written(command::QUERY, b"err"), written(command::QUERY, b"show warnings")];
        assert_eq!(world.query(first, "err"), "err 1064 42000");
        world.log();
        world.send(second, &both.concat());
        assert_eq!(world.heard(second), "err 1064 42000, ok more, ok");
        assert!(!world.log().contains(&clears.to_owned()), "it has left an error");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(second, "row_count()"), "ok", "that is its own");
        assert_eq!(world.query(second, "err"), "err 1064 42000");
        assert_eq!(world.query(second, "show warnings"), "ok more, ok", "so is this");
    });
}

#[test]
fn a_list_leaves_what_it_lists() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "LAST_INSERT_ID()"), "columns 1, column, row 0, end");
        assert_eq!(world.query(client, "create err"), "ok more, err 1064 42000");
        assert_eq!(world.query(client, "show count(*) errors"), "ok more, ok more, ok");
        assert_eq!(world.query(client, "show errors"), "ok more, ok", "no question is in between");
    });
}

#[test]
fn rows_that_are_not_counted_tell_no_number() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        assert!(world.query(client, "show rows:2").ends_with("end"));
        assert!(world.query(client, "found_rows()").starts_with("err 3566"));
        assert!(world.query(client, "select rows:2").ends_with("end"));
        assert_eq!(world.query(client, "found_rows()"), "ok");
        assert!(world.query(client, "show rows:3").ends_with("end"));
        assert_eq!(world.query(client, "found_rows()"), "ok", "nobody else has been there");
    });
}

#[test]
fn a_server_that_has_run_a_routine_is_as_new_for_another_client() {
    talk(ONE, |world| {
        let [first, second] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        let is_renewed = |world: &mut World| world.log().contains(&"RESET".to_owned());
        world.log();
        for text in ["call", "f_set(5)"] {
            world.query(first, text);
            assert_eq!(world.query(first, "ok"), "ok");
            assert!(!is_renewed(world), "{text}: it is the client's own");
            assert_eq!(world.query(second, "ok"), "ok");
            assert!(is_renewed(world), "{text}");
            assert_eq!(world.query(first, "ok"), "ok");
            assert!(!is_renewed(world), "{text}: nothing has been called since");
        }
        assert_eq!(world.query(first, "begin call"), "ok trans more, ok trans");
        world.send(second, &written(command::QUERY, b"ok"));
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(world.heard(second), "ok");
        assert!(is_renewed(world), "the client has waited for it");
        assert_eq!(world.query(first, "count(*)"), "ok");
        assert_eq!(world.query(second, "ok"), "ok");
        assert!(!is_renewed(world), "it is the server's own function");
        world.query(first, "call");
        world.log();
        world.leave(first);
        assert_eq!(world.query(second, "ok"), "ok");
        assert!(is_renewed(world), "it was another's");
    });
}

#[test]
fn a_server_that_has_run_a_routine_is_as_new_for_the_client_s_next_session() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        let resets = |world: &mut World| world.log().iter().filter(|word| *word == "RESET").count();
        world.query(client, "call");
        world.log();
        assert_eq!(world.ask(client, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(resets(world), 0, "the client has no server");
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(resets(world), 1);
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(resets(world), 0, "nothing has been called since");
        // The client has a server that resets, and calls a routine behind that in one write.
        world.query(client, "begin");
        let mut bytes = written(command::RESET_CONNECTION, b"");
        bytes.extend(written(command::QUERY, b"f_set(5)"));
        world.send(client, &bytes);
        world.got(client);
        assert_eq!(resets(world), 1);
        assert_eq!(world.query(client, "ok"), "ok");
        assert_eq!(resets(world), 0, "the session is the one that has called");
        let other = world.client(USUAL, "shop");
        assert_eq!(world.query(other, "ok"), "ok");
        assert_eq!(resets(world), 1, "what was called behind the reset is the first client's");
    });
}
