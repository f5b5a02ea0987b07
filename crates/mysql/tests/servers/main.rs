//! Replies of real servers, MariaDB 10.11 and MySQL 8.0, up to their ends.
//!
//! Behind each command a COM_PING is on its way already. So a reply that ends too early or too late
//! by one packet shows in the next one.

#![forbid(unsafe_code)]

mod session;

use refrain_mysql::Part;
use refrain_mysql_wire::prepared::{Execute, PrepareOk};
use refrain_mysql_wire::reply::{ErrPacket, OkPacket};
use refrain_mysql_wire::request::{MULTI_STATEMENTS_ON, Query, Request};
use refrain_mysql_wire::track::Change;
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
        "CREATE PROCEDURE test.q() PREPARE q FROM 'SELECT 3'",
    ] {
        assert!(query(&mut session, text).failed.is_none(), "{text}");
    }
    let optional = Capabilities::OPTIONAL_RESULTSET_METADATA | Capabilities::CACHE_METADATA;
    for eof in [Capabilities::NONE, Capabilities::DEPRECATE_EOF] {
        for definitions in [Capabilities::NONE, optional] {
            let mut session = Session::start(&server, eof | definitions);
            texts(&mut session);
            statements(&mut session);
            numbers(&mut session);
            types(&mut session);
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
        let plain = plain(statement);
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

/// A server counts attempts to prepare, those that fail too. Numbers never come again, and a number
/// that no statement has does nothing: so a statement can be executed before its number is told.
fn numbers(session: &mut Session) {
    let prepare = |session: &mut Session, text: &str| {
        let answer = session.ask(&Request::StmtPrepare(text.as_bytes()));
        PrepareOk::read(&answer.first, session.agreed()).ok().map(|head| head.statement)
    };
    let first = prepare(session, "SELECT 1").expect("a statement");
    assert_eq!(prepare(session, "SELECT 1"), Some(first + 1));
    assert_eq!(prepare(session, "SELEC"), None);
    assert_eq!(prepare(session, "SELECT 1"), Some(first + 3));
    // A statement of SQL has a number as well, and can be executed by it. The server reports it.
    query(session, "SET SESSION session_track_state_change = ON");
    assert!(reports_state(session, "PREPARE s FROM 'SELECT 2'"));
    assert_eq!(unknown(session, first + 4), None);
    assert!(reports_state(session, "CALL test.q()"));
    assert_eq!(unknown(session, first + 5), None);
    assert_eq!(prepare(session, "SELECT 1"), Some(first + 6));
    session.ask(&Request::ResetConnection);
    assert_eq!(unknown(session, first + 5), Some(1243));
    assert_eq!(unknown(session, first + 6), Some(1243));
    assert_eq!(prepare(session, "SELECT 1"), Some(first + 7));
    // In one write, as Refrain does it.
    let first = first + 1;
    let mut body = Vec::new();
    plain(first + 7).write(&mut body, session.agreed());
    let answers = session.ask_all(&[
        Request::StmtClose(first + 6),
        Request::StmtPrepare(b"SELECT 7"),
        Request::StmtExecute(&body),
    ]);
    assert!(answers.iter().all(|answer| answer.failed.is_none()), "{answers:?}");
    body.clear();
    plain(first + 8).write(&mut body, session.agreed());
    let answers = session.ask_all(&[Request::StmtPrepare(b"SELEC"), Request::StmtExecute(&body)]);
    assert!(answers.iter().all(|answer| answer.failed.is_some()), "{answers:?}");
}

/// Whether the reply to a text says that the session has something that a new one has not.
fn reports_state(session: &mut Session, text: &str) -> bool {
    let answer = query(session, text);
    let ok = OkPacket::read(&answer.first, session.agreed()).expect("an OK packet");
    ok.changes.iter().flatten().any(|change| matches!(change, Change::State(b"1")))
}

/// Executes a statement without parameters. Returns the number of the error.
fn unknown(session: &mut Session, statement: u32) -> Option<u16> {
    let failed = execute(session, &plain(statement)).failed?;
    ErrPacket::read(&failed).ok().map(|err| err.number)
}

fn plain(statement: u32) -> Execute<'static> {
    Execute { statement, flags: 0, parameters: 0, nulls: b"", types: None, values: b"" }
}

/// Types stay with a statement of the server until others come.
fn types(session: &mut Session) {
    let answer = session.ask(&Request::StmtPrepare(b"SELECT ?"));
    let statement = PrepareOk::read(&answer.first, session.agreed()).expect("a head").statement;
    let of_null = Execute { parameters: 1, nulls: b"\x01", ..plain(statement) };
    assert!(execute(session, &of_null).failed.is_none(), "NULL needs no type");
    let (nulls, values) = (&b"\x00"[..], &b"\x05\x00\x00\x00"[..]);
    let without = Execute { nulls, values, ..of_null };
    assert!(execute(session, &without).failed.is_some(), "no types yet");
    let with = Execute { types: Some(b"\x03\x00"), ..without };
    assert!(execute(session, &with).failed.is_none());
    assert!(execute(session, &without).failed.is_none());
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
