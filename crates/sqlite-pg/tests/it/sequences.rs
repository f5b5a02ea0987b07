//! Sequences, as PostgreSQL 15 answers.

use crate::client::Place;

const COUNTED: &[(&str, &str)] = &[
    ("SELECT nextval('s')", "error 42P01"),
    ("CREATE SEQUENCE s", "CREATE SEQUENCE"),
    ("CREATE SEQUENCE s", "error 42P07"),
    ("CREATE SEQUENCE IF NOT EXISTS s", "CREATE SEQUENCE"),
    ("SELECT currval('s')", "error 55000"),
    ("SELECT lastval()", "error 55000"),
    ("SELECT nextval('s')", "row 1"),
    ("SELECT nextval('public.s'::regclass)", "row 2"),
    ("SELECT currval('s'), lastval()", "row 2|2"),
    ("SELECT last_value, is_called FROM s", "row 2|t"),
    ("BEGIN", "BEGIN"),
    ("SELECT nextval('s')", "row 3"),
    ("ROLLBACK", "ROLLBACK"),
    ("SELECT nextval('s')", "row 4"),
    ("SELECT setval('s', 10)", "row 10"),
    ("SELECT currval('s')", "row 10"),
    ("SELECT nextval('s')", "row 11"),
    ("SELECT setval('s', 7, false)", "row 7"),
    ("SELECT currval('s')", "row 11"),
    ("SELECT nextval('s')", "row 7"),
    ("SELECT setval('s', 0)", "error 22003"),
    (
        "SELECT array_agg(x) FROM (SELECT nextval('s') AS x FROM generate_series(1, 3)) y",
        "row {8,9,10}",
    ),
    ("SELECT x = x AND x < 12 FROM (SELECT nextval('s') AS x) y WHERE x > 10", "row t"),
    ("WITH y AS (SELECT nextval('s') AS x) SELECT a.x - b.x FROM y a, y b", "row 0"),
    ("SELECT nextval('s')", "row 13"),
    ("BEGIN READ ONLY", "BEGIN"),
    ("SELECT nextval('s')", "error 25006"),
    ("ROLLBACK", "ROLLBACK"),
    ("INSERT INTO s VALUES (1, 1, true)", "error 42809"),
    ("DROP TABLE s", "error 42809"),
    ("CREATE VIEW v AS SELECT nextval('s') AS x", "error 0A000"),
];

const CHANGED: &[(&str, &str)] = &[
    ("SELECT currval('s')", "row 13"),
    ("DISCARD ALL", "DISCARD ALL"),
    ("SELECT currval('s')", "error 55000"),
    ("ALTER SEQUENCE s RESTART WITH 50 INCREMENT BY 5", "ALTER SEQUENCE"),
    ("SELECT nextval('s')", "row 50"),
    ("SELECT nextval('s')", "row 55"),
    ("ALTER SEQUENCE s RENAME TO z", "ALTER SEQUENCE"),
    ("SELECT nextval('z')", "row 60"),
    ("DROP SEQUENCE z", "DROP SEQUENCE"),
    ("SELECT lastval()", "error 55000"),
    ("DROP SEQUENCE z", "error 42P01"),
    ("DROP SEQUENCE IF EXISTS z", "DROP SEQUENCE"),
    // A new one of the same name knows nothing of the old one.
    ("CREATE SEQUENCE z START -3 MINVALUE -3 MAXVALUE -2 CYCLE", "CREATE SEQUENCE"),
    ("SELECT nextval('z')", "row -3"),
    ("SELECT nextval('z')", "row -2"),
    ("SELECT nextval('z')", "row -3"),
    ("CREATE SEQUENCE d INCREMENT -1 AS smallint", "CREATE SEQUENCE"),
    ("SELECT nextval('d')", "row -1"),
    ("SELECT setval('d', -32768)", "row -32768"),
    ("SELECT nextval('d')", "error 2200H"),
    ("CREATE SEQUENCE e MAXVALUE 0", "error 22023"),
    (
        "SELECT sequence_name, data_type, start_value, minimum_value, maximum_value, \
                 increment, cycle_option FROM information_schema.sequences ORDER BY 1",
        "row d|smallint|-1|-32768|-1|-1|NO",
    ),
    ("SELECT relkind FROM pg_class WHERE relname = 'z'", "row S"),
    (
        "SELECT seqmin, seqmax, seqcycle FROM pg_sequence WHERE seqrelid = 'z'::regclass",
        "row -3|-2|t",
    ),
    ("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'", "row 0"),
];

#[test]
fn numbers_are_counted_and_never_given_twice() {
    let place = Place::new();
    let (mut client, mut other) = (place.client(), place.client());
    client.answers_first(COUNTED);
    let of_other = [("SELECT currval('s')", "error 55000"), ("SELECT nextval('s')", "row 14")];
    other.answers_first(&of_other);
    client.answers_first(CHANGED);
}

#[test]
fn columns_take_their_defaults_from_sequences() {
    let place = Place::new();
    let mut client = place.client();
    let serial = "SELECT pg_get_serial_sequence";
    client.answers_first(&[
            ("CREATE SEQUENCE ids", "CREATE SEQUENCE"),
            (
                "CREATE TABLE t (id BIGINT DEFAULT nextval('ids'::regclass) PRIMARY KEY, a INT, n SERIAL)",
                "CREATE TABLE",
            ),
            ("INSERT INTO t (a) VALUES (1), (2) RETURNING id, n", "row 1|1"),
            ("INSERT INTO t (id, a) VALUES (DEFAULT, 3), (9, 4) RETURNING id", "row 3"),
            ("INSERT INTO t (a) SELECT a FROM t WHERE a < 3", "INSERT 0 2"),
            ("SELECT id, n FROM t ORDER BY id DESC LIMIT 1 OFFSET 1", "row 5|6"),
            ("SELECT lastval()", "row 6"),
            ("INSERT INTO t (id, a) VALUES (1, 1)", "error 23505"),
            ("INSERT INTO t (a) VALUES (7) RETURNING n", "row 8"),
            (
                "SELECT column_default FROM information_schema.columns WHERE column_name = 'id'",
                "row nextval('ids'::regclass)",
            ),
            (&format!("{serial}('t', 'n')"), "row public.t_n_seq"),
            ("DROP SEQUENCE ids", "error 2BP01"),
            ("ALTER SEQUENCE ids OWNED BY t.id", "ALTER SEQUENCE"),
            ("ALTER TABLE t RENAME TO u", "ALTER TABLE"),
            (&format!("{serial}('u', 'id')"), "row public.ids"),
            ("TRUNCATE u RESTART IDENTITY", "TRUNCATE TABLE"),
            ("INSERT INTO u (a) VALUES (1) RETURNING id, n", "row 1|1"),
            ("DROP TABLE u", "DROP TABLE"),
            ("SELECT nextval('ids')", "error 42P01"),
            ("SELECT count(*) FROM pg_sequence", "row 0"),
        ],
    );
    let mut other = place.client();
    assert_eq!(other.first("PRAGMA integrity_check"), "row ok");
}

/// VACUUM gives each sequence's row the same number.
#[test]
fn sequences_are_told_apart_behind_a_vacuum() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE SEQUENCE a", "CREATE SEQUENCE"),
        ("CREATE SEQUENCE b START 100", "CREATE SEQUENCE"),
        ("SELECT nextval('b')", "row 100"),
        ("VACUUM", "VACUUM"),
        ("SELECT max(nextval('a')) FROM generate_series(1, 9)", "row 9"),
        ("SELECT nextval('b')", "row 101"),
        ("DROP SEQUENCE a", "DROP SEQUENCE"),
        ("CREATE SEQUENCE a", "CREATE SEQUENCE"),
        ("VACUUM", "VACUUM"),
        ("SELECT nextval('a')", "row 1"),
    ]);
}

/// A temporary table's numbers, and those of a change's trial, are kept apart.
#[test]
fn numbers_of_permanent_keys_are_kept_in_the_file() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TABLE t (id SERIAL PRIMARY KEY, a INT)", "CREATE TABLE"),
        ("ALTER TABLE t ADD CHECK (a > 0)", "ALTER TABLE"),
        ("ALTER TABLE t ALTER a SET DEFAULT 5", "ALTER TABLE"),
        ("CREATE TEMP TABLE x (id SERIAL PRIMARY KEY, a INT)", "CREATE TABLE"),
        ("INSERT INTO x (a) VALUES (1), (2) RETURNING id", "row 1"),
        ("SELECT nextval('x_id_seq')", "row 3"),
        ("SELECT setval('t_id_seq', 40)", "row 40"),
        ("INSERT INTO t DEFAULT VALUES RETURNING id", "row 41"),
        ("SELECT nextval('t_id_seq')", "row 42"),
        ("INSERT INTO t DEFAULT VALUES RETURNING id", "row 43"),
        ("TRUNCATE x RESTART IDENTITY", "TRUNCATE TABLE"),
        ("INSERT INTO x (a) VALUES (1) RETURNING id", "row 1"),
        ("TRUNCATE t RESTART IDENTITY", "TRUNCATE TABLE"),
        ("INSERT INTO t DEFAULT VALUES RETURNING id", "row 1"),
        ("CREATE VIEW v AS SELECT setval('t_id_seq', 7) AS x", "error 0A000"),
    ]);
}

#[test]
fn a_key_has_a_sequence_of_its_own() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TABLE t (id SERIAL PRIMARY KEY, a INT)", "CREATE TABLE"),
        ("INSERT INTO t (a) VALUES (1), (2)", "INSERT 0 2"),
        ("SELECT lastval(), currval('t_id_seq')", "row 2|2"),
        ("SELECT nextval('t_id_seq')", "row 3"),
        ("INSERT INTO t (a) VALUES (3) RETURNING id", "row 4"),
        ("SELECT setval('t_id_seq', 40)", "row 40"),
        ("INSERT INTO t (a) VALUES (3) RETURNING id", "row 41"),
        ("SELECT setval('t_id_seq', 50, false)", "row 50"),
        ("SELECT nextval('t_id_seq')", "row 50"),
        ("INSERT INTO t (id, a) VALUES (DEFAULT, 1), (70, 1)", "INSERT 0 2"),
        ("SELECT lastval()", "error 0A000"),
        ("INSERT INTO t (id, a) VALUES (80, 1)", "INSERT 0 1"),
        ("SELECT nextval('t_id_seq')", "row 81"),
        ("SELECT lastval()", "row 81"),
    ]);
}

/// Some forms write a value several times.
#[test]
fn a_number_is_taken_once_or_not_at_all() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE SEQUENCE s");
    for text in [
        "SELECT to_json(nextval('s'))",
        "SELECT (nextval('s'), 1) IN ((100, 1), (200, 1))",
        "SELECT (nextval('s'), 1) < (2, 2)",
        "SELECT nextval('s') BETWEEN 1 AND 2",
        "SELECT CASE nextval('s') WHEN 7 THEN 1 WHEN 8 THEN 2 ELSE 3 END",
    ] {
        assert_eq!(client.query(text), ["error 0A000", "ready I"], "{text}");
    }
    for (text, row) in [
        ("SELECT nextval('s')", "row 1"),
        ("SELECT nextval('s') % 2 + nextval('s')", "row 3"),
        ("SELECT lpad(nextval('s')::text, 3, '0') || nextval('s')", "row 0045"),
        ("SELECT coalesce(nextval('s'), 0)", "row 6"),
        ("SELECT to_json(x) FROM (SELECT nextval('s') AS x) y", "row 7"),
    ] {
        assert_eq!(client.query(text)[1], row, "{text}");
    }
}
