//! A table of texts with their traits and kinds, as [`refrain_sql::scan`] returns them.

use refrain_sql::{Kind, Name, Traits, kinds, scan, scan_with};

const NONE: Traits = Traits::NONE;
const RESET: Traits = Traits::RESET;
const ALONE: Traits = Traits::ALONE;
const ONE: Traits = Traits::DEALLOCATE;
const SET: Traits = Traits::SET;
const REPORTED: Traits = Traits::SET_REPORTED;
const READING: Traits = Traits::READING;
const READ: Traits = REPORTED.union(READING);
const ROLE: Traits = Traits::ROLE;
const ANY: Traits = SET.union(ROLE).union(READING);
const TEMP: Traits = Traits::TEMP;
const DDL: Traits = Traits::DDL;
const BEGINS: Traits = Traits::BEGINS;
const RUNS: Traits = Traits::EXECUTE;
const ADVISORY: Traits = Traits::ADVISORY;

fn check(rows: &[(&str, Traits, &str)]) {
    for (text, traits, kind) in rows {
        let scan = scan(text.as_bytes());
        assert_eq!(scan.traits, *traits, "traits of {text:?}");
        assert_eq!(shown(scan.kind, text), *kind, "kind of {text:?}");
    }
}

/// Returns a kind with its name as written.
fn shown(kind: Kind, text: &str) -> String {
    let of = |what: &str, name: Name| {
        format!("{what} {}", String::from_utf8_lossy(name.of(text.as_bytes())))
    };
    match kind {
        Kind::Deallocate(name) => of("Deallocate", name),
        Kind::Execute(name) => of("Execute", name),
        Kind::ExplainExecute(name) => of("ExplainExecute", name),
        Kind::CreateAsExecute(name) => of("CreateAsExecute", name),
        Kind::Prepare(name) => of("Prepare", name),
        Kind::Set { name } => of("Set", name),
        Kind::SetLocal { name } => of("SetLocal", name),
        Kind::Reset { name } => of("Reset", name),
        plain => format!("{plain:?}"),
    }
}

#[test]
fn queries_leave_nothing_in_the_session() {
    check(&[
        ("", NONE, "Empty"),
        (" ; /* x */ ;\n-- y", NONE, "Empty"),
        ("SELECT 1", NONE, "Select"),
        ("select 1;", NONE, "Select"),
        (";;select 1;;", NONE, "Select"),
        ("(select 1)", NONE, "Other"),
        ("/* c */ SELECT 1", NONE, "Select"),
        ("selectx 1", NONE, "Other"),
        ("\"select\" 1", NONE, "Other"),
        ("INSERT INTO t VALUES (1)", NONE, "Insert"),
        ("insert /* */ into temp values (1)", NONE, "Insert"),
        ("INSERT INTO pg_temp.t VALUES (1)", NONE, "Insert"),
        ("UPDATE t SET role = 1, temp = 2", NONE, "Update"),
        ("update t set datestyle = 'x' where listen", NONE, "Update"),
        ("DELETE FROM t USING x", NONE, "Delete"),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x", NONE, "With"),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN DO NOTHING", NONE, "Other"),
        ("SELECT 1 AS into, t.into", NONE, "Select"),
        ("SELECT 1; SELECT 2", NONE, "Many"),
        ("SELECT nextval('s'), currval, lastval FROM set_config", NONE, "Select"),
        ("VALUES (1)", NONE, "Other"),
        ("SHOW search_path", NONE, "Other"),
        ("NOTIFY c, 'x'", NONE, "Other"),
        ("TRUNCATE t", NONE, "Other"),
        ("COMMENT ON TABLE t IS 'x'", NONE, "Other"),
        ("GRANT SELECT ON t TO u", NONE, "Other"),
        ("LOCK TABLE t", NONE, "Other"),
    ]);
}

#[test]
fn words_that_are_no_words() {
    check(&[
        ("SELECT 'set_config(1)', \"temp\", $$ set_config( $$, $a$ lastval( $a$", NONE, "Select"),
        ("SELECT 1 /* ; SET x = 1; /* nested */ DISCARD ALL; */ -- ; LISTEN x", NONE, "Select"),
        ("SELECT E'\\'; SET x = 1; --'", NONE, "Select"),
        ("SELECT '\\'; SET x = 1; --'", SET, "Many"),
        ("SELECT 'it''s; SET x = 1'", NONE, "Select"),
        ("SELECT 'a'\n'b; SET x = 1'", NONE, "Select"),
        ("SELECT E'a' -- c\n '\\'; SET x = 1'", NONE, "Select"),
        ("SELECT \"a\"\"; SET x = 1\"", NONE, "Select"),
        ("SELECT U&\"a; SET x = 1\"", NONE, "Select"),
        ("SELECT $1$a; SET x = 1", SET, "Many"),
        ("SELECT a$b$; SET x = 1; --$b$", SET, "Many"),
        ("SELECT 1 --\r; SET x = 1", SET, "Many"),
        ("SELECT 1 -- \u{b}; SET x = 1", NONE, "Select"),
        ("SELECT n'; SET x = 1'", NONE, "Select"),
    ]);
    let off = scan_with(b"SELECT '\\'; SET x = 1; --'", true);
    assert_eq!((off.traits, off.kind), (NONE, Kind::Select));
}

#[test]
fn set_and_reset_name_their_parameter() {
    check(&[
        ("SET search_path TO a, b", SET, "Set search_path"),
        ("SET SESSION search_path = a", SET, "Set search_path"),
        ("set work_mem = '1MB';", SET, "Set work_mem"),
        ("SET app.user = 1", SET, "Set app.user"),
        ("SET \"app\" . \"user\" = 1", SET, "Set \"app\" . \"user\""),
        ("SET datestyle . x = 1", SET, "Set datestyle . x"),
        ("SET role.x = 1", SET, "Set role.x"),
        ("SET DateStyle = ISO", READ, "Set DateStyle"),
        ("SET \"DateStyle\" = ISO", READ, "Set \"DateStyle\""),
        ("SET/**/timezone='UTC'", READ, "Set timezone"),
        ("SET TIME ZONE 'UTC'", READ, "Set TIME ZONE"),
        ("SET SESSION TIME ZONE LOCAL", READ.union(RESET), "Set TIME ZONE"),
        ("SET NAMES 'utf8'", READ, "Set NAMES"),
        ("SET client_encoding TO x", READ, "Set client_encoding"),
        ("SET application_name = 'x'", REPORTED, "Set application_name"),
        ("SET intervalstyle = x", READ, "Set intervalstyle"),
        ("SET standard_conforming_strings = off", READ, "Set standard_conforming_strings"),
        ("SET default_transaction_read_only = on", REPORTED, "Set default_transaction_read_only"),
        ("SET SCHEMA 'x'", SET, "Set SCHEMA"),
        ("SET XML OPTION DOCUMENT", SET, "Set XML OPTION"),
        ("SET U&\"\\0072ole\" = x", ANY, "Other"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            SET | REPORTED,
            "Set SESSION CHARACTERISTICS",
        ),
        ("SET LOCAL search_path = a", Traits::LOCAL, "SetLocal search_path"),
        ("SET LOCAL ROLE x", Traits::LOCAL, "SetLocal ROLE"),
        ("SET LOCAL SESSION AUTHORIZATION x", Traits::LOCAL, "SetLocal SESSION AUTHORIZATION"),
        ("SET TRANSACTION READ ONLY", NONE, "Set TRANSACTION"),
        ("SET SESSION TRANSACTION READ ONLY", NONE, "Set TRANSACTION"),
        ("SET transaction_read_only = on", NONE, "Set transaction_read_only"),
        ("SET CONSTRAINTS ALL DEFERRED", NONE, "Set CONSTRAINTS"),
        ("SET ROLE x", ROLE, "Set ROLE"),
        ("SET SESSION ROLE x", ROLE, "Set ROLE"),
        ("SET role = x", ROLE, "Set role"),
        ("SET \"role\" = x", ROLE, "Set \"role\""),
        ("SET SESSION AUTHORIZATION x", ROLE, "Set SESSION AUTHORIZATION"),
        ("SET SESSION SESSION AUTHORIZATION x", ROLE, "Set SESSION AUTHORIZATION"),
        ("SET session_authorization = x", ROLE, "Set session_authorization"),
        ("RESET ALL", SET.union(RESET).union(READING), "Reset ALL"),
        ("RESET search_path", SET.union(RESET), "Reset search_path"),
        ("RESET TIME ZONE", READ.union(RESET), "Reset TIME ZONE"),
        ("RESET ROLE", ROLE.union(RESET), "Reset ROLE"),
        ("RESET SESSION AUTHORIZATION", ROLE.union(RESET), "Reset SESSION AUTHORIZATION"),
        ("RESET TRANSACTION ISOLATION LEVEL", RESET, "Reset TRANSACTION"),
        ("SET work_mem TO DEFAULT", SET.union(RESET), "Set work_mem"),
        ("SET NAMES", READ.union(RESET), "Set NAMES"),
        ("SET LOCAL work_mem = default", Traits::LOCAL, "SetLocal work_mem"),
        ("SET work_mem = 'default'", SET, "Set work_mem"),
        ("SET", ANY, "Other"),
        ("SET a = 1; SET LOCAL b = 2", SET | Traits::LOCAL, "Many"),
        ("ALTER ROLE x SET work_mem = 1", Traits::DEFAULTS, "Other"),
        ("ALTER DATABASE d SET search_path = a", Traits::DEFAULTS, "Other"),
        ("UPDATE pg_settings SET setting = 1", SET, "Update"),
        ("UPDATE ONLY pg_catalog.\"pg_settings\" SET setting = 1", SET, "Update"),
        ("WITH x AS (update pg_settings set setting = 1 returning 1) select 1", SET, "With"),
        ("SELECT * FROM pg_settings FOR UPDATE", NONE, "Select"),
    ]);
}

#[test]
fn set_config_counts_as_set() {
    check(&[
        ("SELECT set_config('search_path', 'a', false)", SET, "Select"),
        ("SELECT pg_catalog.SET_CONFIG ('search_path', $1, $2)", SET, "Select"),
        ("SELECT \"set_config\"/* */('x', 'y', false)", SET, "Select"),
        ("SELECT \"SET_CONFIG\"('x', 'y', false)", NONE, "Select"),
        ("SELECT set_config('TimeZone', 'UTC', false)", READ, "Select"),
        ("SELECT set_config('role', 'x', false)", ROLE, "Select"),
        ("SELECT set_config($1, 'x', false)", ANY, "Select"),
        ("SELECT set_config('ro' || 'le', 'x', false)", ANY, "Select"),
        ("SELECT set_config(E'role', 'x', false)", ANY, "Select"),
        ("SELECT set_config('x''', 'x', false)", ANY, "Select"),
        (
            "SELECT set_config('search_path', $1, true), set_config('role', f(1, 2), TRUE)",
            Traits::LOCAL,
            "Select",
        ),
        ("SELECT set_config('a', $1, true AND false)", SET, "Select"),
        ("SELECT set_config('a', (1, 2, true), false)", SET, "Select"),
        (
            "SELECT set_config('a', set_config('b', 'c', false), true)",
            SET | Traits::LOCAL,
            "Select",
        ),
        (
            "SELECT set_config(set_config('b', 'c', true), 'c', false)",
            ANY | Traits::LOCAL,
            "Select",
        ),
        ("SELECT set_config('a', b, true", SET, "Select"),
        ("SELECT set_config('a', b", SET, "Select"),
        ("SELECT set_config(", ANY, "Select"),
        (
            "SELECT U&\"set_config\"('a', 'b', true)",
            SET.union(ROLE)
                .union(Traits::ADVISORY)
                .union(Traits::PROCEDURAL)
                .union(Traits::SEQUENCE_STATE),
            "Select",
        ),
        ("INSERT INTO t SELECT set_config('a', 'b', false)", SET, "Insert"),
        ("COPY (SELECT set_config('a', 'b', false)) TO STDOUT", SET | Traits::COPY, "Other"),
        ("EXPLAIN ANALYZE SELECT set_config('a', 'b', false)", SET, "Other"),
        ("EXECUTE p(set_config('a', 'b', false))", SET | RUNS, "Execute p"),
    ]);
}

#[test]
fn functions_that_change_the_session_are_known() {
    check(&[
        ("SELECT pg_advisory_lock(1)", ADVISORY, "Select"),
        ("SELECT pg_catalog.Pg_Advisory_Lock_Shared(1, 2)", ADVISORY, "Select"),
        ("SELECT pg_try_advisory_lock(1) FROM t", ADVISORY, "Select"),
        ("SELECT pg_try_advisory_lock_shared(1)", ADVISORY, "Select"),
        ("SELECT pg_advisory_xact_lock(1), pg_try_advisory_xact_lock(1)", NONE, "Select"),
        ("SELECT pg_advisory_unlock(1)", NONE, "Select"),
        ("SELECT pg_advisory_unlock_all()", Traits::ADVISORY_FREE, "Select"),
        ("SELECT currval('s')", Traits::SEQUENCE_STATE, "Select"),
        ("SELECT lastval()", Traits::SEQUENCE_STATE, "Select"),
        ("SELECT setseed(0.5)", Traits::SEQUENCE_STATE, "Select"),
        ("SELECT set_limit(0.5)", SET, "Select"),
        ("SELECT query_to_xml('SET x = 1', true, true, '')", Traits::PROCEDURAL, "Select"),
        ("SELECT dblink_connect('a', 'b')", Traits::PROCEDURAL, "Select"),
    ]);
}

#[test]
fn temporary_objects_and_ddl_are_known() {
    check(&[
        ("CREATE TEMP TABLE t (a int)", TEMP | DDL, "Other"),
        ("create local temporary table t (a int)", TEMP | DDL, "Other"),
        ("CREATE GLOBAL TEMP TABLE t AS SELECT 1", TEMP | DDL, "Other"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", TEMP | DDL, "Other"),
        ("CREATE TEMP RECURSIVE VIEW v (a) AS SELECT 1", TEMP | DDL, "Other"),
        ("CREATE TEMP SEQUENCE s", TEMP | DDL, "Other"),
        ("CREATE TEMP TABLE t (a int) ON COMMIT DROP", DDL, "Other"),
        ("CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1", DDL, "Other"),
        ("CREATE TEMP TABLE t (a int) ON COMMIT DELETE ROWS", TEMP | DDL, "Other"),
        ("CREATE TEMP TABLE t (a text DEFAULT 'ON COMMIT DROP')", TEMP | DDL, "Other"),
        (
            "CREATE TEMP TABLE t (a int); CREATE TEMP TABLE u (a int) ON COMMIT DROP",
            TEMP | DDL,
            "Many",
        ),
        ("CREATE TABLE pg_temp.t (a int)", TEMP | DDL, "Other"),
        ("CREATE TABLE pg_temp_3.t (a int)", TEMP | DDL, "Other"),
        (
            "CREATE FUNCTION \"pg_temp\".f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            TEMP | DDL,
            "Other",
        ),
        ("SELECT 1 INTO TEMP t", TEMP | DDL, "Select"),
        ("SELECT 1 INTO LOCAL TEMPORARY TABLE t FROM x", TEMP | DDL, "Select"),
        ("SELECT 1 INTO pg_temp.t", TEMP | DDL, "Select"),
        ("SELECT 1 INTO TABLE pg_temp.t", TEMP | DDL, "Select"),
        ("SELECT 1 INTO t", DDL, "Select"),
        ("WITH x AS (SELECT 1) SELECT * INTO TEMP t FROM x", TEMP | DDL, "With"),
        ("CREATE TABLE temp (a int)", DDL, "Other"),
        ("CREATE TABLE t (temp int)", DDL, "Other"),
        ("CREATE INDEX CONCURRENTLY i ON t (a)", ALONE, "Other"),
        ("CREATE UNIQUE INDEX i ON t (a)", NONE, "Other"),
        ("CREATE ROLE x", NONE, "Other"),
        ("ALTER SYSTEM SET work_mem = 1", ALONE, "Other"),
        ("DROP DATABASE x", ALONE | Traits::DRAINS, "Other"),
        ("ALTER DATABASE x RENAME TO y", Traits::DRAINS, "Other"),
        ("CREATE DATABASE x", ALONE | Traits::DRAINS, "Other"),
        ("ALTER TABLE t ADD a int", DDL, "Other"),
        ("DROP TABLE t", DDL, "Other"),
        ("IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c", DDL, "Other"),
    ]);
}

#[test]
fn commands_of_transactions_are_known() {
    check(&[
        ("BEGIN", BEGINS, "Begin"),
        ("begin isolation level serializable", BEGINS, "Begin"),
        ("START TRANSACTION READ ONLY", BEGINS, "Begin"),
        ("COMMIT", NONE, "TransactionEnd"),
        ("END WORK", NONE, "TransactionEnd"),
        ("ABORT", NONE, "TransactionEnd"),
        ("ROLLBACK", NONE, "TransactionEnd"),
        ("ROLLBACK TRANSACTION", NONE, "TransactionEnd"),
        ("COMMIT AND NO CHAIN", NONE, "TransactionEnd"),
        ("COMMIT WORK AND CHAIN", BEGINS, "Chain"),
        ("ROLLBACK AND CHAIN", BEGINS, "Chain"),
        ("ROLLBACK TO a", NONE, "Other"),
        ("ROLLBACK WORK TO SAVEPOINT a", NONE, "Other"),
        ("COMMIT PREPARED 'a'", ALONE, "Other"),
        ("ROLLBACK PREPARED 'a'", ALONE, "Other"),
        ("PREPARE TRANSACTION 'a'", NONE, "TransactionEnd"),
        ("PREPARE transaction AS SELECT 1", Traits::PREPARE, "Prepare transaction"),
        ("SAVEPOINT a", NONE, "Other"),
        ("RELEASE a", NONE, "Other"),
        ("BEGIN; SELECT 1; COMMIT", BEGINS, "Many"),
    ]);
}

#[test]
fn prepare_execute_and_deallocate_name_their_statement() {
    check(&[
        ("PREPARE p AS SELECT 1", Traits::PREPARE, "Prepare p"),
        ("DEALLOCATE ALL", Traits::DEALLOCATE_ALL, "DeallocateAll"),
        ("deallocate prepare all;", Traits::DEALLOCATE_ALL, "DeallocateAll"),
        ("DEALLOCATE \"all\"", ONE, "Deallocate \"all\""),
        ("DEALLOCATE p", ONE, "Deallocate p"),
        ("DEALLOCATE PREPARE p ; ", ONE, "Deallocate p"),
        ("DEALLOCATE PREPARE", ONE, "Deallocate PREPARE"),
        ("DEALLOCATE p q", NONE, "Other"),
        ("DEALLOCATE", NONE, "Other"),
        ("DEALLOCATE U&\"p\"", NONE, "Other"),
        ("DEALLOCATE ALL; SELECT 1", Traits::DEALLOCATE_ALL, "Many"),
        ("EXECUTE p", RUNS, "Execute p"),
        ("execute \"P 1\" (1, 'a')", RUNS, "Execute \"P 1\""),
        ("EXPLAIN EXECUTE p", RUNS, "ExplainExecute p"),
        ("EXPLAIN ANALYZE VERBOSE EXECUTE p(1)", RUNS, "ExplainExecute p"),
        ("EXPLAIN (ANALYZE, FORMAT json, COSTS (off)) EXECUTE p", RUNS, "ExplainExecute p"),
        ("EXPLAIN SELECT 1", NONE, "Other"),
        ("EXPLAIN (SELECT 1)", NONE, "Other"),
        ("CREATE TABLE t AS EXECUTE p", DDL | RUNS, "CreateAsExecute p"),
        (
            "CREATE TEMP TABLE IF NOT EXISTS t (a, b) WITH (x = 1) AS EXECUTE p(1) WITH NO DATA",
            TEMP | DDL | RUNS,
            "CreateAsExecute p",
        ),
        ("CREATE UNLOGGED TABLE t ON COMMIT DROP AS EXECUTE p", DDL | RUNS, "CreateAsExecute p"),
        ("CREATE TEMP TABLE t ON COMMIT DROP AS EXECUTE p", DDL | RUNS, "CreateAsExecute p"),
        (
            "EXPLAIN ANALYZE CREATE TEMP TABLE t AS EXECUTE p",
            TEMP | DDL | RUNS,
            "CreateAsExecute p",
        ),
        ("CREATE TABLE t AS SELECT 1 AS execute LIMIT (1)", DDL, "Other"),
        ("DISCARD ALL", Traits::DISCARD_ALL.union(RESET).union(ALONE).union(READING), "DiscardAll"),
        ("DISCARD TEMP", Traits::DISCARD_TEMP, "Other"),
        ("DISCARD TEMPORARY", Traits::DISCARD_TEMP, "Other"),
        ("DISCARD PLANS", NONE, "Other"),
    ]);
}

#[test]
fn each_statement_of_a_text_has_a_kind() {
    let text =
        "; select 1;; create procedure p() begin atomic execute x; end; execute \"Y\"(1); -- end";
    let all: Vec<String> = kinds(text.as_bytes(), false).map(|kind| shown(kind, text)).collect();
    assert_eq!(all, ["Select", "Other", "Execute \"Y\""]);
    assert_eq!(scan(text.as_bytes()).traits, RUNS | DDL);
}

#[test]
fn commands_with_state_of_their_own_are_known() {
    check(&[
        ("LISTEN c", Traits::LISTEN, "Other"),
        ("UNLISTEN *", Traits::UNLISTEN_ALL, "Other"),
        ("UNLISTEN c", NONE, "Other"),
        ("DECLARE c CURSOR FOR SELECT 1", NONE, "Other"),
        ("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1", Traits::HOLD, "Other"),
        ("DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1", NONE, "Other"),
        ("DECLARE c CURSOR FOR WITH hold AS (SELECT 1) SELECT 1", NONE, "Other"),
        ("CLOSE ALL", Traits::CLOSE_ALL, "Other"),
        ("CLOSE c", NONE, "Other"),
        ("LOAD 'auto_explain'", Traits::LOAD, "Other"),
        ("DO $$ BEGIN PERFORM 1; END $$", Traits::PROCEDURAL, "Other"),
        ("CALL p()", Traits::PROCEDURAL, "Other"),
        ("COPY t FROM STDIN", Traits::COPY, "Other"),
        ("COPY t (a, b) FROM STDIN WITH (FORMAT csv)", Traits::COPY, "Other"),
        ("COPY (SELECT 1 FROM stdin) TO '/tmp/x'", NONE, "Other"),
        ("COPY (SELECT 1) TO STDOUT", Traits::COPY, "Other"),
        ("COPY t FROM '/tmp/x'", NONE, "Other"),
    ]);
}

#[test]
fn semicolons_in_bodies_of_functions_end_no_statement() {
    check(&[
        (
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 1 AS end; END",
            DDL,
            "Other",
        ),
        ("CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC END; SELECT 1", DDL, "Many"),
        (
            "CREATE PROCEDURE p() BEGIN ATOMIC INSERT INTO t VALUES (1); END; LISTEN x",
            DDL | Traits::LISTEN,
            "Many",
        ),
        ("CREATE PROCEDURE p() BEGIN ATOMIC; LISTEN x", DDL | Traits::LISTEN, "Other"),
        ("CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b)", DDL, "Other"),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN; SET x = 1; END $$",
            DDL,
            "Other",
        ),
    ]);
}

#[test]
fn statements_are_counted() {
    let count = |text: &str| scan(text.as_bytes()).statements;
    assert_eq!(count(";; ;"), 0);
    assert_eq!(count("SELECT 1"), 1);
    assert_eq!(count("SELECT 1;; SELECT 2;"), 2);
    assert_eq!(count(&"x;".repeat(1000)), 255);
    assert_eq!(scan("x;".repeat(1000).as_bytes()).kind, Kind::Many);
}

#[test]
fn traits_show_their_names() {
    assert_eq!((SET | TEMP).to_string(), "SET | TEMP");
    assert_eq!(NONE.to_string(), "NONE");
    assert!(Traits::FREES.contains(Traits::DISCARD_ALL) && !Traits::FREES.intersects(SET));
    assert_eq!((SET | TEMP).without(SET), TEMP);
}

#[test]
fn rules_show_their_words() {
    let rules: Vec<_> = refrain_sql::rules().collect();
    let words = |text: &str| rules.iter().any(|rule| rule.words == text && !rule.why.is_empty());
    assert!(words("deallocate [prepare] all"));
    assert!(words("declare … cursor with hold"));
    assert!(words("… lastval(…)"));
}

#[test]
fn code_that_may_be_a_users() {
    let calls = |text: &str| scan(text.as_bytes()).calls;
    let none = [
        "select 1",
        "select count(*), max(x), pg_catalog.lower(y) from t where z in (1, 2) and (a = 'f(1)')",
        "select x from t -- f(1)",
        "with x as (select 1) select * from x group by (1) order by (2)",
        "select $$ f(1) $$, \"f\" from t for update",
        "begin",
        "set search_path = a",
    ];
    for text in none {
        assert_eq!(calls(text), 0, "{text}");
    }
    let some = [
        "select f(1)",
        "select app.count(1)",
        "select app . count (1)",
        "select app./**/count(1)",
        "select \"count\"(1)",
        "select F /* x */ (1)",
        "call f(1)",
        "values (f())",
        "copy (select f()) to stdout",
        "explain analyze select f()",
        "prepare p as select f()",
        "select 1; select f()",
        "insert into t values (1)",
        "update t set x = 1",
        "delete from only t",
        "with d as (delete from t returning *) select * from d",
        "merge into t using s on true when matched then do nothing",
        "truncate t",
        "copy t from stdin",
        "create table t (x int)",
    ];
    for text in some {
        assert_ne!(calls(text), 0, "{text}");
    }
    let same = [
        ("select f(1)", "SELECT F('x') from u"),
        ("insert into t values (1)", "insert into T select 2"),
        ("select app.f()", "select \"app\".\"f\" ()"),
    ];
    for (one, other) in same {
        assert_eq!(calls(one), calls(other), "{one}, {other}");
    }
    let other = [
        ("select f(1)", "select g(1)"),
        ("select f(1)", "select \"F\"(1)"),
        ("select a.f(1)", "select b.f(1)"),
        ("insert into t values (1)", "insert into t values (f())"),
        ("update a.t set x = 1", "update b.t set x = 1"),
    ];
    for (one, other) in other {
        assert_ne!(calls(one), calls(other), "{one}, {other}");
    }
}

#[test]
fn each_way_to_set_a_parameter_is_seen() {
    for text in ["set local a = 1", "reset all", "select set_config('a', 'b', true)", "set a = 1"] {
        assert!(scan(text.as_bytes()).sets, "{text}");
    }
    assert!(!scan(b"update t set a = 1").sets);
}
