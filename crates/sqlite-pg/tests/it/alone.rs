//! Writes of a session while the loop serves no other client.
//!
//! A write that runs on the loop is answered at once. Whether one does depends on the time of the
//! write before, so each test looks at the first write to a file.

use refrain_sqlite::{OpenOptions, Synchronous};
use refrain_sqlite_pg::Progress;

use crate::client::{Client, Place};

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)";

/// Makes a file with a table of three rows, and a client that is alone.
fn alone() -> (Place, Client) {
    let place = Place::new();
    let mut client = place.client();
    client.query(TABLE);
    client.query("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    client.session.set_alone(true);
    (place, client)
}

fn send(client: &mut Client, text: &str) -> Progress {
    refrain_pg_wire::write::query(client.asked(), text.as_bytes());
    client.send()
}

#[test]
fn what_is_short_is_written_at_once() {
    for (text, tag) in [
        ("INSERT INTO t VALUES (4, 4)", "INSERT 0 1"),
        ("INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = excluded.v", "INSERT 0 1"),
        ("UPDATE t SET v = v + 1", "UPDATE 3"),
    ] {
        let (_place, mut client) = alone();
        assert_eq!(send(&mut client, text), Progress::Idle, "{text}");
        assert_eq!(client.answers(), [tag, "ready I"]);
        client.session.set_alone(false);
        assert_eq!(send(&mut client, "UPDATE t SET v = 0"), Progress::Waiting);
        client.answers();
    }
    let (_place, mut client) = alone();
    client.parse("i", "INSERT INTO t VALUES ($1, 1) RETURNING id", &[23]);
    assert_eq!(client.sync(), ["parsed", "ready I"]);
    client.bind(("", "i"), 0, &[Some(b"9")], 0).execute("", 0).say(b'S', b"");
    assert_eq!(client.send(), Progress::Idle);
    assert_eq!(client.answers(), ["bound", "row 9", "INSERT 0 1", "ready I"]);
}

#[test]
fn what_may_last_is_written_elsewhere_and_once() {
    let many = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM c WHERE x < 5009) \
                SELECT x, x FROM c";
    for (text, answers, rows) in [
        ("DELETE FROM t", &["DELETE 3", "ready I"][..], "row 0"),
        ("CREATE INDEX i ON t (v)", &["CREATE INDEX", "ready I"], "row 3"),
        (
            "DROP TABLE t; CREATE TABLE t (v INT)",
            &["DROP TABLE", "CREATE TABLE", "ready I"],
            "row 0",
        ),
        (
            "INSERT INTO t VALUES (4); INSERT INTO t VALUES (5)",
            &["INSERT 0 1", "INSERT 0 1", "ready I"],
            "row 5",
        ),
        (many, &["INSERT 0 5000", "ready I"], "row 5003"),
    ] {
        let (_place, mut client) = alone();
        assert_eq!(send(&mut client, text), Progress::Waiting, "{text}");
        assert_eq!(client.answers(), answers, "{text}");
        assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], rows, "{text}");
    }
    let (_place, mut client) = alone();
    assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
    assert_eq!(send(&mut client, "INSERT INTO t VALUES (4, 4)"), Progress::Waiting);
    assert_eq!(client.answers(), ["INSERT 0 1", "ready T"]);
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready I"]);
}

#[test]
fn who_is_alone_waits_for_other_writers_elsewhere() {
    let (place, mut client) = alone();
    let other = rusqlite::Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(send(&mut client, "INSERT INTO t VALUES (4, 4)"), Progress::Waiting);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(client.answers(), ["INSERT 0 1", "ready I"]);

    let (place, mut client) = alone();
    let mut other = place.client();
    other.query("BEGIN; INSERT INTO t VALUES (4, 4)");
    client.query("SET lock_timeout = '60s'");
    assert_eq!(send(&mut client, "INSERT INTO t VALUES (5, 5)"), Progress::Waiting);
    other.query("COMMIT");
    assert_eq!(client.answers(), ["INSERT 0 1", "ready I"]);
}

#[test]
fn an_error_leaves_nothing_behind() {
    let (place, mut client) = alone();
    assert_eq!(send(&mut client, "INSERT INTO t VALUES (4, 4), (1, 1)"), Progress::Idle);
    assert_eq!(client.answers(), ["error 23505", "ready I"]);
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 3");
    let mut other = place.client();
    assert_eq!(other.query("INSERT INTO t VALUES (4, 4)"), ["INSERT 0 1", "ready I"]);
}

#[test]
fn the_wal_is_copied_all_the_same() {
    const WRITES: u64 = 4000;
    let options = OpenOptions { synchronous: Synchronous::Off, ..OpenOptions::default() };
    let place = Place::with(options);
    let mut client = place.client();
    client.query(TABLE);
    client.session.set_alone(true);
    for _ in 0..WRITES {
        assert_eq!(client.query("INSERT INTO t (v) VALUES (1)"), ["INSERT 0 1", "ready I"]);
    }
    let wal = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap();
    assert!(wal.len() < WRITES / 2 * 4096, "{} bytes", wal.len());
}
