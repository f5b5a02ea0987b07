//! INSERTs with their values in the text: they share a statement with others that differ only in
//! these values, and no client can tell.

use std::fmt::Write as _;

use refrain_sqlite::{CacheStats, OpenOptions, Synchronous};

use crate::client::{Client, Place};

/// A column of each type that a table may have.
const COLUMNS: &[(&str, &str)] = &[
    ("i2", "SMALLINT"),
    ("i4", "INT"),
    ("i8", "BIGINT"),
    ("b", "BOOLEAN"),
    ("f4", "REAL"),
    ("f8", "DOUBLE PRECISION"),
    ("t", "TEXT"),
    ("v", "VARCHAR"),
    ("v3", "VARCHAR(3)"),
    ("c3", "CHAR(3)"),
    ("n", "NAME"),
    ("by", "BYTEA"),
    ("d", "DATE"),
    ("ti", "TIME"),
    ("ts", "TIMESTAMP"),
    ("tz", "TIMESTAMPTZ"),
    ("u", "UUID"),
    ("j", "JSON"),
    ("jb", "JSONB"),
    ("nn", "INT NOT NULL DEFAULT 7 CHECK (nn < 100)"),
    ("df", "TEXT DEFAULT 'left' CHECK (length(df) < 9)"),
];

/// Literals, and what may stand where one does.
const VALUES: &[&str] = &[
    "0",
    "1",
    "7",
    "-1",
    "- 2",
    "-/* sign */3",
    "+4",
    "- -5",
    "007",
    "99",
    "100",
    "32767",
    "32768",
    "-32768",
    "-32769",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "16777217",
    "9007199254740993",
    "1.5",
    "-1.5",
    "1.0",
    "-0.0",
    "0.1",
    ".5",
    "5.",
    "1e3",
    "1E-3",
    "-1e308",
    "1e309",
    "1e-400",
    "1e401",
    "0.30000000000000004",
    "123456789012345678901234567890",
    "1_000",
    "0x1F",
    "1a",
    "''",
    "' '",
    "'a'",
    "'abc'",
    "'abcd'",
    "'abc   '",
    "'ä€😀'",
    "'ä€😀x'",
    "'it''s'",
    "'1'",
    "' 42 '",
    "'-32768'",
    "'32768'",
    "'2147483648'",
    "'9223372036854775808'",
    "'1.5'",
    "'1e3'",
    "'1e400'",
    "'NaN'",
    "'Infinity'",
    "'-inf'",
    "'-0'",
    "'true'",
    "'f'",
    "'yes'",
    "'maybe'",
    "'null'",
    "'NULL'",
    "'2024-02-29'",
    "'2023-02-29'",
    "'2024-13-01'",
    "'12:34:56.789'",
    "'25:00'",
    "'2024-02-29 12:34:56'",
    "'2024-02-29 12:34:56.789012+02'",
    "'2024-02-29T12:34:56Z'",
    "'now'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "'{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}'",
    "'a0eebc99'",
    "'{\"b\": 1, \"a\": [1, 2]}'",
    "'{\"a\": }'",
    "'[]'",
    "'\\x00ff'",
    "'\\x0'",
    "'\\xzz'",
    "'a\\001'",
    "'a\\b'",
    "'twelve chars'",
    "E'a'",
    "E'a\\nb'",
    "E'\\\\x41'",
    "E'\\x41\\101\\u00e4'",
    "E'it''s'",
    "E'it\\'s'",
    "E'\\xff'",
    "$$a$$",
    "$tag$it's$tag$",
    "$$12$$",
    "N'a'",
    "B'1'",
    "X'1F'",
    "U&'\\00e4'",
    "'a' 'b'",
    "'a'\n'b'",
    "NULL",
    "DEFAULT",
    "TRUE",
    "FALSE",
    "(1)",
    "('a')",
    "1 + 1",
    "'a' || 'b'",
    "lower('A')",
    "current_user",
    "'1'::int",
    "'2024-02-29'::date",
    "date '2024-02-29'",
    "timestamp '2024-02-29 1:02'",
    "CAST('1' AS smallint)",
    "CAST(1 AS bigint)",
    "'1.5'::float8",
    "'abcd'::varchar(3)",
    "'ab'::text",
    "'a'::nosuch",
    "'{}'::jsonb",
    "'\\x41'::bytea",
    "-'1'::int",
    "(SELECT 1)",
    "nosuch",
    "$1",
];

fn quick() -> OpenOptions {
    OpenOptions { synchronous: Synchronous::Off, ..OpenOptions::default() }
}

/// A table with all columns, and a client that has it; one that is `plain` has a temporary table
/// besides, so that each of its texts is translated by itself.
fn table(plain: bool) -> (Place, Client) {
    let place = Place::with(quick());
    let mut client = place.client();
    let mut text = "CREATE TABLE t (id SERIAL PRIMARY KEY".to_owned();
    COLUMNS.iter().for_each(|(name, is)| write!(text, ", {name} {is}").unwrap());
    assert_eq!(client.query(&(text + ")")), ["CREATE TABLE", "ready I"]);
    client.query(
        "CREATE TABLE k (k INT PRIMARY KEY, x TEXT, s TEXT GENERATED ALWAYS AS (x || k) STORED)",
    );
    client.query("CREATE TABLE s (k BIGSERIAL PRIMARY KEY, x TEXT UNIQUE)");
    client.query("CREATE TABLE a (k BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x TEXT)");
    if plain {
        assert_eq!(client.query("CREATE TEMP TABLE own (x INT)"), ["CREATE TABLE", "ready I"]);
    }
    (place, client)
}

/// All rows of a table, each value as SQLite keeps it.
fn rows(place: &Place, table: &str) -> Vec<String> {
    let file = rusqlite::Connection::open(&place.path).unwrap();
    let mut select = file.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
    let count = select.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..count).map(|column| format!("{:?}", row.get_ref(column).unwrap()));
        Ok(values.collect::<Vec<_>>().join(" "))
    };
    select.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// Both clients get the same bytes for each text, and the same rows come of it.
fn same(texts: &[String], extended: bool) {
    let ((place, mut client), (other, mut plain)) = (table(false), table(true));
    for text in texts {
        let say = |client: &mut Client| match extended {
            false => client.query_bytes(text),
            true => {
                client.parse("", text, &[]).describe("S");
                client.bind(("", ""), 0, &[], 0).describe("P").execute("", 0);
                client.sync_bytes()
            }
        };
        let (is, due) = (say(&mut client), say(&mut plain));
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(is, due, "{text}:\n{}\n{}", words(&is), words(&due));
    }
    for table in ["t", "k", "s", "a"] {
        let (is, due) = (rows(&place, table), rows(&other, table));
        for (is, due) in is.iter().zip(&due) {
            assert_eq!(is, due);
        }
        assert_eq!(is.len(), due.len());
    }
}

#[test]
fn any_literal_in_any_column_means_the_same() {
    for (column, _) in COLUMNS {
        let not_null = if *column == "nn" { "" } else { ", nn" };
        let seven = if *column == "nn" { "" } else { ", 7" };
        let text =
            |value: &&str| format!("INSERT INTO t ({column}{not_null}) VALUES ({value}{seven})");
        let mut texts: Vec<String> = VALUES.iter().map(text).collect();
        // A second time, so that each has others before it that are kept.
        texts.extend(VALUES.iter().rev().map(text));
        same(&texts, false);
    }
}

#[test]
fn so_it_does_in_the_extended_protocol() {
    for (column, _) in COLUMNS.iter().filter(|(column, _)| *column != "nn") {
        let text = |value: &&str| {
            format!("INSERT INTO t ({column}, nn) VALUES ({value}, 7) RETURNING {column}, id AS n")
        };
        let texts: Vec<String> = VALUES.iter().map(text).collect();
        same(&texts, true);
    }
}

#[test]
fn all_forms_of_an_insert_mean_the_same() {
    let forms = [
        "INSERT INTO k VALUES ({}, 'x')",
        "INSERT INTO k (x, k) VALUES ('x', {}) RETURNING *",
        "INSERT INTO k (k, x) VALUES ({}, 'a'), (1{}, 'b')",
        "INSERT INTO k (k, x) VALUES ({}, DEFAULT), (2{}, 'b'), (3{}, NULL)",
        "INSERT INTO k AS it (k, x) VALUES ({}, 'a') ON CONFLICT (k) DO UPDATE SET x = excluded.x || it.x",
        "INSERT INTO k (k, x) VALUES ({}, 'a'), ({}, 'b') ON CONFLICT (k) DO UPDATE SET x = excluded.x",
        "INSERT INTO k (k, x) VALUES ({}, 'a') ON CONFLICT (k) DO UPDATE SET x = 'set {}' WHERE k.k > {}",
        "INSERT INTO k (k, x) VALUES ({}, 'c') ON CONFLICT DO NOTHING RETURNING k, {} AS n",
        "INSERT OR REPLACE INTO k (k, x) VALUES ({}, 'r')",
        "REPLACE INTO k (k, x) VALUES ({}, 's')",
        "INSERT OR IGNORE INTO k (k, x) VALUES ({}, 's')",
        "INSERT INTO k (k, x, s) VALUES ({}, 'a', 'given')",
        "INSERT INTO k (k, x) SELECT {}, 'a'",
        "INSERT INTO k (k) VALUES ({}, 'too many')",
        "INSERT INTO k (k, x) VALUES ({})",
        "INSERT INTO k (k, k) VALUES ({}, 1)",
        "INSERT INTO k (nosuch) VALUES ({})",
        "INSERT INTO nosuch VALUES ({})",
        "INSERT INTO k (x) VALUES ('{}')",
        "INSERT INTO public.k (k, x) VALUES ({}, 'p');",
        "insert into K (K, X) values ({}, 'p') ; INSERT INTO k (k) VALUES (4{})",
        "-- a comment\nINSERT INTO k (k) /* 1 'a' */ VALUES ({}) -- 2",
        "INSERT INTO s VALUES ({}, 's{}')",
        "INSERT INTO s (x) VALUES ('n{}')",
        "INSERT INTO s VALUES (NULL, '{}')",
        "INSERT INTO s VALUES ('{}', 'text key')",
        "INSERT INTO s VALUES (-{}, 'minus {}'::text)",
        "INSERT INTO a VALUES ({}, 'x')",
        "INSERT INTO a (k, x) VALUES (DEFAULT, 'a{}')",
        "INSERT INTO a (x) VALUES ('a{}') RETURNING k, x, 'const' AS c",
        "INSERT INTO t (t, nn, ts) VALUES ('{}', {}, '2024-02-29 00:00:{}')",
        "WITH w AS (SELECT {} AS v) INSERT INTO k (k) SELECT v FROM w",
        "INSERT INTO k (k, x) VALUES ({}, strftime('%Y', '2024-01-01'))",
        "INSERT INTO k (k, x) VALUES ({}, 'unended)",
        "INSERT INTO k (k, x) VALUES ({}, $1)",
    ];
    let numbers = ["11", "12", "11", "60", "61", "99", "3000000000", "13"];
    let mut texts = Vec::new();
    for number in numbers {
        texts.extend(forms.iter().map(|form| form.replace("{}", number)));
    }
    same(&texts, false);
    texts.truncate(forms.len() * 3);
    same(&texts, true);
}

fn stats(place: &Place) -> CacheStats {
    let mut stats = CacheStats::default();
    place.pool.inspect(|connection| stats += connection.cache_stats());
    stats
}

#[test]
fn other_values_compile_nothing() {
    let place = Place::with(quick());
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, v INT, x VARCHAR(9), d DATE, f FLOAT, b BYTEA)",
    );
    let text = |number: u32| {
        let day = number % 28 + 1;
        format!(
            "INSERT INTO t (v, x, d, f, b) VALUES ({number}, 'n{number}', '2024-02-{day}', -{number}.5, '\\x{day:02}'), \
             (-{number}, E'\\u00e4{number}', date '2024-02-{day}', {number}, NULL)"
        )
    };
    for number in 0..3 {
        assert_eq!(client.query(&text(number)), ["INSERT 0 2", "ready I"]);
    }
    let before = stats(&place);
    for number in 3..50 {
        assert_eq!(client.query(&text(number)), ["INSERT 0 2", "ready I"]);
        client.parse("", &text(number), &[]).bind(("", ""), 0, &[], 0).execute("", 0);
        assert_eq!(client.sync(), ["parsed", "bound", "INSERT 0 2", "ready I"]);
    }
    let after = stats(&place);
    assert_eq!(after.misses, before.misses);
    assert_eq!(after.entries, before.entries);
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 194");
}

#[test]
fn a_changed_table_is_noticed() {
    let place = Place::with(quick());
    let (mut client, mut other) = (place.client(), place.client());
    let insert = |client: &mut Client, value: &str| {
        client.query(&format!("INSERT INTO t (v) VALUES ({value}) RETURNING v"))
    };
    other.query("CREATE TABLE t (v INT)");
    for value in ["1", "2", "3"] {
        let row = format!("row {value}");
        assert_eq!(insert(&mut client, value), ["columns v:23", &row, "INSERT 0 1", "ready I"]);
    }
    let file = rusqlite::Connection::open(&place.path).unwrap();
    for (table, answers, fails) in [
        ("CREATE TABLE t (v BIGINT)", ["columns v:20", "row 40000", "INSERT 0 1", "ready I"], ""),
        ("CREATE TABLE t (v SMALLINT)", ["", "", "", ""], "22003"),
        ("CREATE TABLE t (v FLOAT)", ["columns v:701", "row 40000", "INSERT 0 1", "ready I"], ""),
        ("CREATE TABLE t (v TEXT)", ["columns v:25", "row 40000", "INSERT 0 1", "ready I"], ""),
        ("CREATE TABLE t (v DATE)", ["", "", "", ""], "42804"),
        ("CREATE TABLE t (w DATE)", ["", "", "", ""], "42703"),
        ("CREATE TABLE t (v INT)", ["columns v:23", "row 40000", "INSERT 0 1", "ready I"], ""),
    ] {
        file.execute_batch(&format!("DROP TABLE t; {table}")).unwrap();
        for _ in 0..3 {
            let is = insert(&mut client, "40000");
            match fails {
                "" => assert_eq!(is, answers, "{table}"),
                state => assert_eq!(is, [&format!("error {state}"), "ready I"], "{table}"),
            }
        }
    }
    // What a parse has prepared is prepared anew, too.
    client.parse("", "INSERT INTO t (v) VALUES ('8') RETURNING v", &[]);
    assert_eq!(client.sync(), ["parsed", "ready I"]);
    file.execute_batch("DROP TABLE t; CREATE TABLE t (v TEXT)").unwrap();
    client.bind(("", ""), 0, &[], 0).execute("", 0);
    assert_eq!(client.sync(), ["bound", "row 8", "INSERT 0 1", "ready I"]);
}
