//! Tests of the types that texts give their parameters and results.

use super::*;

struct FixedTables;

impl ColumnLookup for FixedTables {
    fn columns(&self, table: &str) -> Vec<(String, Option<Type>)> {
        let columns: &[(&str, Type)] = match table {
            "t" => &[("id", Type::Int8), ("name", Type::Text), ("score", Type::Float8)],
            "u" => &[("uid", Type::Uuid), ("at", Type::Timestamp)],
            _ => &[],
        };
        columns.iter().map(|(name, is)| ((*name).to_owned(), Some(*is))).collect()
    }
}

fn parameters(text: &str) -> Vec<Option<Type>> {
    Inferred::read(text.as_bytes(), &FixedTables).parameters
}

fn result(text: &str) -> Option<Type> {
    Inferred::read(text.as_bytes(), &FixedTables).result(0, 1)
}

const BOOL: Option<Type> = Some(Type::Bool);
const INT: Option<Type> = Some(Type::Int8);
const TEXT: Option<Type> = Some(Type::Text);
const FLOAT: Option<Type> = Some(Type::Float8);

#[test]
fn parameters_are_what_they_meet() {
    for (text, expected) in [
        ("select * from t where id = $1", &[INT][..]),
        ("select * from t x where $2 < x.score and x.id in ($1, $3)", &[INT, FLOAT, INT]),
        ("select * from t where id between $1 and $2", &[INT, INT]),
        ("select * from t where name like $1", &[TEXT]),
        ("insert into t values ($1, $2, $3)", &[INT, TEXT, FLOAT]),
        ("insert into t (score, id) values ($1, $2), ($3, $4)", &[FLOAT, INT, FLOAT, INT]),
        ("insert into t (score) select $1", &[FLOAT]),
        ("update t set name = $1, score = score + $2 where id = $3", &[TEXT, FLOAT, INT]),
        (
            "insert into t values ($1, $2) on conflict (id) do update set score = $3",
            &[INT, TEXT, FLOAT],
        ),
        ("select $1::int4, cast($2 as uuid)", &[Some(Type::Int4), Some(Type::Uuid)]),
        ("select 1 where 1 = $1 and $2 = 'x'", &[INT, TEXT]),
        ("select id from t limit $1 offset $2", &[INT, INT]),
        ("select coalesce($1, score) from t", &[FLOAT]),
        ("select case when id = $1 then $2 else name end from t", &[INT, TEXT]),
        ("select * from u where at > $1 and uid = $2", &[Some(Type::Timestamp), Some(Type::Uuid)]),
        ("with q as (select id from t where name = $1) select * from q", &[TEXT]),
        ("delete from t where id = (select max(id) from t where score > $1)", &[FLOAT]),
        ("select $1", &[None]),
        ("select id + $1 from t", &[INT]),
        ("select 'a' || $1", &[TEXT]),
        ("select rowid from t where rowid = $1", &[INT]),
    ] {
        assert_eq!(parameters(text), expected, "{text}");
    }
}

#[test]
fn expressions_have_types() {
    for (text, expected) in [
        ("select count(*) from t", INT),
        ("select sum(id) from t", INT),
        ("select sum(score) from t", FLOAT),
        ("select avg(id) from t", FLOAT),
        ("select max(name) from t", TEXT),
        ("select id + 1 from t", INT),
        ("select id * 1.5 from t", FLOAT),
        ("select id > 3 from t", BOOL),
        ("select not exists (select 1)", BOOL),
        ("select 'x'", TEXT),
        ("select -1", INT),
        ("select 1.5", FLOAT),
        ("select x'00'", Some(Type::Bytea)),
        ("select cast(name as bigint) from t", INT),
        ("select coalesce(null, id) from t", INT),
        ("select (select score from t)", FLOAT),
        ("select lower(name) from t", TEXT),
        ("select current_timestamp", Some(Type::Timestamptz)),
        ("values (1)", INT),
        ("insert into t values (1) returning id + 1", INT),
        ("select null", None),
        ("select pg_catalog.pg_backend_pid()", INT),
        ("select row_number() over (partition by name order by id) from t", INT),
        ("select count(*) filter (where id > $1) from t", INT),
    ] {
        assert_eq!(result(text), expected, "{text}");
    }
}

#[test]
fn a_star_is_passed_from_both_sides() {
    let read = Inferred::read(b"select count(*), t.*, 1.5 from t", &FixedTables);
    assert_eq!(read.result(0, 5), INT);
    assert_eq!(read.result(1, 5), INT);
    assert_eq!(read.result(4, 5), FLOAT);
}

#[test]
fn nothing_is_said_of_what_nests_too_deep() {
    let text = format!("select {}$1{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(result(&text), None);
    let text = format!("select {}$1", "-".repeat(5000));
    assert_eq!(result(&text), None);
    let text = format!("select {}1", "not ".repeat(5000));
    let _ = result(&text);
}
