//! The SQL texts of the generator, and values for their parameters.
//!
//! In a text `{s}` is the client's own schema, `{i}` its number, `{n}` a small random number. No
//! text depends on time, chance or other clients, and a text that returns several rows sorts them.

use crate::msg::Param;
use crate::rng::Rng;

/// A text with one letter per parameter: `i`nteger, `t`ext, `d`ate, `b`ytes.
pub(crate) type Text = (&'static str, &'static str);

/// Queries that change nothing.
pub(super) const READS: &[Text] = &[
    ("select 1", ""),
    ("select {n}", ""),
    ("select $1::int", "i"),
    ("select $1::int + 1", "i"),
    ("select $1 + 1", "i"),
    ("select $1", "t"),
    ("select $1::text, $2::int", "ti"),
    ("select $1::text || '{n}', length($1)", "t"),
    ("select $1::bytea", "b"),
    ("select $1::date", "d"),
    ("select $1::date + $2::int", "di"),
    ("select 100 / $1::int", "i"),
    ("select id, 10 / (id - $1) from shr.a order by id", "i"),
    ("values (1, 'a'), (2, 'b'), (3, null)", ""),
    ("select generate_series(1, $1::int)", "i"),
    ("select generate_series(1, 5) as g, $1::text as t", "t"),
    ("select * from shr.a order by id", ""),
    ("select id, t from shr.a where id = $1", "i"),
    ("select id, t from shr.a where id = {n}", ""),
    ("select t from shr.a where t = $1", "t"),
    ("select id from shr.a where id > $1 and t <> $2 order by id", "it"),
    ("select d, ts, v, n from shr.a where id < $1 order by id", "i"),
    ("select b from shr.a where id = $1", "i"),
    ("select '05/06/2024'::date /*env*/", ""),
    ("select '05/06/2024'::date + $1::int /*env*/", "i"),
    ("select '2024-01-02 03:04:05'::timestamptz /*env*/", ""),
    ("select '-1 2:03:04'::interval /*env*/", ""),
    ("select length('a\\nb') /*env*/", ""),
    ("select length('é'), 'é' /*env*/", ""),
    ("select id from shr.a where d > '01/02/2024' order by id /*env*/", ""),
    ("select id, v, n from {s}.t1 order by id", ""),
    ("select id, v from {s}.t1 where id = $1", "i"),
    ("select count(*) from {s}.t1", ""),
    ("select * from {s}.t1 where n >= $1 order by id", "i"),
    ("select d, ts from {s}.t2 order by id", ""),
    ("select id, v from {s}.t3 order by id", ""),
    ("select id from {s}.t3 where v = $1 order by id", "t"),
    ("select id, v from t1 order by id", ""),
    ("select count(*) from t3 where id > $1", "i"),
    ("show datestyle", ""),
    ("show timezone", ""),
    ("show search_path", ""),
    ("show work_mem", ""),
    ("show statement_timeout", ""),
    ("show bytea_output", ""),
    ("show application_name", ""),
    ("select current_setting('TimeZone'), current_setting('IntervalStyle')", ""),
    ("select current_setting('transaction_isolation')", ""),
    ("select current_schema(), current_user", ""),
    ("select interval '1 day 02:03:04', date '2024-03-04'", ""),
    ("select '\\x0102'::bytea", ""),
    ("select count(*) from pg_cursors where name = $1", "t"),
];

/// Commands that write to the client's own tables.
pub(super) const WRITES: &[Text] = &[
    ("insert into {s}.t1 (id, v) values ($1, $2)", "it"),
    ("insert into {s}.t1 (id, v) values ($1, $2) on conflict do nothing", "it"),
    ("insert into {s}.t1 (id, v) values ($1, $2) returning id, v", "it"),
    ("insert into {s}.t1 (id, v) values ({n}, 'w{n}')", ""),
    ("insert into {s}.t1 (id, n) values ({n}, 10{n}00)", ""),
    ("insert into t1 (id, v) values ($1, 'u') on conflict (id) do update set n = t1.n + 1", "i"),
    ("update {s}.t1 set v = $2 where id = $1", "it"),
    ("update {s}.t1 set n = n + 1 where id = $1 returning n", "i"),
    ("delete from {s}.t1 where id = $1 returning *", "i"),
    ("delete from {s}.t1", ""),
    ("insert into {s}.t2 (d, ts) values ($1, '2024-05-06 07:08:09+00') returning id", "d"),
    ("insert into {s}.t2 (d) values ('05/06/2024') /*env*/", ""),
    ("insert into {s}.t3 (id, v) values ($1, $2)", "it"),
    ("insert into {s}.t3 (id, v) values ({n}, 'x')", ""),
    ("update {s}.t3 set v = $1 returning id", "t"),
    ("insert into {s}.late values ($1)", "i"),
    ("insert into {s}.late values ({n})", ""),
    ("truncate {s}.t2", ""),
    ("do $$ begin raise notice 'note {n}'; end $$", ""),
    ("with w as (insert into {s}.t1 (id) values ($1) returning id) select id from w", "i"),
    ("insert into shr.nosuch values ($1)", "i"),
];

/// Texts that fail, do nothing, or have an unusual form.
pub(super) const ODD: &[Text] = &[
    ("", ""),
    (" ", ""),
    (";", ""),
    (";;", ""),
    ("-- nothing", ""),
    ("/* nothing */", ""),
    ("/* before */ select {n}", ""),
    ("selec {n}", ""),
    ("select", ""),
    ("select nocolumn", ""),
    ("select * from nosuch", ""),
    ("select 1 +", ""),
    ("select 'x'::int", ""),
    ("select 'abc", ""),
    ("select $1::int + 'x'", "i"),
    ("select $2::int", "ii"),
    ("select $1::nosuchtype", "i"),
    ("select 1 / 0", ""),
    ("select 1; select 2", ""),
    ("select 1;", ""),
    ("execute nosuch", ""),
    ("deallocate nosuch", ""),
    ("fetch 1 from nosuch", ""),
    ("lock table shr.nosuch", ""),
    ("select 'a\\'b' /*env*/", ""),
];

/// Commands that begin a transaction. None sets an isolation level: a Parse that the proxy puts in
/// front takes a snapshot, and PostgreSQL then refuses to change the level (E71).
pub(super) const BEGIN: &[&str] = &[
    "begin",
    "begin",
    "begin",
    "begin",
    "BEGIN READ ONLY",
    "begin read write",
    "start transaction",
];

/// Commands that end a transaction.
pub(super) const END: &[&str] =
    &["commit", "commit", "commit", "END", "rollback", "rollback", "abort", "commit and chain"];

/// Commands on savepoints.
pub(super) const SAVEPOINT: &[&str] = &[
    "savepoint a",
    "savepoint a",
    "savepoint b",
    "rollback to a",
    "rollback to a",
    "rollback to b",
    "release a",
    "release savepoint b",
];

/// SET, RESET and set_config of settings that the server reports.
pub(super) const REPORTED: &[&str] = &[
    "set datestyle = 'ISO, MDY'",
    "set datestyle = 'ISO, DMY'",
    "set datestyle to 'SQL, DMY'",
    "set datestyle to 'Postgres, MDY'",
    "set datestyle to German",
    "set datestyle to bogus",
    "reset datestyle",
    "set timezone = 'UTC'",
    "set timezone = 'America/New_York'",
    "set time zone 'Asia/Tokyo'",
    "set local timezone = 'Europe/Paris'",
    "reset timezone",
    "set application_name = 'one'",
    "set application_name = 'two {i}'",
    "reset application_name",
    "set intervalstyle = iso_8601",
    "set intervalstyle = sql_standard",
    "set intervalstyle = postgres",
    "set client_encoding = 'LATIN1'",
    "set client_encoding to 'UTF8'",
    "set names 'SQL_ASCII'",
    "reset client_encoding",
    "set standard_conforming_strings = off",
    "set standard_conforming_strings = on",
    "reset standard_conforming_strings",
    "set local datestyle = 'SQL, MDY'",
    "select set_config('DateStyle', 'ISO, YMD', false)",
    "select set_config('TimeZone', 'UTC', true)",
];

/// SET and RESET of settings that the server does not report.
pub(super) const UNREPORTED: &[&str] = &[
    "set search_path = {s}",
    "set search_path = {s}",
    "set search_path to {s}, public",
    "set search_path = public",
    "set search_path = ''",
    "reset search_path",
    "set work_mem = '{n}1MB'",
    "set work_mem = 0",
    "reset work_mem",
    "set statement_timeout = '20{n}s'",
    "set local statement_timeout = '30{n}s'",
    "reset statement_timeout",
    "set bytea_output = escape",
    "set bytea_output = hex",
    "reset bytea_output",
    "set local search_path = {s}",
    "set session extra_float_digits = 0",
    "set nosuch_setting = 1",
    "reset all",
];

/// DDL on the client's own table t3. The columns id and v do not change.
pub(super) const DDL: &[&str] = &[
    "alter table {s}.t3 add column x int",
    "alter table {s}.t3 drop column x",
    "alter table {s}.t3 alter column v set default 'dv'",
    "create index t3i on {s}.t3 (id)",
    "drop index {s}.t3i",
    "drop table {s}.t3",
    "drop table if exists {s}.t3",
    "create table {s}.t3 (id int, v text)",
    "create table if not exists {s}.t3 (id int, v text)",
    "create table {s}.n{n} (a int)",
    "drop table {s}.n{n}",
    "truncate {s}.t3",
    "create or replace view {s}.w as select id, v from {s}.t1",
    "select id, v from {s}.w order by id",
    "comment on table {s}.t3 is 'c{n}'",
];

/// DDL by a connection straight to the server. It adds and drops columns that no text names.
pub(super) const OUTSIDE: &[&str] = &[
    "alter table {s}.t3 add column if not exists z int",
    "alter table {s}.t3 drop column if exists z",
    "create index if not exists t3o on {s}.t3 (v)",
    "drop index if exists {s}.t3o",
    "alter table {s}.t1 alter column v set statistics {n}",
    "analyze {s}.t1",
    "comment on table {s}.t1 is 'o{n}'",
];

/// DDL in functions, which a proxy cannot see in the text.
pub(super) const FUNCTIONS: &[&str] = &[
    "select {s}.ddl({n})",
    "values ({s}.ddl({n}))",
    "copy (select {s}.ddl({n})) to stdout",
    "do $$begin perform {s}.ddl({n}); end$$",
    "select id, {s}.ddl({n}) from {s}.t1 where id = {n}",
    "insert into {s}.t1 (id, v) select 9{n}, {s}.ddl({n})",
];

/// Texts with domains and enums.
pub(super) const DOMAINS: &[Text] = &[
    ("select $1::shr.small", "i"),
    ("select $1::shr.word", "t"),
    ("select id, s, w from {s}.w where w = $1 order by id", "t"),
    ("update {s}.w set s = $1 where id = $2 returning s", "ii"),
    ("update {s}.w set w = $2 where id = $1", "it"),
    ("insert into {s}.w (id, w, m) values ($1, $2, 'q') on conflict do nothing", "it"),
    ("insert into {s}.w (id, s) select {n}, {n}0 where false", ""),
    ("select mood, count(*) from shr.q where s < $1 group by mood order by mood", "i"),
];

/// Texts that change columns and types of statements that are already prepared.
pub(super) const STALE: &[&str] = &[
    "select * from {s}.t3",
    "select * from {s}.t3",
    "alter table {s}.t3 add column y{n} int",
    "alter table {s}.t3 alter column v type varchar(9)",
    "alter table {s}.t3 drop column y{n}",
    "drop type if exists {s}.e",
    "create type {s}.e as enum ('p', 'q')",
    "select 'p'::{s}.e",
];

/// Texts that tie a client to its server, and texts that undo this.
pub(super) const PINS: &[&str] = &[
    "prepare q{n} as select {n}",
    "prepare q{n} (int) as select $1 + {n}",
    "prepare q{n} (int) as select id, t from shr.a where id = $1",
    "execute q{n}",
    "execute q{n} (3)",
    "explain (costs off) execute q{n} (3)",
    "deallocate q{n}",
    "deallocate all",
    "listen ch{i}",
    "notify ch{i}, 'hello {n}'",
    "unlisten *",
    "create temp table tt (a int)",
    "insert into tt values ({n})",
    "select a from tt order by a",
    "drop table tt",
    "select pg_advisory_lock({i})",
    "select pg_advisory_unlock({i})",
    "select pg_advisory_unlock_all()",
    "declare h cursor with hold for select generate_series(1, 5)",
    "fetch 2 from h",
    "close h",
    "close all",
];

/// Replaces the place holders of a text.
pub(crate) fn fill(text: &str, client: usize, rng: &mut Rng) -> Vec<u8> {
    let number = client + 1;
    let text = text
        .replace("{s}", &format!("c{number}"))
        .replace("{i}", &number.to_string())
        .replace("{n}", &rng.below(6).to_string());
    if !text.contains("{e}") {
        return text.into_bytes();
    }
    let accented: &[u8] = if rng.chance(60) { "é".as_bytes() } else { b"\xe9" };
    text.split("{e}").map(str::as_bytes).collect::<Vec<_>>().join(accented)
}

/// Returns the OID of the type that fits a parameter.
pub(crate) fn oid(kind: u8) -> u32 {
    match kind {
        b'i' => 23,
        b't' => 25,
        b'd' => 1082,
        _ => 17,
    }
}

/// Returns a value for a parameter: mostly one that fits, in text or binary.
pub(crate) fn value(kind: u8, large: bool, rng: &mut Rng) -> Param {
    if rng.chance(4) {
        return Param { binary: rng.chance(20), value: None };
    }
    if rng.chance(2) {
        return Param { binary: true, value: Some(vec![1, 2, 3]) };
    }
    let small = u8::try_from(rng.below(10)).unwrap_or(0);
    let (binary, value) = match (kind, rng.below(10)) {
        (b'i', 0) => (false, b"zero".to_vec()),
        (b'i', 1..4) => (true, vec![0, 0, 0, small]),
        (b'i', _) => (false, small.to_string().into_bytes()),
        (b't', 0) => (false, "é{1,\"2\"}".as_bytes().to_vec()),
        (b't', 1) => (rng.chance(50), Vec::new()),
        (b't', 2) if rng.chance(20) => (false, b"\xff\xfe".to_vec()),
        (b't', 3) if large && rng.chance(10) => (false, vec![b'y'; rng.below(50_000)]),
        (b't', n) => (n % 2 == 0, format!("v{small}").into_bytes()),
        (b'd', 0) => (false, b"2024-02-30".to_vec()),
        (b'd', 1) => (true, vec![0, 0, 1, small]),
        (b'd', n) if n % 2 == 0 => (false, b"05/06/2024".to_vec()),
        (b'd', _) => (false, b"2024-03-04".to_vec()),
        (_, n) if n % 2 == 0 => (true, vec![0, 255, small]),
        (_, _) => (false, format!("\\x0{small}").into_bytes()),
    };
    Param { binary, value: Some(value) }
}
