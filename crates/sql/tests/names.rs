//! Names as the server reads them, the parameters a text sets, and what tags say.

use refrain_sql::{Kind, Tag, scan, set_names, tag};

#[test]
fn names_are_folded_and_cut_as_the_server_does() {
    let long = "x".repeat(70);
    let accents = "é".repeat(40);
    let rows = [
        ("p", "p"),
        ("Plan_1", "plan_1"),
        ("\"Plan 1\"", "Plan 1"),
        ("\"a\"\"b\"", "a\"b"),
        ("\"\"\"\"\"\"", "\"\""),
        ("É", "É"),
        (&long, &long[..63]),
        (&accents, &accents[..62]),
    ];
    for (written, name) in rows {
        let text = format!("EXECUTE {written}");
        let Kind::Execute(found) = scan(text.as_bytes()).kind else { panic!("{text}") };
        assert_eq!(found.of(text.as_bytes()), written.as_bytes());
        assert_eq!(String::from_utf8_lossy(&found.fold(text.as_bytes())), *name, "of {written}");
    }
}

#[test]
fn names_of_parameters() {
    let rows = [
        ("SELECT 1", ""),
        ("SET Search_Path = a", "search_path"),
        ("SET \"Foo\" . Bar = 1; RESET x", "Foo.bar,x"),
        ("SET TIME ZONE 1", "TimeZone"),
        ("SET NAMES 'x'", "client_encoding"),
        ("SET SCHEMA 'x'", "search_path"),
        ("SET ROLE x", "role"),
        ("RESET SESSION AUTHORIZATION", "session_authorization"),
        ("RESET ALL", "ALL"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET a = 1",
            "default_transaction_isolation,default_transaction_read_only,default_transaction_deferrable,a",
        ),
        ("SET LOCAL a = 1; SET TRANSACTION READ ONLY; SET CONSTRAINTS ALL DEFERRED", ""),
        ("SELECT set_config('A', 'x', false), set_config('b', 'x', true)", "A"),
        ("SELECT set_config($1, 'x', false)", "ALL"),
        ("UPDATE pg_settings SET setting = 1", "ALL"),
        ("SELECT set_limit(1)", "ALL"),
        ("DISCARD ALL", ""),
        ("SET a = 'SET b'; /* SET c */ SELECT 1; reset d", "a,d"),
    ];
    for (text, names) in rows {
        let found: Vec<_> = set_names(text.as_bytes(), false)
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        assert_eq!(found.join(","), names, "of {text:?}");
    }
}

#[test]
fn command_tags_are_recognised() {
    let rows = [
        ("SELECT 1", Tag::Select),
        ("INSERT 0 1", Tag::Insert),
        ("UPDATE 0", Tag::Update),
        ("DELETE 5", Tag::Delete),
        ("MERGE 5", Tag::Other),
        ("FETCH 5", Tag::Other),
        ("COPY 5", Tag::Copy),
        ("SET", Tag::Set),
        ("SET CONSTRAINTS", Tag::Other),
        ("RESET", Tag::Reset),
        ("DISCARD ALL", Tag::DiscardAll),
        ("DISCARD TEMP", Tag::DiscardTemp),
        ("DISCARD PLANS", Tag::Other),
        ("DEALLOCATE ALL", Tag::DeallocateAll),
        ("DEALLOCATE", Tag::Deallocate),
        ("PREPARE", Tag::Prepare),
        ("PREPARE TRANSACTION", Tag::PrepareTransaction),
        ("LISTEN", Tag::Listen),
        ("UNLISTEN", Tag::Unlisten),
        ("DECLARE CURSOR", Tag::DeclareCursor),
        ("CLOSE CURSOR ALL", Tag::CloseCursorAll),
        ("CLOSE CURSOR", Tag::Other),
        ("CREATE TABLE", Tag::Ddl),
        ("CREATE TABLE AS", Tag::Ddl),
        ("ALTER MATERIALIZED VIEW", Tag::Ddl),
        ("DROP FUNCTION", Tag::Ddl),
        ("IMPORT FOREIGN SCHEMA", Tag::Ddl),
        ("CREATE ROLE", Tag::Other),
        ("ALTER ROLE", Tag::Defaults),
        ("ALTER DATABASE", Tag::Defaults),
        ("CREATE DATABASE", Tag::Other),
        ("ALTER SYSTEM", Tag::Other),
        ("CREATE INDEX", Tag::Other),
        ("ALTER DEFAULT PRIVILEGES", Tag::Other),
        ("BEGIN", Tag::Begin),
        ("START TRANSACTION", Tag::Begin),
        ("COMMIT", Tag::Commit),
        ("COMMIT PREPARED", Tag::Ddl),
        ("ROLLBACK", Tag::Rollback),
        ("SAVEPOINT", Tag::Savepoint),
        ("RELEASE", Tag::Release),
        ("LOAD", Tag::Load),
        ("DO", Tag::Do),
        ("CALL", Tag::Call),
        ("", Tag::Other),
    ];
    for (text, expected) in rows {
        assert_eq!(tag(text.as_bytes()), expected, "of {text:?}");
    }
}

#[test]
fn parameters_of_code_within_a_text() {
    let rows: &[(&str, &[&str])] = &[
        ("do $$ begin perform set_config('app.tenant', 'x', false); end $$", &["app.tenant"]),
        ("do 'begin perform SET_CONFIG ( ''a.b'', ''x'', false); end'", &["a.b"]),
        ("do $$ begin execute 'set session my.x = 1'; SET my.y to 2; end $$", &["my.x", "my.y"]),
        ("do $$ begin set work_mem = '1MB'; update t set a = b.c; offset a.b; end $$", &[]),
        ("set", &[]),
        ("set_config", &[]),
    ];
    for (text, names) in rows {
        let found: Vec<_> = refrain_sql::set_names_within(text.as_bytes()).collect();
        let found: Vec<_> = found.iter().map(|name| String::from_utf8_lossy(name)).collect();
        assert_eq!(found, *names, "{text}");
    }
}

#[test]
fn parameters_of_a_transaction_leave_placeholders() {
    let rows: &[(&str, &[&str])] = &[
        ("set local app.tenant = 'x'", &["app.tenant"]),
        ("begin; SET LOCAL a.b to 1; set session c.d = 2; commit", &["a.b", "c.d"]),
        ("select set_config('app.tenant', $1, true)", &["app.tenant"]),
        ("set local statement_timeout = '1.5s'", &[]),
        ("update t set local = a.b", &[]),
        ("set local", &[]),
    ];
    for (text, names) in rows {
        let found: Vec<_> = refrain_sql::placeholders_within(text.as_bytes()).collect();
        let found: Vec<_> = found.iter().map(|name| String::from_utf8_lossy(name)).collect();
        assert_eq!(found, *names, "{text}");
    }
}

#[test]
fn parameters_that_a_call_may_reset() {
    let rows: &[(&str, &[&str])] = &[
        ("select set_config('datestyle', null, false)", &["datestyle"]),
        ("select set_config('a.b', $1, false), set_config('c.d', 'x', false)", &["a.b"]),
        ("select set_config('timezone', lower('X'), x)", &["timezone"]),
        ("select \"set_config\" ( 'work_mem' , E'1MB', false)", &["work_mem"]),
        ("select set_config($1, 'x', false)", &["ALL"]),
        ("select 1; select set_config('a' || 'b', 'x', false)", &["ALL"]),
        ("select set_config('datestyle', null, true)", &[]),
        ("select set_config('datestyle', 'iso', false)", &[]),
        ("select 'set_config(''datestyle'', null, false)'", &[]),
        ("select set_config", &[]),
        ("select set_config(", &["ALL"]),
    ];
    for (text, names) in rows {
        let found = refrain_sql::reset_by_call(text.as_bytes(), false);
        let found: Vec<_> = found.iter().map(|name| String::from_utf8_lossy(name)).collect();
        assert_eq!(found, *names, "{text}");
    }
}

#[test]
fn names_behind_a_constant_with_a_backslash() {
    let text = br"select 'a\'b'; reset datestyle; select set_config('c.d', null, false)";
    let names = |backslash| set_names(text, backslash).count();
    assert_eq!((names(true), names(false)), (2, 0));
    let reset = |backslash| refrain_sql::reset_by_call(text, backslash).len();
    assert_eq!((reset(true), reset(false)), (1, 0));
}
