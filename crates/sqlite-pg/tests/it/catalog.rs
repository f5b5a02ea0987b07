//! PostgreSQL's catalog.

use crate::client::{Client, Place};

fn client(place: &Place) -> Client {
    let mut client = place.client();
    let columns =
        "id SERIAL PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE, on_time BOOLEAN DEFAULT true";
    client.query(&format!("CREATE TABLE u ({columns})"));
    let key = "a BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
    let rest = "u_id INT REFERENCES u (id) ON DELETE CASCADE, n INT CONSTRAINT few CHECK (n < 10)";
    client.query(&format!("CREATE TABLE t ({key}, {rest}, UNIQUE (u_id, n))"));
    client.query("CREATE INDEX t_n ON t (n DESC, lower(n::text)) WHERE n > 1");
    client
}

#[test]
fn relations_of_the_catalog_are_read_by_any_query() {
    let place = Place::new();
    let mut client = client(&place);
    for (text, rows) in [
        (
            "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relkind, relname",
            &[
                "t_a_seq|S",
                "u_id_seq|S",
                "t_n|i",
                "t_pkey|i",
                "t_u_id_n_key|i",
                "u_name_key|i",
                "u_pkey|i",
                "t|r",
                "u|r",
            ][..],
        ),
        (
            "SELECT conname, contype, conkey, confrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint \
             WHERE conrelid = 't'::regclass ORDER BY conname",
            &[
                "few|c|{3}|-|CHECK ((n < 10))",
                "t_pkey|p|{1}|-|PRIMARY KEY (a)",
                "t_u_id_fkey|f|{2}|u|FOREIGN KEY (u_id) REFERENCES u(id) ON DELETE CASCADE",
                "t_u_id_n_key|u|{2,3}|-|UNIQUE (u_id, n)",
            ],
        ),
        (
            "SELECT indkey, indoption, indisunique, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true) \
             FROM pg_index WHERE indexrelid = 't_n'::regclass",
            &[
                "3 0|3 0|f|CREATE INDEX t_n ON public.t USING btree (n DESC, lower(refrain_text(23, n))) WHERE (n > 1)|n",
            ],
        ),
        (
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid) \
             FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum \
             WHERE attrelid = 'public.u'::regclass AND attnum > 0 ORDER BY attnum",
            &[
                "id|integer|t||nextval('u_id_seq'::regclass)",
                "name|character varying(20)|t||null",
                "on_time|boolean|f||true",
            ],
        ),
        (
            "SELECT pg_get_serial_sequence('t', 'a'), to_regclass('nosuch'), to_regtype('int4')::oid, 25::regtype, \
             current_schemas(true), has_table_privilege('t', 'SELECT'), 't'::regclass::text",
            &["public.t_a_seq|null|23|text|{pg_catalog,public}|t|t"],
        ),
        (
            "SELECT typname, typarray, typelem, typcategory FROM pg_type WHERE oid IN (23, 1007, 19) ORDER BY oid",
            &["name|1003|0|S", "int4|1007|0|N", "_int4|0|23|A"],
        ),
        (
            "SELECT kcu.column_name, ccu.table_name, rc.delete_rule FROM information_schema.key_column_usage kcu \
             JOIN information_schema.constraint_column_usage ccu USING (constraint_name) \
             JOIN information_schema.referential_constraints rc USING (constraint_name)",
            &["u_id|u|CASCADE"],
        ),
        ("SELECT count(*) FROM pg_description d, pg_enum, information_schema.triggers", &["0"]),
        ("SELECT current_schema FROM current_schema()", &["public"]),
    ] {
        let found = client.query(text);
        let wanted: Vec<String> = rows.iter().map(|row| format!("row {row}")).collect();
        assert_eq!(found[1..found.len().saturating_sub(2)], wanted, "{text}: {found:?}");
    }
    assert!(client.query("SELECT 'nosuch'::regclass").contains(&"error 42P01".to_owned()));
    assert!(client.query("SELECT 'nosuch'::regtype").contains(&"error 42704".to_owned()));
}

#[test]
fn the_catalog_follows_the_tables() {
    let place = Place::new();
    let mut client = client(&place);
    let columns = "SELECT string_agg(attname || attnotnull::text, ',' ORDER BY attnum) FROM pg_attribute \
                   WHERE attrelid = 't'::regclass";
    assert_eq!(client.query(columns)[1], "row atrue,u_idfalse,nfalse");
    client.query("INSERT INTO u (name) VALUES ('x'); INSERT INTO t (u_id, n) VALUES (1, 2)");
    for change in [
        "ALTER TABLE t ADD COLUMN c TEXT",
        "ALTER TABLE t ALTER COLUMN n SET NOT NULL",
        "ALTER TABLE t ALTER n SET NOT NULL",
        "ALTER TABLE u ALTER COLUMN name DROP NOT NULL",
        "ALTER TABLE t ADD CONSTRAINT more CHECK (n > 0)",
        "ALTER TABLE t DROP COLUMN IF EXISTS nosuch",
    ] {
        assert_eq!(client.query(change)[0], "ALTER TABLE", "{change}");
    }
    assert_eq!(client.query(columns)[1], "row atrue,u_idfalse,ntrue,cfalse");
    for (text, sqlstate) in [
        ("INSERT INTO t (u_id) VALUES (1)", "23502"),
        ("INSERT INTO t (n) VALUES (-1)", "23514"),
        ("ALTER TABLE t ADD CONSTRAINT none CHECK (n > 5)", "23514"),
        ("ALTER TABLE t ALTER COLUMN c SET NOT NULL", "23502"),
        ("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", "42P16"),
        ("ALTER TABLE t ALTER COLUMN x DROP NOT NULL", "42703"),
    ] {
        assert!(
            client.query(text).contains(&format!("error {sqlstate}")),
            "{text}: {:?}",
            client.query(text)
        );
    }
    assert_eq!(client.query("INSERT INTO u (name) VALUES (NULL)")[0], "INSERT 0 1");
    let checks =
        "SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint WHERE contype = 'c'";
    assert_eq!(client.query(checks)[1], "row few,more");
    client.query("DROP TABLE t");
    assert_eq!(client.query(checks)[1], "row null");
}

/// ActiveRecord finds the array types so.
#[test]
fn a_function_is_found_by_its_name_and_arguments() {
    let place = Place::new();
    let mut client = place.client();
    let array_in = "'array_in(cstring,oid,integer)'::regprocedure";
    for (text, expected) in [
        (
            format!(
                "SELECT typname, typinput FROM pg_type WHERE typinput = {array_in} AND typelem = 23"
            ),
            "row _int4|array_in",
        ),
        (format!("SELECT {array_in}"), "row array_in(cstring,oid,integer)"),
        (
            format!("SELECT count(*) FROM pg_type WHERE typinput = {array_in} AND typelem = 0"),
            "row 0",
        ),
        ("SELECT typinput FROM pg_type WHERE oid = 23".to_owned(), "row int4in"),
    ] {
        assert_eq!(client.query(&text)[1], expected, "{text}");
    }
    assert_eq!(client.query("SELECT 'nosuch(int)'::regprocedure"), ["error 0A000", "ready I"]);
}

#[test]
fn definitions_are_changed_as_migrations_change_them() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE u (id INT PRIMARY KEY); CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(3) DEFAULT 'x' NOT NULL); \
         INSERT INTO u VALUES (1); INSERT INTO t VALUES (1, 1), (2, 7)",
    );
    let add = "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (b) REFERENCES u (id) DEFERRABLE INITIALLY DEFERRED";
    assert_eq!(client.query(add), ["error 23503", "ready I"]);
    client.query("DELETE FROM t WHERE a = 2");
    let key = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'k'";
    assert_eq!(client.query(key)[1], "SELECT 0");
    for (text, reply) in [
        (add, "ALTER TABLE"),
        ("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS"),
        (
            "ALTER TABLE u ADD COLUMN up INT CONSTRAINT up REFERENCES u (id) DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE",
        ),
        ("INSERT INTO t VALUES (3, 9)", "error 23503"),
        ("ALTER TABLE t ALTER COLUMN c TYPE VARCHAR(5)", "ALTER TABLE"),
        ("INSERT INTO t VALUES (4, 1, 'abcde')", "INSERT 0 1"),
        ("INSERT INTO t VALUES (5, 1, 'abcdef')", "error 22001"),
        ("ALTER TABLE t ALTER COLUMN c TYPE VARCHAR(2)", "error 22001"),
        ("ALTER TABLE t ALTER COLUMN b TYPE BIGINT USING a::bigint", "error 0A000"),
        ("ALTER TABLE t ALTER COLUMN b TYPE BIGINT USING b::bigint", "ALTER TABLE"),
        ("INSERT INTO t VALUES (6, 5000000000, 'a')", "error 23503"),
        ("ALTER TABLE t ALTER COLUMN c DROP DEFAULT", "ALTER TABLE"),
        ("INSERT INTO t (a) VALUES (7)", "error 23502"),
    ] {
        assert_eq!(client.query(text)[0], reply, "{text}");
    }
    let rest = "FOREIGN KEY (b) REFERENCES u(id) DEFERRABLE INITIALLY DEFERRED";
    assert_eq!(client.query(key)[1], format!("row {rest}"));
    client.query("BEGIN");
    assert_eq!(client.query("ALTER TABLE t DROP CONSTRAINT k")[0], "ALTER TABLE");
    assert_eq!(client.query("INSERT INTO t VALUES (8, 9, 'x')")[0], "INSERT 0 1");
    client.query("ROLLBACK");
    assert_eq!(client.query(key)[1], format!("row {rest}"));
    assert_eq!(client.query("INSERT INTO t VALUES (8, 9, 'x')")[0], "error 23503");
    assert!(!client.query("SELECT sql FROM sqlite_schema")[1..].concat().contains("refrain_edit"));
    assert_eq!(client.query("ALTER TABLE t DROP CONSTRAINT k")[0], "ALTER TABLE");
    assert_eq!(client.query("INSERT INTO t VALUES (8, 9, 'x')")[0], "INSERT 0 1");
    let mut other = place.client();
    assert_eq!(other.query("INSERT INTO t VALUES (9, 9, 'xxxxx')")[0], "INSERT 0 1");
    assert_eq!(other.query("PRAGMA integrity_check")[1], "row ok");
}
