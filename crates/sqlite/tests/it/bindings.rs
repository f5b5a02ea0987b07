//! Parameters and columns: every storage class both ways, and no value of an earlier run.

use refrain_sqlite::{Step, Type, Value};

use crate::{keeping, memory, rows, run};

#[test]
fn every_storage_class_goes_in_and_out() {
    let long = "x".repeat(1 << 20);
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Integer(i64::MAX),
        Value::Real(-0.5),
        Value::Text(b""),
        Value::from("\u{e9}t\u{e9}"),
        Value::from(long.as_str()),
        Value::Text(b"a\0b"),
        Value::Text(b"\xff"),
        Value::Blob(b""),
        Value::Blob(b"\x00\x01\xff"),
    ];
    let connection = keeping(4);
    for value in values {
        let mut run = connection.statement("SELECT ?").unwrap().start();
        run.bind(1, value).unwrap();
        assert_eq!(run.step(), Ok(Step::Row));
        assert_eq!(run.column(0), value);
        assert_eq!(run.column_type(0), value.kind());
        let mut run = run.finish().start();
        run.bind_copied(1, value).unwrap();
        assert_eq!(run.step(), Ok(Step::Row));
        assert_eq!(run.column(0), value);
    }
    assert_eq!(connection.cache_stats().misses, 1);
}

#[test]
fn a_parameter_that_nobody_bound_is_null() {
    let connection = keeping(4);
    let many: String = (1..=70).map(|number| format!(",?{number}")).collect();
    let sql = format!("SELECT {}", &many[1..]);
    let mut run = connection.statement(sql.as_str()).unwrap().start();
    for index in 1..=70 {
        run.bind(index, "secret".into()).unwrap();
    }
    run.step().unwrap();
    drop(run);
    let mut run = connection.statement(sql.as_str()).unwrap().start();
    run.bind(2, 1.into()).unwrap();
    run.bind(66, 1.into()).unwrap();
    run.step().unwrap();
    let classes: Vec<_> = (0..70).filter(|at| run.column_type(*at) != Type::Null).collect();
    assert_eq!(classes, [1, 65]);
    // Integers stay bound after a run, and the next run does not see them either.
    drop(run);
    let mut run = connection.statement(sql.as_str()).unwrap().start();
    run.step().unwrap();
    assert!((0..70).all(|column| run.column(column) == Value::Null));
    assert_eq!(connection.cache_stats().hits, 2);
}

#[test]
fn a_long_value_does_not_stay_with_a_statement_that_is_kept() {
    let connection = keeping(4);
    let long = vec![7; 1 << 20];
    for _ in 0..2 {
        let mut run = connection.statement("SELECT length(?)").unwrap().start();
        run.bind_copied(1, Value::Blob(&long)).unwrap();
        assert_eq!(run.step(), Ok(Step::Row));
    }
    let kept = connection.statement_stats();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].bytes < 100_000, "{} bytes", kept[0].bytes);
}

#[test]
fn wrong_numbers_are_errors() {
    let connection = memory(0);
    let mut run = connection.statement("SELECT ?").unwrap().start();
    for index in [0, 2, usize::MAX] {
        assert_eq!(run.bind(index, 1.into()).unwrap_err().sqlstate(), "08P01");
    }
    assert_eq!(run.bind_all(&[]).unwrap_err().sqlstate(), "08P01");
    assert_eq!(run.column(0), Value::Null, "there is no row yet");
    run.step().unwrap();
    assert_eq!(run.column(7), Value::Null);
    assert!(run.bind(1, 1.into()).is_err(), "it is running");
}

#[test]
fn what_a_statement_says_of_itself() {
    let connection = memory(0);
    run(&connection, "CREATE TABLE t (a INTEGER, b VARCHAR(10))");
    let statement = connection.statement("SELECT a AS x, b, 1 FROM t WHERE a = ?2").unwrap();
    assert_eq!((statement.parameter_count(), statement.column_count()), (2, 3));
    assert_eq!(statement.parameter_name(2), Some("?2"));
    assert_eq!(statement.column_name(0), Some("x"));
    assert_eq!(statement.column_decltype(1), Some("VARCHAR(10)"));
    assert_eq!(statement.column_origin(0), Some(("public", "t", "a")));
    assert_eq!((statement.column_origin(2), statement.column_name(3)), (None, None));
    assert!(statement.readonly() && !statement.is_explain());
    assert!(!connection.statement("DELETE FROM t").unwrap().readonly());
    assert!(connection.statement("EXPLAIN SELECT 1").unwrap().is_explain());
}

#[test]
fn a_run_stays_done() {
    let connection = memory(0);
    run(&connection, "CREATE TABLE t (a)");
    let mut run = connection.statement("INSERT INTO t VALUES (1)").unwrap().start();
    for _ in 0..3 {
        assert_eq!(run.step(), Ok(Step::Done));
    }
    drop(run);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t", &[]), ["1"]);
    assert_eq!(connection.changes(), 1);
}

#[test]
fn both_names_of_the_database() {
    let connection = memory(0);
    run(&connection, "CREATE TABLE public.t (a); INSERT INTO main.t VALUES (1)");
    assert_eq!(rows(&connection, "SELECT a FROM public.t", &[]), ["1"]);
}
