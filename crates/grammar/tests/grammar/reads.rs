//! Reads: which texts are none, and what the others mention.

use crate::text::on_its_thread;
use refrain_grammar::read;
use refrain_sql::reads::{Mentioned, Objection, Unkept};

fn mentioned(text: &str) -> Mentioned {
    on_its_thread(|| read(text)).unwrap_or_else(|why| panic!("{text}: {why:?}"))
}

#[track_caller]
fn finds(text: &str, of: impl Fn(&Mentioned) -> &Vec<String>, names: &[&str]) {
    assert_eq!(of(&mentioned(text)), names, "{text}");
}

const NONE: &[(&str, Objection)] = &[
    ("", Objection::Kind),
    ("insert into t values (1)", Objection::Kind),
    ("select 1; select 2", Objection::Kind),
    ("explain select 1", Objection::Kind),
    ("selec 1", Objection::Syntax),
    ("select 1 into t", Objection::Into),
    ("select * from t for update", Objection::Locks),
    ("select * from (select * from t for share) x", Objection::Locks),
    ("select (select 1 from t limit 1 for key share)", Objection::Locks),
    ("with x as (select * from t for no key update) select * from x", Objection::Locks),
    ("(select 1 from t for update) union all select 1", Objection::Locks),
    ("with x as (delete from t returning *) select * from x", Objection::Writes),
    (
        "select (with x as (insert into t values (1) returning a) select a from x)",
        Objection::Writes,
    ),
    ("select * from t tablesample bernoulli (10)", Objection::Form),
    ("select json_object('a': 1)", Objection::Form),
    ("select * from pg_temp.t", Objection::Temporary),
    ("select pg_temp.f()", Objection::Temporary),
    ("select 1::pg_temp.d", Objection::Temporary),
];

#[test]
fn what_is_no_read() {
    for (text, objection) in NONE {
        assert_eq!(on_its_thread(|| read(text)), Err(*objection), "{text}");
    }
}

#[test]
fn relations_are_as_sql_writes_them() {
    let text = "with w as (select * from \"T\" join s.u using (a)) table w";
    finds(text, |it| &it.relations, &["\"T\"", "\"s\".\"u\"", "\"w\""]);
    finds(text, |it| &it.with, &["\"w\""]);
    finds(
        "select (select a from t), exists (select from u)",
        |it| &it.relations,
        &["\"t\"", "\"u\""],
    );
    finds(
        "select * from a, lateral (select * from b) x order by (select 1 from c)",
        |it| &it.relations,
        &["\"a\"", "\"b\"", "\"c\""],
    );
}

/// A text for each place where a call may stand: each calls `f`, which the walk must find.
const CALLS: &[&str] = &[
    "select f()",
    "select s.f(1)",
    "select 1 from f()",
    "select 1 from f() as t(a int)",
    "select 1 from rows from (f(), abs(1))",
    "select 1 from t where f()",
    "select 1 from t group by f()",
    "select 1 from t group by rollup (f())",
    "select 1 from t having f()",
    "select 1 from t order by f()",
    "select distinct on (f()) 1 from t",
    "select 1 limit f()",
    "select 1 offset f()",
    "values (1), (f())",
    "select 1 from a join b on f()",
    "select 1 from (select f()) x",
    "with x as (select f()) select 1",
    "select 1 union select f()",
    "select sum(f()) from t",
    "select sum(a) filter (where f()) from t",
    "select array_agg(a order by f()) from t",
    "select percentile_cont(0.5) within group (order by f()) from t",
    "select sum(a) over (partition by f()) from t",
    "select sum(a) over (order by f()) from t",
    "select sum(a) over w from t window w as (order by f())",
    "select sum(a) over (rows f() preceding) from t",
    "select case when f() then 1 end",
    "select case f() when 1 then 1 end",
    "select case when true then f() end",
    "select case when true then 1 else f() end",
    "select coalesce(1, f())",
    "select greatest(1, f())",
    "select nullif(1, f())",
    "select array[f()]",
    "select (array[1])[f()]",
    "select (array[1])[f():1]",
    "select row(f())",
    "select f() is null",
    "select f() is true",
    "select not f()",
    "select f() collate \"C\"",
    "select f()::text",
    "select 1 in (1, f())",
    "select f() in (select 1)",
    "select 1 between f() and 2",
    "select 1 = any (f())",
    "select array(select f())",
    "select g(x => f())",
    "select (f()).a",
    "select (f()).*",
    "select f() at time zone 'UTC'",
    "select xmlelement(name a, f())",
    "select xmlelement(name a, xmlattributes(f() as b))",
    "select xmlserialize(content f() as text)",
    "select extract(year from f())",
    "select grouping(f()) from t group by f()",
    "select 1 fetch first (f()) rows only",
];

#[test]
fn a_call_is_found_wherever_it_stands() {
    for text in CALLS {
        let all = mentioned(text);
        assert!(all.functions.iter().any(|it| it == "f"), "{text}: {all:?}");
    }
}

#[test]
fn what_may_call_without_parentheses_is_found() {
    finds("select t.a, (t).b, (t.c).d, (f(1)).e, t.*", |it| &it.fields, &["a", "b", "c", "d", "e"]);
    finds("select a + 1, b operator(s.===) 2, c like 'x'", |it| &it.operators, &["+", "===", "~~"]);
    finds("select 1 order by 1 using <<<", |it| &it.operators, &["<<<"]);
    finds("select 1 = any (select 2), 1 in (3), - a from t", |it| &it.operators, &["-", "="]);
    finds("select 1::s.d, cast(2 as \"D\"[]), e 'x'", |it| &it.types, &["D", "d", "e"]);
    finds("select * from f() as t(a d)", |it| &it.types, &["d"]);
    finds("select current_user, current_date, localtime(0)", |it| &it.functions, &[]);
}

const UNKEPT: &[(&str, Option<Unkept>)] = &[
    ("select a, tableoid from t where b = 'epoch' and c = $1", None),
    ("select current_date", Some(Unkept::Clock)),
    ("select localtime(0), current_user", Some(Unkept::Clock)),
    ("select 1 from t where d < current_timestamp(3)", Some(Unkept::Clock)),
    ("select user", Some(Unkept::Session)),
    ("select current_schema", Some(Unkept::Session)),
    ("select 'now'", Some(Unkept::Word)),
    ("select date 'today'", Some(Unkept::Word)),
    ("select * from t where d = ' Tomorrow 10:00'", Some(Unkept::Word)),
    (r"select e'\156ow'::timestamp", Some(Unkept::Word)),
    (r"select u&'\006eow'::timestamp", Some(Unkept::Word)),
    ("select u&'!006eow' uescape '!'", Some(Unkept::Word)),
    ("select 'to'\n'day'::date", Some(Unkept::Word)),
    ("select $$yesterday$$::date", Some(Unkept::Word)),
    ("select '{now}'::timestamp[], '[today,)'::daterange", Some(Unkept::Word)),
    ("select xmin from t", Some(Unkept::Column)),
    ("select t.ctid from t", Some(Unkept::Column)),
    ("select (t).xmax from t", Some(Unkept::Column)),
    ("select ctid, current_date, 'now' from t", Some(Unkept::Clock)),
];

#[test]
fn what_shows_the_present_or_the_session() {
    for (text, unkept) in UNKEPT {
        assert_eq!(mentioned(text).unkept, *unkept, "{text}");
    }
}

#[test]
fn texts_that_may_become_dates() {
    for text in [
        "select $1::date",
        "select a::timestamptz from t",
        "select cast($1 as s.d)",
        "select date($1)",
        "select f($1)",
        "select ($1 || 'x')::timestamp[]",
        "select * from json_to_recordset($1) as x(d date)",
    ] {
        assert!(mentioned(text).dates, "{text}");
    }
    for text in [
        "select a from t where b = $1 and lower(c) like $2",
        "select $1::text, $2::int, a::varchar(3) from t",
        "select date '2020-01-01', '1'::timestamptz",
        "select count(*), date_trunc('day', d) from t group by 2",
    ] {
        assert!(!mentioned(text).dates, "{text}");
    }
}
