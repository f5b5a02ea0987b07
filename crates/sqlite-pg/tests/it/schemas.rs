//! Schemas: tables of one name in several of them, and what the catalog says of them.

use crate::client::Place;

const STATEMENTS: &[(&str, &str)] = &[
    ("CREATE TABLE app.t (id INT)", "error 3F000"),
    ("CREATE SCHEMA app", "CREATE SCHEMA"),
    ("CREATE SCHEMA app", "error 42P06"),
    ("CREATE SCHEMA IF NOT EXISTS \"app\"", "CREATE SCHEMA"),
    ("CREATE SCHEMA pg_mine", "error 42939"),
    ("CREATE TABLE t (id SERIAL PRIMARY KEY, a TEXT UNIQUE)", "CREATE TABLE"),
    (
        "CREATE TABLE app.t (id SERIAL PRIMARY KEY, a TEXT UNIQUE, up INT REFERENCES app.t (id))",
        "CREATE TABLE",
    ),
    ("CREATE TABLE IF NOT EXISTS \"app\".\"T x\" (b INT)", "CREATE TABLE"),
    ("CREATE INDEX t_a ON app.t (a)", "CREATE INDEX"),
    ("CREATE INDEX t_a ON t (a)", "CREATE INDEX"),
    ("INSERT INTO app.t (a) VALUES ('in')", "INSERT 0 1"),
    ("INSERT INTO t (a) VALUES ('out'), ('more')", "INSERT 0 2"),
    ("SELECT a FROM app.t", "row in"),
    ("SELECT t.a FROM app.t WHERE t.id = 1", "row in"),
    ("SELECT app.t.a, app.t.* FROM app.t", "row in|1|in|null"),
    ("SELECT x.a, y.a FROM app.t x JOIN public.t y ON x.id = y.id", "row in|out"),
    // The alias has the name of the schema.
    ("SELECT app.a FROM t app WHERE app.id = 2", "row more"),
    ("UPDATE app.t SET a = 'new' WHERE t.a = 'in' RETURNING t.a", "row new"),
    ("INSERT INTO app.t (a, up) VALUES ('x', 9)", "error 23503"),
    ("DELETE FROM app.t WHERE app.t.a = 'nosuch'", "DELETE 0"),
    ("INSERT INTO app.\"T x\" VALUES (7)", "INSERT 0 1"),
    ("SELECT b FROM app.nosuch", "error 42P01"),
    ("ALTER TABLE app.t ADD COLUMN c INT, ADD CONSTRAINT c_up CHECK (c > 0)", "ALTER TABLE"),
    ("INSERT INTO app.t (a, c) VALUES ('x', 0)", "error 23514"),
    ("ALTER TABLE app.t DROP CONSTRAINT t_a_key", "ALTER TABLE"),
    ("SELECT count(*) FROM t", "row 2"),
    ("CREATE VIEW app.v AS SELECT a FROM app.t", "CREATE VIEW"),
    ("SELECT a FROM app.v", "row new"),
    ("CREATE SEQUENCE app.s", "CREATE SEQUENCE"),
    ("SELECT nextval('app.s')", "row 1"),
    ("SET search_path TO app, public", "error 0A000"),
    ("SET search_path TO \"$user\", public", "SET"),
];

const OF_CATALOG: &[(&str, &str)] = &[
    (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'app' ORDER BY 2 DESC",
        "row app|v",
    ),
    ("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'", "row 1"),
    (
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.oid = 'app.t'::regclass",
        "row app|t",
    ),
    ("SELECT 'app.\"T x\"'::regclass", "row app.\"T x\""),
    ("SELECT 't'::regclass", "row t"),
    (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'app' AND indexname = 't_a'",
        "row CREATE INDEX t_a ON app.t USING btree (a)",
    ),
    ("SELECT pg_get_serial_sequence('app.t', 'id')", "row app.t_id_seq"),
    (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'app' AND table_name = 'T x'",
        "row b",
    ),
    (
        "SELECT string_agg(constraint_name, ' ') FROM (SELECT constraint_name FROM information_schema.table_constraints \
                 WHERE table_schema = 'app' AND constraint_type <> 'CHECK' ORDER BY 1) x",
        "row t_pkey t_up_fkey",
    ),
    ("ALTER TABLE app.\"T x\" RENAME TO y", "ALTER TABLE"),
    ("SELECT b FROM app.y", "row 7"),
    ("DROP INDEX app.t_a", "DROP INDEX"),
    ("DROP SCHEMA app", "error 2BP01"),
    ("DROP TABLE IF EXISTS app.nosuch", "DROP TABLE"),
    ("DROP SCHEMA app CASCADE", "DROP SCHEMA"),
    ("SELECT count(*) FROM pg_class WHERE relname = 'y'", "row 0"),
    ("SELECT a FROM app.t", "error 42P01"),
    ("SELECT a FROM t WHERE id = 1", "row out"),
    ("DROP SCHEMA app", "error 3F000"),
    ("DROP SCHEMA IF EXISTS app", "DROP SCHEMA"),
];

#[test]
fn tables_of_one_name_are_apart() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(STATEMENTS);
    client.answers_first(OF_CATALOG);
}
