//! Tests of the statements that stay in SQLite when the cache drops them. They need the inside of a
//! connection.

use super::*;
use crate::options::Admit;

/// The statement that looks at the schema.
const PROBE: usize = 1;

fn with_size(size: usize) -> Connection {
    let cache = CacheOptions { size, admit: Admit::Always, ..CacheOptions::default() };
    let options = OpenOptions { cache, ..OpenOptions::default() };
    Database::new(":memory:", options).connect().unwrap()
}

fn use_texts(connection: &Connection, count: usize) {
    for number in 0..count {
        connection.execute(&format!("SELECT {number}"), &[]).unwrap();
    }
}

fn resize(connection: &Connection, size: usize) {
    connection.set_cache_options(CacheOptions { size, ..connection.cache_options() });
}

#[test]
fn evicted_statements_are_finalised() {
    let connection = with_size(5);
    use_texts(&connection, 20);
    assert_eq!(connection.core.handle.statements(), 5 + PROBE);
    assert_eq!(connection.cache_stats().evictions, 15);
    resize(&connection, 2);
    assert_eq!(connection.core.handle.statements(), 2 + PROBE);
    resize(&connection, 0);
    assert_eq!(connection.core.handle.statements(), PROBE);
    let stats = connection.cache_stats();
    assert_eq!((stats.entries, stats.bytes, stats.evictions), (0, 0, 20));
    use_texts(&connection, 3);
    assert_eq!(connection.core.handle.statements(), PROBE, "a cache of size 0 keeps nothing");
    connection.close().unwrap();
}

#[test]
fn closing_finalises_kept_and_parked_statements() {
    let connection = with_size(5);
    use_texts(&connection, 3);
    let mut run = connection.statement("SELECT 1 UNION ALL SELECT 2").unwrap().start();
    run.step().unwrap();
    let _parked = run.park();
    assert_eq!(connection.core.handle.statements(), 4 + PROBE);
    connection.close().unwrap();
}

#[test]
fn a_statement_shrunk_away_while_in_use_is_finalised_when_it_returns() {
    let connection = with_size(5);
    let statement = connection.statement("SELECT 1").unwrap();
    resize(&connection, 0);
    drop(statement);
    assert_eq!(connection.core.handle.statements(), PROBE);
}

#[test]
fn virtual_tables_do_not_hinder_closing() {
    let connection = with_size(5);
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(a)", &[]).unwrap();
    connection.execute("INSERT INTO t VALUES ('x')", &[]).unwrap();
    connection.execute("SELECT * FROM t WHERE t MATCH 'x'", &[]).unwrap();
    connection.close().unwrap();
}

#[test]
fn a_reader_reads_again_what_it_has_read_without_the_disk() {
    let path = std::env::temp_dir().join(format!("refrain-reader-{}.db", std::process::id()));
    let options = OpenOptions { reader_pages: 64 * 1024 * 1024, ..OpenOptions::default() };
    let database = Database::new(&path, options);
    let writer = database.connect().unwrap();
    writer.execute("CREATE TABLE t (a BLOB)", &[]).unwrap();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) \
                INSERT INTO t SELECT zeroblob(3900) FROM n";
    writer.execute(fill, &[]).unwrap();
    // The table has fifteen hundred pages, and a statement with limited steps may read `READS`.
    let reads_all = |connection: &Connection| {
        connection.set_limits(Limits { steps: Some(100_000), ..Limits::default() });
        connection.execute("SELECT sum(length(a)) FROM t", &[]).is_ok()
    };
    let (other, reader) = (database.connect().unwrap(), database.connect().unwrap());
    database.make_reader(&reader).unwrap();
    assert!(!(0..5).any(|_| reads_all(&other)), "2 MiB hold no part of a table that is read again");
    let read: Vec<bool> = (0..6).map(|_| reads_all(&reader)).collect();
    assert_eq!(read, [false, false, false, true, true, true]);
    writer.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    assert!(!reads_all(&reader), "what others have written is read anew");
    drop((writer, other, reader));
    std::fs::remove_file(&path).unwrap();
}
