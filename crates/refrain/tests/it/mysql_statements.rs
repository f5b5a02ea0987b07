//! Prepared statements of MySQL's protocol in transaction mode, with real servers.

use std::thread;

use xtask::mysql::Flavour;

use crate::mysql::{Program, World};
use crate::mysql_client::Session;
use crate::world::eventually;

/// The number of a parameter's type, and its bit for numbers without a sign.
const LONG_LONG: u16 = 8;
const UNSIGNED: u16 = 0x8000;

/// Starts a server, and the program with this many connections in its pool.
fn start(flavour: Flavour, size: usize) -> (World, Program) {
    let world = World::start(flavour, &[]);
    let port = world.port();
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{port}/\"\npool_size = {size}");
    let program = Program::start("auth = \"trust\"", &url);
    (world, program)
}

/// Clients with a statement each run it on whatever server is free.
fn statements_follow_clients(flavour: Flavour) {
    let (world, program) = start(flavour, 2);
    let session = || Session::start(program.port(), "shop");
    let (mut one, mut two) = (session(), session());
    let text = "SELECT CAST(? + 0 AS CHAR), CAST(CONNECTION_ID() AS CHAR)";
    let (first, second) = (one.prepare(text), two.prepare(text));
    assert_eq!((first, second), (1, 1));
    let value = (u64::MAX - 1).to_le_bytes();
    let with = one.execute(first, Some(LONG_LONG | UNSIGNED), &value).expect("a row");
    assert_eq!(with[0][0], "18446744073709551614");
    // The same statement with another type, on the server that has it: it is kept by a transaction.
    two.query("BEGIN").expect("a transaction");
    let other = two.execute(second, Some(LONG_LONG), &value).expect("a row");
    assert_eq!(other[0][0], "-2");
    let without = one.execute(first, None, &value).expect("a row");
    assert_eq!(without[0][0], "18446744073709551614");
    assert_ne!(without[0][1], other[0][1], "another server");
    two.query("COMMIT").expect("an end");
    for _ in 0..10 {
        let without = one.execute(first, None, &value).expect("a row");
        assert_eq!(without[0][0], "18446744073709551614");
        assert_eq!(two.execute(second, None, &value).expect("a row")[0][0], "-2");
    }
    assert_eq!(one.execute(7, None, b""), Err(1243));
    assert!(world.connections() <= 2);
}

#[test]
fn statements_follow_clients_of_mariadb() {
    statements_follow_clients(Flavour::MariaDb);
}

#[test]
fn statements_follow_clients_of_mysql() {
    statements_follow_clients(Flavour::MySql);
}

/// A table that is gone, a schema, and a mode.
fn statements_mean_what_they_meant(flavour: Flavour) {
    // MariaDB reports a state that has changed where a statement runs in another schema, so its
    // client keeps its server.
    let (_world, program) = start(flavour, 3);
    let session = || Session::start(program.port(), "shop");
    let (mut one, mut two) = (session(), session());
    one.query("CREATE TABLE t (a VARCHAR(9))").expect("a table");
    one.query("INSERT INTO t VALUES ('shop')").expect("a row");
    let here = one.prepare("SELECT a FROM t");
    one.query("CREATE DATABASE other").expect("a schema");
    one.query("USE other").expect("a schema");
    one.query("CREATE TABLE t (a VARCHAR(9))").expect("a table");
    one.query("INSERT INTO t VALUES ('other')").expect("a row");
    let there = one.prepare("SELECT a FROM t");
    let plus = two.prepare("SELECT CAST('1' || '0' AS CHAR)");
    two.query("SET sql_mode = 'PIPES_AS_CONCAT'").expect("a mode");
    let concat = two.prepare("SELECT CAST('1' || '0' AS CHAR)");
    let mut third = session();
    for round in 0..20 {
        // Another client takes a server out of turn.
        third.query(if round % 2 == 0 { "BEGIN" } else { "COMMIT" }).expect("an end");
        assert_eq!(one.execute(here, None, b""), Ok(vec![vec!["shop".to_owned()]]));
        assert_eq!(one.execute(there, None, b""), Ok(vec![vec!["other".to_owned()]]));
        assert_eq!(two.execute(plus, None, b""), Ok(vec![vec!["1".to_owned()]]));
        assert_eq!(two.execute(concat, None, b""), Ok(vec![vec!["10".to_owned()]]));
    }
    two.query("DROP TABLE shop.t").expect("no table");
    for kept in ["BEGIN", "COMMIT"] {
        third.query(kept).expect("an end");
        assert_eq!(one.execute(here, None, b""), Err(1146));
    }
    assert_eq!(one.execute(there, None, b""), Ok(vec![vec!["other".to_owned()]]));
}

#[test]
fn statements_mean_what_they_meant_to_mariadb() {
    statements_mean_what_they_meant(Flavour::MariaDb);
}

#[test]
fn statements_mean_what_they_meant_to_mysql() {
    statements_mean_what_they_meant(Flavour::MySql);
}

/// Many clients over two servers, each with texts that others have as well.
fn many_clients_share_servers(flavour: Flavour) {
    let (world, program) = start(flavour, 2);
    thread::scope(|scope| {
        for client in 0..12_u64 {
            let port = program.port();
            scope.spawn(move || {
                let mut session = Session::start(port, "shop");
                for round in 0..100 {
                    let text = format!("SELECT CAST({} + ? AS CHAR)", round % 9);
                    let statement = session.prepare(&text);
                    for turn in 0..3 {
                        let kind = (turn == 0).then_some(LONG_LONG);
                        let got = session.execute(statement, kind, &client.to_le_bytes());
                        let due = (client + round % 9).to_string();
                        assert_eq!(got, Ok(vec![vec![due]]));
                    }
                    session.close(statement);
                }
            });
        }
    });
    assert!(world.connections() <= 2);
    // Nine texts on two servers.
    eventually("others are closed", || world.status("Prepared_stmt_count") <= 18);
}

#[test]
fn many_clients_share_servers_of_mariadb() {
    many_clients_share_servers(Flavour::MariaDb);
}

#[test]
fn many_clients_share_servers_of_mysql() {
    many_clients_share_servers(Flavour::MySql);
}

/// A text that is known is prepared without a server, until its table is altered: by a client of
/// Refrain's, or past it, which the next execution tells.
fn definitions_follow_tables(flavour: Flavour) {
    let (world, program) = start(flavour, 2);
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"", world.port());
    let other = Program::start("auth = \"trust\"", &url);
    let mut past = Session::start(other.port(), "shop");
    let [mut one, mut two] = [(); 2].map(|()| Session::start(program.port(), "shop"));
    one.query("CREATE TABLE t (a VARCHAR(9))").expect("a table");
    let text = "SELECT * FROM t WHERE a <> ?";
    let told = |session: &mut Session| {
        let head = session.prepared(text);
        (head.columns, head.parameters)
    };
    assert_eq!(told(&mut one), (1, 1));
    let before = world.status("Com_stmt_prepare");
    for _ in 0..10 {
        assert_eq!(told(&mut two), (1, 1));
    }
    let more = world.status("Com_stmt_prepare") - before;
    assert!(more <= 1, "each core asks once");
    two.query("ALTER TABLE t ADD b INT").expect("a column");
    assert_eq!(told(&mut one), (2, 1));
    let statement = two.prepare(text);
    two.execute(statement, Some(LONG_LONG), &7_u64.to_le_bytes()).expect("no rows");
    past.query("ALTER TABLE t ADD c INT").expect("a column");
    assert_eq!(told(&mut one), (2, 1), "nobody has told");
    two.execute(statement, None, &7_u64.to_le_bytes()).expect("no rows");
    assert_eq!(told(&mut one), (3, 1));
    assert_eq!(told(&mut two), (3, 1));
}

#[test]
fn definitions_follow_tables_of_mariadb() {
    definitions_follow_tables(Flavour::MariaDb);
}

#[test]
fn definitions_follow_tables_of_mysql() {
    definitions_follow_tables(Flavour::MySql);
}
