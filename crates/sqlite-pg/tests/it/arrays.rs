//! Arrays in expressions, and as parameters.

use crate::client::Place;

/// Queries with the row that they return.
const ROWS: &[(&str, &str)] = &[
    (
        "SELECT ARRAY[1, 2], ARRAY['a b', NULL, 'null'], ARRAY[true], ARRAY[]::text[]",
        "{1,2}|{\"a b\",NULL,\"null\"}|{t}|{}",
    ),
    (
        "SELECT '{3, NULL}'::int[], ('{a,b}'::text[])[2], (ARRAY[7])[0], (ARRAY[7])[2]",
        "{3,NULL}|b|null|null",
    ),
    (
        "SELECT 1 = ANY (ARRAY[1, 2]), 3 = ANY ('{1,2}'), 3 = ANY ('{1,NULL}'), NULL = ANY ('{a}')",
        "t|f|null|null",
    ),
    ("SELECT 1 <> ALL (ARRAY[2, 3]), 2 <> ALL (ARRAY[2, NULL]), 1 <> ALL ('{2,NULL}')", "t|f|null"),
    (
        "SELECT 2 < ANY (ARRAY[1, 3]), 2 > ALL (ARRAY[1, NULL]), 2 > ALL (ARRAY[3, NULL]), 1 < ALL ('{}')",
        "t|null|f|t",
    ),
    ("SELECT 1 = ANY (NULL::int[]), 'b' ~ ANY (ARRAY['a', '^b$'])", "null|t"),
    (
        "SELECT array_length(ARRAY[1, 2], 1), array_length('{}'::int[], 1), cardinality('{}'::int[])",
        "2|null|0",
    ),
    (
        "SELECT array_to_string(ARRAY[1, NULL, 3], '-'), array_position(ARRAY['a', 'b'], 'b')",
        "1-3|2",
    ),
    ("SELECT ARRAY[1, 2] = '{1,2}', ARRAY['a'] <> ARRAY['b'], ARRAY[1, 2]::text", "t|t|{1,2}"),
    (
        "SELECT array_agg(a ORDER BY a DESC), array_agg(b), ARRAY(SELECT a FROM t WHERE a > 1 ORDER BY a) FROM t",
        "{3,2,1}|{x,y,NULL}|{2,3}",
    ),
    ("SELECT array_agg(a) FROM t WHERE a > 9", "null"),
    ("SELECT string_agg(a || b, ',' ORDER BY a) FROM t WHERE b = ANY (ARRAY['x', 'y'])", "1x,2y"),
    ("SELECT sum(u.n), max(o) FROM t, unnest(ARRAY[a, 10]) WITH ORDINALITY AS u (n, o)", "36|2"),
    ("SELECT sum(n) FROM t CROSS JOIN LATERAL generate_series(1, t.a) AS n", "10"),
    (
        "SELECT json_build_object('a', 1, 'b', true, 'c', NULL::text)",
        "{\"a\" : 1, \"b\" : true, \"c\" : null}",
    ),
];

/// An array has one text, from a text or from SQLite's functions.
#[test]
fn an_array_of_floats_has_one_text() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE f (f DOUBLE PRECISION[] UNIQUE)");
    for number in ["5e-5", "1e16", "-0.0", "inf", "-inf", "0.1", "1e300", "1", "123456789.125"] {
        let insert = format!("INSERT INTO f VALUES ('{{{number}}}')");
        assert_eq!(client.first(&insert), "INSERT 0 1", "{number}");
        let same = format!("INSERT INTO f VALUES (ARRAY['{number}'::float8])");
        assert_eq!(client.first(&same), "error 23505", "{number}");
        let found = format!("SELECT count(*) FROM f WHERE f = ARRAY['{number}'::float8]");
        assert_eq!(client.first(&found), "row 1", "{number}");
        let bytes: f64 = number.parse().unwrap();
        let array =
            [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 189, 0, 0, 0, 1, 0, 0, 0, 1][..], &[0, 0, 0, 8]];
        let array = [&array.concat()[..], &bytes.to_be_bytes()].concat();
        client.parse("", "SELECT count(*) FROM f WHERE f = $1", &[1022]);
        let rows = client.bind(("", ""), 1, &[Some(&array)], 0).execute("", 0).sync();
        assert_eq!(rows[2], "row 1", "{number}");
        client.query("DELETE FROM f");
    }
}

/// Queries with the SQLSTATE of their error.
const REFUSED: &[(&str, &str)] = &[
    ("SELECT ARRAY[ARRAY[1]]", "0A000"),
    ("SELECT '{{1}}'::int[]", "0A000"),
    ("SELECT '{1'::int[]", "22P02"),
    ("SELECT ARRAY['a']::int[]", "22P02"),
    ("SELECT ARRAY[]", "42P18"),
    ("SELECT ARRAY[1] < ARRAY[2]", "0A000"),
    ("SELECT array_agg(a) AS s FROM t ORDER BY s", "0A000"),
    ("SELECT unnest(ARRAY[1]), count(*) FROM t", "0A000"),
    ("SELECT 1 FROM t WHERE unnest(ARRAY[a]) = 1", "0A000"),
    ("SELECT 1 = ANY (2)", "42809"),
    ("SELECT 'a' ~ '(a)\\1'", "0A000"),
    ("CREATE TABLE n (a VARCHAR(9)[])", "0A000"),
];

#[test]
fn arrays_mean_what_they_mean_to_the_server() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)");
    client.query("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)");
    for (text, row) in ROWS {
        assert_eq!(client.query(text)[1], format!("row {row}"), "{text}");
    }
    let rows = client.query("SELECT unnest(ARRAY[1, 2, 3]) AS a, unnest('{x}'::text[]), generate_subscripts(ARRAY[8, 9], 1)");
    assert_eq!(
        rows[..4],
        [
            "columns a:23 unnest:25 generate_subscripts:23",
            "row 1|x|1",
            "row 2|null|2",
            "row 3|null|null"
        ]
    );
    for (text, sqlstate) in REFUSED {
        let found = client.query(text);
        assert!(found.contains(&format!("error {sqlstate}")), "{text}: {found:?}");
    }
}

/// Some operators and functions write their operands several times, at each level.
#[test]
fn nested_calls_do_not_grow_without_end() {
    let place = Place::new();
    let mut client = place.client();
    let appended = format!("SELECT cardinality(array[1]{})", " || 1".repeat(30));
    let json = format!("SELECT {}1{}", "to_json(".repeat(30), ")".repeat(30));
    let quoted = format!("SELECT {}'a'{}", "quote_literal(".repeat(30), ")".repeat(30));
    for text in [appended, json, quoted] {
        assert_eq!(client.query(&text), ["error 54001", "ready I"], "{text}");
    }
    let short = client.query("SELECT cardinality(array[1] || 1 || 2 || 3)");
    assert_eq!(short[1], "row 4");
    // A long text may have long SQL.
    let list = (0..20_000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(client.query(&format!("SELECT 7 IN ({list})"))[1], "row t");
}
