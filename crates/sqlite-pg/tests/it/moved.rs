//! A file that another program moves, replaces, deletes or makes shorter while it is served.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::client::{Client, Place};

/// Returns the path of a file beside a database, with another ending.
fn beside(place: &Place, end: &str) -> PathBuf {
    format!("{}{end}", place.path.display()).into()
}

/// Makes a served file with a table and a row.
fn served() -> (Place, Client) {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    assert_eq!(client.query("INSERT INTO t VALUES (1, 'kept')"), ["INSERT 0 1", "ready I"]);
    (place, client)
}

/// Reads a file without the server.
fn words(path: &PathBuf) -> Vec<String> {
    let other = rusqlite::Connection::open(path).unwrap();
    assert_eq!(
        other.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
    let mut all = other.prepare("SELECT word FROM t ORDER BY id").unwrap();
    all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

const GONE: [&str; 2] = ["error 58P01", "ready I"];

#[test]
fn a_file_that_was_moved_takes_no_commit_and_is_served_again_when_it_is_back() {
    let (place, mut client) = served();
    let away = beside(&place, "-away");
    fs::rename(&place.path, &away).unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES (2, 'lost')"), GONE);
    assert_eq!(place.client().query("INSERT INTO t VALUES (2, 'lost')"), GONE);
    assert_eq!(client.query("SELECT word FROM t"), GONE);
    assert!(!place.path.exists(), "no file is made in its place");
    fs::rename(&away, &place.path).unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES (2, 'back')"), ["INSERT 0 1", "ready I"]);
    assert_eq!(client.query("SELECT word FROM t")[1..3], ["row kept", "row back"]);
}

#[test]
fn a_file_that_is_deleted_amid_a_transaction_ends_it() {
    let (place, mut client) = served();
    client.query("BEGIN; INSERT INTO t VALUES (2, 'lost')");
    fs::remove_file(&place.path).unwrap();
    assert_eq!(client.query("COMMIT"), GONE);
    assert_eq!(client.query("SELECT word FROM t"), GONE);
    assert!(!place.path.exists(), "no file is made in its place");
}

#[test]
fn a_log_that_is_deleted_takes_no_commit() {
    let (place, mut client) = served();
    fs::remove_file(beside(&place, "-wal")).unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES (2, 'lost')"), GONE);
}

#[test]
fn a_backup_that_was_put_in_its_place_stays_as_it_is() {
    let (place, mut client) = served();
    let backup = beside(&place, "-backup");
    {
        let other = rusqlite::Connection::open(&place.path).unwrap();
        other.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    }
    for id in 2..200 {
        client.query(&format!("INSERT INTO t VALUES ({id}, 'later')"));
    }
    fs::rename(&backup, &place.path).unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES (1000, 'lost')"), GONE);
    assert_eq!(place.client().query("SELECT word FROM t"), GONE);
    let path = place.path.clone();
    let emptied = || fs::metadata(beside(&place, "-wal")).is_ok_and(|wal| wal.len() == 0);
    crate::client::eventually("what was written goes to the file it was written for", emptied);
    assert_eq!(words(&path), ["kept"]);
}

#[test]
fn a_file_that_was_made_shorter_ends_its_own_statements_and_nothing_else() {
    let (place, mut client) = served();
    let filler = "x".repeat(1000);
    client.query(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
         INSERT INTO t SELECT i, '{filler}' FROM n"
    ));
    rusqlite::Connection::open(&place.path)
        .unwrap()
        .query_row("PRAGMA wal_checkpoint", [], |_| Ok(()))
        .unwrap();
    let file = fs::OpenOptions::new().write(true).open(&place.path).unwrap();
    file.set_len(8192).unwrap();
    let answers = client.query("SELECT sum(length(word)) FROM t");
    assert_eq!(answers[answers.len() - 2..], ["error XX001", "ready I"]);
    let (_other, mut other) = served();
    assert_eq!(other.query("SELECT word FROM t")[1], "row kept");
}

#[test]
fn a_log_that_was_made_shorter_takes_no_commit() {
    for length in [0, 40, 5000] {
        let (place, mut client) = served();
        for id in 2..20 {
            client.query(&format!("INSERT INTO t VALUES ({id}, 'kept')"));
        }
        let log = fs::OpenOptions::new().write(true).open(beside(&place, "-wal")).unwrap();
        log.set_len(length).unwrap();
        assert_eq!(client.query("INSERT INTO t VALUES (100, 'lost')"), ["error 58030", "ready I"]);
        let (_other, mut other) = served();
        assert_eq!(other.query("SELECT word FROM t")[1], "row kept");
    }
}

#[test]
fn another_program_that_comes_and_goes_takes_nothing_away() {
    let place = Place::new();
    let mut client = place.client();
    let comes_and_goes = |sql: &str| {
        let other = rusqlite::Connection::open(&place.path).unwrap();
        other.execute_batch(sql).unwrap();
    };
    assert_eq!(client.query("SELECT 1")[1], "row 1");
    comes_and_goes("PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER)");
    for number in 0..20 {
        let mut client = place.client();
        comes_and_goes("INSERT INTO t VALUES (0)");
        let write = format!("BEGIN; SELECT 1 AS a; INSERT INTO t VALUES ({number}); COMMIT");
        assert_eq!(client.query(&write).last().unwrap(), "ready I");
        comes_and_goes("PRAGMA wal_checkpoint(TRUNCATE)");
        assert_eq!(client.query("INSERT INTO t VALUES (1)")[0], "INSERT 0 1");
    }
}

const BROKEN: [&str; 2] = ["error 58030", "ready I"];

/// A way to harm the index of a WAL that is served.
type Harm = fn(&fs::File, &PathBuf);

/// Ways to lose the index: the rest of it is nothing, part of a page, or pages that include the
/// beginning.
const HARMS: &[Harm] = &[
    |index, _| index.set_len(0).unwrap(),
    |index, _| index.set_len(40).unwrap(),
    |index, _| index.set_len(4096).unwrap(),
    |index, _| index.set_len(20000).unwrap(),
    |_, path| fs::remove_file(path).unwrap(),
    |_, path| fs::rename(path, path.with_extension("away")).unwrap(),
];

#[test]
fn an_index_that_is_lost_ends_its_own_statements_and_nothing_else() {
    for harm in HARMS {
        let (_other, mut other) = served();
        let (place, mut client) = served();
        // The WAL becomes so long that its index has two regions.
        client.query(
            "BEGIN; WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) \
             INSERT INTO t SELECT i, printf('%.*c', 3000, 'x') FROM n",
        );
        let path = beside(&place, "-shm");
        let index = fs::OpenOptions::new().write(true).open(&path).unwrap();
        harm(&index, &path);
        let mut answers = client.query("INSERT INTO t VALUES (7000, 'lost')");
        answers.extend(client.query("COMMIT"));
        assert!(answers.contains(&"error 58030".to_owned()), "{answers:?}");
        assert!(!answers.contains(&"COMMIT".to_owned()), "{answers:?}");
        for sql in ["SELECT word FROM t WHERE id = 1", "INSERT INTO t VALUES (2, 'lost')"] {
            assert_eq!(client.query(sql), BROKEN);
            assert_eq!(place.client().query(sql), BROKEN);
        }
        assert_eq!(other.query("INSERT INTO t VALUES (2, 'kept')"), ["INSERT 0 1", "ready I"]);
        drop(client);
    }
}

const SCAN: &str = "SELECT sum(id), max(word) FROM t";
const INSERT: &str = "INSERT INTO t (word) VALUES (printf('%.*c', 9000, 'x'))";

/// Counts the acknowledged commits until an error says that the index is broken.
fn ask_until_broken(place: &Place, sql: &str, acknowledged: &AtomicUsize) {
    let mut client = place.client();
    loop {
        let answers = client.query(sql);
        match answers[0].as_str() {
            "error 58030" => return,
            "INSERT 0 1" => _ = acknowledged.fetch_add(1, Relaxed),
            // The write queue is long.
            "error 55P03" => {}
            _ => assert_eq!(sql, SCAN, "{answers:?}"),
        }
    }
}

#[test]
fn an_index_that_is_lost_amid_reads_and_writes_loses_no_commit() {
    for harm in HARMS {
        let place = Place::new();
        place.client().query("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
        let path = beside(&place, "-shm");
        let acknowledged = AtomicUsize::new(0);
        thread::scope(|scope| {
            for sql in [SCAN, INSERT, SCAN, INSERT] {
                scope.spawn(|| ask_until_broken(&place, sql, &acknowledged));
            }
            let written = || acknowledged.load(Relaxed) > 20;
            crate::client::eventually("something is written", written);
            harm(&fs::OpenOptions::new().write(true).open(&path).unwrap(), &path);
        });
        let path = place.path.clone();
        let away = beside(&place, "-after");
        // A restart finds the files in this state, without a process that has them open.
        fs::copy(&path, &away).unwrap();
        fs::copy(beside(&place, "-wal"), format!("{}-wal", away.display())).unwrap();
        let (found, acknowledged) = (words(&away).len(), acknowledged.into_inner());
        assert!(found >= acknowledged, "{found} rows, {acknowledged} acknowledged");
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", away.display()));
        }
    }
}
