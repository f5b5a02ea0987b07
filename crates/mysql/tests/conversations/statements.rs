//! Prepared statements follow their clients from server to server.

use refrain_mysql_wire::prepared::Execute;
use refrain_mysql_wire::{Capabilities, command};
use refrain_pool::event::Command;
use refrain_pool::ids::ClientSerial;

use crate::model::MALFORMED_TYPE;
use crate::packets::command as written;
use crate::world::{ClientId, USUAL, World, talk};

const ONE: &str = "pool_size = 1";
const TWO: &str = "pool_size = 2";

/// Writes the body of an execution of a statement with this many parameters, which have values. The
/// types are all of this one, if there is any.
fn execution(number: u32, parameters: u16, types: Option<u8>) -> Vec<u8> {
    let types = types.map(|kind| [kind, 0].repeat(usize::from(parameters)));
    let nulls = vec![0; usize::from(parameters).div_ceil(8)];
    let (types, nulls) = (types.as_deref(), &nulls[..]);
    let head = Execute { statement: number, flags: 0, parameters, nulls, types, values: b"" };
    let mut body = Vec::new();
    head.write(&mut body, Capabilities::NONE);
    body
}

fn prepare(world: &mut World, client: ClientId, text: &str) -> String {
    world.ask(client, command::STMT_PREPARE, text.as_bytes())
}

fn execute(world: &mut World, client: ClientId, number: u32) -> String {
    world.ask(client, command::STMT_EXECUTE, &execution(number, 0, None))
}

fn execute_as(world: &mut World, client: ClientId, number: u32, kind: Option<u8>) -> String {
    world.ask(client, command::STMT_EXECUTE, &execution(number, 1, kind))
}

/// Makes two servers of a pool, and two clients. The first client has a transaction open on one
/// server, the second has prepared a text on the other.
fn two_servers(world: &mut World, text: &str) -> [ClientId; 2] {
    let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
    assert_eq!(world.query(first, "begin"), "ok trans");
    assert_eq!(world.query(second, "begin"), "ok trans");
    assert_eq!(world.servers(), 2);
    assert_eq!(world.query(second, "commit"), "ok");
    assert!(prepare(world, second, text).starts_with("prepared 1"));
    world.log();
    [first, second]
}

#[test]
fn a_statement_is_prepared_where_it_is_executed() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok");
        // The server that was given back last is taken first.
        assert_eq!(world.query(first, "commit"), "ok");
        assert_eq!(execute(world, second, 1), "ok");
        assert_eq!(execute(world, second, 1), "ok");
        let log = world.log();
        let prepared = log.iter().filter(|line| *line == "PREPARE ok").count();
        let executed = log.iter().filter(|line| *line == "EXECUTE 1").count();
        assert_eq!((prepared, executed), (1, 2), "{log:?}");
    });
}

#[test]
fn the_numbers_are_the_clients() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        assert_eq!(prepare(world, first, "other"), "prepared 2");
        assert_eq!(prepare(world, second, "rows:1"), "prepared 1");
        world.log();
        assert_eq!(execute(world, second, 1), "columns 1, column, 4 bytes, end");
        assert_eq!(execute(world, first, 2), "ok");
        assert_eq!(world.log(), ["EXECUTE 3", "EXECUTE 2"]);
        assert_eq!(world.ask(first, command::STMT_CLOSE, &[2, 0, 0, 0]), "");
        assert_eq!(execute(world, first, 2), "err 1243 HY000");
        assert_eq!(prepare(world, first, "other"), "prepared 3", "no number comes again");
    });
}

#[test]
fn clients_share_a_statement_of_one_text() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        assert_eq!(prepare(world, second, "ok"), "prepared 1");
        assert_eq!(execute(world, first, 1), "ok");
        assert_eq!(world.ask(second, command::STMT_CLOSE, &[1, 0, 0, 0]), "");
        assert_eq!(execute(world, first, 1), "ok");
        let log = world.log();
        assert_eq!(log[log.len() - 3..], ["PREPARE ok", "EXECUTE 1", "EXECUTE 1"]);
    });
}

#[test]
fn a_text_means_what_it_meant_when_it_was_prepared() {
    talk("pool_size = 1\nmax_server_statements = 1", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(world, client, "ok"), "prepared 1");
        assert_eq!(world.query(client, "set:sql_mode=ANSI"), "ok sql_mode=ANSI");
        assert_eq!(world.ask(client, command::INIT_DB, b"other"), "ok schema=other");
        assert_eq!(prepare(world, client, "ok"), "prepared 2");
        world.log();
        assert_eq!(execute(world, client, 1), "ok");
        let log = world.log();
        let due = [
            "SET @@session.sql_mode='STRICT'",
            "INIT_DB shop",
            "CLOSE 2",
            "PREPARE ok",
            "SET @@session.sql_mode='ANSI'",
            "INIT_DB other",
            "EXECUTE 3",
        ];
        assert_eq!(log, due);
        assert_eq!(execute(world, client, 2), "ok");
        assert_eq!(world.log(), ["CLOSE 3", "PREPARE ok", "EXECUTE 4"]);
    });
}

#[test]
fn a_schema_that_is_gone_refuses_the_execution() {
    talk("pool_size = 1\nmax_server_statements = 1", |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(world.query(client, "use:none"), "ok schema=none");
        assert_eq!(prepare(world, client, "ok"), "prepared 1");
        assert_eq!(world.query(client, "use:shop"), "ok schema=shop");
        assert_eq!(prepare(world, client, "ok"), "prepared 2");
        world.log();
        assert_eq!(execute(world, client, 1), "err 1049 42000");
        assert_eq!(world.query(client, "ok"), "ok");
        let log = world.log();
        assert_eq!(log.first().map(String::as_str), Some("INIT_DB none"));
        assert_eq!(log[log.len() - 2..], ["INIT_DB shop", "ok"], "{log:?}");
    });
}

#[test]
fn types_are_those_of_the_clients_last_execution() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok ?");
        assert_eq!(execute_as(world, second, 1, None), "err 1835 HY000", "no types yet");
        let mut nulls = execution(1, 1, None);
        nulls[9] = 1;
        assert_eq!(world.ask(second, command::STMT_EXECUTE, &nulls), "err 1210 HY000");
        assert_eq!(world.log().len(), 2, "the server decides on it");
        assert_eq!(execute_as(world, second, 1, Some(3)), "ok");
        assert_eq!(execute_as(world, second, 1, None), "ok");
        assert_eq!(world.log(), ["EXECUTE 1 as 3", "EXECUTE 1 as 3 still"]);
        // On the other server nobody has set any.
        assert_eq!(world.query(first, "commit"), "ok");
        world.log();
        assert_eq!(execute_as(world, second, 1, None), "ok");
        assert_eq!(world.log(), ["PREPARE ok ?", "EXECUTE 1 as 3"]);
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column");
        assert_eq!(execute_as(world, first, 1, Some(5)), "ok");
        assert_eq!(execute_as(world, second, 1, None), "ok");
        assert_eq!(execute_as(world, first, 1, None), "ok");
        assert_eq!(execute_as(world, first, 1, None), "ok");
        let log = world.log();
        let due = ["EXECUTE 1 as 5", "EXECUTE 1 as 3", "EXECUTE 1 as 5", "EXECUTE 1 as 5 still"];
        assert_eq!(log[log.len() - 4..], due, "{log:?}");
    });
}

#[test]
fn types_that_a_server_has_not_read_are_not_the_client_s() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok ?");
        let malformed = execution(1, 1, Some(MALFORMED_TYPE));
        assert_eq!(world.ask(second, command::STMT_EXECUTE, &malformed), "err 1835 HY000");
        assert_eq!(execute_as(world, second, 1, None), "err 1835 HY000", "no types yet");
        assert_eq!(execute_as(world, second, 1, Some(3)), "ok");
        assert_eq!(world.ask(second, command::STMT_EXECUTE, &malformed), "err 1835 HY000");
        world.log();
        assert_eq!(execute_as(world, second, 1, None), "ok");
        assert_eq!(world.log(), ["EXECUTE 1 as 3"]);
        // An execution without types that comes at once has to wait for the reply.
        assert_eq!(world.query(first, "commit"), "ok");
        world.log();
        let [malformed, plain] = [Some(MALFORMED_TYPE), None]
            .map(|kind| written(command::STMT_EXECUTE, &execution(1, 1, kind)));
        world.send(second, &[malformed, plain].concat());
        assert_eq!(world.heard(second), "err 1835 HY000, ok");
        let mut log = world.log();
        log.retain(|words| words != "PING");
        assert_eq!(log, ["PREPARE ok ?", "EXECUTE 1 malformed", "EXECUTE 1 as 3"]);
        // So has one with other types: the reply is not about those.
        let [malformed, other] = [Some(MALFORMED_TYPE), Some(5)]
            .map(|kind| written(command::STMT_EXECUTE, &execution(1, 1, kind)));
        world.send(second, &[malformed, other].concat());
        assert_eq!(world.heard(second), "err 1835 HY000, ok");
        assert_eq!(execute_as(world, second, 1, None), "ok");
        let log = world.log();
        assert_eq!(log.last().map(String::as_str), Some("EXECUTE 1 as 5 still"), "{log:?}");
    });
}

#[test]
fn a_cursor_keeps_its_server_up_to_its_end() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        for ends in [
            &[&[command::STMT_RESET, 1, 0, 0, 0][..]][..],
            &[
                &[command::STMT_FETCH, 1, 0, 0, 0, 1, 0, 0, 0],
                &[command::STMT_FETCH, 1, 0, 0, 0, 1, 0, 0, 0],
            ],
        ] {
            let mut body = execution(1, 0, None);
            body[4] = Execute::CURSOR_READ_ONLY;
            let told = world.ask(first, command::STMT_EXECUTE, &body);
            assert_eq!(told, "columns 1, column, end cursor");
            assert_eq!(world.query(second, "ok"), "");
            for end in ends {
                assert_eq!(world.heard(second), "");
                assert_ne!(world.ask(first, end[0], &end[1..]), "");
            }
            assert_eq!(world.heard(second), "ok");
            assert_eq!(world.ask(first, command::PING, b""), "ok", "the flags are the session's");
        }
        let fetch = [1, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(world.ask(first, command::STMT_FETCH, &fetch), "err 1421 HY000");
    });
}

#[test]
fn a_closed_cursor_keeps_nothing_for_commands_without_a_reply() {
    let long = [&[0xFF, 0xFF, 0xFF, 0][..], b"\x00\x00part"].concat();
    let close = [0xFF, 0xFF, 0xFF, 0];
    for behind in [
        &[(command::STMT_SEND_LONG_DATA, &long[..]), (command::STMT_CLOSE, &close)][..],
        &[(command::STMT_SEND_LONG_DATA, b"\x01"), (command::STMT_CLOSE, &[2, 0, 0, 0])],
    ] {
        talk(ONE, |world| {
            let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
            assert_eq!(prepare(world, first, "ok"), "prepared 1");
            assert_eq!(prepare(world, first, "err"), "prepared 2");
            let mut body = execution(1, 0, None);
            body[4] = Execute::CURSOR_READ_ONLY;
            let mut bytes = written(command::STMT_EXECUTE, &body);
            bytes.extend(written(command::STMT_CLOSE, &[1, 0, 0, 0]));
            for (command, body) in behind {
                bytes.extend(written(*command, body));
            }
            world.send(first, &bytes);
            assert_eq!(world.heard(first), "columns 1, column, end cursor");
            assert_eq!(world.query(second, "ok"), "ok");
        });
    }
}

#[test]
fn a_closed_cursor_is_closed_on_its_server() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        let mut body = execution(1, 0, None);
        body[4] = Execute::CURSOR_READ_ONLY;
        world.ask(first, command::STMT_EXECUTE, &body);
        // A second statement of the same text has a copy of its own.
        assert_eq!(prepare(world, first, "ok"), "prepared 2");
        assert_eq!(execute(world, first, 2), "ok");
        assert_eq!(world.query(second, "ok"), "");
        world.log();
        assert_eq!(world.ask(first, command::STMT_CLOSE, &[1, 0, 0, 0]), "");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.log(), ["CLOSE 1", "ok"]);
        assert_eq!(execute(world, first, 2), "ok");
        assert_eq!(world.log(), ["EXECUTE 2"]);
    });
}

#[test]
fn long_data_keep_their_server_up_to_the_execution() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column");
        assert_eq!(world.query(second, "ok"), "ok");
        world.log();
        let long = b"\x01\x00\x00\x00\x00\x00part";
        assert_eq!(world.ask(first, command::STMT_SEND_LONG_DATA, long), "");
        assert_eq!(world.query(second, "ok"), "");
        assert_eq!(execute_as(world, first, 1, Some(3)), "ok");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.log(), ["LONG 1 part", "EXECUTE 1 as 3 long part", "ok"]);
        assert_eq!(world.ask(first, command::STMT_SEND_LONG_DATA, long), "");
        assert_eq!(world.query(second, "ok"), "");
        assert_eq!(world.ask(first, command::STMT_RESET, &[1, 0, 0, 0]), "ok");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.log(), ["LONG 1 part", "STMT_RESET 1", "ok"]);
        assert_eq!(world.ask(first, command::STMT_RESET, &[1, 0, 0, 0]), "ok");
        assert_eq!(world.log(), [""; 0], "nothing is to be reset");
    });
}

#[test]
fn a_server_has_a_bounded_number_of_statements() {
    talk("pool_size = 1\nmax_server_statements = 2", |world| {
        let client = world.client(USUAL, "shop");
        for (at, text) in ["a", "b"].into_iter().enumerate() {
            assert_eq!(prepare(world, client, text), format!("prepared {}", at + 1));
        }
        assert_eq!(execute(world, client, 1), "ok");
        assert_eq!(prepare(world, client, "c"), "prepared 3");
        assert_eq!(execute(world, client, 2), "ok");
        let log = world.log();
        let due = ["EXECUTE 1", "CLOSE 2", "PREPARE c", "CLOSE 1", "PREPARE b", "EXECUTE 4"];
        assert_eq!(log[log.len() - due.len()..], due, "{log:?}");
    });
}

#[test]
fn an_error_of_the_preparation_is_that_of_the_execution() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok");
        assert_eq!(world.query(first, "commit"), "ok");
        world.refuse_statements();
        assert_eq!(execute(world, second, 1), "err 1064 42000");
        assert_eq!(world.query(second, "ok"), "ok");
        let long = b"\x01\x00\x00\x00\x00\x00part";
        assert_eq!(world.ask(second, command::STMT_SEND_LONG_DATA, long), "");
        assert_eq!(execute(world, second, 1), "err 1064 42000");
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.query(second, "begin"), "ok trans", "nothing keeps the servers");
    });
}

#[test]
fn a_number_that_nobody_has_is_unknown() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        world.log();
        assert_eq!(execute(world, client, 7), "err 1243 HY000");
        assert_eq!(world.ask(client, command::STMT_RESET, &[7, 0, 0, 0]), "err 1243 HY000");
        let fetch = [7, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(world.ask(client, command::STMT_FETCH, &fetch), "err 1243 HY000");
        assert_eq!(world.ask(client, command::STMT_CLOSE, &[7, 0, 0, 0]), "");
        assert_eq!(world.ask(client, command::STMT_SEND_LONG_DATA, &[7, 0, 0, 0, 0, 0, 1]), "");
        assert_eq!(execute(world, client, u32::MAX), "err 1243 HY000");
        assert_eq!(world.ask(client, command::STMT_EXECUTE, &[7]), "err 1835 HY000");
        assert_eq!(world.log(), [""; 0]);
    });
}

#[test]
fn a_reset_forgets_the_statements() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        assert_eq!(prepare(world, second, "ok"), "prepared 1");
        assert_eq!(world.query(first, "begin"), "ok trans");
        assert_eq!(world.ask(first, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(execute(world, first, 1), "err 1243 HY000");
        world.log();
        assert_eq!(execute(world, second, 1), "ok", "it has its own");
        assert_eq!(world.log(), ["PREPARE ok", "EXECUTE 2"]);
        assert_eq!(world.ask(second, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(execute(world, second, 1), "err 1243 HY000");
        assert_eq!(prepare(world, second, "ok"), "prepared 2");
    });
}

#[test]
fn executions_may_be_pipelined() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok");
        assert_eq!(world.query(first, "commit"), "ok");
        let mut bytes = written(command::STMT_EXECUTE, &execution(1, 0, None)).repeat(3);
        bytes.extend(written(command::STMT_RESET, &[1, 0, 0, 0]));
        bytes.extend(written(command::STMT_PREPARE, b"rows:1"));
        bytes.extend(written(command::STMT_EXECUTE, &execution(2, 0, None)));
        bytes.extend(written(command::STMT_CLOSE, &[1, 0, 0, 0]));
        bytes.extend(written(command::STMT_EXECUTE, &execution(1, 0, None)));
        world.send(second, &bytes);
        let due = "ok, ok, ok, ok, prepared 2, columns 1, column, 4 bytes, end, err 1243 HY000";
        assert_eq!(world.heard(second), due);
    });
}

#[test]
fn what_an_execution_does_keeps_its_server() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "get_lock"), "prepared 1");
        assert_eq!(prepare(world, first, "state"), "prepared 2");
        assert_eq!(world.query(second, "ok"), "ok", "nothing has been executed");
        assert_eq!(execute(world, first, 2), "ok");
        assert_eq!(world.query(second, "ok"), "");
        assert_eq!(world.ask(first, command::RESET_CONNECTION, b""), "ok");
        assert_eq!(world.heard(second), "ok");
    });
}

#[test]
fn a_client_of_the_old_form_has_statements_as_well() {
    talk(ONE, |world| {
        let agreed = USUAL - Capabilities::DEPRECATE_EOF;
        let (first, second) = (world.client(agreed, "shop"), world.client(agreed, "shop"));
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column, eof");
        assert_eq!(execute_as(world, first, 1, Some(3)), "ok");
        world.leave(first);
        assert_eq!(prepare(world, second, "ok ?"), "prepared 1, column, eof");
        assert_eq!(execute_as(world, second, 1, Some(3)), "ok");
    });
}

const EVICTS: &str = "pool_size = 1\nmax_server_statements = 1";

#[test]
fn an_execution_follows_its_statement_at_once() {
    talk(EVICTS, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(world, client, "ok"), "prepared 1");
        assert_eq!(prepare(world, client, "rows:1"), "prepared 2");
        world.log();
        world.silence(true);
        assert_eq!(execute(world, client, 1), "");
        assert_eq!(world.unanswered(), 3);
        world.silence(false);
        assert_eq!(world.heard(client), "ok");
        assert_eq!(world.log(), ["CLOSE 2", "PREPARE ok", "EXECUTE 3"]);
        world.refuse_statements();
        assert_eq!(execute(world, client, 2), "err 1064 42000");
        assert_eq!(world.log(), ["CLOSE 3", "PREPARE rows:1", "EXECUTE 4 unknown", "PING"]);
        let mut bytes = written(command::STMT_EXECUTE, &execution(2, 0, None));
        bytes.extend(written(command::QUERY, b"ok"));
        world.send(client, &bytes);
        assert_eq!(world.heard(client), "err 1064 42000, ok");
    });
}

#[test]
fn a_number_that_was_foretold_wrongly_is_put_right() {
    talk(EVICTS, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(world, client, "ok"), "prepared 1");
        assert_eq!(prepare(world, client, "ok ?"), "prepared 2, column");
        assert_eq!(prepare(world, client, "rows:1"), "prepared 3");
        world.skip_numbers(1);
        world.log();
        let mut bytes = written(command::STMT_EXECUTE, &execution(1, 0, None));
        bytes.extend(written(command::QUERY, b"begin"));
        world.send(client, &bytes);
        assert_eq!(world.heard(client), "ok, ok trans");
        let due = ["CLOSE 3", "PREPARE ok", "EXECUTE 4 unknown", "EXECUTE 5", "begin"];
        assert_eq!(world.log(), due);
        assert_eq!(execute_as(world, client, 2, Some(3)), "ok trans");
        assert_eq!(execute(world, client, 3), "columns 1, column, 4 bytes, end trans");
        world.log();
        assert_eq!(execute(world, client, 1), "ok trans", "now its number is waited for");
        assert_eq!(world.log(), ["CLOSE 9", "PREPARE ok", "EXECUTE 11"]);
        assert_eq!(execute_as(world, client, 2, None), "ok trans");
        assert_eq!(world.query(client, "commit"), "ok");
    });
}

#[test]
fn a_client_that_leaves_behind_a_foretold_number_leaves_nothing() {
    talk(EVICTS, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok"), "prepared 1");
        assert_eq!(prepare(world, second, "ok"), "prepared 1");
        assert_eq!(prepare(world, second, "rows:1"), "prepared 2");
        world.skip_numbers(1);
        world.silence(true);
        assert_eq!(execute(world, first, 1), "");
        world.leave(first);
        world.silence(false);
        assert_eq!(execute(world, second, 1), "ok");
        assert_eq!(execute(world, second, 2), "columns 1, column, 4 bytes, end");
        assert_eq!(world.servers(), 1);
    });
}

#[test]
fn nothing_is_foretold_beside_statements_of_sql() {
    talk(EVICTS, |world| {
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(world, client, "ok"), "prepared 1");
        assert_eq!(prepare(world, client, "rows:1"), "prepared 2");
        assert_eq!(world.query(client, "state"), "ok");
        world.skip_numbers(1);
        world.log();
        assert_eq!(execute(world, client, 1), "ok");
        assert_eq!(world.log(), ["CLOSE 2", "PREPARE ok", "EXECUTE 4"]);
    });
}

#[test]
fn a_client_has_a_bounded_number_of_statements() {
    const BYTES: &str =
        "max_client_statement_bytes = \"4KiB\"\nmax_cached_statement_bytes = \"4KiB\"";
    for limit in ["max_client_statements = 2", BYTES] {
        talk(&format!("pool_size = 1\n{limit}"), |world| {
            let client = world.client(USUAL, "shop");
            let text = "a ".repeat(1024);
            assert_eq!(prepare(world, client, &text), "prepared 1");
            assert_eq!(prepare(world, client, &text), "prepared 2");
            assert_eq!(prepare(world, client, "ok"), "err 1461 42000", "{limit}");
            assert_eq!(world.ask(client, command::STMT_CLOSE, &[1, 0, 0, 0]), "");
            assert_eq!(prepare(world, client, "ok"), "prepared 3");
        });
    }
}

#[test]
fn a_part_of_a_value_behind_an_execution_is_for_the_next_one() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column");
        world.silence(true);
        let execute = written(command::STMT_EXECUTE, &execution(1, 1, Some(253)));
        let long = written(command::STMT_SEND_LONG_DATA, &[1, 0, 0, 0, 0, 0, b'x']);
        world.send(first, &[execute, long].concat());
        world.silence(false);
        assert_eq!(world.heard(first), "ok");
        assert_eq!(world.query(second, "ok"), "", "the server has a part of the value");
        world.log();
        assert_eq!(world.ask(first, command::STMT_RESET, &[1, 0, 0, 0]), "ok");
        assert_eq!(world.heard(second), "ok");
        assert_eq!(world.log(), ["STMT_RESET 1", "ok"]);
    });
}

#[test]
fn a_refused_execution_drops_the_parts_of_its_values() {
    talk(ONE, |world| {
        let (first, second) = (world.client(USUAL, "shop"), world.client(USUAL, "shop"));
        assert_eq!(prepare(world, first, "ok ?"), "prepared 1, column");
        let long = &[1, 0, 0, 0, 0, 0, b'x'];
        assert_eq!(world.ask(first, command::STMT_SEND_LONG_DATA, long), "");
        assert_eq!(execute_as(world, first, 1, None), "err 1835 HY000", "it has no types");
        assert_eq!(world.query(second, "ok"), "ok", "nothing keeps the server");
        world.log();
        assert_eq!(execute_as(world, first, 1, Some(253)), "ok");
        assert_eq!(world.log(), ["PREPARE ok ?", "EXECUTE 2 as 253"]);
    });
}

#[test]
fn an_execution_that_is_cut_short_does_not_run() {
    for missing in 1..7 {
        let mut world = World::new(ONE, usize::MAX);
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(&mut world, client, "ok ?"), "prepared 1, column");
        world.log();
        let mut body = execution(1, 1, Some(253));
        body.extend_from_slice(b"\x05value");
        let bytes = written(command::STMT_EXECUTE, &body);
        world.send(client, &bytes[..bytes.len() - missing]);
        world.leave(client);
        assert_eq!(world.log(), [""; 0], "{missing} bytes are missing");
        assert_eq!(world.servers(), 0);
    }
}

#[test]
fn a_part_of_a_value_that_waits_is_owed_no_reply() {
    talk(TWO, |world| {
        let [first, second] = two_servers(world, "ok ?");
        assert_eq!(world.query(first, "commit"), "ok");
        world.silence(true);
        let long = b"\x01\x00\x00\x00\x00\x00part";
        world.send(second, &written(command::STMT_SEND_LONG_DATA, long));
        assert_eq!(world.unanswered(), 1, "the statement is prepared again");
        (1..4).for_each(|serial| world.command(Command::KillClient(ClientSerial(serial))));
        assert_eq!(world.heard_from(second, 0), "err 3169 HY000");
        assert!(!world.is_open(second));
    });
}

#[test]
fn what_closes_a_statement_does_not_come_amid_an_execution() {
    talk(ONE, |world| {
        let client = world.client(USUAL, "shop");
        // A client with something of its own has each PREPARE go to its server.
        world.query(client, "set:@a get_lock");
        assert!(prepare(world, client, "ok ?").starts_with("prepared 1"));
        let prepare = written(command::STMT_PREPARE, b"ok ?");
        let execute = written(command::STMT_EXECUTE, &execution(1, 1, Some(6)));
        let both = [prepare, execute].concat();
        let (begin, rest) = both.split_at(both.len() - 3);
        world.silence(true);
        world.send(client, begin);
        world.log();
        world.silence(false);
        world.send(client, rest);
        let heard = world.heard(client);
        assert!(heard.starts_with("prepared 2") && heard.ends_with("ok"), "{heard}");
        let closes = world.log().iter().filter(|line| line.starts_with("CLOSE")).count();
        assert_eq!(closes, 1);
    });
}

#[test]
fn a_statement_that_has_had_a_cursor_is_not_executed_without_one_where_that_fails() {
    for (version, is_spoilt) in [("8.0.15", false), ("9.7.0", true)] {
        talk(ONE, |world| {
            world.version = version;
            let [first, second] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
            assert!(prepare(world, first, "rows:1").starts_with("prepared 1"));
            assert!(prepare(world, second, "rows:1").starts_with("prepared 1"));
            let mut body = execution(1, 0, None);
            body[4] = Execute::CURSOR_READ_ONLY;
            let told = world.ask(first, command::STMT_EXECUTE, &body);
            assert_eq!(told, "columns 1, column, end cursor");
            for _ in 0..2 {
                world.ask(first, command::STMT_FETCH, &[1, 0, 0, 0, 1, 0, 0, 0]);
            }
            world.log();
            assert_eq!(execute(world, second, 1), "columns 1, column, 4 bytes, end");
            let log = world.log();
            assert_eq!(log.contains(&"PREPARE rows:1".to_owned()), is_spoilt, "{log:?}");
        });
    }
}

#[test]
fn a_statement_that_is_always_executed_with_a_cursor_is_prepared_once() {
    talk(ONE, |world| {
        world.version = "9.7.0";
        let [first, second] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
        assert!(prepare(world, first, "rows:1").starts_with("prepared 1"));
        assert!(prepare(world, second, "rows:1").starts_with("prepared 1"));
        world.log();
        let mut body = execution(1, 0, None);
        body[4] = Execute::CURSOR_READ_ONLY;
        for client in [first, second, first] {
            let told = world.ask(client, command::STMT_EXECUTE, &body);
            assert_eq!(told, "columns 1, column, end cursor");
            for _ in 0..2 {
                world.ask(client, command::STMT_FETCH, &[1, 0, 0, 0, 1, 0, 0, 0]);
            }
        }
        let log = world.log();
        assert!(
            !log.iter().any(|it| it.starts_with("PREPARE") || it.starts_with("CLOSE")),
            "{log:?}"
        );
        // One who has not read a cursor to its end, and wants no other, gets a new statement.
        world.ask(first, command::STMT_EXECUTE, &body);
        world.log();
        assert_eq!(execute(world, first, 1), "columns 1, column, 4 bytes, end");
        let log = world.log();
        assert_eq!(log.iter().filter(|it| *it == "PREPARE rows:1").count(), 1, "{log:?}");
        assert_eq!(execute(world, second, 1), "columns 1, column, 4 bytes, end");
        let log = world.log();
        assert_eq!(log.len(), 1, "{log:?}");
    });
}

#[test]
fn parts_of_values_go_to_a_statement_that_has_had_no_cursor() {
    talk(ONE, |world| {
        world.version = "9.7.0";
        let client = world.client(USUAL, "shop");
        assert_eq!(prepare(world, client, "ok ?"), "prepared 1, column");
        let mut body = execution(1, 1, Some(253));
        body[4] = Execute::CURSOR_READ_ONLY;
        world.ask(client, command::STMT_EXECUTE, &body);
        for _ in 0..2 {
            world.ask(client, command::STMT_FETCH, &[1, 0, 0, 0, 1, 0, 0, 0]);
        }
        world.log();
        let long = &[1, 0, 0, 0, 0, 0, b'x'];
        assert_eq!(world.ask(client, command::STMT_SEND_LONG_DATA, long), "");
        assert_eq!(execute_as(world, client, 1, Some(253)), "ok");
        let log = world.log();
        assert!(log.contains(&"PREPARE ok ?".to_owned()), "{log:?}");
        assert!(log.iter().any(|it| it.ends_with("long x")), "{log:?}");
    });
}

#[test]
fn an_execution_that_a_server_would_not_answer_gets_an_error() {
    for (version, due) in [("8.0.15", "ok"), ("9.7.0", "err 1615 HY000")] {
        talk(ONE, |world| {
            world.version = version;
            let client = world.client(USUAL, "shop");
            assert_eq!(prepare(world, client, "ok ?"), "prepared 1, column");
            let mut body = execution(1, 1, Some(253));
            body[4] = Execute::CURSOR_READ_ONLY;
            world.ask(client, command::STMT_EXECUTE, &body);
            // Its cursor is open.
            let long = &[1, 0, 0, 0, 0, 0, b'x'];
            assert_eq!(world.ask(client, command::STMT_SEND_LONG_DATA, long), "");
            assert_eq!(execute_as(world, client, 1, Some(253)), due);
            assert_eq!(execute_as(world, client, 1, Some(253)), "ok");
        });
    }
}

/// A cursor to write with is none, whatever its client says.
#[test]
fn an_execution_with_another_kind_of_cursor_has_none() {
    talk(ONE, |world| {
        world.version = "9.7.0";
        let client = world.client(USUAL, "shop");
        assert!(prepare(world, client, "rows:1").starts_with("prepared 1"));
        let mut body = execution(1, 0, None);
        body[4] = Execute::CURSOR_READ_ONLY;
        world.ask(client, command::STMT_EXECUTE, &body);
        for _ in 0..2 {
            world.ask(client, command::STMT_FETCH, &[1, 0, 0, 0, 1, 0, 0, 0]);
        }
        world.log();
        body[4] = 2; // CURSOR_TYPE_FOR_UPDATE
        let told = world.ask(client, command::STMT_EXECUTE, &body);
        assert_eq!(told, "columns 1, column, 4 bytes, end");
        let log = world.log();
        assert!(log.contains(&"PREPARE rows:1".to_owned()), "{log:?}");
    });
}
