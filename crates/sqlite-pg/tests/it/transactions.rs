//! Transactions, the write queue, and cancels.

use refrain_sqlite_pg::Progress;

use crate::client::Place;

const SLOW: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 900000000) \
                    SELECT count(*) FROM c";

#[test]
fn a_failed_transaction_takes_nothing_but_its_end() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
    assert_eq!(client.query("INSERT INTO t VALUES (1)"), ["INSERT 0 1", "ready T"]);
    assert_eq!(client.query("INSERT INTO t VALUES (1)"), ["error 23505", "ready E"]);
    assert_eq!(client.query("SELECT 1"), ["error 25P02", "ready E"]);
    client.parse("", "SELECT 1", &[]);
    assert_eq!(client.sync(), ["error 25P02", "ready E"]);
    assert_eq!(client.query("COMMIT"), ["ROLLBACK", "ready I"]);
    assert_eq!(client.query("SELECT * FROM t").len(), 3, "nothing was kept");
    assert_eq!(client.query("COMMIT"), ["notice 25P01", "COMMIT", "ready I"]);
}

#[test]
fn savepoints_bring_a_transaction_back() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    client.query("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT \"A\"");
    assert_eq!(client.query("SELECT nosuch"), ["error 42703", "ready E"]);
    assert_eq!(client.query("ROLLBACK TO a"), ["error 3B001", "ready E"]);
    assert_eq!(client.query("ROLLBACK TO SAVEPOINT \"A\""), ["ROLLBACK", "ready T"]);
    assert_eq!(client.query("RELEASE \"A\"; COMMIT"), ["RELEASE", "COMMIT", "ready I"]);
    assert_eq!(client.query("SELECT * FROM t")[1], "row 1");
    assert_eq!(client.query("SAVEPOINT x"), ["error 25P01", "ready I"]);
    assert_eq!(
        client.query("BEGIN READ ONLY; INSERT INTO t VALUES (2)"),
        ["BEGIN", "error 25006", "ready E"]
    );
}

#[test]
fn writers_stand_in_line() {
    let place = Place::new();
    let (mut first, mut second) = (place.client(), place.client());
    first.query("CREATE TABLE t (id INTEGER)");
    first.query("BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!(second.query("INSERT INTO t VALUES (2)"), ["error 55P03", "ready I"]);
    second.query("SET lock_timeout = '20s'");
    refrain_pg_wire::write::query(second.asked(), b"INSERT INTO t VALUES (2)");
    assert_eq!(second.send(), Progress::Waiting);
    assert_eq!(place.backend.waiting_writers(), 1);
    assert_eq!(first.query("COMMIT"), ["COMMIT", "ready I"]);
    assert_eq!(second.answers(), ["INSERT 0 1", "ready I"]);
    first.query("BEGIN; SELECT * FROM t");
    second.query("INSERT INTO t VALUES (3)");
    assert_eq!(first.query("INSERT INTO t VALUES (4)"), ["error 40001", "ready E"]);
}

/// Clocks and cancels wake a session as well. At that moment a thread may begin its statement.
#[test]
fn a_session_that_is_resumed_too_early_loses_no_statement() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER)");
    for id in 0..200 {
        for (sql, answer) in [
            (format!("INSERT INTO t VALUES ({id})"), "INSERT 0 1"),
            ("SELECT count(*) FROM t".to_owned(), "SELECT 1"),
        ] {
            refrain_pg_wire::write::query(client.asked(), sql.as_bytes());
            let answers = client.answers_without_wakes();
            assert!(answers.iter().any(|said| said == answer), "{answers:?}");
        }
    }
}

#[test]
fn a_cancel_ends_what_runs_and_nothing_else() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER)");
    let handle = client.session.cancel_handle();
    for text in [SLOW, "SELECT pg_sleep(20)"] {
        refrain_pg_wire::write::query(client.asked(), text.as_bytes());
        assert_eq!(client.send(), Progress::Waiting);
        handle.cancel();
        // A cancel that comes before the statement has begun may miss it.
        let again = handle.clone();
        let until = std::thread::spawn(move || {
            for _ in 0..200 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                again.cancel();
            }
        });
        let answers = client.answers();
        assert_eq!(answers[answers.len() - 2..], ["error 57014", "ready I"]);
        until.join().unwrap();
    }
    let mut other = place.client();
    for _ in 0..10_000 {
        other.query("SELECT 1");
        handle.cancel();
        client.session.cancel_handle().cancel();
    }
    assert_eq!(other.query("SELECT 1 AS x"), ["columns x:23", "row 1", "SELECT 1", "ready I"]);
    assert_eq!(client.query("SELECT 2 AS x"), ["columns x:23", "row 2", "SELECT 1", "ready I"]);
}

#[test]
fn a_statement_has_its_time() {
    let place = Place::new();
    let mut client = place.client();
    client.query("SET statement_timeout = '50ms'");
    assert_eq!(client.query(SLOW), ["error 57014", "ready I"]);
    assert_eq!(client.query("SELECT pg_sleep(20)"), ["error 57014", "ready I"]);
}

#[test]
fn a_portal_that_never_ran_leaves_its_statement_to_others() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER)");
    for _ in 0..3 {
        client.query("BEGIN");
        client.parse("", "SELECT id FROM t", &[]).bind(("p", ""), 0, &[], 0);
        assert_eq!(client.sync(), ["parsed", "bound", "ready T"]);
        assert_eq!(client.query("COMMIT"), ["COMMIT", "ready I"]);
    }
    let mut busy_misses = 0;
    place.pool.inspect(|connection| busy_misses += connection.cache_stats().busy_misses);
    assert_eq!(busy_misses, 0);
    assert_eq!(client.query("DROP TABLE t"), ["DROP TABLE", "ready I"]);
}
