//! The choice of statements that are kept, and for how long.

use refrain_sqlite::{CacheOptions, Step};

use crate::{keeping, memory, rows, run, since};

#[test]
fn a_text_is_kept_from_its_second_use_on() {
    let connection = memory(16);
    for _ in 0..4 {
        rows(&connection, "SELECT 1", &[]);
    }
    let stats = connection.cache_stats();
    assert_eq!((stats.first_uses, stats.misses, stats.hits, stats.entries), (1, 2, 2, 1));
    assert!(stats.bytes > 500 && stats.prepare_ns > 0 && stats.saved_ns > 0, "{stats:?}");
}

#[test]
fn one_offs_before_do_not_keep_a_text_out() {
    let connection = memory(5);
    for number in 0..5 {
        rows(&connection, &format!("SELECT {number}"), &[]);
    }
    let before = connection.cache_stats();
    for _ in 0..100 {
        rows(&connection, "SELECT 'hot'", &[]);
    }
    assert_eq!(since(before, connection.cache_stats()), (98, 2));
}

#[test]
fn one_offs_between_do_not_push_a_text_out() {
    let connection = memory(16);
    let hot: Vec<_> = (0..8).map(|number| format!("SELECT 'hot', {number}")).collect();
    for round in 0..1000 {
        for (place, sql) in hot.iter().enumerate() {
            rows(&connection, sql, &[]);
            rows(&connection, &format!("SELECT {round}, {place}"), &[]);
            if place % 4 == 0 {
                rows(&connection, &format!("SELECT {round}, {place}, 'more'"), &[]);
            }
        }
    }
    let stats = connection.cache_stats();
    assert_eq!(stats.hits, 8 * (1000 - 2));
    assert_eq!((stats.entries, stats.evictions), (8, 0));
}

#[test]
fn the_one_returned_longest_ago_goes_first() {
    let connection = keeping(2);
    for sql in ["SELECT 'a'", "SELECT 'b'", "SELECT 'a'", "SELECT 'c'"] {
        rows(&connection, sql, &[]);
    }
    let kept: Vec<_> = connection.statement_stats().into_iter().map(|of| of.sql).collect();
    assert_eq!(kept, ["SELECT 'c'", "SELECT 'a'"]);
    assert_eq!(connection.cache_stats().evictions, 1);
}

#[test]
fn some_statements_are_never_kept() {
    let connection = keeping(16);
    let texts = [
        "CREATE TABLE IF NOT EXISTS t (a)",
        "/* why */ create index if not exists i on t (a)",
        "PRAGMA table_info(t)",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN SELECT 1",
        "ANALYZE",
        "REINDEX",
        "DROP TABLE IF EXISTS u",
    ];
    for sql in texts.iter().chain(&texts) {
        rows(&connection, sql, &[]);
    }
    let options = CacheOptions { max_sql: 20, ..connection.cache_options() };
    connection.set_cache_options(options);
    rows(&connection, "SELECT 'longer than 20 bytes'", &[]);
    assert_eq!(connection.cache_stats().entries, 0);
    rows(&connection, "SELECT 'shorter'", &[]);
    assert_eq!(connection.cache_stats().entries, 1);
}

#[test]
fn the_same_text_twice_at_once() {
    let connection = memory(16);
    run(&connection, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    let sql = "SELECT a FROM t ORDER BY a";
    rows(&connection, sql, &[]);
    rows(&connection, sql, &[]);
    assert_eq!(connection.cache_stats().entries, 1);

    let mut first = connection.statement(sql).unwrap().start();
    assert_eq!(first.step(), Ok(Step::Row));
    let parked = first.park();
    assert_eq!(rows(&connection, sql, &[]), ["1", "2", "3"]);
    let mut first = connection.resume(parked).unwrap();
    let mut rest = Vec::new();
    while first.step().unwrap() == Step::Row {
        rest.push(crate::shown(first.column(0)));
    }
    assert_eq!(rest, ["2", "3"]);
    drop(first);
    let stats = connection.cache_stats();
    assert_eq!((stats.busy_misses, stats.entries), (1, 1));
}

#[test]
fn statistics_of_statements() {
    let connection = memory(16);
    run(&connection, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)");
    for _ in 0..5 {
        rows(&connection, "SELECT a FROM t", &[]);
    }
    let all = connection.statement_stats();
    let [of] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((of.sql.as_str(), of.calls, of.hits, of.rows), ("SELECT a FROM t", 4, 3, 8));
    assert!(of.bytes > 0 && !of.prepare.is_zero() && !of.run.is_zero(), "{of:?}");
}
