//! Replies of real servers, MariaDB 10.11 and MySQL 8.0, up to their ends.
//!
//! Behind each command a COM_PING is on its way already. So a reply that ends too early or too late
//! by one packet shows in the next one.

#![forbid(unsafe_code)]

mod session;

use refrain_mysql::Part;
use refrain_mysql_wire::prepared::{Execute, PrepareOk};
use refrain_mysql_wire::request::{MULTI_STATEMENTS_ON, Query, Request};
use refrain_mysql_wire::{Capabilities, Status};
use xtask::mysql::{Flavour, Server};

use self::session::{Answer, Session};

/// Texts, and the number of results of each; an error is one.
const TEXTS: &[(&str, usize)] = &[
    ("DO 1", 1),
    ("SELECT 1", 1),
    ("SELECT NULL, 1 UNION ALL SELECT 2, NULL", 1),
    ("SELECT '' UNION ALL SELECT ''", 1),
    ("SELECT 1 WHERE 1 = 0", 1),
    ("SELECT REPEAT('x', 300), REPEAT('y', 70000)", 1),
    ("SELECT REPEAT('x', 16777211), 1", 1),
    ("SELECT REPEAT('x', 16777216), 1", 1),
    ("SELECT REPEAT(CHAR(254), 16777216), 1", 1),
    ("SELEC 1", 1),
    ("", 1),
    ("SELECT 1; DO 1; SELECT 2; SELECT 3 WHERE 1 = 0", 4),
    ("SELECT 1; SELEC 2; SELECT 3", 2),
    ("SELECT 1 UNION ALL SELECT (SELECT 1 UNION SELECT 2)", 1),
    ("CREATE OR REPLACE VIEW test.v AS SELECT 1 AS a, 2 AS b", 1),
    ("CALL test.p(@x)", 4),
    ("BEGIN; INSERT INTO test.t VALUES (1), (2); ROLLBACK", 3),
    ("SET @a = 1, @b = 2", 1),
    ("EXPLAIN SELECT * FROM test.t", 1),
    ("SHOW WARNINGS", 1),
    ("USE test", 1),
];

/// Texts that are prepared, and the number of results of each execution.
const PREPARED: &[(&str, usize)] = &[
    ("DO 1", 1),
    ("SELECT 1, 2", 1),
    ("SELECT 1 WHERE 1 = 0", 1),
    ("SELECT REPEAT('x', 16777216), 1", 1),
    ("SELECT 1 UNION ALL SELECT (SELECT 1 UNION SELECT 2)", 1),
    ("CALL test.p(@x)", 4),
    ("INSERT INTO test.t VALUES (3)", 1),
];

fn check(flavour: Flavour) {
    let settings = [("local-infile", "1"), ("max-allowed-packet", "128M")];
    let server = Server::start(flavour, &settings).expect("a server");
    let mut session = Session::start(&server, Capabilities::DEPRECATE_EOF);
    let body = "BEGIN SELECT 1; SELECT 2, 3; SELECT 4 WHERE 1 = 0; SET x = 5; END";
    for text in [
        "CREATE DATABASE IF NOT EXISTS test",
        "CREATE TABLE test.t (a INT)",
        &format!("CREATE PROCEDURE test.p(OUT x INT) {body}"),
    ] {
        assert!(query(&mut session, text).failed.is_none(), "{text}");
    }
    let optional = Capabilities::OPTIONAL_RESULTSET_METADATA | Capabilities::CACHE_METADATA;
    for eof in [Capabilities::NONE, Capabilities::DEPRECATE_EOF] {
        for definitions in [Capabilities::NONE, optional] {
            let mut session = Session::start(&server, eof | definitions);
            texts(&mut session);
            statements(&mut session);
            utilities(&mut session);
            if session.agreed().has(Capabilities::OPTIONAL_RESULTSET_METADATA) {
                query(&mut session, "SET resultset_metadata = NONE");
                texts(&mut session);
                statements(&mut session);
            }
        }
    }
}

fn query(session: &mut Session, text: &str) -> Answer {
    session.ask(&Request::Query(Query { attributes: b"", text: text.as_bytes() }))
}

fn texts(session: &mut Session) {
    for &(text, results) in TEXTS {
        assert_eq!(query(session, text).results, results, "{text}");
    }
    // The client's file is all that the server takes in between.
    let load = "LOAD DATA LOCAL INFILE 'a file' INTO TABLE test.t; SELECT 1";
    let answer = query(session, load);
    assert_eq!((answer.files, answer.results), (1, 2));
}

fn statements(session: &mut Session) {
    for &(text, results) in PREPARED {
        let answer = session.ask(&Request::StmtPrepare(text.as_bytes()));
        let head = PrepareOk::read(&answer.first, session.agreed()).expect("a statement");
        let statement = head.statement;
        let plain =
            Execute { statement, flags: 0, parameters: 0, nulls: b"", types: None, values: b"" };
        for round in 0..2 {
            let answer = execute(session, &plain);
            // The values of OUT parameters are a result of their own.
            let due = if text.starts_with("CALL") { results + 1 } else { results };
            assert!([results, due].contains(&answer.results), "{text} {round}: {answer:?}");
        }
        let cursor = Execute { flags: Execute::CURSOR_READ_ONLY, ..plain };
        let opened = execute(session, &cursor).status;
        while opened.is_some_and(|status| status.has(Status::CURSOR_EXISTS)) {
            let fetched = session.ask(&Request::StmtFetch { statement, rows: 1 });
            assert_eq!(fetched.part, Part::End);
            if fetched.status.is_none_or(|status| status.has(Status::LAST_ROW_SENT)) {
                break;
            }
        }
        session.ask(&Request::StmtReset(statement));
    }
    let parameters = "SELECT ?, ? FROM test.t WHERE a = ?";
    assert!(session.ask(&Request::StmtPrepare(parameters.as_bytes())).failed.is_none());
    let none = "INSERT INTO test.t VALUES (?)";
    assert!(session.ask(&Request::StmtPrepare(none.as_bytes())).failed.is_none());
    assert!(session.ask(&Request::StmtPrepare(b"SELEC ?")).failed.is_some());
}

fn execute(session: &mut Session, head: &Execute<'_>) -> Answer {
    let mut body = Vec::new();
    head.write(&mut body, session.agreed());
    session.ask(&Request::StmtExecute(&body))
}

fn utilities(session: &mut Session) {
    for request in [
        Request::Ping,
        Request::InitDb(b"test"),
        Request::FieldList { table: b"v", wildcard: b"%" },
        Request::FieldList { table: b"none", wildcard: b"%" },
        Request::Statistics,
        Request::SetOption(MULTI_STATEMENTS_ON),
        Request::SetOption(7),
        Request::StmtReset(9_999),
        Request::StmtFetch { statement: 9_999, rows: 1 },
        Request::Other(refrain_mysql_wire::command::DEBUG, b""),
        Request::ResetConnection,
    ] {
        let answer = session.ask(&request);
        assert_eq!((answer.results, answer.part), (1, Part::End), "{request:?}");
    }
}

#[test]
fn mariadb() {
    check(Flavour::MariaDb);
}

#[test]
fn mysql() {
    check(Flavour::MySql);
}
