//! Queries whose meaning is not seen in their words.

use crate::client::{Client, Place};

/// What a query is answered, without what says that the server is ready.
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
