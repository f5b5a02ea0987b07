//! Changes of the schema that take several statements of SQLite's, and what errors tell of it.

use refrain_pg_wire::back::{Fields, field};
use refrain_pg_wire::frame::HEADER_BYTES;

use crate::client::{Client, Place};

fn client(place: &Place) -> Client {
    let mut client = place.client();
    for text in [
        "CREATE TABLE t (id SERIAL PRIMARY KEY, a INT, b VARCHAR(9) DEFAULT 'x' NOT NULL)",
        "CREATE TABLE u (id SERIAL PRIMARY KEY, t_id INT REFERENCES t (id), c INT CHECK (c > 0), UNIQUE (t_id, c))",
        "INSERT INTO t (a) VALUES (1), (2)",
        "INSERT INTO u (t_id, c) VALUES (1, 5)",
    ] {
        client.query(text);
    }
    client
}

/// Runs statements, and checks the last reply to each but ReadyForQuery.
fn checked(client: &mut Client, all: &[(&str, &str)]) {
    for (text, expected) in all {
        let answers = client.query(text);
        assert_eq!(answers.iter().rev().nth(1).map(String::as_str), Some(*expected), "{text}");
        assert_eq!(answers.last().map(String::as_str), Some("ready I"), "{text}");
    }
}

#[test]
fn an_alter_table_makes_several_changes_or_none() {
    let place = Place::new();
    let mut client = client(&place);
    checked(
        &mut client,
        &[
            (
                "ALTER TABLE t ADD d INT NOT NULL DEFAULT 7, ALTER a SET NOT NULL, ALTER b SET DEFAULT 'y'",
                "ALTER TABLE",
            ),
            ("INSERT INTO t (a) VALUES (3)", "INSERT 0 1"),
            (
                "ALTER TABLE t ADD e TIMESTAMPTZ NOT NULL DEFAULT now(), ADD f INT UNIQUE",
                "ALTER TABLE",
            ),
            ("INSERT INTO t (a, f) VALUES (4, 1)", "INSERT 0 1"),
            ("UPDATE t SET f = 1", "error 23505"),
            ("ALTER TABLE t ADD g INT, ADD h INT NOT NULL", "error 23502"),
            ("SELECT g FROM t", "error 42703"),
            ("ALTER TABLE t ADD COLUMN IF NOT EXISTS f TEXT", "ALTER TABLE"),
            ("ALTER TABLE t ALTER b DROP DEFAULT, ALTER b DROP NOT NULL", "ALTER TABLE"),
            ("INSERT INTO t (a) VALUES (5)", "INSERT 0 1"),
            ("ALTER TABLE u DROP CONSTRAINT u_c_check, DROP CONSTRAINT u_t_id_fkey", "ALTER TABLE"),
            ("INSERT INTO u (t_id, c) VALUES (77, -5)", "INSERT 0 1"),
            ("ALTER TABLE u DROP CONSTRAINT nosuch", "error 42704"),
            ("ALTER TABLE u DROP CONSTRAINT IF EXISTS nosuch", "ALTER TABLE"),
            ("ALTER TABLE u DROP CONSTRAINT u_t_id_c_key", "ALTER TABLE"),
            ("INSERT INTO u (t_id, c) VALUES (77, -5)", "INSERT 0 1"),
        ],
    );
    let rows = client.query("SELECT a, b, d, e IS NOT NULL, f FROM t ORDER BY a");
    let expected = [
        "row 1|x|7|t|null",
        "row 2|x|7|t|null",
        "row 3|y|7|t|null",
        "row 4|y|7|t|1",
        "row 5|null|7|t|null",
    ];
    assert_eq!(rows[1..6], expected);
    // Each session sees the new definition, and so does one that reads the file anew.
    let mut other = place.client();
    assert_eq!(other.query("SELECT count(e) FROM t")[1], "row 5");
}

/// SQLite keeps no value in rows that are older than a column, and reads its default for them.
#[test]
fn rows_keep_the_default_with_which_their_column_was_added() {
    let place = Place::new();
    let mut client = client(&place);
    checked(
        &mut client,
        &[
            (
                "ALTER TABLE t ADD n INT NOT NULL DEFAULT -1, ADD w TEXT DEFAULT 'old', ADD x INT",
                "ALTER TABLE",
            ),
            ("ALTER TABLE t ALTER x SET DEFAULT 5", "ALTER TABLE"),
            ("ALTER TABLE t ALTER n SET DEFAULT 1", "ALTER TABLE"),
            ("ALTER TABLE t ALTER w DROP DEFAULT", "ALTER TABLE"),
            ("INSERT INTO t (a) VALUES (3)", "INSERT 0 1"),
        ],
    );
    let rows = client.query("SELECT n, w, x FROM t ORDER BY a");
    assert_eq!(rows[1..4], ["row -1|old|null", "row -1|old|null", "row 1|null|5"]);
}

/// New values of all rows would run the triggers of a table that SQLite's own tools have made.
#[test]
fn rows_are_not_written_anew_where_a_trigger_would_run() {
    let place = Place::new();
    place.natively(
        "CREATE TABLE n (\"a\" INT, at TEXT);
         CREATE TRIGGER g AFTER UPDATE ON n BEGIN UPDATE n SET at = 'now' WHERE a = new.a; END;
         INSERT INTO n (a) VALUES (1)",
    );
    let mut client = place.client();
    checked(
        &mut client,
        &[
            ("ALTER TABLE n ALTER a SET DEFAULT 5", "error 0A000"),
            ("ALTER TABLE n ADD b TIMESTAMPTZ DEFAULT now()", "error 0A000"),
            ("ALTER TABLE n ADD b INT", "ALTER TABLE"),
        ],
    );
    assert_eq!(client.query("SELECT a, at, b FROM n")[1], "row 1|null|null");
}

/// SQLite takes a key of the type INTEGER for the row's number, however it is written.
#[test]
fn a_key_of_a_native_table_leaves_its_values() {
    let place = Place::new();
    place.natively(
        "CREATE TABLE n (\"b\" INTEGER);
         CREATE TABLE o (\"b\"  INTEGER);
         CREATE TABLE p (\"b\" INTEGER\n);
         CREATE TABLE q (\"b\" /*x*/ integer, c INT);
         INSERT INTO n VALUES (70);
         INSERT INTO o VALUES (70);
         INSERT INTO p VALUES (70);
         INSERT INTO q VALUES (70, 1)",
    );
    let mut client = place.client();
    checked(&mut client, &[("ALTER TABLE n ADD PRIMARY KEY (b)", "ALTER TABLE")]);
    for table in ["o", "p", "q"] {
        let text = format!("ALTER TABLE {table} ADD PRIMARY KEY (b)");
        checked(&mut client, &[(&text, "error 0A000")]);
    }
    for table in ["n", "o", "p", "q"] {
        assert_eq!(client.query(&format!("SELECT b FROM {table}"))[1], "row 70", "{table}");
    }
    assert_eq!(client.query("PRAGMA integrity_check")[1], "row ok");
}

#[test]
fn a_temporary_table_hides_no_change_of_a_permanent_one() {
    let place = Place::new();
    let (mut client, mut other) = (client(&place), place.client());
    checked(
        &mut client,
        &[
            ("CREATE TABLE s (n SERIAL, a INT)", "CREATE TABLE"),
            ("CREATE TEMP TABLE s (n INT, a INT)", "CREATE TABLE"),
            ("ALTER TABLE s ADD PRIMARY KEY (a)", "error 0A000"),
            ("ALTER TABLE s ALTER a SET DEFAULT 5", "error 0A000"),
            ("ALTER TABLE s ADD d TIMESTAMPTZ DEFAULT now()", "error 0A000"),
            ("COMMENT ON TABLE s IS 'x'", "error 0A000"),
            ("TRUNCATE s RESTART IDENTITY", "TRUNCATE TABLE"),
            ("ALTER TABLE s DROP COLUMN n", "ALTER TABLE"),
            ("DROP TABLE s", "DROP TABLE"),
            ("CREATE TEMP TABLE s (n INT)", "CREATE TABLE"),
            ("DROP TABLE pg_temp.s", "DROP TABLE"),
        ],
    );
    assert_eq!(other.query("INSERT INTO s (a) VALUES (1) RETURNING n")[1], "row 1");
}

/// SQLite looks for a plain name among temporary objects first.
#[test]
fn the_schema_public_has_no_temporary_tables() {
    let place = Place::new();
    let mut client = client(&place);
    checked(
        &mut client,
        &[
            ("CREATE TABLE s (a INT)", "CREATE TABLE"),
            ("INSERT INTO s VALUES (1), (2)", "INSERT 0 2"),
            ("CREATE TEMP TABLE s (id SERIAL PRIMARY KEY, b TEXT)", "CREATE TABLE"),
            ("INSERT INTO s (b) VALUES ('x')", "INSERT 0 1"),
            ("UPDATE public.s SET a = a + 1", "UPDATE 2"),
            ("INSERT INTO public.s (a) SELECT s.a * 10 FROM public.s", "INSERT 0 2"),
            ("DELETE FROM public.s WHERE public.s.a = 3", "DELETE 1"),
            ("CREATE INDEX s_a ON public.s (a)", "CREATE INDEX"),
            ("ALTER TABLE public.s ADD UNIQUE (a)", "ALTER TABLE"),
            ("INSERT INTO public.s VALUES (2)", "error 23505"),
            ("CREATE VIEW v AS SELECT a FROM public.s", "CREATE VIEW"),
        ],
    );
    let rows = |client: &mut Client, text: &str| {
        let all = client.query(text);
        all.into_iter().filter(|answer| answer.starts_with("row ")).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&mut client, "SELECT * FROM public.s ORDER BY 1"),
        ["row 2", "row 20", "row 30"]
    );
    assert_eq!(rows(&mut client, "SELECT id, b FROM s"), ["row 1|x"]);
    assert_eq!(rows(&mut client, "SELECT count(*) FROM v, pg_temp.s"), ["row 3"]);
    let copied = client.query("COPY public.s TO STDOUT");
    assert!(copied.iter().any(|answer| answer.contains("20")), "{copied:?}");
    checked(
        &mut client,
        &[
            ("COPY nosuch.s TO STDOUT", "error 3F000"),
            ("DROP VIEW v", "DROP VIEW"),
            ("TRUNCATE public.s", "TRUNCATE TABLE"),
            ("DROP TABLE public.s", "DROP TABLE"),
        ],
    );
    assert_eq!(rows(&mut client, "SELECT b FROM s"), ["row x"]);
}

/// A trigger of the session's own would run as well, and so would a view of its own break.
#[test]
fn temporary_triggers_and_views_are_seen_by_changes() {
    let place = Place::new();
    let mut client = client(&place);
    checked(
        &mut client,
        &[
            ("CREATE TEMP TRIGGER x AFTER UPDATE ON t BEGIN DELETE FROM u; END", "CREATE TRIGGER"),
            ("ALTER TABLE t ALTER a SET DEFAULT 5", "error 0A000"),
            ("ALTER TABLE t ALTER a TYPE TEXT", "error 0A000"),
            ("CREATE TEMP VIEW w AS SELECT c FROM u", "CREATE VIEW"),
            ("DROP TABLE u", "error 2BP01"),
            ("DROP TABLE u CASCADE", "DROP TABLE"),
            ("SELECT * FROM w", "error 42P01"),
        ],
    );
    let mut other = place.client();
    checked(&mut other, &[("ALTER TABLE t ALTER a SET DEFAULT 5", "ALTER TABLE")]);
}

/// Rows that are older than a column have no value of it, and are written anew before its default
/// changes; others are not.
#[test]
fn a_new_default_writes_only_rows_without_a_value() {
    let place = Place::new();
    let mut client = client(&place);
    client.query("CREATE TRIGGER x AFTER UPDATE ON t BEGIN DELETE FROM u; END");
    client.query("CREATE TABLE n (a INT, b INT NOT NULL)");
    client.query("CREATE TRIGGER y AFTER UPDATE ON n BEGIN DELETE FROM u; END");
    checked(
        &mut client,
        &[
            // Refused where the rows must be written: the trigger would run.
            ("ALTER TABLE t ALTER b SET DEFAULT 'y'", "error 0A000"),
            ("ALTER TABLE n ALTER a SET DEFAULT 5", "ALTER TABLE"),
            ("ALTER TABLE n ALTER b SET DEFAULT 6", "ALTER TABLE"),
            ("ALTER TABLE n ADD c INT DEFAULT 7 NOT NULL", "ALTER TABLE"),
            ("ALTER TABLE n ALTER c SET DEFAULT 8", "error 0A000"),
        ],
    );
}

#[test]
fn several_tables_are_emptied_or_dropped_at_once() {
    let place = Place::new();
    let mut client = client(&place);
    checked(
        &mut client,
        &[
            ("TRUNCATE t", "error 0A000"),
            ("TRUNCATE t, u", "TRUNCATE TABLE"),
            ("INSERT INTO t (a) VALUES (1) RETURNING id", "INSERT 0 1"),
            ("INSERT INTO u (t_id, c) VALUES (3, 1)", "INSERT 0 1"),
            ("TRUNCATE t RESTART IDENTITY CASCADE", "TRUNCATE TABLE"),
            (
                "INSERT INTO u (t_id, c) SELECT NULL, 1 WHERE (SELECT count(*) FROM u) = 0",
                "INSERT 0 1",
            ),
            ("CREATE VIEW v AS SELECT a FROM t", "CREATE VIEW"),
            ("DROP TABLE t, u", "error 2BP01"),
            ("DROP TABLE t CASCADE", "DROP TABLE"),
            ("SELECT * FROM v", "error 42P01"),
            ("INSERT INTO u (t_id, c) VALUES (99, 7)", "INSERT 0 1"),
            ("CREATE TABLE w (id INT PRIMARY KEY, u_id INT REFERENCES u (id))", "CREATE TABLE"),
            ("DROP TABLE IF EXISTS u, w, nosuch", "DROP TABLE"),
            ("SELECT * FROM w", "error 42P01"),
            ("DROP TYPE IF EXISTS nosuch", "DROP TYPE"),
        ],
    );
}

/// A translation is kept by its text; one that had nothing to do may have something to do later.
#[test]
fn what_was_done_or_was_not_there_is_looked_at_again() {
    let place = Place::new();
    let (mut client, mut other) = (client(&place), place.client());
    let changes = [
        ("DROP TABLE IF EXISTS x", "CREATE TABLE x (a INT)", "SELECT a FROM x"),
        ("DROP VIEW IF EXISTS v", "CREATE VIEW v AS SELECT a FROM t", "SELECT a FROM v"),
        ("ALTER TABLE IF EXISTS y RENAME TO z", "CREATE TABLE y (a INT)", "SELECT a FROM y"),
        ("ALTER TABLE t DROP COLUMN IF EXISTS n", "ALTER TABLE t ADD n INT", "SELECT n FROM t"),
    ];
    for (undo, make, read) in changes {
        let answers = |client: &mut Client, text| client.query(text)[0].clone();
        assert!(!answers(&mut client, undo).starts_with("error"), "{undo}");
        assert!(!answers(&mut other, make).starts_with("error"), "{make}");
        assert!(!answers(&mut client, undo).starts_with("error"), "{undo}");
        assert!(answers(&mut client, read).starts_with("error"), "{undo}: {read}");
    }
    let add = "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT";
    for text in [add, "ALTER TABLE t DROP COLUMN a", add] {
        assert_eq!(client.query(text), ["ALTER TABLE", "ready I"], "{text}");
    }
    assert!(!client.query("SELECT a FROM t")[0].starts_with("error"));
}

/// They are one statement of SQLite's for some time, and a change of the schema counts for one.
#[test]
fn texts_that_mean_the_same_for_a_while_are_told_apart() {
    let place = Place::new();
    let mut client = place.client();
    let told = |client: &mut Client, text| client.query(text)[0].clone();
    client.query("CREATE TABLE t (a INT)");
    for _ in 0..2 {
        for (text, columns) in [("SELECT * FROM t", "a:23"), ("SELECT a FROM t", "a:23")] {
            assert_eq!(told(&mut client, text), format!("columns {columns}"), "{text}");
        }
    }
    client.query("ALTER TABLE t ADD b INT");
    for (text, columns) in [("SELECT * FROM t", "a:23 b:23"), ("SELECT a FROM t", "a:23")] {
        assert_eq!(told(&mut client, text), format!("columns {columns}"), "{text}");
    }
    // Each is looked at by itself, in either order.
    let (x, y) = ("DROP TABLE IF EXISTS x", "DROP TABLE IF EXISTS y");
    for texts in [[x, y], [y, x]] {
        for text in texts.iter().chain(&texts) {
            assert_eq!(client.query(text), ["DROP TABLE", "ready I"], "{text}");
        }
        client.query("CREATE TABLE y (a INT); CREATE VIEW v AS SELECT a FROM y");
        assert_eq!(client.query(x), ["DROP TABLE", "ready I"]);
        assert_eq!(client.query(y), ["error 2BP01", "ready I"]);
        assert_eq!(client.query(x), ["DROP TABLE", "ready I"]);
        client.query("DROP VIEW v");
        assert_eq!(client.query(y), ["DROP TABLE", "ready I"]);
        assert_eq!(client.query("SELECT a FROM y"), ["error 42P01", "ready I"]);
    }
}

#[test]
fn rows_are_locked_for_the_one_that_writes() {
    let place = Place::new();
    let (mut client, mut other) = (client(&place), place.client());
    client.query("BEGIN");
    assert_eq!(client.query("SELECT a FROM t WHERE id = 1 FOR UPDATE")[1], "row 1");
    assert_eq!(other.query("UPDATE t SET a = 9"), ["error 55P03", "ready I"]);
    assert_eq!(other.query("SELECT a FROM t FOR SHARE SKIP LOCKED"), ["error 55P03", "ready I"]);
    client.query("UPDATE t SET a = 7 WHERE id = 1; COMMIT");
    assert_eq!(other.query("SELECT a FROM t WHERE id = 1 FOR NO KEY UPDATE")[1], "row 7");
    // It locks what is there now: a transaction that has read older rows cannot.
    client.query("BEGIN; SELECT a FROM t");
    other.query("UPDATE t SET a = 8 WHERE id = 1");
    assert_eq!(client.query("SELECT a FROM t FOR UPDATE"), ["error 40001", "ready E"]);
    client.query("ROLLBACK");
    for (text, sqlstate) in [
        ("SELECT count(*) FROM t FOR UPDATE", "0A000"),
        ("SELECT DISTINCT a FROM t FOR UPDATE", "0A000"),
        ("SELECT a FROM t FOR UPDATE OF x", "42P01"),
    ] {
        assert_eq!(client.query(text), [&format!("error {sqlstate}"), "ready I"], "{text}");
    }
}

#[test]
fn a_violated_constraint_is_told_with_its_names_and_values() {
    let place = Place::new();
    let mut client = client(&place);
    for (text, told) in [
        (
            "INSERT INTO t (id, a) VALUES (1, 1)",
            "duplicate key value violates unique constraint \"t_pkey\"|Key (id)=(1) already exists.|t||t_pkey",
        ),
        (
            "INSERT INTO u (t_id, c) VALUES (2, 2), (1, 5) RETURNING id",
            "duplicate key value violates unique constraint \"u_t_id_c_key\"|Key (t_id, c)=(1, 5) already exists.|u||u_t_id_c_key",
        ),
        (
            "INSERT INTO u (t_id, c) VALUES (2, 2), (2, 2)",
            "duplicate key value violates unique constraint \"u_t_id_c_key\"|Key (t_id, c)=(2, 2) already exists.|u||u_t_id_c_key",
        ),
        (
            "INSERT INTO u (t_id, c) VALUES (9, 1)",
            "insert or update on table \"u\" violates foreign key constraint \"u_t_id_fkey\"|Key (t_id)=(9) is not present in table \"t\".|u||u_t_id_fkey",
        ),
        (
            "DELETE FROM t WHERE a < 3",
            "update or delete on table \"t\" violates foreign key constraint \"u_t_id_fkey\" on table \"u\"|\
             Key (id)=(1) is still referenced from table \"u\".|u||u_t_id_fkey",
        ),
        (
            "INSERT INTO u (c) VALUES (-1)",
            "new row for relation \"u\" violates check constraint \"u_c_check\"||u||u_c_check",
        ),
        (
            "UPDATE t SET b = NULL",
            "null value in column \"b\" of relation \"t\" violates not-null constraint||t|b|",
        ),
        (
            "ALTER TABLE t ADD z INT NOT NULL",
            "column \"z\" of relation \"t\" contains null values||t|z|",
        ),
    ] {
        let bytes = client.query_bytes(text);
        let fields = Fields(&bytes[HEADER_BYTES..]);
        let codes = [field::MESSAGE, field::DETAIL, field::TABLE, field::COLUMN, field::CONSTRAINT];
        let told_now = codes
            .map(|code| String::from_utf8_lossy(fields.get(code).unwrap_or_default()).into_owned());
        assert_eq!(told_now.join("|"), told, "{text}");
    }
}

#[test]
fn advisory_locks_are_those_of_a_session_or_a_transaction() {
    let place = Place::new();
    let (mut one, mut other) = (place.client(), place.client());
    let row = |client: &mut Client, text: &str| client.query(text)[1].clone();
    assert_eq!(row(&mut one, "SELECT pg_advisory_lock(7)"), "row ");
    assert_eq!(row(&mut other, "SELECT pg_try_advisory_lock(7)"), "row f");
    assert_eq!(row(&mut other, "SELECT pg_try_advisory_lock(0, 7)"), "row t", "another space");
    other.query("SET lock_timeout = '20ms'");
    let refused = other.query("SELECT pg_advisory_lock_shared(7)");
    assert_eq!(refused.last().map(String::as_str), Some("ready I"));
    assert!(refused.contains(&"error 55P03".to_owned()), "{refused:?}");
    assert_eq!(row(&mut other, "SELECT pg_advisory_unlock(7)"), "row f");
    assert_eq!(row(&mut one, "SELECT pg_advisory_unlock(7)"), "row t");
    one.query("BEGIN");
    assert_eq!(row(&mut one, "SELECT pg_try_advisory_xact_lock(7)"), "row t");
    assert_eq!(row(&mut other, "SELECT pg_try_advisory_lock(7)"), "row f");
    one.query("ROLLBACK");
    assert_eq!(row(&mut other, "SELECT pg_try_advisory_lock(7)"), "row t");
    drop(other);
    assert_eq!(row(&mut one, "SELECT pg_try_advisory_lock(7)"), "row t", "its session is over");
}

#[test]
fn a_writer_does_not_wait_for_a_lock_without_end() {
    let place = Place::new();
    let (mut one, mut other) = (place.client(), place.client());
    one.query("CREATE TABLE t (a INT)");
    one.query("SELECT pg_advisory_lock(1)");
    other.query("BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!(other.first("SELECT pg_advisory_lock(1)"), "error 55P03");
    other.query("ROLLBACK");
    assert_eq!(one.first("INSERT INTO t VALUES (2)"), "INSERT 0 1");
    // Each waits for the other: the one for the right to write, the other for the lock.
    for client in [&mut one, &mut other] {
        client.query("SET lock_timeout = '1h'");
    }
    other.query("BEGIN; INSERT INTO t VALUES (1)");
    std::thread::scope(|scope| {
        let stands = scope.spawn(|| one.query("INSERT INTO t VALUES (3)"));
        assert_eq!(other.first("SELECT pg_advisory_lock(1)"), "error 40P01");
        other.query("ROLLBACK");
        assert_eq!(stands.join().unwrap(), ["INSERT 0 1", "ready I"]);
    });
}
