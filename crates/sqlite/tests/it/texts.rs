//! Splitting a text into statements, and finding each part again.

use refrain_sqlite::{Step, Text};

use crate::{keeping, memory, run};

fn parts(sql: &str) -> Vec<String> {
    let connection = memory(0);
    connection.split(sql).map(|statement| statement.unwrap().sql().to_owned()).collect()
}

#[test]
fn sqlite_splits_where_a_statement_ends() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        (" -- nothing\n /* here */ ", &[]),
        (";;", &[]),
        ("SELECT 1", &["SELECT 1"]),
        ("SELECT 1; ", &["SELECT 1;"]),
        ("SELECT ';'; SELECT 2", &["SELECT ';';", " SELECT 2"]),
        ("SELECT 1 /* ; */; SELECT 2 -- ;", &["SELECT 1 /* ; */;", " SELECT 2 -- ;"]),
        ("SELECT 'é'; SELECT 'ü'", &["SELECT 'é';", " SELECT 'ü'"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(parts(sql), *expected, "{sql}");
    }
}

#[test]
fn a_trigger_is_one_statement() {
    let connection = memory(0);
    run(&connection, "CREATE TABLE t (a); CREATE TABLE log (a)");
    let sql = "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES (1); \
               INSERT INTO log VALUES (2); END; INSERT INTO t VALUES (0)";
    run(&connection, sql);
    assert_eq!(crate::rows(&connection, "SELECT a FROM log", &[]), ["1", "2"]);
}

#[test]
fn each_part_is_an_entry_and_found_in_any_text() {
    let connection = keeping(16);
    run(&connection, "SELECT 'a;b'; SELECT 2; SELECT 3");
    assert_eq!(connection.cache_stats().entries, 3);
    run(&connection, "SELECT 'a;b'; SELECT 2; SELECT 4;");
    let stats = connection.cache_stats();
    assert_eq!((stats.hits, stats.entries), (2, 4));
}

#[test]
fn an_error_ends_the_text() {
    let connection = memory(0);
    let mut split = connection.split("SELECT 1; SELEC 2; SELECT 3");
    assert!(split.next().unwrap().is_ok());
    let error = split.next().unwrap().err().unwrap();
    assert_eq!((error.sqlstate(), error.offset), ("42601", Some(1)));
    assert!(split.next().is_none());
}

#[test]
fn only_one_statement_where_one_is_asked_for() {
    let connection = memory(0);
    assert!(connection.statement("SELECT 1; -- that is all").is_ok());
    assert_eq!(connection.statement("SELECT 1; SELECT 2").err().unwrap().sqlstate(), "42601");
    assert_eq!(connection.statement("-- nothing").err().unwrap().sqlstate(), "42601");
    assert_eq!(connection.statement("SELECT 1\0; x").err().unwrap().sqlstate(), "22021");
}

#[test]
fn a_hash_may_be_carried() {
    let connection = keeping(16);
    let sql = "SELECT 1";
    let hash = Text::new(sql).hash();
    for _ in 0..2 {
        let mut run = connection.statement(Text::with_hash(sql, hash)).unwrap().start();
        assert_eq!(run.step(), Ok(Step::Row));
    }
    assert_eq!(connection.cache_stats().hits, 1);
    // A hash of another text finds no statement, and no wrong one.
    let mut run = connection.statement(Text::with_hash("SELECT 2", hash)).unwrap().start();
    run.step().unwrap();
    assert_eq!(crate::shown(run.column(0)), "2");
}
