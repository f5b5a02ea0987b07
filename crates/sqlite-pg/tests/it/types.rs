//! Types of parameters and results.

use crate::client::Place;

#[test]
fn the_traps_of_parameters() {
    let place = Place::new();
    let mut client = place.client();
    client.parse("", "SELECT $2 AS b, $1 AS a", &[25, 25]);
    client.bind(("", ""), 0, &[Some(b"one"), Some(b"two")], 0).execute("", 0);
    assert_eq!(client.sync(), ["parsed", "bound", "row two|one", "SELECT 1", "ready I"]);
    client.parse("", "SELECT $1::int8 + 1, $1", &[]).describe("S");
    client.bind(("", ""), 0, &[Some(b"41")], 0).execute("", 0);
    let answers = client.sync();
    assert_eq!(answers[1], "parameters [20]");
    assert_eq!(answers[4], "row 42|41");
    client
        .parse("", "SELECT 1 AS x WHERE 1 = $1", &[])
        .bind(("", ""), 0, &[Some(b"1")], 0)
        .execute("", 0);
    assert_eq!(client.sync()[2], "row 1");
    assert_eq!(client.query("SELECT $$te'xt$$")[1], "row te'xt");
}

#[test]
fn values_go_in_and_come_out_in_both_formats() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (i BIGINT, f REAL, b BOOL, x BYTEA, s TEXT, d DATE, ts TIMESTAMP, u UUID, j JSONB)",
    );
    let long = vec![b'a'; 1 << 20];
    let values: [Option<&[u8]>; 9] = [
        Some(b"-7"),
        Some(b"1.5"),
        Some(b"t"),
        Some(b"\\x00ff"),
        Some(&long),
        Some(b"2024-02-29"),
        Some(b"2024-02-29 01:02:03.5"),
        Some(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        Some(b"{}"),
    ];
    client.parse("", "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", &[]);
    client.bind(("", ""), 0, &values, 0).execute("", 0);
    client.bind(("", ""), 0, &[None; 9], 0).execute("", 0);
    assert_eq!(client.sync(), ["parsed", "bound", "INSERT 0 1", "bound", "INSERT 0 1", "ready I"]);
    let rows = client.query("SELECT i, f, b, x, length(s), d, ts, u, j FROM t");
    let first = "row -7|1.5|t|\\x00ff|1048576|2024-02-29|2024-02-29 01:02:03.5|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{}";
    assert_eq!(rows[1..3], [first, "row null|null|null|null|null|null|null|null|null"]);
    client.parse("", "SELECT i, b, x FROM t WHERE i = $1", &[21]);
    client.bind(("", ""), 1, &[Some(&(-7i16).to_be_bytes())], 1).execute("", 0);
    assert_eq!(
        client.sync()[2],
        "row \u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}|\u{1}|\0\u{fffd}"
    );
    client.parse("", "SELECT $1", &[]).bind(("", ""), 0, &[Some(b"")], 0).execute("", 0);
    assert_eq!(client.sync()[2], "row ");
}

#[test]
fn each_type_comes_out_as_it_went_in_as_text_and_as_bytes() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (i BIGINT, f DOUBLE PRECISION, b BOOL, x BYTEA, s TEXT)");
    let long = vec![b'a'; 1 << 20];
    let (seven, half) = ((-7i64).to_be_bytes(), 1.5f64.to_be_bytes());
    let cases: [(&str, u32, &[u8], &[u8]); 6] = [
        ("i", 20, b"-7", &seven),
        ("f", 701, b"1.5", &half),
        ("b", 16, b"t", &[1]),
        ("x", 17, b"\\x00ff", &[0, 0xff]),
        ("s", 25, b"", b""),
        ("s", 25, &long, &long),
    ];
    for (column, oid, text, bytes) in cases {
        for (format, value) in [(0, text), (1, bytes)] {
            client.query("DELETE FROM t");
            client.parse("", &format!("INSERT INTO t ({column}) VALUES ($1)"), &[oid]);
            client.bind(("", ""), format, &[Some(value)], 0).execute("", 0);
            assert_eq!(client.sync()[2], "INSERT 0 1");
            for (format, value) in [(0, text), (1, bytes)] {
                client.parse("", &format!("SELECT {column} FROM t"), &[]);
                client.bind(("", ""), 0, &[], format).execute("", 0);
                let row = format!("row {}", String::from_utf8_lossy(value));
                assert!(client.sync()[2] == row, "{column} in format {format}");
            }
        }
    }
    for format in [0, 1] {
        client.parse("", "SELECT $1", &[20]);
        client.bind(("", ""), format, &[None], format).execute("", 0);
        assert_eq!(client.sync()[2], "row null");
    }
}

#[test]
fn a_text_in_a_column_of_numbers_is_told() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (i INTEGER)");
    assert_eq!(client.query("INSERT INTO t VALUES (1), ('abc')")[0], "error 22P02");
    // The text calls a function of SQLite's, so SQLite's rules apply, as in another program.
    client.query("INSERT INTO t VALUES (1), (printf('abc'))");
    assert_eq!(
        client.query("SELECT i FROM t"),
        ["columns i:23", "row 1", "error 22P02", "ready I"]
    );
    assert_eq!(client.query("SELECT CAST(i AS TEXT) FROM t")[2], "row abc");
}

#[test]
fn what_is_denied_stays_denied() {
    let place = Place::new();
    let mut client = place.client();
    for text in [
        "ATTACH 'x' AS y",
        "VACUUM INTO 'x'",
        "SELECT load_extension('x')",
        "PRAGMA writable_schema = 1",
    ] {
        assert_eq!(client.query(text), ["error 42501", "ready I"], "{text}");
    }
}
