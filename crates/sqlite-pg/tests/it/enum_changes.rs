//! Changes of types of CREATE TYPE … AS ENUM, and what stands in their way.

use crate::client::Place;

/// Definitions that name labels get a label's new name, and the place of a new label.
#[test]
fn definitions_follow_the_labels() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')", "CREATE TYPE"),
        ("CREATE TYPE other AS ENUM ('sad', 'ok', 'happy')", "CREATE TYPE"),
        (
            "CREATE TABLE t (id int PRIMARY KEY, m mood DEFAULT 'ok', a mood[] DEFAULT '{sad,NULL,ok}', \
             CHECK (m IN ('ok', 'happy', 'sad') OR m > 'ok'), \
             g boolean GENERATED ALWAYS AS (m = 'ok') STORED)",
            "CREATE TABLE",
        ),
        ("CREATE TABLE c (a text CHECK (a <> 'ok'), b text CHECK (b <> 'ok'::mood::text))", "CREATE TABLE"),
        ("CREATE TABLE \"ok\" (\"ok\" int, o other DEFAULT 'ok', x text DEFAULT 'ok')", "CREATE TABLE"),
        ("CREATE UNIQUE INDEX i ON t (m) WHERE m = 'ok'", "CREATE INDEX"),
        ("CREATE INDEX j ON t ((m > 'ok'), id)", "CREATE INDEX"),
        ("CREATE VIEW v AS SELECT id, m, greatest(m, 'ok') AS g FROM t WHERE m >= 'ok'", "CREATE VIEW"),
        ("CREATE VIEW w AS SELECT id FROM v WHERE m = ANY ('{ok,sad}')", "CREATE VIEW"),
        ("CREATE VIEW x AS SELECT enum_first(NULL::mood) AS f, enum_last(NULL::mood) AS l, \
          enum_range(NULL::mood) AS r, enum_range('ok'::mood, NULL) AS s, 'ok' AS o", "CREATE VIEW"),
        ("CREATE VIEW y AS SELECT o FROM \"ok\" WHERE o > 'sad'", "CREATE VIEW"),
        ("INSERT INTO t (id, m) VALUES (1, 'ok'), (2, 'happy'), (3, 'sad')", "INSERT 0 3"),
        ("INSERT INTO \"ok\" VALUES (1)", "INSERT 0 1"),
        ("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'", "ALTER TYPE"),
        ("ALTER TYPE mood ADD VALUE 'glad' AFTER 'happy'", "ALTER TYPE"),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'it''s'", "ALTER TYPE"),
        ("INSERT INTO t (id, m) VALUES (4, 'glad'), (5, NULL)", "INSERT 0 2"),
        ("INSERT INTO t (id, m) VALUES (6, 'meh')", "error 23514"),
        ("INSERT INTO t (id) VALUES (6)", "error 23505"),
        ("SELECT string_agg(id || ':' || m || ':' || g, ' ' ORDER BY id) FROM v", "row 1:it's:it's 2:happy:happy 4:glad:glad"),
        ("SELECT string_agg(id || '', ',') FROM w", "row 1"),
        ("SELECT * FROM x", "row sad|glad|{sad,meh,it's,happy,glad}|{it's,happy,glad}|ok"),
        ("SELECT g, a FROM t WHERE id = 1", "row t|{sad,NULL,it's}"),
        ("SELECT count(*) FROM t WHERE m > 'it''s'", "row 2"),
        ("SELECT o, x FROM \"ok\"", "row ok|ok"),
        ("SELECT o FROM y", "row ok"),
        ("INSERT INTO c (a) VALUES ('ok')", "error 23514"),
        ("INSERT INTO c (b) VALUES ('it''s')", "error 23514"),
        ("INSERT INTO c (b) VALUES ('ok')", "INSERT 0 1"),
        ("ALTER TYPE mood RENAME VALUE 'it''s' TO 'a\"b'", "ALTER TYPE"),
        ("ALTER TYPE mood RENAME VALUE 'a\"b' TO 'fine'", "ALTER TYPE"),
        ("INSERT INTO t (id) VALUES (7)", "error 23505"),
        ("UPDATE t SET m = 'happy' WHERE id = 1 RETURNING m, a", "row happy|{sad,NULL,fine}"),
        ("INSERT INTO t (id) VALUES (7) RETURNING m, a, g", "row fine|{sad,NULL,fine}|t"),
        ("SELECT string_agg(id || '', ',' ORDER BY id) FROM w", "row 7"),
        ("PRAGMA integrity_check", "row ok"),
    ]);
}

/// A foreign key between two columns of a type holds once both have the new name.
#[test]
fn a_label_of_a_key_gets_another_name() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TABLE t (m mood PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE u (m mood REFERENCES t)", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('ok')", "INSERT 0 1"),
        ("INSERT INTO u VALUES ('ok')", "INSERT 0 1"),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE"),
        ("SELECT t.m, u.m FROM t JOIN u USING (m)", "row fine|fine"),
        ("DELETE FROM t", "error 23503"),
    ]);
}

/// A label that a transaction has added is for the transactions behind it.
#[test]
fn a_new_label_is_used_once_it_is_committed() {
    const ADD: &str = "ALTER TYPE mood ADD VALUE 'new' BEFORE 'ok'";
    let place = Place::new();
    let (mut client, mut other) = (place.client(), place.client());
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TABLE t (m mood, x text)", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('ok', 'new')", "INSERT 0 1"),
    ]);
    for use_of in [
        "INSERT INTO t VALUES ('new')",
        "SELECT 'new'::mood",
        "SELECT x::mood FROM t",
        "SELECT m FROM t WHERE m = ANY ('{new}')",
        "SELECT enum_range(NULL::mood)",
        "UPDATE t SET m = 'new'",
    ] {
        client.answers_first(&[
            ("BEGIN", "BEGIN"),
            (ADD, "ALTER TYPE"),
            ("SELECT m > 'sad', enum_first(m) FROM t", "row t|sad"),
            (use_of, "error 55P04"),
            ("ROLLBACK", "ROLLBACK"),
            (use_of, if use_of.contains("range") { "row {sad,ok}" } else { "error 22P02" }),
        ]);
    }
    client.answers_first(&[
        ("BEGIN", "BEGIN"),
        (ADD, "ALTER TYPE"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("SELECT 'new'::mood", "error 55P04"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("ALTER TYPE mood RENAME VALUE 'new' TO 'newer'", "ALTER TYPE"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("SELECT 'newer'::mood", "error 55P04"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("COMMIT", "COMMIT"),
        ("SELECT 'newer'::mood < 'ok'", "row t"),
    ]);
    other.answers_first(&[("SELECT 'newer'::mood < 'ok'", "row t")]);
    client.answers_first(&[
        ("ALTER TYPE mood ADD VALUE 'last'; SELECT 'last'::mood", "error 55P04"),
        ("SELECT enum_range(NULL::mood)", "row {sad,newer,ok}"),
    ]);
}

/// A temporary table may have the name of a permanent one, or of a type.
#[test]
fn temporary_tables_do_not_stand_for_permanent_ones() {
    let place = Place::new();
    let (mut client, mut other) = (place.client(), place.client());
    client.answers_first(&[
        ("CREATE TEMP TABLE mood (a int)", "CREATE TABLE"),
        ("CREATE TEMP TABLE feeling (a int)", "CREATE TABLE"),
    ]);
    other.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TABLE t (m mood, a mood[])", "CREATE TABLE"),
        ("CREATE TABLE u (m mood DEFAULT 'ok')", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('ok', '{ok}')", "INSERT 0 1"),
    ]);
    client.answers_first(&[
        ("ALTER TYPE mood ADD VALUE 'x'", "error 0A000"),
        ("ALTER TYPE mood RENAME TO feeling", "error 42710"),
        ("ALTER TYPE mood RENAME TO humour", "ALTER TYPE"),
        ("SELECT count(a) FROM mood", "row 0"),
        ("CREATE TEMP TABLE t (m humour, a humour[])", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('ok', '{sad,ok}')", "INSERT 0 1"),
        ("ALTER TYPE humour RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE"),
        ("SELECT m, a FROM t", "row fine|{sad,fine}"),
        ("SELECT m, a FROM public.t", "row fine|{fine}"),
        ("CREATE TEMP TABLE u (m int DEFAULT 1)", "CREATE TABLE"),
        ("ALTER TYPE humour RENAME VALUE 'fine' TO 'ok'", "error 0A000"),
        ("DROP TYPE humour CASCADE", "error 0A000"),
        ("DROP TABLE u", "DROP TABLE"),
        ("ALTER TYPE humour RENAME VALUE 'fine' TO 'ok'", "ALTER TYPE"),
        ("DROP TYPE humour CASCADE", "error 0A000"),
        ("DROP TABLE t", "DROP TABLE"),
    ]);
    other.answers_first(&[
        ("SELECT m, a FROM t", "row ok|{ok}"),
        ("INSERT INTO u DEFAULT VALUES RETURNING m", "row ok"),
        ("DROP TABLE t", "DROP TABLE"),
        ("DROP TABLE u", "DROP TABLE"),
        ("ALTER TYPE humour RENAME TO mood", "ALTER TYPE"),
    ]);
    client.answers_first(&[
        ("DROP TYPE mood", "DROP TYPE"),
        ("SELECT count(a) FROM mood", "row 0"),
        ("SELECT count(a) FROM feeling", "row 0"),
    ]);
}

/// A type goes with what has it, or not at all.
#[test]
fn a_type_goes_with_the_indexes_that_have_its_labels() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TABLE t (id int, m mood)", "CREATE TABLE"),
        ("CREATE TABLE u (id int, a text)", "CREATE TABLE"),
        ("CREATE INDEX i ON t ((m > 'sad'))", "CREATE INDEX"),
        ("CREATE VIEW v AS SELECT id FROM t WHERE m > 'sad'", "CREATE VIEW"),
        ("DROP TYPE mood", "error 2BP01"),
        ("DROP TYPE mood CASCADE", "DROP TYPE"),
        ("SELECT count(*) FROM pg_indexes WHERE indexname = 'i'", "row 0"),
        ("SELECT id FROM v", "error 42P01"),
        ("SELECT count(*) FROM t", "row 0"),
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("DROP TABLE u", "DROP TABLE"),
        ("CREATE TABLE u (id int, a text DEFAULT enum_last(NULL::mood)::text)", "CREATE TABLE"),
        ("DROP TYPE mood", "error 2BP01"),
        ("DROP TYPE mood CASCADE", "error 0A000"),
        ("DROP TABLE u", "DROP TABLE"),
        ("DROP TYPE mood CASCADE", "DROP TYPE"),
    ]);
}

#[test]
fn a_type_has_a_bounded_number_of_labels() {
    let place = Place::new();
    let mut client = place.client();
    let made = |called: &str, count: usize| {
        let labels: Vec<String> = (0..count).map(|number| format!("'{number}'")).collect();
        format!("CREATE TYPE {called} AS ENUM ({})", labels.join(", "))
    };
    client.answers_first(&[
        (&made("over", 1023), "error 54000"),
        (&made("most", 1022), "CREATE TYPE"),
        ("ALTER TYPE most ADD VALUE 'one more'", "error 54000"),
        ("ALTER TYPE most RENAME VALUE '7' TO 'seven'", "ALTER TYPE"),
        ("SELECT 'seven'::most > '6', ('102' || '1')::most", "row t|1021"),
        ("SELECT ('102' || '2')::most", "error 22P02"),
    ]);
}

/// Another program may write any number as the OID of a type.
#[test]
fn an_oid_has_room_for_those_of_arrays_and_labels() {
    let place = Place::new();
    place.natively(
        "CREATE TABLE t (a _ENUM TEXT(4294967295), b ENUM TEXT(4294967295)); \
         CREATE TABLE mood (label /*refrain enum 4294967295 'sad'*/ TEXT); \
         INSERT INTO t VALUES ('[]', 'x');",
    );
    let mut client = place.client();
    client.answers_first(&[
        ("SELECT a, b FROM t", "row []|x"),
        (
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0",
            "row 2",
        ),
        ("SELECT count(*) FROM pg_type WHERE typname = 'mood'", "row 0"),
        ("SELECT count(*) FROM pg_enum", "row 0"),
        ("SELECT 'sad'::mood", "error 42704"),
    ]);
}
