//! Settings follow a client from server to server.

use refrain_mysql_wire::{Capabilities, command};

use crate::packets::command as written;
use crate::world::{USUAL, talk};

const ONE: &str = "pool_size = 1";

#[test]
fn variables_follow_the_client() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "set:sql_mode=ANSI"), "ok sql_mode=ANSI");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(first, "ok"), "ok");
        let (back, forth) = ("SET @@session.sql_mode='STRICT'", "SET @@session.sql_mode='ANSI'");
        assert_eq!(world.log(), ["set:sql_mode=ANSI", back, "ok", "ok", forth, "ok"]);
    });
}

#[test]
fn the_schema_and_the_option_follow_the_client() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "other"));
        world.log();
        assert_eq!(world.query(first, "ok"), "ok");
        assert_eq!(world.ask(second, command::SET_OPTION, &[1, 0]), "end");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(first, "use:third"), "ok schema=third");
        assert_eq!(world.query(second, "ok"), "ok");
        let due = [
            "INIT_DB shop",
            "ok",
            "SET_OPTION 1",
            "INIT_DB other",
            "ok",
            "SET_OPTION 0",
            "INIT_DB shop",
            "use:third",
            "SET_OPTION 1",
            "INIT_DB other",
            "ok",
        ];
        assert_eq!(world.log(), due);
    });
}

#[test]
fn nothing_runs_in_another_schema() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "other"));
        assert_eq!(world.query(first, "use:no_more"), "ok schema=no_more");
        assert_eq!(world.query(second, "ok"), "ok");
        world.log();
        assert_eq!(world.query(first, "ok"), "err 1049 42000");
        assert_eq!(world.log(), ["INIT_DB no_more"]);
        assert!(!world.is_open(first));
        assert_eq!(world.query(second, "ok"), "ok");
    });
}

#[test]
fn a_collation_that_is_not_reported_is_asked_for() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "set:character_set_connection=utf8mb4"), "ok");
        assert_eq!(world.query(second, "ok"), "ok");
        let due = [
            "set:character_set_connection=utf8mb4",
            "SELECT @@collation_connection LIMIT 1",
            "SET @@session.collation_connection='utf8mb4_general_ci'",
            "ok",
        ];
        assert_eq!(world.log(), due);
    });
}

#[test]
fn a_client_hears_of_no_change_that_it_does_not_track() {
    talk(ONE, |world| {
        let without = USUAL - Capabilities::SESSION_TRACK;
        let client = world.client(without, "shop");
        assert_eq!(world.query(client, "set:sql_mode=ANSI ok"), "ok more, ok");
        assert_eq!(world.query(client, "use:other"), "ok");
    });
}

#[test]
fn autocommit_is_a_setting() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "set:autocommit=OFF"), "ok manual autocommit=OFF");
        assert_eq!(world.query(second, "ok"), "ok");
        assert_eq!(world.query(first, "begin"), "ok trans manual");
        assert_eq!(world.query(second, "ok"), "");
        assert_eq!(world.query(first, "commit"), "ok manual");
        assert_eq!(world.heard(second), "ok");
        let (on, off) = ("SET @@session.autocommit='ON'", "SET @@session.autocommit='OFF'");
        let due = ["set:autocommit=OFF", on, "ok", off, "begin", "commit", on, "ok"];
        assert_eq!(world.log(), due);
    });
}

#[test]
fn what_a_client_wants_to_be_told_keeps_no_server() {
    talk("pool_size = 1", |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        let text = "set:session_track_system_variables=*";
        assert!(world.query(first, text).starts_with("ok"));
        assert_eq!(world.query(second, "ok"), "ok");
    });
}

#[test]
fn variables_of_one_statement_do_not_follow_the_client() {
    talk("pool_size = 1", |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        let text = "SET STATEMENT untold:sql_mode=STRICT set:sql_mode=ANSI";
        let reply = world.query(first, text);
        assert!(reply.ends_with("ok sql_mode=ANSI"), "{reply}");
        assert_eq!(world.query(second, "ok"), "ok");
        world.log();
        assert_eq!(world.query(first, "ok"), "ok");
        assert_eq!(world.log(), ["ok"], "the server has set it back, and told that");
        assert_eq!(world.query(first, "SHOW WARNINGS"), "ok more, ok", "the question leaves them");
    });
}

/// MariaDB reports no change by `@@name` without the word SESSION.
#[test]
fn variables_that_are_set_without_a_scope_follow_the_client() {
    for is_mariadb in [true, false] {
        talk("pool_size = 1", |world| {
            world.is_mariadb = is_mariadb;
            let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
            assert!(world.query(first, "SET @@sql_mode=ANSI").starts_with("ok"));
            world.log();
            assert_eq!(world.query(second, "ok"), "ok");
            assert_eq!(world.log(), ["SET @@session.sql_mode='STRICT'", "ok"]);
            assert_eq!(world.query(first, "ok"), "ok");
            assert_eq!(world.log(), ["SET @@session.sql_mode='ANSI'", "ok"]);
        });
    }
}

#[test]
fn mariadb_is_asked_for_what_an_error_does_not_tell() {
    talk("pool_size = 1", |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "err"), "err 1064 42000");
        assert_eq!(world.query(second, "ok"), "ok", "nothing has changed");
        assert_eq!(world.log(), ["err", "TELL", "TELL_STATE", "ok"]);
        assert_eq!(world.query(first, "untold:sql_mode=ANSI err"), "err 1064 42000");
        assert_eq!(world.query(second, "ok"), "", "more may have changed than the setting");
        world.leave(first);
        assert_eq!(world.heard(second), "ok");
        let log = world.log();
        assert!(log.contains(&"RESET".to_owned()), "{log:?}");
    });
}

#[test]
fn mariadb_is_not_asked_amid_a_transaction() {
    talk(ONE, |world| {
        world.is_mariadb = true;
        let client = world.client(USUAL - Capabilities::DEPRECATE_EOF, "shop");
        world.log();
        world.query(client, "begin");
        // Its EOF packet says that something has changed.
        world.query(client, "noted");
        assert_eq!(world.query(client, "ok"), "ok trans");
        assert_eq!(world.query(client, "set:sql_mode=ANSI"), "ok trans sql_mode=ANSI");
        world.query(client, "commit");
        let due = ["begin", "noted", "ok", "set:sql_mode=ANSI", "commit"];
        assert_eq!(world.log(), due, "a report has told it");
        world.query(client, "begin");
        world.query(client, "noted");
        world.query(client, "commit");
        assert_eq!(world.log(), ["begin", "noted", "commit", "TELL", "TELL_STATE"]);
    });
}

#[test]
fn a_collation_that_is_asked_for_is_that_of_before_a_reset() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        world.log();
        let names = written(command::QUERY, b"set:character_set_connection=utf8mb4");
        let resets = written(command::RESET_CONNECTION, b"");
        world.send(client, &[names, resets].concat());
        assert_eq!(world.heard(client), "ok, ok");
        assert_eq!(world.log()[1], "SELECT @@collation_connection LIMIT 1");
    });
}

#[test]
fn nothing_is_prepared_under_settings_that_are_not_told() {
    talk("pool_size = 1", |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        let fails = written(command::QUERY, b"untold:sql_mode=ANSI err");
        let prepares = written(command::STMT_PREPARE, b"ok");
        world.log();
        world.send(first, &[fails, prepares].concat());
        assert_eq!(world.heard(first), "err 1064 42000, prepared 1");
        let due = ["untold:sql_mode=ANSI err", "TELL", "TELL_STATE", "PREPARE ok"];
        assert_eq!(world.log(), due);
        world.leave(first);
        assert_eq!(world.ask(second, command::STMT_PREPARE, b"ok"), "prepared 1");
        let log = world.log();
        assert_eq!(log.last().map(String::as_str), Some("PREPARE ok"), "{log:?}");
    });
}

#[test]
fn a_server_that_tells_nothing_stays_with_its_client() {
    talk(ONE, |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        world.log();
        assert_eq!(world.query(first, "untracked err"), "err 1064 42000");
        assert_eq!(world.log(), ["untracked err", "TELL", "TELL_STATE"]);
        assert_eq!(world.ask(first, command::STMT_PREPARE, b"ok"), "prepared 1");
        assert_eq!(world.query(second, "ok"), "", "what has changed is not known");
        world.leave(first);
        assert_eq!(world.heard(second), "ok");
        let log = world.log();
        assert!(log.contains(&"RESET".to_owned()), "{log:?}");
    });
}

#[test]
fn a_server_that_is_as_new_has_nothing_to_tell() {
    talk(ONE, |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.query(second, "set:sql_mode=ANSI"), "ok sql_mode=ANSI");
        assert_eq!(world.ask(second, command::STMT_PREPARE, b"ok"), "prepared 1");
        assert_eq!(world.query(first, "ok"), "ok");
        world.log();
        assert_eq!(world.query(first, "last err"), "err 1064 42000");
        world.leave(first);
        world.silence(false);
        let log = world.log();
        assert_eq!(log[..4], ["last err", "TELL", "TELL_STATE", "RESET"]);
        assert_eq!(world.ask(second, command::STMT_EXECUTE, &RUN_1), "ok");
        let due = ["SET @@session.sql_mode='ANSI'", "INIT_DB shop", "PREPARE ok", "EXECUTE 2"];
        assert_eq!(world.log(), due);
    });
}

#[test]
fn a_server_that_has_prepared_nothing_gets_its_client_s_settings_again() {
    talk("pool_size = 2", |world| {
        world.is_mariadb = true;
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(world.ask(first, command::STMT_PREPARE, b"ok"), "prepared 1");
        assert_eq!(world.query(second, "begin"), "ok trans");
        assert_eq!(world.query(first, "set:sql_mode=ANSI"), "ok sql_mode=ANSI");
        world.refuse_statements();
        world.log();
        assert_eq!(world.ask(first, command::STMT_EXECUTE, &RUN_1), "err 1064 42000");
        assert_eq!(world.query(first, "ok"), "ok");
        let (other, own) = ("SET @@session.sql_mode='STRICT'", "SET @@session.sql_mode='ANSI'");
        assert_eq!(world.log(), [other, "PREPARE ok", "TELL", "TELL_STATE", own, "ok"]);
    });
}

/// An execution of the statement with the number 1, which has no parameters.
const RUN_1: [u8; 9] = [1, 0, 0, 0, 0, 1, 0, 0, 0];
