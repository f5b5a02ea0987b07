//! Limits on the memory of a statement.

use refrain_sqlite::OpenOptions;

use crate::client::Place;

const MOST: usize = 32 * 1024 * 1024;

/// Queries that need more memory, although no value is longer than allowed.
const TOO_MUCH: &[&str] = &[
    "SELECT length(a || b) FROM (SELECT printf('%.*c', 20000000, 'a') AS a, printf('%.*c', 20000000, 'b') AS b)",
    "WITH RECURSIVE n(i, w) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, w || w FROM n WHERE i < 40) \
     SELECT max(length(w)) FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
     SELECT length(group_concat(printf('%.*c', 100000, 'x'))) FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
     SELECT length(json_group_array(printf('%.*c', 100000, 'x'))) FROM n",
    "INSERT INTO t (word) SELECT printf('%.*c', 50000000, 'x')",
];

/// A sort of a hundred megabytes, which needs temporary files.
const SORT: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
     SELECT length(w) AS length FROM (SELECT printf('%d%.*c', i, 1000, 'x') AS w FROM n) ORDER BY w LIMIT 1 OFFSET 99998";

#[test]
fn a_statement_that_takes_too_much_ends_and_nothing_else() {
    let place = Place::with(OpenOptions { max_memory: MOST, ..OpenOptions::default() });
    let (mut client, mut other) = (place.client(), place.client());
    client.query("CREATE TABLE t (id SERIAL PRIMARY KEY, word TEXT)");
    assert_eq!(
        other.query("BEGIN; INSERT INTO t (word) VALUES ('other')").last().unwrap(),
        "ready T"
    );
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready I"]);
    for _ in 0..3 {
        for sql in TOO_MUCH {
            assert_eq!(client.query(sql), ["error 53200", "ready I"], "{sql}");
            assert_eq!(other.query("SELECT word FROM t")[1], "row other");
        }
    }
    assert_eq!(
        client.query("BEGIN; INSERT INTO t (word) VALUES ('lost')").last().unwrap(),
        "ready T"
    );
    assert_eq!(client.query(TOO_MUCH[0]), ["error 53200", "ready E"]);
    assert_eq!(client.query("ROLLBACK"), ["ROLLBACK", "ready I"]);
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 1");
    for _ in 0..3 {
        let most = "SELECT length(printf('%.*c', 12000000, 'a')) AS length";
        assert_eq!(client.query(most)[1], "row 12000000", "what was taken was given back");
    }
    assert_eq!(client.query(SORT)[1], "row 1002");
}
