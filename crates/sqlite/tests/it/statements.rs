//! The effects of an error on a kept statement, and on the connection.

use refrain_sqlite::{Connection, Limits, Step};

use crate::{TestFile, memory, rows, run, state};

fn entries(connection: &Connection) -> Vec<String> {
    connection.statement_stats().into_iter().map(|of| of.sql).collect()
}

#[test]
fn a_broken_constraint_is_no_reason_to_drop() {
    let connection = memory(16);
    run(&connection, "CREATE TABLE t (a INTEGER PRIMARY KEY, b NOT NULL CHECK (b > 0))");
    let sql = "INSERT INTO t VALUES (?, ?)";
    connection.execute(sql, &[1.into(), 1.into()]).unwrap();
    connection.execute(sql, &[2.into(), 1.into()]).unwrap();
    let cases = [(1.into(), 1.into(), "23505"), (3.into(), None::<i64>.into(), "23502")];
    for (a, b, expected) in cases {
        assert_eq!(connection.execute(sql, &[a, b]).unwrap_err().sqlstate(), expected);
        assert_eq!(entries(&connection), [sql]);
    }
    assert_eq!(connection.execute(sql, &[3.into(), 0.into()]).unwrap_err().sqlstate(), "23514");
    assert_eq!(connection.execute(sql, &[3.into(), 1.into()]), Ok(1));
    let stats = connection.cache_stats();
    assert_eq!((stats.misses, stats.finalized_errors), (3, 0), "two of the insert, one of CREATE");
}

#[test]
fn a_lock_is_no_reason_to_drop() {
    let file = TestFile::new();
    let (one, other) = (file.connect(), file.connect());
    run(&one, "CREATE TABLE t (a)");
    let sql = "INSERT INTO t VALUES (1)";
    run(&one, sql);
    run(&one, sql);
    run(&other, "BEGIN IMMEDIATE");
    assert_eq!(state(&one, sql), "55P03");
    run(&other, "COMMIT");
    assert_eq!(one.execute(sql, &[]), Ok(1));
    assert_eq!((entries(&one), one.cache_stats().finalized_errors), (vec![sql.to_owned()], 0));
}

#[test]
fn a_snapshot_that_is_too_old_is_a_serialization_failure() {
    let file = TestFile::new();
    let (one, other) = (file.connect(), file.connect());
    run(&one, "CREATE TABLE t (a); BEGIN; SELECT * FROM t");
    run(&other, "INSERT INTO t VALUES (1)");
    assert_eq!(state(&one, "INSERT INTO t VALUES (2)"), "40001");
    assert!(one.in_transaction(), "the transaction is still there; only writing is over");
}

#[test]
fn an_interrupt_is_no_reason_to_drop() {
    let connection = memory(16);
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) \
               SELECT count(*) FROM n";
    for _ in 0..2 {
        assert_eq!(rows(&connection, sql, &[10.into()]), ["10"]);
    }
    connection.set_limits(Limits { steps: Some(10_000), deadline: None, ..Limits::default() });
    assert_eq!(connection.execute(sql, &[1_000_000.into()]).unwrap_err().sqlstate(), "57014");
    assert_eq!(rows(&connection, sql, &[10.into()]), ["10"]);
    connection.set_limits(Limits::default());
    assert_eq!(rows(&connection, sql, &[100_000.into()]), ["100000"]);
    assert_eq!(entries(&connection), [sql]);
    assert_eq!(connection.cache_stats().misses, 2);
}

#[test]
fn a_dropped_table_takes_its_statements_along() {
    let connection = memory(16);
    let sql = "SELECT a FROM t";
    run(&connection, "CREATE TABLE t (a)");
    rows(&connection, sql, &[]);
    rows(&connection, sql, &[]);
    assert_eq!(entries(&connection), [sql]);
    run(&connection, "DROP TABLE t");
    assert_eq!(state(&connection, sql), "42P01");
    assert_eq!(entries(&connection), [] as [&str; 0]);
    assert_eq!(connection.cache_stats().finalized_errors, 1);
    run(&connection, "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_eq!(rows(&connection, sql, &[]), ["1"]);
    assert_eq!(rows(&connection, sql, &[]), ["1"]);
    assert_eq!(entries(&connection), [sql]);
}

#[test]
fn a_kept_statement_locks_no_table() {
    let connection = memory(16);
    run(&connection, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)");
    let mut half = connection.statement("SELECT a FROM t").unwrap().start();
    assert_eq!(half.step(), Ok(Step::Row));
    assert_eq!(state(&connection, "DROP TABLE t"), "55006");
    let _parked = half.park();
    assert!(connection.is_busy());
    connection.discard_parked();
    assert!(!connection.is_busy());
    run(&connection, "DROP TABLE t");
}

#[test]
fn a_discarded_run_cannot_be_resumed() {
    let (one, other) = (memory(4), memory(4));
    let park = |connection: &Connection| {
        let mut run = connection.statement("SELECT 1 UNION ALL SELECT 2").unwrap().start();
        run.step().unwrap();
        run.park()
    };
    assert!(other.resume(park(&one)).is_none());
    let parked = park(&one);
    one.discard_parked();
    assert!(one.resume(parked).is_none());
}

#[test]
fn read_only_refuses_what_writes() {
    let connection = memory(4);
    run(&connection, "CREATE TABLE t (a)");
    connection.set_read_only(true);
    assert_eq!(state(&connection, "INSERT INTO t VALUES (1)"), "25006");
    assert_eq!(state(&connection, "DROP TABLE t"), "25006");
    run(&connection, "BEGIN; SELECT * FROM t; COMMIT");
    connection.set_read_only(false);
    run(&connection, "INSERT INTO t VALUES (1)");
}

#[test]
fn errors_say_what_and_where() {
    let connection = memory(4);
    run(&connection, "CREATE TABLE t (a); CREATE TABLE u (a)");
    let cases = [
        ("SELECT b FROM t", "42703", Some(7)),
        ("SELECT f(1)", "42883", Some(7)),
        ("SELECT * FROM nosuch", "42P01", None),
        ("SELECT a FROM t, u", "42702", Some(7)),
        ("SELECT 'open", "42601", Some(7)),
        ("SELECT (", "42601", None),
        ("CREATE TABLE t (a)", "42P07", Some(13)),
        ("SELECT \"nosuch\"", "42703", Some(7)),
        ("RELEASE nosuch", "3B001", None),
        ("SELECT abs(-9223372036854775808)", "22003", None),
    ];
    for (sql, state, offset) in cases {
        let error = connection.execute(sql, &[]).unwrap_err();
        assert_eq!((error.sqlstate(), error.offset), (state, offset), "{sql}: {error}");
    }
}
