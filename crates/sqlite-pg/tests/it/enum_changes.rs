//! Changes of types of CREATE TYPE … AS ENUM, and what stands in their way.

use crate::client::Place;

/// A label that a definition has keeps its name, unless the definition is changed with it.
#[test]
fn no_definition_keeps_the_old_name_of_a_label() {
    const RENAME: &str = "ALTER TYPE mood RENAME VALUE 'ok' TO 'it''s'";
    /// Definitions that name the label 'ok', each with the statement that drops it.
    const NAMES: &[(&str, &str)] = &[
        ("CREATE TABLE c (a mood[] CHECK (a <> '{sad,ok}'))", "DROP TABLE c"),
        ("CREATE TABLE c (a mood[] DEFAULT ARRAY['ok']::mood[])", "DROP TABLE c"),
        ("CREATE TABLE c (a text CHECK (a = 'ok'::mood::text))", "DROP TABLE c"),
        ("CREATE VIEW v AS SELECT id FROM t WHERE m = ANY ('{ok}')", "DROP VIEW v"),
        ("CREATE VIEW v AS SELECT id FROM t WHERE a = '{ok,sad}'", "DROP VIEW v"),
        ("CREATE VIEW v AS SELECT 'ok'::mood AS m", "DROP VIEW v"),
        ("CREATE VIEW v AS SELECT id FROM seen WHERE m = 'ok'", "DROP VIEW v"),
        ("CREATE INDEX i ON t (id) WHERE m = 'ok'", "DROP INDEX i"),
    ];
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TYPE other AS ENUM ('ok')", "CREATE TYPE"),
        (
            "CREATE TABLE t (id int, m mood DEFAULT 'ok', a mood[] DEFAULT '{sad,NULL,ok}')",
            "CREATE TABLE",
        ),
        ("CREATE VIEW seen AS SELECT id, m FROM t", "CREATE VIEW"),
        // Neither is a name of the label.
        (
            "CREATE TABLE \"ok\" (\"ok\" int, o other DEFAULT 'ok', x text DEFAULT 'ok')",
            "CREATE TABLE",
        ),
        ("INSERT INTO t VALUES (1, 'ok', '{ok}')", "INSERT 0 1"),
    ]);
    for (made, gone) in NAMES {
        let found = client.first(made);
        assert!(found.starts_with("CREATE"), "{made}: {found}");
        assert_eq!(client.first(RENAME), "error 0A000", "{made}");
        assert!(client.first(gone).starts_with("DROP"), "{gone}");
    }
    client.answers_first(&[
        (RENAME, "ALTER TYPE"),
        ("INSERT INTO t (id) VALUES (2) RETURNING m, a", "row it's|{sad,NULL,it's}"),
        ("SELECT m, a FROM t WHERE id = 1", "row it's|{it's}"),
        ("INSERT INTO \"ok\" VALUES (1) RETURNING o, x", "row ok|ok"),
        ("ALTER TYPE mood RENAME VALUE 'it''s' TO 'a\"b'", "ALTER TYPE"),
        ("ALTER TYPE mood RENAME VALUE 'a\"b' TO 'fine'", "ALTER TYPE"),
        ("INSERT INTO t (id) VALUES (3) RETURNING m, a", "row fine|{sad,NULL,fine}"),
        ("SELECT m, a FROM t WHERE id = 2", "row fine|{sad,NULL,fine}"),
    ]);
}

/// The functions of an enum have its labels in SQL.
#[test]
fn labels_do_not_change_under_functions_of_the_type() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TYPE nothing AS ENUM ()", "CREATE TYPE"),
        ("SELECT enum_range(NULL::nothing)", "row {}"),
    ]);
    for value in [
        "enum_first(NULL::mood)",
        "enum_last(NULL::mood)",
        "enum_range(NULL::mood)",
        "enum_range(NULL, 'ok'::mood)",
    ] {
        let made = format!("CREATE VIEW v AS SELECT {value} AS x");
        client.answers_first(&[
            (&made, "CREATE VIEW"),
            ("ALTER TYPE mood ADD VALUE 'x' BEFORE 'sad'", "error 0A000"),
            ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "error 0A000"),
            ("DROP VIEW v", "DROP VIEW"),
        ]);
    }
    client.answers_first(&[
        ("CREATE TABLE t (id int, m mood DEFAULT enum_last(NULL::mood))", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1) RETURNING m", "row ok"),
        ("ALTER TYPE mood ADD VALUE 'x'", "error 0A000"),
        ("ALTER TABLE t ALTER COLUMN m DROP DEFAULT", "ALTER TABLE"),
        ("ALTER TYPE mood ADD VALUE 'x'", "ALTER TYPE"),
        ("SELECT enum_last(m) FROM t ORDER BY enum_first(m)", "row x"),
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
