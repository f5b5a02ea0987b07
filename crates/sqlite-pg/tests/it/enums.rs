//! Types of CREATE TYPE … AS ENUM, as PostgreSQL 15 answers.

use crate::client::Place;

const DEFINED: &[(&str, &str)] = &[
    ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')", "CREATE TYPE"),
    ("CREATE TYPE mood AS ENUM ('sad')", "error 42710"),
    ("CREATE TYPE dup AS ENUM ('a', 'a')", "error 23505"),
    ("CREATE TYPE nothing AS ENUM ()", "CREATE TYPE"),
    ("CREATE TYPE x AS (a int)", "error 0A000"),
    (
        "CREATE TYPE long AS ENUM ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "error 42602",
    ),
    ("CREATE TYPE nosuch.x AS ENUM ('a')", "error 3F000"),
    ("CREATE TABLE mood (a int)", "error 42710"),
    ("CREATE VIEW mood AS SELECT 1 AS a", "error 42710"),
    ("SELECT * FROM mood", "error 42P01"),
    ("INSERT INTO mood VALUES ('x')", "error 42P01"),
    ("DROP TABLE mood", "error 42P01"),
    ("CREATE TABLE person (id int PRIMARY KEY, m mood DEFAULT 'ok', n mood[])", "CREATE TABLE"),
    ("CREATE TYPE person AS ENUM ('a')", "error 42710"),
    ("ALTER TABLE person RENAME TO mood", "error 42710"),
    ("CREATE TABLE wrong (m mood DEFAULT 'x')", "error 22P02"),
    ("CREATE TABLE wrong (m nosuch)", "error 42704"),
    ("INSERT INTO person VALUES (1, 'sad'), (2, 'happy')", "INSERT 0 2"),
    ("INSERT INTO person (id) VALUES (3) RETURNING m", "row ok"),
    ("INSERT INTO person VALUES (4, 'x')", "error 22P02"),
    ("INSERT INTO person VALUES (4, 'Sad')", "error 22P02"),
    ("INSERT INTO person VALUES (4, 'ok'::text)", "error 42804"),
    ("INSERT INTO person VALUES (4, NULL)", "INSERT 0 1"),
    ("UPDATE person SET m = 'zz'", "error 22P02"),
    ("UPDATE person SET m = 'sad' WHERE id = 3", "UPDATE 1"),
    ("UPDATE person SET m = 'ok' WHERE id = 3 RETURNING m", "row ok"),
];

/// Queries of the rows 1 sad, 2 happy, 3 ok, 4 NULL.
const ASKED: &[(&str, &str)] = &[
    ("SELECT * FROM person WHERE m = 'x'", "error 22P02"),
    ("SELECT id FROM person WHERE m = 'ok'", "row 3"),
    ("SELECT string_agg(id || '', ',' ORDER BY m) FROM person", "row 1,3,2,4"),
    ("SELECT string_agg(id || '', ',' ORDER BY m DESC) FROM person", "row 4,2,3,1"),
    ("SELECT array_agg(id) FROM (SELECT id FROM person ORDER BY m) x", "row {1,3,2,4}"),
    ("SELECT m FROM person ORDER BY m DESC NULLS LAST", "row happy"),
    ("SELECT m FROM person ORDER BY 1 LIMIT 1 OFFSET 1", "row ok"),
    ("SELECT DISTINCT m FROM person WHERE m IS NOT NULL ORDER BY m DESC", "row happy"),
    ("SELECT DISTINCT ON (m) m, id FROM person ORDER BY m DESC NULLS LAST, id", "row happy|2"),
    ("SELECT m AS x FROM person UNION SELECT 'ok' ORDER BY x DESC NULLS LAST", "row happy"),
    ("VALUES ('ok'::mood), ('sad') ORDER BY 1", "row sad"),
    ("SELECT count(*) FROM person WHERE m < 'happy'", "row 2"),
    ("SELECT m < 'ok', m >= 'sad' FROM person WHERE id = 2", "row f|t"),
    ("SELECT count(*) FROM person WHERE m BETWEEN 'ok' AND 'happy'", "row 2"),
    ("SELECT count(*) FROM person WHERE m IN ('ok', 'sad')", "row 2"),
    ("SELECT count(*) FROM person WHERE m IN ('ok', 'x')", "error 22P02"),
    ("SELECT count(*) FROM person WHERE m NOT IN ('ok')", "row 2"),
    ("SELECT min(m), max(m), count(DISTINCT m) FROM person", "row sad|happy|3"),
    ("SELECT max(m) FILTER (WHERE id <> 2) FROM person", "row ok"),
    ("SELECT greatest(m, 'ok'), least(m, 'ok') FROM person WHERE id = 1", "row ok|sad"),
    ("SELECT m, count(*) FROM person GROUP BY m HAVING m > 'ok'", "row happy|1"),
    ("SELECT id, rank() OVER (ORDER BY m) FROM person ORDER BY 2 DESC", "row 4|4"),
    (
        "SELECT m::text || '!', m || '?', concat(m, 1) FROM person WHERE id = 1",
        "row sad!|sad?|sad1",
    ),
    ("SELECT m IS DISTINCT FROM 'sad', nullif(m, 'ok') FROM person WHERE id = 1", "row f|sad"),
    ("SELECT coalesce(m, 'ok') FROM person WHERE id = 4", "row ok"),
    ("SELECT coalesce(m, 'ok'::text) FROM person", "error 42804"),
    ("SELECT CASE WHEN id = 1 THEN m ELSE 'ok' END FROM person ORDER BY id", "row sad"),
    ("SELECT CASE m WHEN 'sad' THEN 1 ELSE 2 END FROM person ORDER BY id", "row 1"),
    ("SELECT m = 1 FROM person", "error 42883"),
    ("SELECT lower(m) FROM person", "error 42883"),
    ("SELECT m LIKE 's%' FROM person", "error 42883"),
    ("SELECT 'sad'::mood < 'sad'::text", "error 42883"),
    ("SELECT 'x'::mood", "error 22P02"),
    ("SELECT 'ok'::varchar::mood, CAST('ok' AS mood), mood 'ok'", "row ok|ok|ok"),
    ("SELECT 'zz'::text::mood", "error 22P02"),
    ("SELECT (id || 'x')::mood FROM person", "error 22P02"),
    ("SELECT 1::mood", "error 42846"),
    ("SELECT NULL::mood IS NULL, 'ok'::public.mood", "row t|ok"),
    (
        "SELECT to_json(m), json_build_object('m', m) FROM person WHERE id = 1",
        "row \"sad\"|{\"m\" : \"sad\"}",
    ),
    ("SELECT count(*) FROM person a JOIN person b USING (m)", "row 3"),
    ("SELECT count(*) FROM person WHERE m IN (SELECT m FROM person WHERE id < 3)", "row 2"),
    ("SELECT enum_range(NULL::mood)", "row {sad,ok,happy}"),
    (
        "SELECT enum_range('ok'::mood, NULL), enum_range(NULL, 'ok'::mood)",
        "row {ok,happy}|{sad,ok}",
    ),
    ("SELECT enum_first(NULL::mood), enum_last('sad'::mood)", "row sad|happy"),
    ("SELECT enum_range(1)", "error 42883"),
    ("SELECT unnest(enum_range(NULL::mood))::text", "row sad"),
    ("SELECT count(*) FROM unnest(enum_range(NULL::mood)) x WHERE x > 'sad'", "row 2"),
];

const ARRAYS: &[(&str, &str)] = &[
    (
        "SELECT '{ok,happy}'::mood[], ARRAY['ok'::mood], ARRAY['ok', 'sad']::mood[]",
        "row {ok,happy}|{ok}|{ok,sad}",
    ),
    ("SELECT '{x}'::mood[]", "error 22P02"),
    ("SELECT count(*) FROM person WHERE m = ANY ('{ok,happy}')", "row 2"),
    ("SELECT count(*) FROM person WHERE m = ANY ('{ok,x}')", "error 22P02"),
    (
        "CREATE TABLE many (id int PRIMARY KEY, all_of mood[] NOT NULL DEFAULT '{ok}')",
        "CREATE TABLE",
    ),
    ("INSERT INTO many VALUES (1, '{sad,happy}'), (2, DEFAULT)", "INSERT 0 2"),
    ("INSERT INTO many VALUES (3, ARRAY['happy', NULL]::mood[])", "INSERT 0 1"),
    ("INSERT INTO many VALUES (4, '{x}')", "error 22P02"),
    ("SELECT all_of, all_of[1] FROM many ORDER BY id", "row {sad,happy}|sad"),
    ("SELECT id FROM many WHERE all_of @> '{happy}' ORDER BY id DESC", "row 3"),
    ("SELECT id FROM many WHERE 'ok' = ANY (all_of)", "row 2"),
    (
        "SELECT array_append(all_of, 'ok'), all_of || 'sad'::mood FROM many WHERE id = 1",
        "row {sad,happy,ok}|{sad,happy,sad}",
    ),
    ("SELECT array_agg(m ORDER BY m DESC) FROM person WHERE m IS NOT NULL", "row {happy,ok,sad}"),
    ("SELECT all_of::text FROM many WHERE id = 1", "row {sad,happy}"),
];

const CATALOG: &[(&str, &str)] = &[
    (
        "SELECT typname, typlen, typtype, typcategory, typelem, typinput, typoutput, typreceive, typbyval, \
         typalign, typstorage, typcollation, typnamespace::regnamespace FROM pg_type WHERE typname = 'mood'",
        "row mood|4|e|E|0|enum_in|enum_out|enum_recv|t|i|p|0|public",
    ),
    (
        "SELECT a.typname, a.typlen, a.typtype, a.typcategory, a.typinput, a.typbyval, a.oid = t.typarray, \
         a.typelem = t.oid FROM pg_type a, pg_type t WHERE a.typname = '_mood' AND t.typname = 'mood'",
        "row _mood|-1|b|A|array_in|f|t|t",
    ),
    (
        "SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = 'mood'::regtype",
        "row sad,ok,happy",
    ),
    (
        "SELECT format_type('mood'::regtype, -1), 'mood'::regtype, 'mood[]'::regtype",
        "row mood|mood|mood[]",
    ),
    ("SELECT to_regtype('public.mood')::text, to_regtype('nosuch')", "row mood|null"),
    ("SELECT 'nosuch'::regtype", "error 42704"),
    (
        "SELECT ('\"public\".\"' || 'mood' || '\"')::regtype::text, ('in' || 't4')::regtype",
        "row mood|integer",
    ),
    ("SELECT ('no' || 'such')::regtype", "error 42704"),
    ("SELECT '_mood'::regtype, ('\"public\".\"_' || 'mood\"')::regtype::text", "row mood[]|mood[]"),
    ("SELECT '{ok}'::_mood, to_regtype('_nosuch')", "row {ok}|null"),
    (
        "SELECT atttypid::regtype, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'person'::regclass \
      AND attname = 'm'",
        "row mood|mood",
    ),
    (
        "SELECT data_type, udt_schema, udt_name, column_default, character_maximum_length FROM \
         information_schema.columns WHERE table_name = 'person' AND column_name = 'm'",
        "row USER-DEFINED|public|mood|'ok'::mood|null",
    ),
    (
        "SELECT data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'many' \
         AND column_name = 'all_of'",
        "row ARRAY|public|_mood",
    ),
    (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'person'::regclass",
        "row 'ok'::mood",
    ),
    ("SELECT count(*) FROM pg_class WHERE relname = 'mood'", "row 0"),
    ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'mood'", "row 0"),
];

const CHANGED: &[(&str, &str)] = &[
    ("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'", "ALTER TYPE"),
    ("ALTER TYPE mood ADD VALUE 'meh'", "error 42710"),
    ("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'meh'", "ALTER TYPE"),
    ("ALTER TYPE mood ADD VALUE 'glad' AFTER 'ok'", "ALTER TYPE"),
    ("ALTER TYPE mood ADD VALUE 'q' BEFORE 'zz'", "error 22023"),
    ("ALTER TYPE nosuch ADD VALUE 'q'", "error 42704"),
    ("ALTER TYPE int4 ADD VALUE 'q'", "error 42809"),
    ("SELECT enum_range(NULL::mood)", "row {sad,meh,ok,glad,happy}"),
    ("INSERT INTO person VALUES (5, 'meh')", "INSERT 0 1"),
    ("SELECT string_agg(m::text, ',' ORDER BY m) FROM person", "row sad,meh,ok,happy"),
    ("ALTER TYPE mood RENAME VALUE 'zz' TO 'q'", "error 22023"),
    ("ALTER TYPE mood RENAME VALUE 'sad' TO 'ok'", "error 42710"),
    ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "ALTER TYPE"),
    ("ALTER TYPE mood RENAME VALUE 'ok' TO 'it''s'", "ALTER TYPE"),
    ("SELECT string_agg(m::text, ',' ORDER BY m) FROM person", "row blue,meh,it's,happy"),
    (
        "SELECT string_agg(all_of::text, ' ' ORDER BY id) FROM many",
        "row {blue,happy} {it's} {happy,NULL}",
    ),
    ("INSERT INTO person (id) VALUES (6) RETURNING m", "row it's"),
    ("INSERT INTO person VALUES (7, 'sad')", "error 22P02"),
    (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'person'::regclass",
        "row 'it''s'::mood",
    ),
    ("BEGIN", "BEGIN"),
    ("ALTER TYPE mood ADD VALUE 'never'", "ALTER TYPE"),
    ("CREATE TYPE other AS ENUM ('a')", "CREATE TYPE"),
    ("ALTER TYPE mood RENAME VALUE 'blue' TO 'never blue'", "ALTER TYPE"),
    ("SELECT m FROM person WHERE id = 1", "row never blue"),
    ("ROLLBACK", "ROLLBACK"),
    ("SELECT m FROM person WHERE id = 1", "row blue"),
    ("SELECT 'never'::mood", "error 22P02"),
    ("SELECT 'a'::other", "error 42704"),
    ("ALTER TYPE mood RENAME TO person", "error 42710"),
    ("ALTER TYPE mood RENAME TO \"Feeling\"", "ALTER TYPE"),
    ("SELECT 'meh'::mood", "error 42704"),
    ("SELECT 'meh'::\"Feeling\"", "row meh"),
    ("SELECT 'x'::\"Feeling\"", "error 22P02"),
    (
        "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'person'::regclass AND attname = 'm'",
        "row \"Feeling\"",
    ),
    ("INSERT INTO person VALUES (8, 'glad')", "INSERT 0 1"),
];

const DROPPED: &[(&str, &str)] = &[
    ("CREATE VIEW pv AS SELECT m FROM person WHERE id > 0", "CREATE VIEW"),
    ("SELECT m FROM pv WHERE m > 'it''s' ORDER BY m LIMIT 1", "row glad"),
    ("DROP TYPE \"Feeling\"", "error 2BP01"),
    ("DROP TYPE IF EXISTS nosuch", "DROP TYPE"),
    ("DROP TYPE nosuch", "error 42704"),
    ("DROP TYPE int4", "error 2BP01"),
    ("DROP TYPE person", "error 2BP01"),
    ("DROP TYPE nothing, nosuch", "error 42704"),
    ("DROP TYPE nothing", "DROP TYPE"),
    ("DROP TYPE \"Feeling\" CASCADE", "DROP TYPE"),
    ("SELECT * FROM person ORDER BY id", "row 1"),
    ("SELECT * FROM pv", "error 42P01"),
    ("SELECT count(*) FROM pg_enum", "row 0"),
    ("CREATE TYPE mood AS ENUM ('a')", "CREATE TYPE"),
    ("DROP TYPE mood", "DROP TYPE"),
];

#[test]
fn values_are_labels_in_their_order() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(DEFINED);
    client.answers_first(ASKED);
    client.answers_first(ARRAYS);
    client.answers_first(CATALOG);
    client.answers_first(CHANGED);
    drop(client);
    // Another session reads the types from the file.
    let mut client = place.client();
    client.answers_first(DROPPED);
}

/// Statements of Prisma's and TypeORM's migrations that take a label away.
#[test]
fn a_migration_replaces_a_type_by_another() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE \"Role\" AS ENUM ('USER', 'ADMIN', 'GONE')", "CREATE TYPE"),
        (
            "CREATE TABLE \"User\" (\"id\" SERIAL NOT NULL, \"role\" \"Role\" NOT NULL DEFAULT 'USER', \
             CONSTRAINT \"User_pkey\" PRIMARY KEY (\"id\"))",
            "CREATE TABLE",
        ),
        ("CREATE INDEX \"User_role_idx\" ON \"User\"(\"role\")", "CREATE INDEX"),
        ("INSERT INTO \"User\" (\"role\") VALUES ('ADMIN'), (DEFAULT)", "INSERT 0 2"),
        ("DROP INDEX \"User_role_idx\"", "DROP INDEX"),
        ("BEGIN", "BEGIN"),
        ("CREATE TYPE \"Role_new\" AS ENUM ('USER', 'ADMIN')", "CREATE TYPE"),
        ("ALTER TABLE \"public\".\"User\" ALTER COLUMN \"role\" DROP DEFAULT", "ALTER TABLE"),
        (
            "ALTER TABLE \"User\" ALTER COLUMN \"role\" TYPE \"Role_new\" USING (\"role\"::text::\"Role_new\")",
            "ALTER TABLE",
        ),
        ("ALTER TYPE \"Role\" RENAME TO \"Role_old\"", "ALTER TYPE"),
        ("ALTER TYPE \"Role_new\" RENAME TO \"Role\"", "ALTER TYPE"),
        ("DROP TYPE \"public\".\"Role_old\"", "DROP TYPE"),
        ("ALTER TABLE \"User\" ALTER COLUMN \"role\" SET DEFAULT 'USER'", "ALTER TABLE"),
        ("COMMIT", "COMMIT"),
        ("INSERT INTO \"User\" DEFAULT VALUES RETURNING \"role\"", "row USER"),
        ("INSERT INTO \"User\" (\"role\") VALUES ('GONE')", "error 22P02"),
        ("SELECT string_agg(\"role\"::text, ',' ORDER BY \"role\", id) FROM \"User\"", "row USER,USER,ADMIN"),
        ("ALTER TABLE \"User\" ALTER COLUMN \"role\" DROP DEFAULT", "ALTER TABLE"),
        ("ALTER TABLE \"User\" ALTER COLUMN \"role\" TYPE text", "ALTER TABLE"),
        ("DROP TYPE \"Role\"", "DROP TYPE"),
        ("CREATE SCHEMA app", "CREATE SCHEMA"),
        ("CREATE TYPE app.kind AS ENUM ('a', 'b')", "CREATE TYPE"),
        ("CREATE TABLE app.t (k app.kind DEFAULT 'b')", "CREATE TABLE"),
        ("INSERT INTO app.t VALUES ('a'::app.kind) RETURNING k", "row a"),
        ("SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'app.t'::regclass", "row app.kind"),
        ("SELECT 'a'::kind", "error 42704"),
        ("DROP SCHEMA app CASCADE", "DROP SCHEMA"),
        ("SELECT count(*) FROM pg_enum", "row 0"),
    ]);
}

/// Drizzle and Sequelize create their types and keys so.
#[test]
fn a_definition_may_be_there_already() {
    let place = Place::new();
    let mut client = place.client();
    let block = |statement: &str| {
        format!("DO $$ BEGIN\n {statement};\nEXCEPTION\n WHEN duplicate_object THEN null;\nEND $$")
    };
    let made = block("CREATE TYPE \"public\".\"role\" AS ENUM('a', 'b;')");
    let sequelize = "DO 'BEGIN CREATE TYPE \"public\".\"enum_users_role\" AS ENUM(''it''''s'', ''b''); \
                     EXCEPTION WHEN duplicate_object THEN null; END'";
    let key = block(
        "ALTER TABLE \"t\" ADD CONSTRAINT \"k\" FOREIGN KEY (\"a\") REFERENCES \"public\".\"u\"(\"id\")",
    );
    client.query("CREATE TABLE u (id int PRIMARY KEY)");
    client.query("CREATE TABLE t (a int)");
    for text in [made.as_str(), sequelize, &key].into_iter().cycle().take(6) {
        assert_eq!(client.first(text), "DO", "{text}");
    }
    client.answers_first(&[
        ("SELECT enum_range(NULL::role), enum_range(NULL::enum_users_role)", "row {a,b;}|{it's,b}"),
        ("INSERT INTO t VALUES (1)", "error 23503"),
        ("SELECT count(*) FROM pg_constraint WHERE conname = 'k'", "row 1"),
        (&block("CREATE TABLE x (a int)"), "error 0A000"),
        (&block("CREATE TYPE a AS ENUM ('a'); CREATE TYPE b AS ENUM ('b')"), "error 0A000"),
        ("DO $$ BEGIN CREATE TYPE a AS ENUM ('a'); END $$", "error 0A000"),
        (&block("ALTER TABLE nosuch ADD CONSTRAINT k UNIQUE (a)"), "error 42P01"),
    ]);
}

/// The labels that a statement takes are those of the moment at which it runs.
#[test]
fn a_prepared_statement_takes_new_labels() {
    let place = Place::new();
    let (mut client, mut other) = (place.client(), place.client());
    client.query("CREATE TYPE mood AS ENUM ('sad', 'ok')");
    client.query("CREATE TABLE t (m mood)");
    let insert = "INSERT INTO t VALUES ($1) RETURNING m";
    client.parse("s", insert, &[]).describe("Ss");
    let described = client.sync();
    let oid = described.iter().find_map(|it| it.strip_prefix("parameters [")?.strip_suffix(']'));
    let oid = oid.unwrap_or_else(|| panic!("{described:?}"));
    assert_eq!(other.first("SELECT 'mood'::regtype::oid"), format!("row {oid}"));
    let mut run = |value: &str, format: u16| {
        client.bind(("", "s"), format, &[Some(value.as_bytes())], 0).execute("", 0).sync()
    };
    assert!(run("sad", 0).contains(&"row sad".to_owned()));
    assert!(run("ok", 1).contains(&"row ok".to_owned()), "binary");
    assert!(run("new", 0).contains(&"error 22P02".to_owned()));
    other.query("ALTER TYPE mood ADD VALUE 'new' BEFORE 'ok'");
    assert!(run("new", 0).contains(&"row new".to_owned()));
    other.query("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'");
    assert!(run("sad", 1).contains(&"error 22P02".to_owned()));
    assert!(run("blue", 1).contains(&"row blue".to_owned()));
    // Texts that differ in their literals alone share a translation.
    let literal = |label: &str| format!("INSERT INTO t VALUES ('{label}')");
    for label in ["blue", "ok", "ok"] {
        assert_eq!(other.first(&literal(label)), "INSERT 0 1");
    }
    client.query("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'");
    assert_eq!(other.first(&literal("ok")), "error 22P02");
    assert_eq!(other.first(&literal("fine")), "INSERT 0 1");
    let sorted = "SELECT string_agg(m::text, ',' ORDER BY m) FROM t";
    assert_eq!(other.first(sorted), "row blue,blue,blue,new,fine,fine,fine,fine");
}

#[test]
fn copy_takes_labels_alone() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TYPE mood AS ENUM ('sad', 'ok')");
    client.query("CREATE TABLE t (m mood, all_of mood[])");
    for (data, expected) in
        [("ok\t{sad}\n", "COPY 1"), ("x\t{}\n", "error 22P02"), ("ok\t{x}\n", "error 22P02")]
    {
        client.query("COPY t FROM STDIN");
        client.say(b'd', data.as_bytes());
        let found = client.say(b'c', b"").answers();
        assert!(found.contains(&expected.to_owned()), "{data}: {found:?}");
    }
    assert!(client.query("COPY t TO STDOUT").iter().any(|it| it.contains("ok\t{sad}")));
}

/// The places of labels stand in the SQL of views and checks, and labels do.
#[test]
fn labels_change_with_what_names_them() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE"),
        ("CREATE TABLE t (m mood CHECK (m > 'sad'))", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('sad')", "error 23514"),
        ("ALTER TYPE mood ADD VALUE 'x' BEFORE 'sad'", "ALTER TYPE"),
        ("INSERT INTO t VALUES ('x')", "error 23514"),
        ("INSERT INTO t VALUES ('ok')", "INSERT 0 1"),
        ("CREATE VIEW v AS SELECT m FROM t WHERE m = 'ok' ORDER BY m", "CREATE VIEW"),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE"),
        ("SELECT m FROM v", "row fine"),
        ("CREATE VIEW w AS SELECT 'x'::mood AS m", "CREATE VIEW"),
        ("SELECT m < 'sad' FROM w", "row t"),
        // A view of this session alone stands in the way.
        ("CREATE TEMP VIEW z AS SELECT m FROM t WHERE m > 'sad'", "CREATE VIEW"),
        ("ALTER TYPE mood ADD VALUE 'y'", "error 0A000"),
        ("DROP VIEW z", "DROP VIEW"),
        ("DROP TABLE t CASCADE", "DROP TABLE"),
        ("DROP TYPE mood", "error 2BP01"),
        ("DROP TYPE mood CASCADE", "DROP TYPE"),
        ("SELECT * FROM w", "error 42P01"),
    ]);
}

/// Columns of combined queries may have one name.
#[test]
fn combined_queries_are_sorted_by_the_column_at_its_place() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')", "CREATE TYPE"),
        (
            "SELECT 'ok'::mood AS x, 'happy'::mood AS x UNION ALL SELECT 'ok', 'sad' ORDER BY 2",
            "row ok|sad",
        ),
        (
            "SELECT 'sad'::mood AS x, 'happy'::mood AS x, 1 AS y UNION SELECT 'ok', 'sad', 2 \
             UNION SELECT 'happy', 'ok', 3 ORDER BY 2 DESC, y OFFSET 1 LIMIT 1",
            "row happy|ok|3",
        ),
        ("SELECT 'ok'::mood AS x, 1 AS x UNION ALL SELECT 'sad', 2 ORDER BY x", "error 42702"),
        ("SELECT 1 AS x, 2 AS x UNION ALL SELECT 2, 1 ORDER BY x", "error 42702"),
        ("SELECT 1 AS x, 2 AS x UNION ALL SELECT 2, 1 ORDER BY 2", "row 2|1"),
        (
            "SELECT (SELECT string_agg(a::text, ',') FROM (SELECT m.x AS x, 'ok'::mood AS x \
             UNION ALL SELECT 'happy', 'sad' ORDER BY 2) q(a, b)) FROM (SELECT 'ok'::mood AS x) m",
            "row happy,ok",
        ),
    ]);
}
