//! A schema that could not be read. A statement ends with the reason then, and not with the error
//! that there is no such table, nor with other types than its columns have.

use std::fs::File;

use crate::client::{Client, Place};

const BROKEN: [&str; 2] = ["error 58030", "ready E"];

/// Makes a file with a table, and a client in a transaction that has read it. Then the index of
/// the WAL is emptied, and another client meets that.
fn broken() -> (Place, Client) {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    client.query("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    client.parse("typed", "SELECT id + 1 AS n FROM t NOT INDEXED", &[]).sync();
    client.query("BEGIN");
    assert_eq!(client.query("SELECT word FROM t WHERE id = 1")[1], "row a");
    let index = format!("{}-shm", place.path.display());
    File::options().write(true).open(index).unwrap().set_len(0).unwrap();
    assert_eq!(place.client().query("SELECT word FROM t WHERE id = 2"), ["error 58030", "ready I"]);
    (place, client)
}

#[test]
fn a_broken_index_is_no_missing_table() {
    for sql in [
        // The first was translated and compiled before; the others were not.
        "SELECT word FROM t WHERE id = 1",
        "SELECT word, id FROM t",
        "SELECT nosuch FROM t",
        "INSERT INTO t (word) VALUES ('c')",
        "CREATE TABLE other (id INTEGER REFERENCES t)",
        "SELECT id FROM t NOT INDEXED",
        "COPY t TO STDOUT",
        "COPY (SELECT word FROM t) TO STDOUT",
    ] {
        let (_place, mut client) = broken();
        assert_eq!(client.query(sql), BROKEN, "{sql}");
    }
}

#[test]
fn a_broken_index_is_told_of_by_messages_that_describe() {
    let (_place, mut client) = broken();
    assert_eq!(client.parse("", "SELECT id, word FROM t", &[]).sync(), BROKEN);
    let (_place, mut client) = broken();
    assert_eq!(client.describe("Styped").sync(), ["parameters []", BROKEN[0], BROKEN[1]]);
    let (_place, mut client) = broken();
    assert_eq!(client.bind(("", "typed"), 0, &[], 0).execute("", 0).sync(), BROKEN);
}

#[test]
fn a_commit_over_a_broken_index_is_an_error() {
    let (_place, mut client) = broken();
    assert_eq!(client.query("COMMIT"), ["error 58030", "ready I"]);
}

/// A DEFAULT longer than a value on the loop may be. To read the columns of its table takes a
/// thread.
fn long_default() -> String {
    "x".repeat(200_000)
}

#[test]
fn a_table_that_is_too_long_for_the_loop_is_read_on_a_thread() {
    let place = Place::new();
    let mut client = place.client();
    let create = format!(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, word TEXT DEFAULT '{}', n INTEGER)",
        long_default()
    );
    assert_eq!(client.query(&create)[0], "CREATE TABLE");
    assert_eq!(client.query("INSERT INTO t (word, n) VALUES ('a', 1)")[0], "INSERT 0 1");
    for _ in 0..3 {
        assert_eq!(place.client().query("SELECT id, n FROM t")[1], "row 1|1");
        assert_eq!(place.client().query("SELECT n, id FROM t WHERE n = 1")[1], "row 1|1");
        assert_eq!(place.client().query("COPY t (n) TO STDOUT")[1], "data 1");
    }
    // In SQLite's dialect the types come from the table as well, of columns and of parameters.
    let plain = "SELECT max(n) AS m FROM t NOT INDEXED";
    assert_eq!(place.client().query(plain)[0], "columns m:23");
    let mut client = place.client();
    client.parse("", &format!("{plain} WHERE n = $1"), &[]);
    assert_eq!(
        client.describe("S").sync(),
        ["parsed", "parameters [23]", "columns m:23", "ready I"]
    );
    let written = client.query("INSERT OR IGNORE INTO t (n) VALUES (2) RETURNING n + 1 AS m");
    assert_eq!(written[..2], ["columns m:23", "row 3"]);
    assert_eq!(client.query("SELECT count(*) FROM t")[1], "row 2");
    client.parse("", "SELECT n FROM t WHERE id = $1", &[]);
    client.describe("S").bind(("", ""), 0, &[Some(b"1")], 0).execute("", 0);
    let answers = client.sync();
    assert!(answers.contains(&"row 1".to_owned()), "{answers:?}");
    assert_eq!(client.query("SELECT nosuch FROM t")[0], "error 42703");
    assert_eq!(client.query("SELECT n FROM nosuch")[0], "error 42P01");
}
