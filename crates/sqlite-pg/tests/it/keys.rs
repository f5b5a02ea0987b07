//! Keys that are added to tables with rows and taken away again, and columns of other types.

use crate::client::{Client, Place};

/// Runs statements, and checks the last reply to each but ReadyForQuery.
fn checked(client: &mut Client, all: &[(&str, &str)]) {
    for (text, expected) in all {
        let answers = client.query(text);
        assert_eq!(answers.iter().rev().nth(1).map(String::as_str), Some(*expected), "{text}");
    }
}

/// Returns the rows of a query.
fn rows(client: &mut Client, text: &str) -> Vec<String> {
    let answers = client.query(text);
    answers.into_iter().filter(|answer| answer.starts_with("row ")).collect()
}

/// The constraints of a table and the columns that cannot be NULL.
const KEYS: &str = "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype <> 'c' ORDER BY 1";

#[test]
fn a_primary_key_is_added_to_a_table_with_rows() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (a INTEGER, b TEXT UNIQUE, c INT, UNIQUE (b, c)); INSERT INTO t VALUES (2, 'x', 1), (1, 'y', 1), (NULL, 'z', 1)",
    );
    checked(
        &mut client,
        &[
            ("ALTER TABLE t ADD PRIMARY KEY (a)", "error 23502"),
            ("DELETE FROM t WHERE a IS NULL", "DELETE 1"),
            ("ALTER TABLE t ADD PRIMARY KEY (c)", "error 23505"),
            ("ALTER TABLE t ADD PRIMARY KEY (nosuch)", "error 42703"),
            ("ALTER TABLE t ADD PRIMARY KEY (a, a)", "error 42701"),
            ("ALTER TABLE t ADD CONSTRAINT t_b_key PRIMARY KEY (a)", "error 42P07"),
            ("ALTER TABLE ONLY t ADD CONSTRAINT mine PRIMARY KEY (a)", "ALTER TABLE"),
            ("ALTER TABLE t ADD PRIMARY KEY (c)", "error 42P16"),
            ("INSERT INTO t VALUES (1, 'n', 9)", "error 23505"),
            ("INSERT INTO t (b) VALUES ('n')", "error 23502"),
            ("INSERT INTO t VALUES (7, 'y', 9)", "error 23505"),
            ("INSERT INTO t VALUES (7, 'n', 9) ON CONFLICT (a) DO NOTHING", "INSERT 0 1"),
            ("CREATE TABLE u (t_a INT REFERENCES t, t_b TEXT REFERENCES t (b))", "CREATE TABLE"),
            ("INSERT INTO u VALUES (3, 'x')", "error 23503"),
            ("INSERT INTO u VALUES (7, 'x')", "INSERT 0 1"),
        ],
    );
    assert_eq!(
        rows(&mut client, "SELECT a, b FROM t WHERE a > 0 ORDER BY a"),
        ["row 1|y", "row 2|x", "row 7|n"]
    );
    assert_eq!(rows(&mut client, "SELECT a FROM t WHERE a = 2"), ["row 2"]);
    let keys = rows(&mut client, KEYS);
    assert!(keys.contains(&"row mine|p|PRIMARY KEY (a)".to_owned()), "{keys:?}");
    // Another session, and one that opens the file anew, see a file without a fault.
    let mut other = place.client();
    for client in [&mut client, &mut other] {
        assert_eq!(rows(client, "PRAGMA integrity_check"), ["row ok"]);
        assert_eq!(rows(client, "SELECT b FROM t WHERE a = 7"), ["row n"]);
    }
}

#[test]
fn keys_are_dropped_unless_others_need_them() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (a INT, b TEXT UNIQUE, c INT, PRIMARY KEY (a, c), CONSTRAINT bc UNIQUE (b, c)); \
         CREATE TABLE u (b TEXT REFERENCES t (b), id SERIAL PRIMARY KEY); INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 1)",
    );
    checked(
        &mut client,
        &[
            ("ALTER TABLE IF EXISTS nosuch DROP CONSTRAINT IF EXISTS x", "ALTER TABLE"),
            ("ALTER TABLE t DROP CONSTRAINT t_b_key", "error 2BP01"),
            ("ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE"),
            ("INSERT INTO t VALUES (1, 'z', 1)", "INSERT 0 1"),
            ("INSERT INTO t VALUES (NULL, 'n', 1)", "error 23502"),
            ("INSERT INTO t VALUES (3, 'x', 1)", "error 23505"),
            ("ALTER TABLE t DROP CONSTRAINT bc", "ALTER TABLE"),
            ("INSERT INTO t VALUES (3, 'x', 1)", "error 23505"),
            ("ALTER TABLE t DROP CONSTRAINT t_b_key CASCADE", "ALTER TABLE"),
            ("INSERT INTO t VALUES (3, 'x', 1)", "INSERT 0 1"),
            ("INSERT INTO u VALUES ('nosuch')", "INSERT 0 1"),
            ("ALTER TABLE u DROP CONSTRAINT u_pkey", "error 0A000"),
            ("BEGIN", "BEGIN"),
            ("UPDATE t SET a = 4 WHERE b = 'z'", "UPDATE 1"),
            ("ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER TABLE"),
            ("ROLLBACK", "ROLLBACK"),
            ("INSERT INTO t VALUES (3, 'x', 1)", "INSERT 0 1"),
            ("ALTER TABLE t ADD UNIQUE (b)", "error 23505"),
        ],
    );
    assert_eq!(rows(&mut client, KEYS), ["row u_pkey|p|PRIMARY KEY (id)"]);
    assert_eq!(rows(&mut client, "PRAGMA integrity_check"), ["row ok"]);
}

#[test]
fn columns_get_another_type_with_their_values() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, a TEXT UNIQUE, b INT, c VARCHAR(9) DEFAULT 'ab', d TIMESTAMP, e INT CHECK (e > 0)); \
         CREATE INDEX i ON t (a); INSERT INTO t (a, b, c, d) VALUES ('10', 1, 'x', '2020-01-02 03:04:05'), ('9', 0, 'yy', NULL)",
    );
    checked(
        &mut client,
        &[
            ("ALTER TABLE t ALTER a TYPE INT", "error 42804"),
            ("ALTER TABLE t ALTER a TYPE INT USING a::int", "ALTER TABLE"),
            (
                "ALTER TABLE t ALTER b TYPE BOOLEAN USING CASE WHEN b = 1 THEN true ELSE false END",
                "ALTER TABLE",
            ),
            ("ALTER TABLE t ALTER c TYPE VARCHAR(1)", "error 22001"),
            ("ALTER TABLE t ALTER c TYPE VARCHAR(2)", "ALTER TABLE"),
            ("ALTER TABLE t ALTER d TYPE DATE", "ALTER TABLE"),
            ("ALTER TABLE t ALTER e TYPE TEXT", "error 0A000"),
            ("ALTER TABLE t ALTER id TYPE BIGINT", "ALTER TABLE"),
            ("INSERT INTO t (a) VALUES (9)", "error 23505"),
            ("INSERT INTO t (a) VALUES (100)", "INSERT 0 1"),
            ("ALTER TABLE t ALTER COLUMN a SET DATA TYPE TEXT", "ALTER TABLE"),
            (
                "ALTER TABLE t ALTER b DROP DEFAULT, ALTER b TYPE TEXT USING CASE WHEN b THEN 'on' END",
                "ALTER TABLE",
            ),
        ],
    );
    let all = client.query("SELECT id, a, b, c, d FROM t ORDER BY a");
    let expected = [
        "columns id:20 a:25 b:25 c:1043(2) d:1082",
        "row 1|10|on|x|2020-01-02",
        "row 3|100|null|ab|null",
        "row 2|9|null|yy|null",
    ];
    assert_eq!(all[..4], expected);
    assert_eq!(rows(&mut client, "SELECT id FROM t WHERE a = '9'"), ["row 2"]);
    assert_eq!(rows(&mut client, "PRAGMA integrity_check"), ["row ok"]);
    checked(
        &mut client,
        &[
            ("ALTER TABLE t ADD CHECK (length(a) < 9)", "ALTER TABLE"),
            ("ALTER TABLE t DROP CONSTRAINT t_a_check", "ALTER TABLE"),
        ],
    );
}

#[test]
fn a_key_keeps_a_name_that_begins_as_a_mark_does() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TABLE a (id UUID CONSTRAINT interactions_pk PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE b (id INT CONSTRAINT int4_pk PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE c (id TEXT CONSTRAINT int4 PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE d (id BIGINT CONSTRAINT \"int4 as x\" PRIMARY KEY)", "CREATE TABLE"),
    ]);
    let named =
        "SELECT conname FROM pg_constraint WHERE contype = 'p' ORDER BY conrelid::regclass::text";
    // One that is a mark would be taken for it.
    let expected = ["row interactions_pk", "row int4_pk", "row c_pkey", "row int4 as x"];
    assert_eq!(rows(&mut client, named), expected);
    let types = "SELECT table_name, data_type FROM information_schema.columns ORDER BY 1";
    assert_eq!(
        rows(&mut client, types),
        ["row a|uuid", "row b|integer", "row c|text", "row d|bigint"]
    );
}

#[test]
fn long_names_are_cut_as_the_server_cuts_them() {
    let place = Place::new();
    let mut client = place.client();
    let (a, b, long) = ("a".repeat(40), "b".repeat(40), "t".repeat(63));
    client.query(&format!(
        "CREATE TABLE {a} ({b} SERIAL PRIMARY KEY, c INT); CREATE TABLE {long} (x INT, {b} INT)"
    ));
    let alter = format!("ALTER TABLE {long} ADD");
    checked(
        &mut client,
        &[
            (&format!("ALTER TABLE {a} ADD UNIQUE ({b}, c)"), "ALTER TABLE"),
            (&format!("ALTER TABLE {a} ADD UNIQUE ({b}, c)"), "ALTER TABLE"),
            (&format!("CREATE INDEX ON {a} ({b})"), "CREATE INDEX"),
            (&format!("{alter} FOREIGN KEY ({b}) REFERENCES {a}"), "ALTER TABLE"),
            (&format!("{alter} PRIMARY KEY (x)"), "ALTER TABLE"),
        ],
    );
    let (a29, t29) = ("a".repeat(29), "t".repeat(29));
    let (b28, b29) = ("b".repeat(28), "b".repeat(29));
    let found = rows(
        &mut client,
        "SELECT conname FROM pg_constraint WHERE contype IN ('u', 'f', 'p') \
         UNION SELECT relname FROM pg_class WHERE relname LIKE '%\\_idx' ORDER BY 1",
    );
    let expected = [
        format!("row {a29}_{b28}_key1"),
        format!("row {a29}_{b29}_idx"),
        format!("row {a29}_{b29}_key"),
        format!("row {a}_pkey"),
        format!("row {t29}_{b28}_fkey"),
        format!("row {}_pkey", "t".repeat(58)),
    ];
    assert_eq!(found, expected);
    let sequence = format!("{a29}_{b29}_seq");
    assert_eq!(
        rows(&mut client, &format!("SELECT pg_get_serial_sequence('{a}', '{b}')")),
        [format!("row public.{sequence}")]
    );
    client.query(&format!("INSERT INTO {a} (c) VALUES (1)"));
    let numbers = format!("SELECT currval('{sequence}'), nextval('{sequence}')");
    assert_eq!(rows(&mut client, &numbers), ["row 1|2"]);
}

#[test]
fn sequences_whose_names_are_cut_alike_are_each_of_one_table() {
    let place = Place::new();
    let mut client = place.client();
    let start = "a".repeat(60);
    let tables = ["1", "2"].map(|end| format!("{start}{end}"));
    for table in &tables {
        client.query(&format!("CREATE TABLE {table} (id SERIAL PRIMARY KEY, u INT UNIQUE)"));
    }
    let (first, second) =
        (format!("{}_id_seq", "a".repeat(56)), format!("{}_id_seq1", "a".repeat(55)));
    for (table, sequence) in tables.iter().zip([&first, &second]) {
        let text = format!("SELECT pg_get_serial_sequence('{table}', 'id')");
        assert_eq!(rows(&mut client, &text), [format!("row public.{sequence}")]);
        let text = format!(
            "SELECT column_default FROM information_schema.columns WHERE table_name = '{table}' \
             AND column_name = 'id' UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef \
             WHERE adrelid = '{table}'::regclass"
        );
        let default = format!("row nextval('{sequence}'::regclass)");
        assert_eq!(rows(&mut client, &text), [default.clone(), default]);
    }
    let set = format!("SELECT setval('{second}', 100)");
    assert_eq!(rows(&mut client, &set), ["row 100"]);
    for (table, number) in tables.iter().zip(["row 1", "row 101"]) {
        let insert = format!("INSERT INTO {table} (u) VALUES (1) RETURNING id");
        assert_eq!(rows(&mut client, &insert), [number]);
    }
    let current = format!("SELECT currval('{first}'), currval('{second}')");
    assert_eq!(rows(&mut client, &current), ["row 1|101"]);
}

/// As in PostgreSQL 15.
const NAMED: &[(&str, &str)] = &[
    ("CREATE SEQUENCE a_id_seq", "CREATE SEQUENCE"),
    ("CREATE TABLE a (id SERIAL PRIMARY KEY, n SERIAL)", "CREATE TABLE"),
    ("SELECT pg_get_serial_sequence('a', 'id')", "row public.a_id_seq1"),
    ("ALTER TABLE a RENAME TO b", "ALTER TABLE"),
    ("ALTER TABLE b RENAME COLUMN id TO number", "ALTER TABLE"),
    ("SELECT pg_get_serial_sequence('b', 'number')", "row public.a_id_seq1"),
    ("INSERT INTO b DEFAULT VALUES RETURNING number", "row 1"),
    ("SELECT currval('a_id_seq1'), nextval('a_id_seq1')", "row 1|2"),
    ("SELECT currval('b_number_seq')", "error 42P01"),
    (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'b'::regclass \
         AND adnum = 1",
        "row nextval('a_id_seq1'::regclass)",
    ),
    ("ALTER TABLE b ALTER COLUMN number TYPE bigint", "ALTER TABLE"),
    ("SELECT pg_get_serial_sequence('b', 'number')", "row public.a_id_seq1"),
    ("CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)", "CREATE TABLE"),
    ("SELECT pg_get_serial_sequence('a', 'id')", "row public.a_id_seq2"),
    ("INSERT INTO a DEFAULT VALUES RETURNING id", "row 1"),
    ("SELECT currval('a_id_seq2'), currval('a_id_seq1')", "row 1|2"),
];

#[test]
fn a_sequence_keeps_its_name_whatever_its_table_is_called() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(NAMED);
    // Two columns of one statement whose names are cut alike.
    let (table, column) = ("t".repeat(40), "c".repeat(60));
    client.query(&format!("CREATE TABLE {table} ({column}1 SERIAL PRIMARY KEY, {column}2 SERIAL)"));
    let names = format!(
        "SELECT pg_get_serial_sequence('{table}', '{column}1') || ' ' || \
         pg_get_serial_sequence('{table}', '{column}2')"
    );
    let (t, c) = ("t".repeat(29), "c".repeat(29));
    let expected = format!("row public.{t}_{c}_seq public.{t}_{}_seq1", "c".repeat(28));
    assert_eq!(client.first(&names), expected);
}

/// An earlier version kept no names.
#[test]
fn tables_of_an_earlier_version_have_their_sequences() {
    let place = Place::new();
    place.natively(
        "CREATE TABLE \"old\" (\"id\" INTEGER CONSTRAINT \"int4 generated\" PRIMARY KEY AUTOINCREMENT); \
         CREATE TABLE \"named\" (\"id\" INTEGER CONSTRAINT \"int8 generated by default as k\" \
         PRIMARY KEY AUTOINCREMENT)",
    );
    let mut client = place.client();
    client.answers_first(&[
        ("SELECT pg_get_serial_sequence('old', 'id')", "row public.old_id_seq"),
        ("INSERT INTO old DEFAULT VALUES RETURNING id", "row 1"),
        ("SELECT nextval('old_id_seq')", "row 2"),
        ("SELECT pg_get_serial_sequence('named', 'id')", "row public.named_id_seq"),
        ("SELECT conname FROM pg_constraint WHERE conrelid = 'named'::regclass", "row k"),
        ("ALTER TABLE old ALTER COLUMN id TYPE bigint", "ALTER TABLE"),
        ("SELECT currval('old_id_seq')", "row 2"),
    ]);
}

#[test]
fn constraints_whose_names_are_cut_alike_are_told_apart_by_their_tables() {
    let place = Place::new();
    let mut client = place.client();
    let start = "a".repeat(60);
    let (first, second) = (format!("{start}1"), format!("{start}2"));
    for table in [&first, &second] {
        checked(
            &mut client,
            &[
                (
                    &format!("CREATE TABLE {table} (id INT PRIMARY KEY, u INT UNIQUE)"),
                    "CREATE TABLE",
                ),
                (&format!("CREATE INDEX ON {table} (u)"), "CREATE INDEX"),
            ],
        );
    }
    let constraint = format!("{}_u_key", "a".repeat(57));
    let drop = format!("ALTER TABLE {second} DROP CONSTRAINT {constraint}");
    checked(
        &mut client,
        &[
            (&drop, "ALTER TABLE"),
            (&format!("INSERT INTO {second} VALUES (1, 1), (2, 1)"), "INSERT 0 2"),
            (&format!("INSERT INTO {first} VALUES (1, 1), (2, 1)"), "error 23505"),
        ],
    );
}
