//! Actions that a client may not do.

use crate::{TestFile, rows, run, state};

#[test]
fn no_other_file_and_no_other_code() {
    let file = TestFile::new();
    let connection = file.connect();
    run(&connection, "CREATE TABLE t (a)");
    let other = std::env::temp_dir().join("refrain-sqlite-never-written.db");
    let other = other.display();
    let refused = [
        (format!("ATTACH '{other}' AS x"), "42501"),
        ("ATTACH '' AS x".to_owned(), "42501"),
        ("DETACH main".to_owned(), "42501"),
        (format!("VACUUM INTO '{other}'"), "42501"),
        ("SELECT load_extension('x')".to_owned(), "42501"),
        ("SELECT fts3_tokenizer('simple')".to_owned(), "42501"),
        ("PRAGMA writable_schema = 1".to_owned(), "42501"),
        ("PRAGMA writable_schema".to_owned(), "42501"),
        ("PRAGMA journal_mode = DELETE".to_owned(), "42501"),
        ("PRAGMA synchronous = OFF".to_owned(), "42501"),
        ("PRAGMA trusted_schema = 1".to_owned(), "42501"),
        ("PRAGMA temp_store_directory = '/'".to_owned(), "42501"),
        ("SELECT * FROM pragma_writable_schema".to_owned(), "42501"),
        ("UPDATE sqlite_schema SET sql = ''".to_owned(), "42501"),
        ("DELETE FROM sqlite_schema".to_owned(), "42501"),
    ];
    for (sql, expected) in refused {
        assert_eq!(state(&connection, &sql), expected, "{sql}");
    }
    assert!(!std::path::Path::new(&other.to_string()).exists());
}

#[test]
fn what_is_harmless_works() {
    let file = TestFile::new();
    let connection = file.connect();
    run(&connection, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); VACUUM; ANALYZE; REINDEX");
    assert_eq!(rows(&connection, "PRAGMA journal_mode", &[]), ["wal"]);
    assert_eq!(rows(&connection, "PRAGMA foreign_keys", &[]), ["1"]);
    assert_eq!(rows(&connection, "SELECT name FROM pragma_table_info('t')", &[]), ["a", "b"]);
    assert_eq!(rows(&connection, "PRAGMA table_info(t)", &[]).len(), 2);
    assert_eq!(rows(&connection, "PRAGMA integrity_check", &[]), ["ok"]);
    assert_eq!(state(&connection, "ATTACH '' AS x"), "42501", "also after a VACUUM");
}

#[test]
fn our_own_statements_are_trusted() {
    let file = TestFile::new();
    let connection = file.connect();
    let done = connection.trusted(|connection| {
        run(connection, "SELECT 1; ATTACH ':memory:' AS extra");
        connection.execute("CREATE TABLE extra.t (a)", &[])
    });
    assert_eq!(done, Ok(0));
    assert_eq!(rows(&connection, "SELECT count(*) FROM extra.t", &[]), ["0"]);
    assert_eq!(state(&connection, "DETACH extra"), "42501");
}

#[test]
fn a_commit_is_on_disk_by_default() {
    let file = TestFile::new();
    let database =
        refrain_sqlite::Database::new(file.path(), refrain_sqlite::OpenOptions::default());
    let connection = database.connect().unwrap();
    assert_eq!(rows(&connection, "PRAGMA synchronous", &[]), ["2"]);
    run(&connection, "CREATE TABLE t (a)");
    let (frames, copied) = connection.checkpoint().unwrap();
    assert!(frames > 0 && frames == copied);
    connection.close().unwrap();

    let options = refrain_sqlite::OpenOptions { read_only: true, ..Default::default() };
    let reader = refrain_sqlite::Database::new(file.path(), options).connect().unwrap();
    assert_eq!(rows(&reader, "SELECT count(*) FROM t", &[]), ["0"]);
    assert_eq!(state(&reader, "INSERT INTO t VALUES (1)"), "25006");
}
