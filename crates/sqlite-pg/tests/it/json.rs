//! Parts of JSON values, as PostgreSQL 15 gives them.

use crate::client::Place;

const CASES: &[(&str, &str)] = &[
    ("SELECT '{\"a\": {\"b\" : [1, 2.50]}, \"a\":7}'::json -> 'a'", "row 7"),
    ("SELECT ' {\"a\": {\"b\" : [1, 2.50] } } '::json -> 'a'", "row {\"b\" : [1, 2.50] }"),
    ("SELECT '{\"a\":{\"b\":[1,2.50]}}'::jsonb -> 'a'", "row {\"b\": [1, 2.50]}"),
    ("SELECT '{\"a\": \"x\\n\\u00e4\\\"\"}'::jsonb ->> 'a'", "row x\nä\""),
    ("SELECT '{\"a\": \"x\"}'::json -> 'a'", "row \"x\""),
    ("SELECT '{\"a\": null}'::jsonb -> 'a'", "row null"),
    ("SELECT ('{\"a\": null}'::jsonb ->> 'a') IS NULL", "row t"),
    ("SELECT ('{\"a\": 1}'::jsonb -> 'b') IS NULL", "row t"),
    ("SELECT '[10, 20, 30]'::jsonb -> 1", "row 20"),
    ("SELECT '[10, 20, 30]'::json -> -1", "row 30"),
    ("SELECT ('[10, 20, 30]'::json -> 3) IS NULL", "row t"),
    ("SELECT ('[10, 20, 30]'::jsonb -> '1') IS NULL", "row t"),
    ("SELECT ('{\"1\": 2}'::jsonb -> 1) IS NULL", "row t"),
    ("SELECT '{\"1\": 2}'::jsonb -> '1'", "row 2"),
    ("SELECT '7'::jsonb -> 0", "row 7"),
    ("SELECT ('7'::json -> 0) IS NULL", "row t"),
    ("SELECT '{\"a\": [1, {\"b\": true}]}'::jsonb #> '{a,1,b}'", "row true"),
    ("SELECT '{\"a\": [1, {\"b\": \"t\"}]}'::json #>> ARRAY['a', '-1', 'b']", "row t"),
    ("SELECT ('{\"a\": [1]}'::jsonb #> '{a,x}') IS NULL", "row t"),
    ("SELECT ('7'::jsonb #> '{0}') IS NULL", "row t"),
    ("SELECT '7'::jsonb #> '{}'", "row 7"),
    (
        "SELECT '{\"a\": 1}'::jsonb ? 'a', '[\"a\", 1]'::jsonb ? 'a', '[1]'::jsonb ? '1', '\"a\"'::jsonb ? 'a'",
        "row t|t|f|t",
    ),
    (
        "SELECT jsonb_typeof('[]'), json_typeof(' null'), jsonb_typeof('{\"a\": 1}'::jsonb -> 'a')",
        "row array|null|number",
    ),
    ("SELECT jsonb_array_length('[1, [2, 3]]'), json_array_length('[]')", "row 2|0"),
    ("SELECT jsonb_array_length('{}')", "error 22023"),
    ("SELECT '{\"a\": 1}'::json ? 'a'", "error 0A000"),
    ("SELECT '{\"a\": \"\\u0000\"}'::json ->> 'a'", "error 22P05"),
    ("SELECT ('{\"a\": {\"b\": \"5\"}}'::jsonb -> 'a' ->> 'b')::int + 1", "row 6"),
];

#[test]
fn parts_of_json_are_those_of_the_server() {
    let place = Place::new();
    let mut client = place.client();
    for (text, expected) in CASES {
        let answers = client.query(text);
        let found = answers.iter().find(|it| it.starts_with("row ") || it.starts_with("error"));
        assert_eq!(found.map(String::as_str), Some(*expected), "{text}");
    }
    client.query("CREATE TABLE j (id INT PRIMARY KEY, d JSONB)");
    client.query("INSERT INTO j VALUES (1, '{\"n\": {\"k\": [\"v\"]}}'), (2, NULL)");
    let rows = client.query("SELECT id, d -> 'n' -> 'k' ->> 0 FROM j WHERE d #>> '{n,k,0}' = 'v' OR d IS NULL ORDER BY id");
    assert_eq!(rows[..3], ["columns id:23 ?column?:25", "row 1|v", "row 2|null"]);
    assert_eq!(client.query("CREATE INDEX ji ON j ((d ->> 'n'))")[0], "CREATE INDEX");
}

#[test]
fn json_stays_json_in_from_and_in_arrays() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (b TEXT)");
    client.query("INSERT INTO t VALUES ('x')");
    client.answers_first(&[
        ("SELECT j FROM t, to_json(t.b) AS j", "row \"x\""),
        ("SELECT j FROM t, LATERAL (SELECT to_json(t.b) AS j) AS l", "row \"x\""),
        ("SELECT j FROM t, LATERAL (SELECT to_json(t.b)::text AS j) AS l", "row \"x\""),
        ("SELECT (ARRAY[to_json(b)::text])[1] FROM t", "row \"x\""),
        ("SELECT (array_agg(to_json(b)::text))[1] FROM t", "row \"x\""),
        ("SELECT (ARRAY(SELECT to_json(b)::text FROM t))[1]", "row \"x\""),
        ("SELECT b = to_json(b)::text FROM t", "row f"),
        ("SELECT * FROM t RIGHT JOIN upper(t.b) AS u ON true", "error 42P10"),
        ("SELECT * FROM t FULL JOIN upper(b) AS u ON true", "error 42P10"),
        ("SELECT * FROM t RIGHT JOIN unnest(ARRAY[t.b]) AS u ON true", "error 42P10"),
        ("SELECT * FROM t RIGHT JOIN unnest(ARRAY['y']) AS u ON true", "row x|y"),
        ("SELECT * FROM t JOIN upper(t.b) AS u ON true", "row x|X"),
        ("SELECT * FROM t LEFT JOIN upper(t.b) AS u ON true", "row x|X"),
    ]);
}
