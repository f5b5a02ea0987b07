//! A WAL index that another program makes shorter while connections use it. A statement that
//! ends without an error of SQLite's must not count either: what it has read may be wrong.

use std::fs::{self, File};
use std::path::PathBuf;

use refrain_sqlite::{Connection, Error, Step, Value};

use crate::{TestFile, options, rows, run};

/// SQLite's code for a page that could not be read: the error of a broken index.
const BROKEN: i32 = 10 | 34 << 8;

/// Makes a file with a table of three rows, and opens two connections to it.
fn two() -> (TestFile, Connection, Connection) {
    let file = TestFile::new();
    let (one, other) = (file.connect(), file.connect());
    run(&one, "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    run(&one, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    (file, one, other)
}

fn index(file: &TestFile) -> PathBuf {
    format!("{}-shm", file.path().display()).into()
}

/// Empties the index, and lets a connection run into that.
fn harm(file: &TestFile, by: &Connection) {
    File::options().write(true).open(index(file)).unwrap().set_len(0).unwrap();
    is_broken(by.execute("SELECT * FROM t", &[]));
    assert!(by.has_broken_index());
}

fn is_broken<T>(result: Result<T, Error>) {
    let error = result.err().unwrap();
    assert_eq!((error.code, error.sqlstate()), (BROKEN, "58030"), "{error}");
    assert!(error.message.contains("-shm"), "{error}");
}

#[test]
fn a_statement_that_needs_no_page_more_ends_with_the_error() {
    let (file, reader, other) = two();
    run(&reader, "BEGIN");
    assert_eq!(rows(&reader, "SELECT word FROM t", &[]), ["a", "b", "c"]);
    harm(&file, &other);
    // All of these find what they read in the memory of the connection.
    is_broken(reader.execute("SELECT word FROM t", &[]));
    is_broken(reader.execute("SELECT name FROM pragma_table_xinfo('t')", &[]));
    is_broken(reader.execute("SELECT 1", &[]));
    is_broken(reader.execute("COMMIT", &[]));
}

#[test]
fn no_row_comes_out_of_a_run_that_went_on_over_the_harm() {
    let (file, reader, other) = two();
    let mut begun = reader.statement("SELECT word FROM t").unwrap().start();
    let mut parked = reader.statement("SELECT id FROM t").unwrap().start();
    assert_eq!(begun.step(), Ok(Step::Row));
    assert_eq!(parked.step(), Ok(Step::Row));
    let parked = parked.park();
    harm(&file, &other);
    let mut resumed = reader.resume(parked).unwrap();
    for run in [&mut begun, &mut resumed] {
        is_broken(run.step());
        assert_eq!(run.column(0), Value::Null);
        assert_eq!(run.step(), Ok(Step::Done), "it stays done");
    }
}

#[test]
fn nothing_is_compiled_or_described_for_a_schema_that_may_be_wrong() {
    let (file, reader, other) = two();
    run(&reader, "BEGIN");
    let mut kept = reader.statement("SELECT word FROM t").unwrap();
    kept.refresh().unwrap();
    let parked = reader.statement("SELECT id FROM t").unwrap().start();
    harm(&file, &other);
    is_broken(reader.prepare("SELECT id, word FROM t"));
    is_broken(reader.prepare("SELECT nosuch FROM t"));
    is_broken(reader.schema_epoch());
    is_broken(kept.refresh());
    is_broken(parked.is_current());
}

#[test]
fn a_checkpoint_of_nothing_reports_it_as_well() {
    let (file, one, other) = two();
    one.checkpoint().unwrap();
    harm(&file, &other);
    is_broken(one.checkpoint());
    is_broken(one.empty_wal());
}

#[test]
fn the_file_is_served_again_once_all_connections_are_closed() {
    let (file, one, other) = two();
    harm(&file, &other);
    is_broken(refrain_sqlite::Database::new(file.path(), options(256)).connect());
    drop((one, other));
    fs::remove_file(index(&file)).unwrap_or_default();
    assert_eq!(rows(&file.connect(), "SELECT word FROM t", &[]), ["a", "b", "c"]);
}
