//! State that functions, triggers, procedures and DO leave in a session reaches no other client,
//! although no text shows it.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::twin::{House, OWN_OIDS, eager};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

/// Changes of a session: the code, a query that shows its effect, the answer of an unchanged
/// session, and that of a changed one.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    ("execute 'set role pg_monitor'", "select current_user", "postgres", "pg_monitor"),
    (
        "execute 'set session authorization pg_monitor'",
        "select session_user",
        "postgres",
        "pg_monitor",
    ),
    (
        "execute 'create temp table mine (a int)'",
        "select to_regclass('mine')::text",
        "NULL",
        "mine",
    ),
    (
        "perform pg_advisory_lock(7)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "0",
        "1",
    ),
    ("execute 'listen news'", "select count(*) from pg_listening_channels()", "0", "1"),
    (
        "execute 'prepare q as select 1'",
        "select count(*) from pg_prepared_statements where from_sql",
        "0",
        "1",
    ),
    ("set work_mem = '7MB'", "select current_setting('work_mem')", "4MB", "7MB"),
    (
        "set search_path = pg_catalog",
        "select current_setting('search_path')",
        "\"$user\", public",
        "pg_catalog",
    ),
    ("set timezone = 'Asia/Tokyo'", "select current_setting('timezone') = 'Asia/Tokyo'", "f", "t"),
    (
        "perform set_config('app.tenant', 'one', false)",
        "select coalesce(current_setting('app.tenant', true), '')",
        "",
        "one",
    ),
    (
        "set app.tenant = 'one'",
        "select coalesce(current_setting('app.tenant', true), '')",
        "",
        "one",
    ),
];

/// Ways to run code, which takes the place of `%`: the setup, and the client's text.
const WAYS: &[(&str, &str)] = &[
    ("", "do $$ begin %; end $$"),
    (FUNCTION, "select f()"),
    (FUNCTION, "values (f())"),
    (FUNCTION, "select 1 where f() is not null"),
    (FUNCTION, "copy (select f()) to stdout"),
    (FUNCTION, "begin; select f(); commit"),
    (FUNCTION, "select \"f\" ()"),
    (FUNCTION, "prepare p as select f(); execute p; deallocate p"),
    ("create procedure f() language plpgsql as $f$ begin %; end $f$", "call f()"),
    (TRIGGER, "insert into t values (1)"),
    (TRIGGER, "with x as (insert into t values (1) returning a) select * from x"),
    (TRIGGER, "update t set a = 2"),
    (TRIGGER, "delete from t"),
    (TRIGGER, "truncate t"),
    (DEFAULT, "insert into t (b) values (1)"),
    (CHECK, "insert into t values (1)"),
    (RULE, "insert into t values (1)"),
];

const FUNCTION: &str =
    "create function f() returns int language plpgsql as $f$ begin %; return 1; end $f$";
const DEFAULT: &str = "create function f() returns int language plpgsql as $f$ begin %; return 1; end $f$; \
    create table t (a int default f(), b int)";
const CHECK: &str = "create function f() returns int language plpgsql as $f$ begin %; return 1; end $f$; \
    create table t (a int check (f() > 0))";
const RULE: &str = "create function f() returns int language plpgsql as $f$ begin %; return 1; end $f$; \
    create table t (a int); create rule also as on insert to t do also select f()";
const TRIGGER: &str = "create table t (a int); \
    create function f() returns trigger language plpgsql as $f$ begin %; return null; end $f$; \
    create trigger x after insert or update or delete or truncate on t for each statement execute function f()";

fn two_servers() -> Proxy {
    Config::over(cluster(Version::V15)).pool("pool_size", "2").start()
}

/// Runs a query on each of the pool's servers.
fn on_every_server(proxy: &Proxy, database: &str, sql: &str) -> Vec<String> {
    let mut clients = [proxy.open(database), proxy.open(database)];
    clients.iter_mut().for_each(|client| client.run("begin"));
    clients.iter_mut().map(|client| client.value(sql)).collect()
}

/// Makes each change in one way.
fn play(name: &'static str, setup: &str, text: &str) {
    let database = database(name);
    let proxy = two_servers();
    for (code, sql, clean, changed) in CHANGES {
        let of = |text: &str| text.replace('%', code);
        let mut maker = Session::open(addr(cluster(Version::V15)), database);
        maker.run("drop schema public cascade; create schema public; grant all on schema public to public");
        maker.query(&of(setup));
        maker.query("grant all on all tables in schema public to public");
        maker.leave();
        let what = of(text);
        let mut one = proxy.open(database);
        // The code may remove the function's schema from the path: then PostgreSQL cannot find the
        // function when a prepared statement calls it, and the call fails.
        let failed = !one.query(&what).code().is_empty();
        let changed = if failed { clean } else { changed };
        let mut two = proxy.open(database);
        assert_eq!(two.value(sql), *clean, "another client behind {what}");
        assert_eq!(one.value(sql), *changed, "the client itself behind {what}");
        assert_eq!(two.value(sql), *clean, "another client later behind {what}");
        two.leave();
        one.leave();
        eventually("nobody keeps a server", || proxy.pins().is_empty());
        assert_eq!(on_every_server(&proxy, database, sql), [*clean; 2], "behind {what}");
    }
}

macro_rules! ways {
    ($($name:ident = $index:literal;)*) => {
        $(#[test]
        fn $name() {
            let (setup, text) = WAYS[$index];
            play(concat!("functions_", stringify!($name)), setup, text);
        })*
    };
}

ways! {
    done_by_do = 0;
    done_by_a_function = 1;
    done_in_values = 2;
    done_in_a_condition = 3;
    done_in_copy = 4;
    done_in_a_block = 5;
    done_by_a_name_in_quotes = 6;
    done_by_a_statement_prepared_in_sql = 7;
    done_by_a_procedure = 8;
    done_by_a_trigger_of_insert = 9;
    done_by_a_trigger_in_with = 10;
    done_by_a_trigger_of_update = 11;
    done_by_a_trigger_of_delete = 12;
    done_by_a_trigger_of_truncate = 13;
    done_by_a_default = 14;
    done_by_a_check = 15;
    done_by_a_rule = 16;
}

#[test]
fn done_by_extended_messages() {
    let database = database("functions_extended");
    let proxy = two_servers();
    let mut one = proxy.open(database);
    one.run(&FUNCTION.replace('%', "execute 'set role pg_monitor'"));
    let call = [parse("s", "select f()"), bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(one.ask(&call).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    let mut two = proxy.open(database);
    assert_eq!(two.value("select current_user"), "postgres");
    assert_eq!(one.value("select current_user"), "pg_monitor");
}

/// A rollback takes back what a function left. Refrain must not conclude that the function leaves
/// nothing.
#[test]
fn what_is_rolled_back_does_not_make_a_function_known() {
    let database = database("functions_undone");
    let proxy = Config::over(cluster(Version::V15)).start();
    let mut one = proxy.open(database);
    one.run(&FUNCTION.replace('%', "perform set_config('my.tenant', 'one', false)"));
    one.run("select 1");
    for _ in 0..5 {
        one.run("begin");
        one.run("select f()");
        one.run("rollback");
        one.run("begin; select f(); savepoint s; rollback to s; rollback");
    }
    one.run("select f()");
    let mut two = proxy.open(database);
    assert_eq!(two.value("select coalesce(current_setting('my.tenant', true), '')"), "");
    assert_eq!(one.value("select current_setting('my.tenant')"), "one");
}

#[test]
fn what_leaves_nothing_is_soon_not_asked_about() {
    let database = database("functions_known");
    let proxy = Config::over(cluster(Version::V15)).start();
    let mut one = proxy.open(database);
    one.run("create table t (a int)");
    one.run(&FUNCTION.replace('%', "perform 1"));
    one.run("select 1");
    let asked = |one: &mut Session, sql: &str, times: usize| {
        let before = proxy.counter("session_checks");
        for _ in 0..times {
            one.run(sql);
            one.run("select 1");
        }
        proxy.counter("session_checks") - before
    };
    assert_eq!(asked(&mut one, "select f()", 20), 3);
    assert_eq!(asked(&mut one, "select f(), 'another'", 20), 0, "the same function");
    assert_eq!(asked(&mut one, "insert into t values (1)", 20), 3);
    assert_eq!(
        asked(&mut one, "begin; insert into t select 2; select f(); commit", 5),
        3,
        "both at once are others"
    );
    assert_eq!(
        asked(&mut one, "select count(*), max(a), lower('X') from t where a in (1, 2)", 20),
        0
    );
    assert!(proxy.pins().is_empty());
    // The function gets other code under the same name.
    one.run(&FUNCTION.replace('%', "execute 'listen news'").replacen(
        "create",
        "create or replace",
        1,
    ));
    one.run("select f()");
    eventually("it is seen", || proxy.pins() == ["listen"]);
}

#[test]
fn a_function_that_fails_may_leave_locks() {
    let database = database("functions_failed");
    let proxy = two_servers();
    let mut one = proxy.open(database);
    one.run(&FUNCTION.replace('%', "perform pg_advisory_lock(9); perform 1 / 0"));
    assert_eq!(one.query("select f()").code(), "22012");
    eventually("the lock is seen", || proxy.pins() == ["advisory locks"]);
    one.leave();
    let mut other = proxy.open(database);
    eventually("the lock is free", || other.value("select pg_try_advisory_xact_lock(9)") == "t");
}

/// A function that sets a role on its fourth call: by then Refrain takes it for harmless, except in
/// strict mode.
#[test]
fn strict_mode_asks_always() {
    let database = database("functions_strict");
    let config = Config::over(cluster(Version::V15)).pool("pool_size", "2");
    let proxy = config.pool("track_functions", "\"strict\"").start();
    let mut one = proxy.open(database);
    one.run("create sequence n");
    one.run(
        &FUNCTION.replace('%', "if nextval('n') > 5 then execute 'set role pg_monitor'; end if"),
    );
    for _ in 0..6 {
        one.run("select f()");
    }
    let mut two = proxy.open(database);
    assert_eq!(two.value("select current_user"), "postgres");
    assert_eq!(one.value("select current_user"), "pg_monitor");
}

/// In strict mode Refrain finds a function that a view calls, although no text names it.
#[test]
fn strict_mode_sees_through_views() {
    let database = database("functions_views");
    let config = Config::over(cluster(Version::V15)).pool("pool_size", "2");
    let proxy = config.pool("track_functions", "\"strict\"").start();
    let mut one = proxy.open(database);
    one.run(&FUNCTION.replace('%', "execute 'set role pg_monitor'"));
    one.run("create view v as select f() as a");
    one.run("select a from v");
    assert_eq!(proxy.open(database).value("select current_user"), "postgres");
}

/// The query that Refrain sends after a SET must not make it forget a custom setting of a function.
#[test]
fn a_parameter_that_a_function_has_set_stays() {
    let database = database("functions_parameter");
    let proxy = two_servers();
    let mut one = proxy.open(database);
    one.run(&FUNCTION.replace('%', "perform set_config('app.tenant', 'one', false)"));
    one.run("select f()");
    one.run("set work_mem = '8MB'");
    let mut two = proxy.open(database);
    two.run("select 1");
    assert_eq!(one.value("select current_setting('app.tenant')"), "one");
    assert_eq!(two.value("select coalesce(current_setting('app.tenant', true), '')"), "");
}

/// Ways to define something that the text does not show.
const DEFINITIONS: &[&str] = &[
    "select make()",
    "values (make())",
    "copy (select make()) to stdout",
    "insert into hooked values (1)",
    "call make_by_call()",
    "do $$ begin perform make(); end $$",
    "prepare m as select make(); execute m",
    "begin; create table postgres.x as select 2 as a; \
     create function f(int) returns text language sql as $$ select 'int' $$; prepare transaction 'late'",
];

/// A table earlier in the path and a better overload change the meaning of prepared statements,
/// although no text defines them.
#[test]
fn what_is_defined_unseen_is_seen() {
    let make = "execute 'create table postgres.x as select 2 as a'; \
        execute 'create function f(int) returns text language sql as ''select ''''int'''' '''";
    let setup = format!(
        "create table public.x as select 1 as a; create schema postgres;
        create function public.f(numeric) returns text language sql as $$ select 'numeric' $$;
        create table hooked (a int);
        create function make() returns int language plpgsql as $f$ begin {make}; return 1; end $f$;
        create procedure make_by_call() language plpgsql as $f$ begin {make}; end $f$;
        create function hook() returns trigger language plpgsql as
            $f$ begin {make}; return null; end $f$;
        create trigger hook after insert on hooked for each statement execute function hook();"
    );
    for (number, definition) in DEFINITIONS.iter().enumerate() {
        // Each has a database name of its own: prepared transactions belong to the cluster.
        const NAMES: [&str; 8] = [
            "defined_0",
            "defined_1",
            "defined_2",
            "defined_3",
            "defined_4",
            "defined_5",
            "defined_6",
            "defined_7",
        ];
        let house = House::new(NAMES[number], &setup, eager(2));
        let texts = ["select a from x where a > 0", "select f(5), 1"];
        let (mut one, mut two) = (house.pair(), house.pair());
        for text in texts {
            (0..8).for_each(|_| drop(one.same(text)));
            (0..8).for_each(|_| drop(two.same(text)));
        }
        if definition.ends_with("'late'") {
            let named = |name: &str| definition.replace("late", name);
            one.direct.query(&named("late_direct"));
            one.proxied.query(&named("late"));
            for text in texts {
                two.same(text);
            }
            one.direct.query("commit prepared 'late_direct'");
            one.proxied.query("commit prepared 'late'");
        } else {
            one.run(definition);
        }
        for text in texts {
            for pair in [&mut one, &mut two] {
                pair.compare(text, &OWN_OIDS).unwrap_or_else(|why| panic!("{definition}: {why}"));
            }
        }
        let value = two.proxied.value("select a from x where a > 0");
        assert_eq!(value, "2", "{definition}");
    }
}
