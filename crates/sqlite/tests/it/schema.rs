//! Schema changes: an old name never stands over a new value, and without a change nothing is
//! compiled again.

use refrain_sqlite::{Connection, Error, Statement, Step, Value};

use crate::{TestFile, memory, rows, run, shown};

/// Returns names and values of the first row; the names are read after the step.
fn first_row(connection: &Connection, sql: &str) -> String {
    let mut run = connection.statement(sql).unwrap().start();
    let stepped = run.step().unwrap();
    let names = (0..run.column_count()).map(|at| run.column_name(at).unwrap().to_owned());
    let names: Vec<_> = names.collect();
    if stepped == Step::Done {
        return names.join(" ");
    }
    let pairs =
        names.iter().enumerate().map(|(at, name)| format!("{name}={}", shown(run.column(at))));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Returns the names of the columns without running the statement.
fn described(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.statement(sql).unwrap();
    statement.refresh().unwrap();
    (0..statement.column_count()).map(|at| statement.column_name(at).unwrap().to_owned()).collect()
}

/// Each change, the first row of `SELECT *` after it, and its column names.
const CHANGES: &[(&str, &str, &[&str])] = &[
    ("ALTER TABLE t ADD COLUMN c DEFAULT 3", "a=1 b=2 c=3", &["a", "b", "c"]),
    ("ALTER TABLE t RENAME COLUMN b TO z", "a=1 z=2 c=3", &["a", "z", "c"]),
    ("ALTER TABLE t DROP COLUMN a", "z=2 c=3", &["z", "c"]),
    ("DROP TABLE t; CREATE TABLE t (x, y); INSERT INTO t VALUES (8, 9)", "x=8 y=9", &["x", "y"]),
];

fn changes_are_seen(reader: &Connection, change: impl Fn(&str)) {
    change("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)");
    let (stepped, asked, both) = ("SELECT * FROM t", "SELECT  * FROM t", "SELECT   * FROM t");
    for _ in 0..3 {
        assert_eq!(first_row(reader, stepped), "a=1 b=2");
        assert_eq!(described(reader, asked), ["a", "b"]);
        assert_eq!(first_row(reader, both), "a=1 b=2");
    }
    let before = reader.cache_stats();
    for (sql, row, names) in CHANGES {
        change(sql);
        assert_eq!(first_row(reader, stepped), *row, "{sql}");
        assert_eq!(described(reader, asked), *names, "{sql}");
        assert_eq!(described(reader, both), *names, "{sql}");
        assert_eq!(first_row(reader, both), *row, "{sql}");
    }
    let after = reader.cache_stats();
    assert!(after.hits > before.hits && after.reprepares > before.reprepares);
}

#[test]
fn changes_by_the_same_connection() {
    let file = TestFile::new();
    let connection = file.connect();
    changes_are_seen(&connection, |sql| run(&connection, sql));
}

#[test]
fn changes_by_another_connection() {
    let file = TestFile::new();
    let (reader, writer) = (file.connect(), file.connect());
    changes_are_seen(&reader, |sql| run(&writer, sql));
}

#[test]
fn changes_by_another_program() {
    let script =
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])";
    let python = |arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new("python3").arg("-c").args(arguments).status()
    };
    if !python(&["import sqlite3".as_ref()]).is_ok_and(|status| status.success()) {
        println!("passed over: no Python with SQLite");
        return;
    }
    let file = TestFile::new();
    let reader = file.connect();
    changes_are_seen(&reader, |sql| {
        let status = python(&[script.as_ref(), file.path().as_os_str(), sql.as_ref()]);
        assert!(status.unwrap().success(), "{sql}");
    });
}

#[test]
fn a_memo_lives_until_the_statement_is_compiled_anew() {
    let connection = memory(4);
    run(&connection, "CREATE TABLE t (a)");
    let count = || {
        let mut statement = connection.statement("SELECT * FROM t").unwrap();
        statement.refresh().unwrap();
        let seen = |statement: &Statement<'_>| (statement.column_count(), statement.generation());
        *statement.memo(0, |statement| Ok::<_, Error>(seen(statement))).unwrap()
    };
    count();
    let (columns, generation) = count();
    assert_eq!((columns, count()), (1, (1, generation)));
    run(&connection, "ALTER TABLE t ADD COLUMN b");
    let (columns, later) = count();
    assert_eq!(columns, 2);
    assert!(later > generation);
    // A step sees the change as well.
    run(&connection, "ALTER TABLE t ADD COLUMN c");
    let mut stepped = connection.statement("SELECT * FROM t").unwrap().start();
    stepped.step().unwrap();
    stepped.memo(0, |_| Err::<usize, _>("not made")).unwrap_err();
    assert_eq!(*stepped.memo(0, |run| Ok::<_, Error>(run.column_count())).unwrap(), 3);
}

#[test]
fn nothing_is_compiled_anew_without_a_change() {
    let connection = memory(64);
    run(
        &connection,
        "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
         CREATE TABLE post (id INTEGER PRIMARY KEY, author_id INT, title TEXT, day INT);
         CREATE INDEX post_author ON post (author_id);
         CREATE INDEX post_title ON post (title);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO author SELECT i, 'name' || i FROM n;
         INSERT INTO post SELECT id, CASE WHEN id < 500 THEN 1 ELSE id END, name, id % 7 FROM author",
    );
    let texts = [
        "SELECT name FROM author WHERE id = ?",
        "SELECT count(*) FROM post WHERE author_id = ?",
        "SELECT a.name, p.title FROM post p JOIN author a ON a.id = p.author_id \
         WHERE p.author_id = ? ORDER BY p.day DESC LIMIT 10",
        "SELECT count(*) FROM post WHERE title LIKE ?",
        "SELECT count(*) FROM post WHERE author_id > ? AND day = 3",
    ];
    let round = |values: i64| {
        for sql in texts {
            for value in 0..values {
                rows(&connection, sql, &[Value::Integer(value)]);
            }
        }
    };
    round(1000);
    assert_eq!(connection.cache_stats().reprepares, 0);
    run(&connection, "ANALYZE");
    round(3);
    let after = connection.cache_stats().reprepares;
    assert!(after <= texts.len() as u64, "ANALYZE changes the schema once: {after}");
    round(1000);
    assert_eq!(connection.cache_stats().reprepares, after);
}
