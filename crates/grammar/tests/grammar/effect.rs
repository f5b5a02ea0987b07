//! Effect: what texts may change.

use crate::text::on_its_thread;
use refrain_grammar::effect;
use refrain_sql::effect::{Effect, Way};
use refrain_sql::reads::Mentioned;

fn rows(text: &str) -> (Vec<(String, Way)>, Mentioned) {
    match on_its_thread(|| effect(text)) {
        Effect::Rows { targets, mentioned } => {
            (targets.into_iter().map(|it| (it.relation, it.way)).collect(), mentioned)
        }
        other => panic!("{text}: {other:?}"),
    }
}

use Way::{Delete, Insert, Refresh, Truncate, TruncateCascade, Update};

const TARGETS: &[(&str, &[(&str, Way)])] = &[
    ("select * from t", &[]),
    ("select * from t for update", &[]),
    ("values (1)", &[]),
    ("insert into t values (1), (default)", &[("\"t\"", Insert)]),
    ("insert into s.\"T\" (a[1], b.c) select a from u", &[("\"s\".\"T\"", Insert)]),
    ("insert into t default values", &[("\"t\"", Insert)]),
    ("insert into t values (1) on conflict do nothing", &[("\"t\"", Insert)]),
    (
        "insert into t values (1) on conflict (lower(a)) where b do update set a = excluded.a",
        &[("\"t\"", Insert), ("\"t\"", Update)],
    ),
    ("update only t as x set (a, b) = (select 1, 2), c = default from u", &[("\"t\"", Update)]),
    ("update t set a = 1 where current of c", &[("\"t\"", Update)]),
    ("delete from t using u where t.a = u.a returning *", &[("\"t\"", Delete)]),
    (
        "merge into t using u on t.a = u.a when matched and u.b then update set a = 1
         when not matched then insert values (u.a) when matched then do nothing",
        &[("\"t\"", Insert), ("\"t\"", Update)],
    ),
    ("merge into t using u on true when matched then delete", &[("\"t\"", Delete)]),
    (
        "with x as (delete from t returning *), y as (update v set a = 1) insert into u table x",
        &[("\"t\"", Delete), ("\"u\"", Insert), ("\"v\"", Update)],
    ),
    ("with x as (insert into t values (1)) select 1", &[("\"t\"", Insert)]),
    ("truncate t, only s.u", &[("\"s\".\"u\"", Truncate), ("\"t\"", Truncate)]),
    ("truncate t restart identity cascade", &[("\"t\"", TruncateCascade)]),
    ("copy t (a, b) from stdin where a > 1", &[("\"t\"", Insert)]),
    ("copy t from program 'ls'", &[("\"t\"", Insert)]),
    ("copy t to stdout", &[]),
    ("copy (delete from t returning *) to stdout", &[("\"t\"", Delete)]),
    ("refresh materialized view concurrently m", &[("\"m\"", Refresh)]),
    ("explain (analyze) delete from t", &[("\"t\"", Delete)]),
    ("explain analyze verbose insert into t values (1)", &[("\"t\"", Insert)]),
    ("declare c cursor for select a from t", &[]),
    ("insert into pg_temp.t select * from u", &[]),
];

#[test]
fn what_is_named_as_changed() {
    for (text, due) in TARGETS {
        let (targets, _) = rows(text);
        let due: Vec<_> = due.iter().map(|(name, way)| ((*name).to_owned(), *way)).collect();
        assert_eq!(targets, due, "{text}");
    }
}

#[test]
fn texts_that_change_no_rows() {
    for text in [
        "begin",
        "start transaction read only",
        "commit",
        "rollback",
        "abort",
        "savepoint s",
        "rollback to s",
        "release s",
        "prepare transaction 'x'",
        "rollback prepared 'x'",
        "set a.b = 'c'",
        "set local search_path = x",
        "reset all",
        "show all",
        "lock table t",
        "listen x",
        "notify x",
        "unlisten *",
        "discard all",
        "close c",
        "fetch all from c",
        "move c",
        "set constraints all immediate",
        "prepare s as delete from t",
        "deallocate s",
        "checkpoint",
        "vacuum t",
        "analyze t",
        "explain delete from t",
        "explain (costs off) select f()",
    ] {
        assert_eq!(on_its_thread(|| effect(text)), Effect::Nothing, "{text}");
    }
}

#[test]
fn texts_that_may_change_anything() {
    for text in [
        "",
        "selec 1",
        "select 1; select 2",
        "call p()",
        "do 'begin end'",
        "execute s",
        "commit prepared 'x'",
        "explain analyze execute s",
        "create table t (a int)",
        "create table t as select 1",
        "select 1 into t",
        "alter table t add b int",
        "drop table t",
        "grant select on t to public",
        "revoke all on t from public",
        "comment on table t is 'x'",
        "alter role r set a.b = 'c'",
        "cluster t",
        "reindex table t",
        "load 'x'",
        "copy t to program 'cat'",
        "create index on t (a)",
        "security label on table t is 'x'",
        "insert into t select * from u tablesample system (1)",
        "select json_object('a': 1)",
        "select pg_temp.f()",
        "set session characteristics as transaction read only; select 1",
        "import foreign schema a from server b into c",
        "reassign owned by a to b",
        "create function f() returns int language sql as 'select 1'",
        "alter system set a = 1",
    ] {
        assert_eq!(on_its_thread(|| effect(text)), Effect::Anything, "{text}");
    }
}

#[test]
fn what_a_write_mentions_is_found() {
    for text in [
        "insert into t values (f())",
        "insert into t select f()",
        "insert into t values (1) on conflict (f(a)) do nothing",
        "insert into t values (1) on conflict (a) where f(a) do update set b = 1",
        "insert into t values (1) on conflict (a) do update set b = f()",
        "insert into t values (1) on conflict (a) do update set b = 1 where f()",
        "insert into t values (1) returning f()",
        "with x as (select f()) insert into t table x",
        "with x as (delete from u returning f()) insert into t table x",
        "update t set a = f()",
        "update t set (a, b) = (select f(), 1)",
        "update t set (a, b) = row (f(), 1)",
        "update t set a[f()] = 1",
        "update t set a = 1 from f()",
        "update t set a = 1 where f()",
        "update t set a = 1 returning f()",
        "delete from t using f()",
        "delete from t where f()",
        "delete from t returning f()",
        "merge into t using f() x on true when matched then delete",
        "merge into t using u on f() when matched then delete",
        "merge into t using u on true when matched and f() then delete",
        "merge into t using u on true when matched then update set a = f()",
        "merge into t using u on true when not matched then insert values (f())",
        "copy t from stdin where f()",
        "copy (select f()) to stdout",
        "explain analyze select f()",
        "declare c cursor with hold for select f()",
    ] {
        let (_, mentioned) = rows(text);
        assert!(mentioned.functions.iter().any(|it| it == "f"), "{text}: {mentioned:?}");
    }
    let (_, mentioned) = rows("copy t to stdout");
    assert_eq!(mentioned.relations, ["\"t\""]);
}
