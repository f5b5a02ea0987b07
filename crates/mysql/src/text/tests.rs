//! Tests of what is read from texts.

use super::words::{WORD_BYTES_MAX, WORDS};
use super::*;
use crate::insert_id::Uses;

fn of(text: &str) -> Facts {
    facts(text.as_bytes(), Reads::default())
}

#[test]
fn the_table_is_in_order() {
    assert!(WORDS.is_sorted_by(|(a, _), (b, _)| a < b));
    assert!(WORDS.iter().all(|(word, _)| word.len() <= WORD_BYTES_MAX));
}

#[test]
fn what_pins() {
    let cases = [
        ("SELECT get_lock('a', 1)", Pins::USER_LOCK),
        ("create temporary table t as select 1", Pins::VARIABLES),
        ("SELECT 'get_lock', \"x\\\" get_lock\", `get_lock`", Pins::NONE),
        ("SELECT 1 -- get_lock\n, 2 # get_lock\n /* get_lock */", Pins::NONE),
        ("SELECT /*!50000 GET_LOCK('a', 1) */", Pins::USER_LOCK),
        ("SELECT 1 INTO @a", Pins::VARIABLES),
        ("SELECT @b := 2", Pins::VARIABLES),
        ("SELECT 1 INTO /* there */ -- so\n @a", Pins::VARIABLES),
        ("# first\nSET @a = 1", Pins::VARIABLES),
        ("SELECT @b, @@sql_mode", Pins::NONE),
        ("SET @a = 1", Pins::VARIABLES),
        ("SET @@a = 1", Pins::NONE),
        ("SET @@PSEUDO_thread_id = 1", Pins::VARIABLES),
        ("SET @@character_set_database = 1", Pins::VARIABLES),
        ("SET @@Timestamp := 1", Pins::VARIABLES),
        ("SET @@`sql_mode` = ''", Pins::VARIABLES),
        ("SET @@session_track_schema = 1", Pins::NONE),
        ("SET x = @@pseudo_thread_id, @@session.pseudo_thread_id = 1", Pins::NONE),
        ("CALL p(1, @a)", Pins::VARIABLES),
        ("GET DIAGNOSTICS CONDITION 1 @a = NUMBER", Pins::VARIABLES),
        ("LOAD DATA INFILE 'x' INTO TABLE t (@a, b)", Pins::VARIABLES),
        ("CALL p(@@sql_mode)", Pins::NONE),
        ("handler t open", Pins::HANDLER),
        ("(SELECT handler FROM t)", Pins::NONE),
        ("SELECT 1; FLUSH TABLES WITH READ LOCK", Pins::GLOBAL_LOCK),
        ("SET ROLE admin", Pins::ROLE),
        ("SELECT role FROM t", Pins::NONE),
    ];
    for (text, due) in cases {
        assert_eq!(of(text).pins, due, "{text}");
    }
}

#[test]
fn variables_without_a_scope() {
    for (text, due) in [
        ("SET @@sql_mode = ''", true),
        ("set @@autocommit=0", true),
        ("SET a = 1, @@b := 2", true),
        ("SELECT 1; SET @@sql_mode = ''", true),
        ("/*!40101 SET @@sql_mode='' */", true),
        ("SET @@`sql_mode` = ''", true),
        ("SET @@sql_mode /* so */ = ''", true),
        ("SET @@session.sql_mode = ''", false),
        ("SET @@local . sql_mode = ''", false),
        ("SET @@global.sql_mode = @@sql_mode", false),
        ("SET sql_mode = CONCAT(@@sql_mode, ',ANSI'), time_zone = ''", false),
        ("SELECT @@sql_mode = ''", false),
        ("SET x = '@@sql_mode = 1'", false),
    ] {
        assert_eq!(of(text).scope == Scope::Missing, due, "{text}");
    }
}

#[test]
fn other_facts() {
    assert!(of("a; b").has_several && !of("a ; -- b").has_several && !of("';'").has_several);
    assert!(of("LOAD DATA LOCAL INFILE 'x'").loads);
    for (text, due) in [
        ("SHOW WARNINGS", (false, true)),
        ("SELECT ROW_COUNT( )", (true, false)),
        ("SELECT @@session.warning_count", (false, true)),
        ("GET DIAGNOSTICS CONDITION 1 @a = NUMBER", (true, true)),
        ("SELECT errors, warnings, identity, warning_count FROM log", (false, false)),
        ("UPDATE s SET id = LAST_INSERT_ID(id + 1)", (false, false)),
        ("SELECT t.last_insert_id FROM t", (false, false)),
    ] {
        let Memory { counts, conditions, .. } = of(text).asks;
        assert_eq!((counts, conditions), due, "{text}");
    }
    for (text, due) in [
        ("COMMIT RELEASE", true),
        ("rollback work and no chain release", true),
        ("COMMIT AND NO CHAIN NO RELEASE", false),
        ("RELEASE SAVEPOINT s", false),
        ("SELECT 1; COMMIT RELEASE", true),
    ] {
        assert_eq!(of(text).releases, due, "{text}");
    }
    assert!(of("SELECT FOUND_ROWS()").asks.found_rows);
    assert_eq!(of("SELECT LAST_INSERT_ID()").asks, Memory::default());
    for (text, due) in [
        ("SELECT CONNECTION_ID ( )", Number::Asked),
        ("SELECT connection_id FROM t", Number::Unasked),
        ("INSERT INTO t (connection_id, a) VALUES (1, 2)", Number::Unasked),
    ] {
        assert_eq!(of(text).number, due, "{text}");
    }
    assert_eq!((of("kill 5").verb, of("use x").verb), (Verb::Kill, Verb::Use));
    assert_eq!(of("do 1; kill 5").verb, Verb::Kill);
    let plain = Reads { plain_backslash: true, ..Reads::default() };
    assert_eq!(facts(b"select '\\', get_lock('a', 1)", plain).pins, Pins::USER_LOCK);
}
#[test]
fn the_number_of_a_row() {
    use Effect::{None, Told, Untold};
    use Reading::{No, OfSession, OfText};
    for (text, effect, reading) in [
        ("select last_insert_id()", None, OfSession),
        ("SELECT @@session.identity, @@last_insert_id", None, OfSession),
        ("SELECT LAST_INSERT_ID(5)", Untold, No),
        ("SET last_insert_id = 5", Untold, No),
        ("SET @@last_insert_id = 5, @a = LAST_INSERT_ID()", Untold, OfSession),
        ("INSERT INTO t VALUES (1)", Told, No),
        ("INSERT INTO t VALUES (LAST_INSERT_ID())", Told, OfSession),
        ("INSERT INTO t VALUES (1); SELECT LAST_INSERT_ID()", Untold, OfText),
        ("SELECT LAST_INSERT_ID(); REPLACE t SELECT 1", Untold, OfSession),
        ("INSERT INTO t VALUES (LAST_INSERT_ID()); SELECT @@identity", Untold, OfSession),
        ("LOAD DATA INFILE 'x' INTO TABLE t", Untold, No),
        ("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t", Untold, No),
        ("CALL p; INSERT INTO t VALUES (1)", Untold, No),
        ("UPDATE t SET a = 1", None, No),
    ] {
        assert_eq!(of(text).insert_id, Uses { effect, reading }, "{text}");
    }
}

#[test]
fn a_text_may_end_anywhere() {
    for text in [r"SELECT 'a\", r"SELECT '\", r#"/*! "\"#, "SELECT `a", "SELECT /*", "SELECT f("] {
        let begin = |length: usize| of(&text[..length]).has_several;
        assert!(!(0..=text.len()).any(begin), "{text}");
    }
}

#[test]
fn calls_of_functions_of_the_user() {
    for (text, due) in [
        ("SELECT f_set(5)", true),
        ("SELECT shop.f_set (5)", true),
        ("SELECT `count`(5)", true),
        ("SELECT f_set /* so */ (5)", true),
        ("SELECT COUNT(*), max( n ) FROM t WHERE a IN (1, 2) AND (b = 1)", false),
        ("SELECT f_set, (5), 'f_set(5)'", false),
        ("SELECT shop.abs(5)", true),
        ("DO `shop` . /* so */ abs (5)", true),
        ("SELECT t.a, abs(5) FROM t", false),
        ("CALL p", true),
        ("INSERT INTO t (a) VALUES (1)", false),
        ("INSERT INTO shop.t (a) SELECT f_set(1)", true),
        ("REPLACE `t` (a) VALUES (1)", false),
        ("WITH c (a) AS (SELECT 1) SELECT a FROM c", false),
        ("EXECUTE s", true),
        ("UPDATE t SET a = 1", false),
        ("SET STATEMENT sql_mode = '' FOR UPDATE t SET a = 1", true),
        ("SET STATEMENT sql_mode = '' FOR DELETE FROM t", true),
        ("SET STATEMENT sql_mode = '' FOR INSERT t SELECT 1", true),
        ("SET STATEMENT sql_mode = '' FOR SELECT 1", false),
        ("(SELECT 1) UNION (SELECT 2)", false),
        ("SELECT REPLACE(f_set(5), 'a', 'b')", true),
        ("SELECT REPLACE(shop.f(1), 'a', 'b')", true),
        ("SELECT INSERT(f(1), 1, 1, 'x')", true),
        ("SELECT REPLACE((f(1)), 'a', 'b')", true),
        ("SELECT REPLACE(a, 'a', 'b'), INSERT (b, 1, 1, 'x') FROM t", false),
        (r#"SELECT "f"(1)"#, true),
        (r#"SELECT "f", (1), a IN ("f", "(") FROM t"#, false),
        ("SELECT sounds(1)", true),
        ("INSERT t SET a = 1; INSERT INTO t VALUE (1)", false),
        ("SELECT rollup(1)", true),
        ("SELECT against(1)", true),
        ("SELECT lateral(1)", true),
        ("SELECT point(1), b", true),
        ("SELECT polygon()", true),
        ("SELECT intersect(1), b", true),
        ("SELECT md5(1)", true),
        ("SELECT 'a' SOUNDS LIKE ('b')", false),
        ("SELECT a FROM t WHERE MATCH (a) AGAINST ('b')", false),
        ("(SELECT 1) INTERSECT (SELECT 2)", false),
        ("SELECT COUNT (1)", true),
        ("SELECT sysdate /* so */ ()", true),
        ("SELECT sysdate(), ABS (1), CHARSET(a), NAME_CONST('a', 1) FROM t", false),
        ("SELECT REGEXP_REPLACE(a, 'b', 'c') FROM t WHERE a = SOME (SELECT 1)", false),
        ("SELECT json_value(a, '$.b') FROM t", true),
        ("SELECT /*!99999 ' */ f(1)", true),
        ("SELECT 1 /*M! ' */, f(1)", true),
        ("SELECT 1 /*!99999 # */, f(1)", true),
        ("SELECT f /*!99999 + */ (1)", true),
        ("SELECT /*!99999 INTO */ f(1)", true),
        ("SELECT /*!40001 SQL_NO_CACHE */ 'a', b FROM t", false),
        ("/*!40101 SET NAMES utf8 */", false),
    ] {
        assert_eq!(of(text).calls == Calls::Any, due, "{text}");
    }
    let multibyte = Reads { is_multibyte: true, ..Reads::default() };
    for (text, due) in [
        (&b"SELECT '#', f(1)"[..], true),
        (b"SELECT '/*', f(1), '*/'", true),
        (b"SELECT `count`(1)", true),
        (b"SELECT COUNT(*) FROM `t`", false),
    ] {
        assert_eq!(facts(text, multibyte).calls == Calls::Any, due, "{}", text.escape_ascii());
    }
}

#[test]
fn a_quotation_mark_behind_a_backslash() {
    let text = br#"SELECT "a\", f(5), "b""#;
    let plain = facts(text, Reads::default());
    assert_eq!((plain.calls, plain.marks), (Calls::Harmless, Marks::Escaped));
    let ansi = facts(text, Reads { ansi_quotes: true, ..Reads::default() });
    assert_eq!(ansi.calls, Calls::Any);
    let without = facts(br#"SELECT "a\\", "b""#, Reads::default());
    assert_eq!(without.marks, Marks::None, "all read that alike");
    for text in [
        r#"SET sql_mode = 'ANSI_QUOTES'; SELECT "a\", f(5), "b""#,
        r"SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 'a\', f(5), ' '",
        r#"SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT "a\", f(5), "b""#,
    ] {
        assert_eq!(of(text).calls, Calls::Any, "{text}");
    }
}

#[test]
fn what_may_run_triggers_and_what_makes_them() {
    for text in ["INSERT INTO t SELECT 1", "replace t values (1)", "LOAD DATA INFILE 'x'"] {
        assert_eq!(of(text).calls, Calls::Fires, "{text}");
    }
    assert_eq!(of("UPDATE t SET a = f(5)").calls, Calls::Any);
    for (text, due) in [
        ("CREATE OR REPLACE VIEW v AS SELECT 1", Tables::ChangeViews),
        ("DROP TRIGGER t", Tables::ChangeViews),
        ("RENAME TABLE v TO w", Tables::ChangeViews),
        ("CREATE TABLE t (a INT)", Tables::Change),
        ("SELECT view FROM t", Tables::Stay),
    ] {
        assert_eq!(of(text).tables, due, "{text}");
    }
}
