//! Texts: rows, errors, changes of the session's state, several statements, files.

use refrain_mysql_wire::column::ColumnDefinition;
use refrain_mysql_wire::error_code;
use refrain_mysql_wire::packet::PAYLOAD_BYTES_MAX;
use refrain_mysql_wire::reply::{ErrPacket, Head, OkPacket, first};
use refrain_mysql_wire::request::{MULTI_STATEMENTS_OFF, Request};
use refrain_mysql_wire::track::Change;
use refrain_mysql_wire::value::kind;
use refrain_mysql_wire::{Capabilities, Status};
use xtask::mysql::Flavour;

use super::World;
use super::session::{ROOT, Session, USUAL, Wanted, changes};

pub(crate) fn check(world: &World) {
    for capabilities in [USUAL, USUAL - Capabilities::DEPRECATE_EOF] {
        let mut session = Session::start(world, Wanted { capabilities, ..ROOT });
        rows(&mut session);
        errors(&mut session);
        several(&mut session);
        utilities(&mut session);
    }
    state(world);
    infos(world);
    files(world);
    long(world);
    optional_definitions(world);
    if world.flavour == Flavour::MySql {
        error_codes(world);
    }
}

fn rows(session: &mut Session) {
    let outcome = session.run("SELECT 1 AS n, NULL, 'x' UNION ALL SELECT 2, NULL, 'yy'");
    assert_eq!(outcome.rows, [&b"\x011\xfb\x01x"[..], b"\x012\xfb\x02yy"]);
    assert_eq!(outcome.columns.len(), 3);
    let column = ColumnDefinition::read(&outcome.columns[0], session.agreed).expect("a column");
    assert_eq!(column.name, b"n");
    assert!([kind::LONG, kind::LONGLONG].contains(&column.kind));
    assert_eq!(outcome.status, Some(Status::AUTOCOMMIT));
    let warned = session.run("SELECT 1/0");
    assert_eq!(warned.rows, [b"\xfb"]);
}

fn errors(session: &mut Session) {
    let outcomes = session.query("SELEC 1");
    let err = ErrPacket::read(outcomes[0].error.as_deref().expect("an error")).expect("ERR");
    assert_eq!((err.number, err.sqlstate), (1064, Some(*b"42000")));
    // An error behind the columns: the second value has more rows than one.
    let outcomes = session.query("SELECT 1 UNION ALL SELECT (SELECT 1 UNION SELECT 2)");
    assert_eq!(outcomes[0].errno(), 1242);
    session.command(&Request::Other(0x1D, b""));
    let payload = session.receive();
    assert_eq!(ErrPacket::read(&payload).expect("an ERR packet").number, 1047);
}

fn several(session: &mut Session) {
    let outcomes = session.query("SELECT 1; DO 1; SELECT 2");
    assert_eq!(outcomes.len(), 3);
    let more = Status::AUTOCOMMIT.with(Status::MORE_RESULTS_EXISTS);
    let due = [Some(more), Some(more), Some(Status::AUTOCOMMIT)];
    assert!(outcomes.iter().map(|outcome| outcome.status).eq(due));
    let outcomes = session.query("SELECT 1; SELEC 2; SELECT 3");
    assert_eq!((outcomes.len(), outcomes[1].errno()), (2, 1064));
}

fn utilities(session: &mut Session) {
    session.command(&Request::Ping);
    session.ok();
    session.command(&Request::InitDb(b"shop"));
    let payload = session.ok();
    let ok = OkPacket::read(&payload, session.agreed).expect("an OK packet");
    assert_eq!(changes(&ok), [Change::Schema(b"shop")]);
    session.run("CREATE OR REPLACE VIEW v AS SELECT 7 AS seven, 8 AS eight");
    session.command(&Request::FieldList { table: b"v", wildcard: b"%" });
    let mut columns = Vec::new();
    let end = session.rows(&mut columns);
    assert_eq!((end[0], columns.len()), (first::EOF, 2));
    let column = ColumnDefinition::read(&columns[0], session.agreed).expect("a column");
    assert_eq!(column.name, b"seven");
    session.command(&Request::Statistics);
    assert!(session.receive().starts_with(b"Uptime: "));
    session.command(&Request::SetOption(MULTI_STATEMENTS_OFF));
    let end = session.receive();
    let deprecated = session.agreed.has(Capabilities::DEPRECATE_EOF);
    let due: &[u8] = if deprecated { b"\xfe\0\0\x02\0\0\0" } else { b"\xfe\0\0\x02\0" };
    assert_eq!(end, due);
    assert_eq!(session.query("SELECT 1; SELECT 2")[0].errno(), 1064);
    session.command(&Request::ResetConnection);
    session.ok();
}

/// Changes of the session's state. Both servers report one entry for each variable.
fn state(world: &World) {
    let mut session = Session::start(world, ROOT);
    session.run("SET session_track_system_variables = 'autocommit,sql_mode,time_zone'");
    session.run("SET session_track_state_change = ON");
    session.run("SET session_track_transaction_info = 'CHARACTERISTICS'");
    let agreed = session.agreed;
    let outcome = session.run("SET autocommit = 0, time_zone = '+01:00'");
    let set = |name, value| Change::SystemVariable { name, value };
    let ok = outcome.ok(agreed);
    let told = changes(&ok);
    assert!(told.contains(&set(b"autocommit", b"OFF")), "{told:?}");
    assert!(told.contains(&set(b"time_zone", b"+01:00")), "{told:?}");
    assert!(!ok.status.has(Status::AUTOCOMMIT) && ok.status.has(Status::SESSION_STATE_CHANGED));
    session.run("SET autocommit = 1");
    let outcome = session.run("SET @x = 1");
    assert!(changes(&outcome.ok(agreed)).contains(&Change::State(b"1")));
    let outcome = session.run("START TRANSACTION READ ONLY");
    let ok = outcome.ok(agreed);
    assert!(ok.status.has(Status::IN_TRANS.with(Status::IN_TRANS_READONLY)));
    let told = changes(&ok);
    assert!(told.contains(&Change::TransactionState(b"T_______")), "{told:?}");
    let begins = Change::TransactionCharacteristics(b"START TRANSACTION READ ONLY;");
    assert!(told.contains(&begins), "{told:?}");
}

/// The info of an OK packet has a length, with SESSION_TRACK and without.
fn infos(world: &World) {
    for capabilities in [USUAL, USUAL - Capabilities::SESSION_TRACK] {
        let mut session = Session::start(world, Wanted { capabilities, database: "shop", ..ROOT });
        session.run("CREATE OR REPLACE VIEW v AS SELECT 1");
        session.run("DROP TABLE IF EXISTS t");
        session.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))");
        let inserted = session.run("INSERT INTO t (a) VALUES ('x'), ('y')");
        let ok = inserted.ok(session.agreed);
        assert_eq!((ok.affected_rows, ok.last_insert_id), (2, 1));
        assert_eq!(ok.info, b"Records: 2  Duplicates: 0  Warnings: 0");
        let updated = session.run("UPDATE t SET a = 'x'");
        let ok = updated.ok(session.agreed);
        assert_eq!(
            (ok.affected_rows, ok.info),
            (1, &b"Rows matched: 2  Changed: 1  Warnings: 0"[..])
        );
    }
}

fn files(world: &World) {
    let mut session = Session::start(world, Wanted { database: "shop", ..ROOT });
    let load = "LOAD DATA LOCAL INFILE 'a file' INTO TABLE t (a)";
    for (content, rows) in [(&b"a\nb\nc\n"[..], 3), (b"", 0)] {
        let outcomes = session.query(load);
        assert_eq!(Head::read(&outcomes[0].head, session.agreed), Ok(Head::LocalInfile(b"a file")));
        if !content.is_empty() {
            session.send(|out| out.extend_from_slice(content));
        }
        session.send(|_| {});
        let payload = session.ok();
        let ok = OkPacket::read(&payload, session.agreed).expect("an OK packet");
        assert_eq!(ok.affected_rows, rows);
    }
}

/// Messages of as many bytes as a packet can have, and of some more and less, in both directions.
fn long(world: &World) {
    let mut session = Session::start(world, ROOT);
    let text = |length: usize| {
        let start = "SELECT '";
        format!("{start}{}'", "x".repeat(length - start.len() - 1))
    };
    let max = PAYLOAD_BYTES_MAX as usize;
    // Of a payload the command takes a byte.
    for length in [max - 2, max - 1, max, 2 * max - 1] {
        let outcome = session.run(&text(length));
        assert_eq!(outcome.rows.len(), 1);
        assert!(outcome.rows[0].len() > length - 10);
    }
    // A row of exactly as many bytes: four of them are the value's length.
    let outcome = session.run(&format!("SELECT REPEAT('x', {})", max - 4));
    assert_eq!(outcome.rows[0].len(), max);
}

/// Definitions may be left out: a byte behind their number says so.
fn optional_definitions(world: &World) {
    let optional = Capabilities::OPTIONAL_RESULTSET_METADATA | Capabilities::EXTENDED_METADATA;
    let mut session = Session::start(world, Wanted { capabilities: USUAL | optional, ..ROOT });
    assert_eq!(session.run("SELECT 1").columns.len(), 1);
    if session.agreed.has(Capabilities::OPTIONAL_RESULTSET_METADATA) {
        session.run("SET resultset_metadata = NONE");
        let outcome = session.run("SELECT 1, 2");
        assert_eq!((outcome.columns.len(), outcome.rows.len()), (0, 1));
        let due = Head::Columns { count: 2, defined: false };
        assert_eq!(Head::read(&outcome.head, session.agreed), Ok(due));
    } else {
        let outcome = session.run("SELECT JSON_EXTRACT('1', '$'), CAST('::1' AS INET6)");
        let column = ColumnDefinition::read(&outcome.columns[1], session.agreed);
        assert_eq!(column.expect("a column").extended, b"\x00\x05inet6");
    }
}

/// The server has a table of its errors (MySQL).
fn error_codes(world: &World) {
    let mut session = Session::start(world, ROOT);
    for code in error_code::ALL {
        let table = "performance_schema.events_errors_summary_global_by_error";
        let number = code.number;
        let text = format!("SELECT SQL_STATE FROM {table} WHERE ERROR_NUMBER = {number}");
        let rows = session.run(&text).rows;
        // The table of 8.0.15 has no errors above 4000.
        if number < 4000 {
            assert_eq!(rows.first().map(|row| &row[1..]), Some(&code.sqlstate[..]), "{number}");
        }
    }
}
