//! Autoprepare: each kind of place for a literal, run often enough for a kept plan.
//!
//! A row is one statement with several sets of literals. Its texts run in turns, ten times outside
//! a transaction and three times within one. Each time the answer must be PostgreSQL's own.

use refrain_differ::msg::Msg;

use crate::session::{bind, execute, parse};
use crate::twin::{EXACT, House, IN_TRANSACTION, eager};

/// Executions outside a transaction: PostgreSQL plans five for their values, and may then keep a
/// plan.
const TIMES: usize = 10;

const SETUP: &str = "
    create type mood as enum ('sad', 'ok', 'happy');
    create domain short as varchar(3);
    create domain positive as int check (value > 0);
    create table t (id int primary key, name text, n numeric(10, 2), d date, ts timestamptz,
        f float8, r real, s smallint, b bigint, c char(5), v varchar(10), j jsonb, a int[], u uuid,
        ok boolean, iv interval, bits bit(3), m mood, ip inet, x bytea);
    insert into t select i, 'name ' || i, i * 1.5, date '2020-01-01' + i,
        timestamptz '2020-01-01 00:00+00' + i * interval '1 h', i / 4.0, i * 1.1, i, i * 3000000000,
        'c' || i, 'v' || i, jsonb_build_object('k', i, 'a', array[i, 2]), array[i, i + 1, i + 2],
        ('00000000-0000-0000-0000-0000000000' || lpad(i::text, 2, '0'))::uuid, i % 2 = 0,
        i * interval '1 minute', (i % 8)::bit(3), (array['sad', 'ok', 'happy'])[1 + i % 3]::mood,
        ('10.0.0.' || i)::inet, ('\\x0' || i % 10)::bytea
        from generate_series(1, 20) i;
    create table w (id serial primary key, a int, b text default 'none', c int[], j jsonb,
        check (a < 1000));
    create table plain (a int, b text);
    create table upsert (a int, b int, c text);
    create unique index on upsert (a) where b > 0;
    create unique index on upsert ((b + 1));
    create table minutes (i interval minute);
    create table ruled (a int);
    create table heard (a int);
    create rule also as on insert to ruled do also select a from heard;
    create table target (a int primary key, b text);
    create function twice(int) returns int language sql immutable as 'select $1 * 2';
    create function kind(int) returns text language sql as $$ select 'int' $$;
    create function kind(bigint) returns text language sql as $$ select 'bigint' $$;
    create function kind(numeric) returns text language sql as $$ select 'numeric' $$;
    create function kind(text) returns text language sql as $$ select 'text' $$;
    analyze";

/// Rows whose literals become parameters.
const PARAMETERS: &str = include_str!("rows/parameters.sql");

/// Rows whose literals stay in the text, so that other literals make another statement.
const KEPT: &str = include_str!("rows/kept.sql");

/// Texts that run as they are sent.
const NEVER: &str = include_str!("rows/never.sql");

/// Splits a file into rows: each is a paragraph, with a text a line, in which `⏎` stands for a
/// newline.
fn rows(file: &str) -> impl Iterator<Item = Vec<String>> {
    let row = |row: &str| row.lines().map(|text| text.replace('⏎', "\n")).collect();
    file.split("\n\n").map(row)
}

/// Runs each row. Fails with the list of rows whose answers differ, or whose number of prepared
/// executions is `wrong`.
fn run(house: &House, file: &str, wrong: impl Fn(u64) -> bool) {
    let mut pair = house.pair();
    let mut found = Vec::new();
    for texts in rows(file) {
        let before = house.hits();
        for text in texts.iter().cycle().take(TIMES) {
            found.extend(pair.compare(text, &EXACT).err());
        }
        let hits = house.hits() - before;
        if wrong(hits) {
            found.push(format!("{}\n  was run prepared {hits} times", texts[0]));
        }
        pair.run("begin");
        for text in texts.iter().cycle().take(3) {
            let compared = pair.compare(text, &IN_TRANSACTION);
            found.extend(compared.err().map(|why| format!("within a transaction: {why}")));
        }
        pair.run("rollback");
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    assert_eq!(house.proxy.counter("auto_failures_in_transaction"), 0);
}

#[test]
fn parameters_on_one_server() {
    let house = House::new("auto_parameters_1", SETUP, eager(1));
    run(&house, PARAMETERS, |hits| hits < TIMES as u64 / 2);
}

#[test]
fn parameters_on_two_servers() {
    let house = House::new("auto_parameters_2", SETUP, eager(2));
    run(&house, PARAMETERS, |hits| hits < TIMES as u64 / 2);
}

#[test]
fn kept_literals_on_one_server() {
    let house = House::new("auto_kept_1", SETUP, eager(1));
    run(&house, KEPT, |hits| hits == 0);
}

#[test]
fn kept_literals_on_two_servers() {
    let house = House::new("auto_kept_2", SETUP, eager(2));
    run(&house, KEPT, |hits| hits == 0);
}

#[test]
fn texts_that_are_left_alone() {
    let house = House::new("auto_never", SETUP, eager(2));
    run(&house, NEVER, |hits| hits > 0);
}

#[test]
fn an_interval_of_fewer_fields() {
    let house = House::new("auto_minutes", SETUP, eager(1));
    let mut pair = house.pair();
    for text in ["999", "1", "1 day 2:03:04"].iter().cycle().take(TIMES) {
        pair.same(&format!("insert into minutes values ('{text}')"));
        pair.same(&format!("update minutes set i = '{text}' where i > '5 s'"));
        pair.same("select * from minutes order by i");
    }
    assert!(house.hits() > 0);
}

/// Statements that are prepared for the first time under generic plans.
#[test]
fn plans_for_all_values() {
    let house = House::new("auto_generic", SETUP, eager(1));
    let mut session = house.behind();
    for database in ["auto_generic", "auto_generic_direct"] {
        session.run(&format!("alter database {database} set plan_cache_mode = force_generic_plan"));
    }
    session.leave();
    house.proxy.order("reconnect");
    run(&house, PARAMETERS, |hits| hits < TIMES as u64 / 2);
    run(&house, KEPT, |hits| hits == 0);
}

#[test]
fn strings_that_are_read_otherwise() {
    let house = House::new("auto_strings", SETUP, eager(1));
    let mut pair = house.pair();
    pair.same(r"select 'a\b'");
    pair.same("set standard_conforming_strings = off");
    let before = house.hits();
    for text in [r"select 'a\\b'", r"select 'a\'b'", r"select 'a\\\'--'"].iter().cycle().take(TIMES)
    {
        pair.same(text);
    }
    assert_eq!(house.hits(), before);
    pair.same("reset standard_conforming_strings");
    pair.same(r"select 'a\b'");
    pair.same("set client_encoding = latin1");
    for _ in 0..TIMES {
        pair.send(&[Msg::Query(b"select 'a' || '\xe9'".to_vec())]);
        pair.settle("latin1", &EXACT).unwrap();
    }
    pair.same("set client_encoding = sjis");
    let before = house.hits();
    (0..TIMES).for_each(|_| drop(pair.same("select 'a'")));
    assert_eq!(house.hits(), before);
}

#[test]
fn nothing_is_prepared_when_it_is_off() {
    let house = House::new("auto_off", SETUP, eager(1).pool("autoprepare", "\"off\""));
    let mut pair = house.pair();
    (0..TIMES).for_each(|_| drop(pair.same("select id from t where id = 3")));
    assert_eq!(house.hits(), 0);
    house.proxy.reload(&eager(1));
    (0..TIMES).for_each(|_| drop(pair.same("select id from t where id = 3")));
    assert!(house.hits() > 0);
}

/// A driver that also uses the extended protocol, with a prepared statement of its own for the same
/// text.
#[test]
fn one_statement_however_it_arrives() {
    let house = House::new("auto_one", SETUP, eager(1));
    let mut pair = house.pair();
    for id in 1..=TIMES {
        pair.same(&format!("select name from t where id = {id}"));
        let close = Msg::CloseStatement(b"s".to_vec());
        let parse = parse("s", "select name from t where id = $1");
        pair.send(&[parse, bind("s", &["3"]), execute(), close, Msg::Sync]);
        pair.settle("extended", &EXACT).unwrap();
    }
    assert_eq!(house.hits(), TIMES as u64);
}
