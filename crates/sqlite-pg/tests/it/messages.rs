//! The extended protocol, simple queries and COPY.

use refrain_pg_wire::tag::front;

use crate::client::{Client, Place};

fn table(place: &Place) -> Client {
    let mut client = place.client();
    let made = client.query(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE); \
         INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    );
    assert_eq!(made, ["CREATE TABLE", "INSERT 0 3", "ready I"]);
    client
}

#[test]
fn a_prepared_statement_is_described_bound_and_run() {
    let place = Place::new();
    let mut client = table(&place);
    client.parse("s", "SELECT id, name FROM t WHERE id = $1", &[]).describe("Ss");
    let described = client.sync();
    assert_eq!(described, ["parsed", "parameters [23]", "columns id:23 name:25", "ready I"]);
    client.bind(("", "s"), 0, &[Some(b"2")], 0).execute("", 0);
    assert_eq!(client.sync(), ["bound", "row 2|b", "SELECT 1", "ready I"]);
    client.bind(("", "s"), 1, &[Some(&3i32.to_be_bytes())], 0).execute("", 0);
    assert_eq!(client.sync(), ["bound", "row 3|c", "SELECT 1", "ready I"]);
}

#[test]
fn portals_stop_at_row_limits_and_go_on() {
    let place = Place::new();
    let mut client = table(&place);
    client.parse("", "SELECT id FROM t ORDER BY id", &[]).bind(("p", ""), 0, &[], 0);
    client.execute("p", 2).execute("p", 2).execute("p", 2);
    // The same text again, while the first run is in the middle of its rows.
    client.bind(("q", ""), 0, &[], 0).execute("q", 1);
    let expected = [
        "parsed",
        "bound",
        "row 1",
        "row 2",
        "suspended",
        "row 3",
        "SELECT 1",
        "SELECT 0",
        "bound",
        "row 1",
        "suspended",
        "ready I",
    ];
    assert_eq!(client.sync(), expected);
    client.execute("p", 0);
    assert_eq!(client.sync(), ["error 34000", "ready I"], "portals end with the transaction");
}

#[test]
fn after_an_error_everything_is_skipped_until_sync() {
    let place = Place::new();
    let mut client = table(&place);
    client.parse("", "INSERT INTO t VALUES (9, 'z')", &[]).bind(("", ""), 0, &[], 0).execute("", 0);
    client.parse("", "SELECT nosuch", &[]).bind(("", ""), 0, &[], 0).execute("", 0);
    assert_eq!(client.sync(), ["parsed", "bound", "INSERT 0 1", "error 42703", "ready I"]);
    let count = client.query("SELECT count(*) FROM t");
    assert_eq!(count, ["columns count:20", "row 3", "SELECT 1", "ready I"], "one transaction");
    client.bind(("", "nosuch"), 0, &[], 0);
    assert_eq!(client.sync(), ["error 26000", "ready I"]);
    client.parse("", "SELECT $1, $2", &[]).bind(("", ""), 0, &[Some(b"1")], 0);
    assert_eq!(client.sync(), ["parsed", "error 08P01", "ready I"]);
    client.say(front::FUNCTION_CALL, b"");
    assert_eq!(client.answers(), ["error 0A000", "ready I"]);
}

#[test]
fn a_query_behind_an_error_is_skipped_as_well() {
    let place = Place::new();
    let mut client = table(&place);
    client.parse("", "SELECT nosuch", &[]);
    client.say(front::QUERY, b"INSERT INTO t VALUES (9, 'z')\0").say(front::FUNCTION_CALL, b"");
    assert_eq!(client.sync(), ["error 42703", "ready I"]);
    let none = client.query("SELECT id FROM t WHERE id = 9");
    assert_eq!(none, ["columns id:23", "SELECT 0", "ready I"]);
}

#[test]
fn messages_come_in_pieces() {
    let place = Place::new();
    let mut client = table(&place);
    client.parse("", "UPDATE t SET name = $1 WHERE id = $2 RETURNING name", &[]);
    client.bind(("", ""), 0, &[Some(b"x"), Some(b"1")], 0).describe("P").execute("", 0);
    client.say(front::SYNC, b"");
    let expected = ["parsed", "bound", "columns name:25", "row x", "UPDATE 1", "ready I"];
    assert_eq!(client.send_in_bytes(), expected);
}

#[test]
fn several_statements_are_one_transaction() {
    let place = Place::new();
    let mut client = table(&place);
    let failed =
        client.query("INSERT INTO t VALUES (5, 'e'); INSERT INTO t VALUES (6, 'a'); SELECT 1");
    assert_eq!(failed, ["INSERT 0 1", "error 23505", "ready I"]);
    let none = client.query("SELECT id FROM t WHERE id > 4");
    assert_eq!(none, ["columns id:23", "SELECT 0", "ready I"]);
    assert_eq!(client.query(" -- nothing\n ;"), ["empty", "ready I"]);
    let begun = client.query("INSERT INTO t VALUES (5, 'e'); BEGIN; SELECT 1 AS x; COMMIT");
    assert_eq!(
        begun,
        ["INSERT 0 1", "BEGIN", "columns x:23", "row 1", "SELECT 1", "COMMIT", "ready I"]
    );
}

#[test]
fn a_large_result_comes_in_parts() {
    let place = Place::new();
    let mut client = place.client();
    let text = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) \
                SELECT x, 'abcdefghijklmnopqrstuvwxyz' FROM c";
    let answers = client.query(text);
    assert_eq!(answers.len(), 50_003);
    assert_eq!(answers[50_000], "row 50000|abcdefghijklmnopqrstuvwxyz");
    client.parse("", text, &[]).bind(("", ""), 0, &[], 0).execute("", 0);
    assert_eq!(client.sync().len(), 50_004);
}

#[test]
fn copy_in_and_out() {
    let place = Place::new();
    let mut client = table(&place);
    client.say(front::QUERY, b"COPY t FROM STDIN WITH (FORMAT csv)\0");
    assert_eq!(client.answers(), ["copy in"]);
    client
        .say(front::COPY_DATA, b"4,\"d,\n")
        .say(front::COPY_DATA, b"d\"\n5,")
        .say(front::COPY_DONE, b"");
    assert_eq!(client.answers(), ["COPY 2", "ready I"]);
    let out = client.query("COPY (SELECT * FROM t WHERE id > 3) TO STDOUT");
    assert_eq!(out, ["copy out", "data 4\td,\\nd", "data 5\t\\N", "copied", "COPY 2", "ready I"]);
    client.say(front::QUERY, b"COPY t FROM STDIN\0");
    client.say(front::COPY_DATA, b"6\tx\n").say(front::COPY_FAIL, b"no\0");
    assert_eq!(client.answers(), ["copy in", "error 57014", "ready I"]);
    assert_eq!(client.query("SELECT 1 FROM t WHERE id = 6").len(), 3);
}

#[test]
fn copy_in_binary() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE b (n INT, v VARCHAR(3), d DATE, x BYTEA)");
    let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    let row = b"\0\x04\0\0\0\x04\0\0\0\x07\0\0\0\x01a\0\0\0\x04\0\0\x22\x79\xff\xff\xff\xff";
    let end = b"\xff\xff";
    let mut copy = |data: &[&[u8]]| {
        client.say(front::QUERY, b"COPY b FROM STDIN (FORMAT binary)\0");
        data.iter().for_each(|piece| _ = client.say(front::COPY_DATA, piece));
        client.say(front::COPY_DONE, b"").answers()
    };
    assert_eq!(copy(&[header, row, row, end]), ["copy in", "COPY 2", "ready I"]);
    let (first, second) = row.split_at(9);
    assert_eq!(copy(&[header, first, second]), ["copy in", "COPY 1", "ready I"]);
    assert_eq!(copy(&[b"1\tabc\n1\tabc\n1\tabc\n"]), ["copy in", "error 22P04", "ready I"]);
    assert_eq!(copy(&[header, first]), ["copy in", "error 22P04", "ready I"]);
    let long = b"\0\x04\0\0\0\x01\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(copy(&[header, row, long]), ["copy in", "error 22P03", "ready I"]);
    let rows = client.query("SELECT * FROM b");
    assert_eq!(
        rows[1..5],
        [
            "row 7|a|2024-02-29|null",
            "row 7|a|2024-02-29|null",
            "row 7|a|2024-02-29|null",
            "SELECT 3"
        ]
    );
    let out = client.query("COPY (SELECT n FROM b LIMIT 1) TO STDOUT BINARY");
    let data = format!("data {}\0\x01\0\0\0\x04\0\0\0\x07", String::from_utf8_lossy(header));
    assert_eq!(out, ["copy out", &data, "data \u{fffd}\u{fffd}", "copied", "COPY 1", "ready I"]);
    let out = client.query("COPY (SELECT n FROM b WHERE false) TO STDOUT (FORMAT binary)");
    let data = format!("data {}\u{fffd}\u{fffd}", String::from_utf8_lossy(header));
    assert_eq!(out, ["copy out", &data, "copied", "COPY 0", "ready I"]);
}

#[test]
fn a_described_shape_that_changed_is_an_error() {
    let place = Place::new();
    let (mut client, mut other) = (table(&place), place.client());
    client.parse("s", "SELECT * FROM t WHERE id = $1", &[]).describe("Ss");
    client.sync();
    other.query("ALTER TABLE t ADD COLUMN more INT");
    client.bind(("", "s"), 0, &[Some(b"1")], 0).execute("", 0);
    assert_eq!(client.sync(), ["bound", "error 0A000", "ready I"]);
    client.parse("s2", "SELECT * FROM t WHERE id = $1", &[]).describe("Ss2");
    client.bind(("", "s2"), 0, &[Some(b"1")], 0).execute("", 0);
    let right = [
        "parsed",
        "parameters [23]",
        "columns id:23 name:25 more:23",
        "bound",
        "row 1|a|null",
        "SELECT 1",
        "ready I",
    ];
    assert_eq!(client.sync(), right);
    other.query("ALTER TABLE t RENAME COLUMN name TO title");
    let renamed = client.query("SELECT * FROM t WHERE id = 1");
    assert_eq!(renamed[0], "columns id:23 title:25 more:23");
    other.query("DROP TABLE t; CREATE TABLE t (a BLOB)");
    assert_eq!(client.query("SELECT * FROM t"), ["columns a:17", "SELECT 0", "ready I"]);
}

#[test]
fn settings_are_told_and_taken_back() {
    let place = Place::new();
    let mut client = place.client();
    assert_eq!(client.query("SET application_name = 'a'"), ["status", "SET", "ready I"]);
    let set = client.query("SELECT pg_catalog.set_config('application_name','ab',false)");
    assert_eq!(set, ["columns set_config:25", "status", "row ab", "SELECT 1", "ready I"]);
    let probe = "SELECT name,pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE source='session'";
    assert_eq!(client.query(probe)[1], "row application_name|ab");
    assert_eq!(client.query("EXECUTE \"nosuch\""), ["error 26000", "ready I"]);
    assert_eq!(client.query("DISCARD ALL"), ["DISCARD ALL", "ready I"]);
    assert_eq!(client.query("SHOW application_name")[1], "row ");
}

#[test]
fn psql_sees_tables() {
    let place = Place::new();
    let mut client = table(&place);
    let listed = client.query(
        "SELECT n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c \
         LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r','') AND n.nspname !~ '^pg_toast' AND pg_catalog.pg_table_is_visible(c.oid)",
    );
    assert_eq!(listed[1..], ["row public|t|r", "SELECT 1", "ready I"]);
}
