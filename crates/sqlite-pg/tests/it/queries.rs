//! Queries whose text does not show the difference in meaning between the two databases.

use crate::client::{Client, Place};

/// Runs a query. Returns the replies without ReadyForQuery.
fn answers(client: &mut Client, text: &str) -> Vec<String> {
    let mut answers = client.query(text);
    answers.pop();
    answers
}

#[test]
fn a_column_of_using_that_takes_another_type_is_no_column_of_its_table() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (f INT, g INT); CREATE TABLE u (f BIGINT PRIMARY KEY, h INT)");
    client.query("INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1, 2)");
    for text in [
        "SELECT t.f FROM t LEFT JOIN u USING (f) GROUP BY f",
        "SELECT t.f FROM t JOIN u USING (f) GROUP BY f",
        "SELECT f FROM t JOIN u USING (f) GROUP BY t.f",
        "SELECT t.f FROM t FULL JOIN u USING (f) GROUP BY f",
    ] {
        assert_eq!(answers(&mut client, text), ["error 42803"], "{text}");
    }
    for text in [
        "SELECT f FROM t LEFT JOIN u USING (f) GROUP BY f",
        "SELECT f FROM t LEFT JOIN u USING (f) GROUP BY t.f",
        "SELECT f FROM t JOIN u USING (f) GROUP BY u.f",
        "SELECT u.f FROM t JOIN u USING (f) GROUP BY f",
        "SELECT f FROM t FULL JOIN u USING (f) GROUP BY t.f, u.f",
    ] {
        assert_eq!(answers(&mut client, text), ["columns f:20", "row 1", "SELECT 1"], "{text}");
    }
    let settled = "SELECT f, h FROM t RIGHT JOIN u USING (f) GROUP BY u.f";
    assert_eq!(answers(&mut client, settled)[1], "row 1|2");
}

#[test]
fn what_is_made_of_constants_is_one() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (a INT)");
    for (value, expected) in [
        ("mod(1, 0)", "22012"),
        ("abs(('-2147483648')::int)", "22003"),
        ("1 / mod(4, 2)", "22012"),
        ("1 / length('')", "22012"),
        ("1 / (CASE WHEN 1 = 2 THEN a WHEN true THEN 0 END)", "22012"),
        ("1 / coalesce(NULL, nullif(1, 1), 0, a)", "22012"),
        ("1 / (1 & 2)", "22012"),
        ("1 / (a > 1 AND 1 = 2)::int", "22012"),
        ("1 / (NOT true)::int", "22012"),
        ("1 / (1 IN (2, 3) OR NULL IS NOT NULL OR true IS FALSE)::int", "22012"),
        ("1 / ('a' LIKE 'b%')::int", "22012"),
        ("1 / ('2024-01-01'::date - '2024-01-01'::date)", "22012"),
        ("'2024-01-01'::date + 2147483647", "22008"),
        ("('a' || 'b')::int", "22P02"),
        ("coalesce(nullif(1, 1), 1 / 0)", "22012"),
    ] {
        let text = format!("SELECT {value} FROM t");
        assert_eq!(
            answers(&mut client, &text).last().unwrap(),
            &format!("error {expected}"),
            "{text}"
        );
    }
    for value in [
        "1 / (a - a)",
        "CASE WHEN a > 1 THEN 1 END",
        "coalesce(1, 1 / 0)",
        "(1 + random())::int",
        "('x' || 'y')::date",
        "('12x'::varchar(2))::int",
        "1 / sum(0)",
        "1 / nullif(0, 0)",
    ] {
        let text = format!("SELECT {value} FROM t WHERE a > 0");
        assert!(answers(&mut client, &text)[0].starts_with("columns"), "{text}");
    }
}

#[test]
fn what_both_refuse_is_refused_by_the_same_name() {
    let place = Place::new();
    let mut client = place.client();
    client.query(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); CREATE TABLE excluded (a INT PRIMARY KEY)",
    );
    for (text, expected) in [
        ("ALTER TABLE t DROP COLUMN xmin", "0A000"),
        ("CREATE TABLE x (a INT DEFAULT (t.a))", "0A000"),
        ("CREATE TABLE x (a INT DEFAULT (b))", "0A000"),
        ("CREATE TABLE x (a INT, FOREIGN KEY (b) REFERENCES nosuch)", "42P01"),
        ("CREATE TABLE x (a INT, FOREIGN KEY (b) REFERENCES t)", "42703"),
        ("CREATE TABLE t (a INT REFERENCES t (a), b INT REFERENCES excluded (b))", "42P07"),
        ("INSERT INTO excluded VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a", "42P09"),
        ("SELECT '\"\\u0000\"'::jsonb", "22P05"),
        ("SELECT '{\"a\": \"\\u0000\"'::jsonb", "22P02"),
        ("SELECT '\\xabc'::bytea", "22023"),
        ("SELECT '\\xabcx'::bytea", "22023"),
        ("SELECT '\\8'::bytea", "22P02"),
        ("SELECT 1 FROM t HAVING max(a) > 0", "0A000"),
    ] {
        assert_eq!(answers(&mut client, text), [format!("error {expected}")], "{text}");
    }
    assert_eq!(answers(&mut client, "SELECT max(a) FROM t HAVING max(a) IS NULL")[1], "row null");
}

#[test]
fn with_is_what_postgresql_makes_of_it_or_refused() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (f INT); INSERT INTO t VALUES (1), (2); CREATE TABLE o (f INT); INSERT INTO o VALUES (7)");
    let recursion = |tail: &str| {
        format!(
            "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 4 {tail}) SELECT * FROM x"
        )
    };
    for (text, expected) in [
        (&*recursion("ORDER BY 1"), "0A000"),
        (&*recursion("LIMIT 2"), "0A000"),
        (&*recursion("LIMIT 2 OFFSET 1"), "0A000"),
        (&*recursion("FOR UPDATE"), "0A000"),
        ("SELECT f, (WITH c AS (SELECT 1) SELECT count((SELECT t.f FROM c))) FROM t", "0A000"),
        (
            "SELECT f, (WITH c AS (SELECT 1) SELECT count((SELECT t.f FROM c))) FROM t GROUP BY f",
            "0A000",
        ),
        ("SELECT f, (SELECT count(t.f)) FROM t", "0A000"),
        (
            "WITH RECURSIVE x(n) AS (WITH i AS (SELECT 2 FROM x) SELECT * FROM i UNION SELECT * FROM x) SELECT * FROM x",
            "42P19",
        ),
        ("SELECT (WITH c(g) AS (SELECT t.f) SELECT (SELECT g FROM c) FROM o AS t) FROM t", "0A000"),
        ("CREATE TABLE foo (with baz)", "42601"),
        ("CREATE TABLE foo (WITH ordinality)", "42601"),
    ] {
        assert_eq!(answers(&mut client, text), [format!("error {expected}")], "{text}");
    }
    for (text, expected) in [
        ("SELECT (WITH c(g) AS (VALUES (f)) SELECT (SELECT g FROM c)) FROM t", "1 2"),
        ("SELECT (WITH c(g) AS (VALUES (f)) VALUES ((SELECT g FROM c))) FROM t", "1 2"),
        ("SELECT (SELECT max(column1) FROM (VALUES (t.f), (t.f + 1)) AS v) FROM t", "2 3"),
        ("SELECT (VALUES (f), (f + 1) ORDER BY 1 DESC LIMIT 1) FROM t", "2 3"),
        ("SELECT (SELECT count(t.f + o.f) FROM o) FROM t", "1 1"),
        ("SELECT (SELECT sum(t.f + o.f) FROM o GROUP BY o.f) FROM t", "8 9"),
        (
            "WITH RECURSIVE x(n) AS (SELECT 2 UNION SELECT 1 ORDER BY 1 LIMIT 1) SELECT * FROM x",
            "1",
        ),
        (
            "WITH RECURSIVE x(n) AS (WITH RECURSIVE s(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM s WHERE i < 2) \
          SELECT i FROM s UNION ALL SELECT n + 1 FROM x WHERE n < 3) SELECT * FROM x ORDER BY 1",
            "1 2 2 3 3",
        ),
        ("SELECT (WITH c(g) AS (SELECT t.f) SELECT (SELECT g FROM c) FROM o) FROM t", "1 2"),
    ] {
        let rows = answers(&mut client, text);
        let rows: Vec<&str> = rows.iter().filter_map(|row| row.strip_prefix("row ")).collect();
        assert_eq!(rows.join(" "), expected, "{text}");
    }
}

#[test]
fn the_right_of_an_outer_join_sees_its_left_in_no_function() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (a INT); INSERT INTO t VALUES (2)");
    for text in [
        "SELECT n FROM t RIGHT JOIN generate_series(1, t.a) n ON true",
        "SELECT n FROM t FULL JOIN generate_series(1, a) n ON true",
        "SELECT n FROM t RIGHT JOIN (t u JOIN generate_series(1, t.a) n ON true) ON true",
        "SELECT (SELECT n FROM t RIGHT JOIN generate_series(1, t.a) n ON true) FROM t",
    ] {
        assert_eq!(answers(&mut client, text), ["error 42P10"], "{text}");
    }
    for text in [
        "SELECT n FROM t LEFT JOIN generate_series(1, t.a) n ON true",
        "SELECT n FROM t RIGHT JOIN generate_series(1, 2) n ON t.a > 0",
        "SELECT n FROM t RIGHT JOIN t u ON true LEFT JOIN generate_series(1, t.a) n ON true",
        "SELECT n FROM t v RIGHT JOIN (t JOIN generate_series(1, t.a) n ON true) ON v.a > 0",
    ] {
        let expected = ["columns n:23", "row 1", "row 2", "SELECT 2"];
        assert_eq!(answers(&mut client, text), expected, "{text}");
    }
}
