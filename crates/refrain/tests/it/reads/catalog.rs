//! Catalog: what real servers say of texts: which relations a result depends on, whether it may be
//! kept, and what a statement may change.

use std::collections::BTreeMap;
use std::thread;

use refrain_pg::Read;
use refrain_pg::findings::{Findings, Writes};
use refrain_pg::question::{Subject, question, remark};
use refrain_sql::effect::Effect;
use refrain_sql::moments::{Suspects, names_moment};

use crate::session::Session;
use crate::world::{Version, addr, cluster};

const SETUP: &str = "
    create table t (a int primary key, b text, d date, at timestamptz default now(),
        id uuid default gen_random_uuid());
    create table u (a int primary key, b text);
    create table kept (a int primary key);
    create table holds (a int references kept);
    create table master (a int primary key);
    create table part (a int primary key references master on delete cascade);
    create table piece (a int references part on delete set null on update cascade);
    create table moved (a int references master on update set default);
    create table parted (a int, b text) partition by range (a);
    create table parted1 partition of parted for values from (0) to (10);
    create table parted2 partition of parted for values from (10) to (20) partition by list (b);
    create table parted21 partition of parted2 default;
    create table parent (a int);
    create table child (c int) inherits (parent);
    create view plain as select a, b from t where b <> 'x';
    create view deep as select p.a from plain p join u using (a);
    create view simple as select a from u;
    create view clock as select a from t where at < now();
    create view day as select a from t where d < current_date;
    create view cols as select xmin from t;
    create view sampled as select a from t tablesample system (50);
    create view dated as select (b || '')::date as d from t;
    create view mine as select a, b from u;
    create rule r as on update to mine do instead update u set b = new.b;
    create view trig as select a, b from u;
    create materialized view mat as select count(*) from u;
    create table ruled (a int);
    create rule r as on insert to ruled do also insert into u values (new.a);
    create table logged (a int, at timestamptz);
    create table touched (a int, at timestamptz);
    create table zoned (a int, z timetz);
    create sequence s;
    create table secret (a int);
    alter table secret enable row level security;
    create function writes() returns int language plpgsql as 'begin delete from u; return 1; end';
    create function runs(x text) returns int language plpgsql as 'begin execute x; return 1; end';
    create function calls() returns int language sql as 'select writes()';
    create function rolls() returns float8 language plpgsql
        as 'begin /* dice */ return random(); end';
    create function rolled() returns float8 language plpgsql
        as 'declare x float8 := random(); begin
            if x is not distinct from 0.5 then return 1; end if; return x; end';
    create function seen() returns bigint language sql stable as 'select count(*) from u';
    create function double(int) returns int language sql immutable as 'select $1 * 2';
    create function lies() returns bigint language sql immutable as 'select count(*) from u';
    create function fibs() returns text language sql immutable as 'select to_char(now(), ''YYYY'')';
    create function quoted() returns int language sql immutable as 'select \"double\"(1)';
    create function log() returns trigger language plpgsql
        as 'begin insert into u values (new.a); return new; end';
    create function touch() returns trigger language plpgsql
        as 'begin new.at = clock_timestamp(); return new; end';
    create trigger l before insert on logged for each row execute function log();
    create trigger l before insert or update on touched for each row execute function touch();
    create trigger l instead of insert on trig for each row execute function log();
    create table defaulted (a int default writes(), b int);
    create table checked (a int check (runs('x') > 0));
    create table policed (a int);
    create policy p on policed using (writes() > 0);
    create schema other;
    create table other.t (a int);
    create aggregate sums(int) (sfunc = int4pl, stype = int, initcond = '0');
    create function bad(int, int) returns int language plpgsql
        as 'begin delete from u; return 1; end';
    create aggregate bads(int) (sfunc = bad, stype = int, initcond = '0');
    create function given(a int default writes()) returns int language sql stable as 'select 1';
    create function summed() returns int language sql as 'select bads(1)';
    create function gave() returns int language sql as 'select given()';
    create function field() returns int language plpgsql
        as 'declare x u; begin return (x).wrote; end';
    create function wrote(u) returns int language sql as 'select writes()'";

/// Texts, what is known of them as reads, and on which relations they depend.
const READS: &[(&str, &str, &str)] = &[
    ("select a, b, d from t where a = $1", "kept", "t"),
    ("select 1", "kept", ""),
    ("select t.a, count(*), max(b) from t join u using (a, b) group by 1", "kept", "t u"),
    ("with t as (select a from u) select * from t", "kept", "t u"),
    ("select * from plain", "kept", "t"),
    ("select * from deep where exists (select from kept)", "kept", "kept t u"),
    ("select * from parted", "kept", "parted"),
    ("select * from parted1", "kept", "parted1"),
    ("select * from parent", "kept", "parent"),
    ("select * from mat", "kept", "mat"),
    ("select * from other.t", "kept", "other.t"),
    (
        "select to_char(at, 'YYYY'), date_trunc('day', at), extract(year from at) from t",
        "kept",
        "t",
    ),
    ("select at at time zone 'UTC', at + '1 day', at::date, d < at from t", "kept", "t"),
    (
        "select concat(a, b), format('%s', a), to_json(t), json_agg(a) from t group by t, a, b",
        "kept",
        "t",
    ),
    (
        "select string_agg(b, ','), array_agg(a), row_number() over () from t group by a",
        "kept",
        "t",
    ),
    ("select generate_series(1, 3), unnest(array[1]), coalesce(null, 1), 'a' ~ 'b'", "kept", ""),
    ("select double(2), sums(a) from t", "kept", "t"),
    ("select now()", "clock-function", ""),
    ("select age(at) from t", "clock-function", "t"),
    ("select current_date from t", "clock-function", "t"),
    ("select current_setting('a.b', true)", "clock-function", ""),
    ("select has_table_privilege('t', 'select')", "clock-function", ""),
    ("select to_regclass('t')", "clock-function", ""),
    ("select pg_relation_size('t')", "no: volatile", ""),
    ("select '10:00'::timetz", "clock-function", ""),
    ("select a from zoned", "clock-function", "zoned"),
    ("select * from clock", "clock-function", "t"),
    ("select * from day", "clock-function", "t"),
    ("select xmin from t", "system-column", "t"),
    ("select * from cols", "system-column", "t"),
    ("select * from sampled", "sample", "t"),
    ("select * from dated", "date-text", "t"),
    ("select * from t where d = 'today'", "date-word", "t"),
    ("select current_user", "session-value", ""),
    ("select seen()", "stable-function", ""),
    ("select lies()", "stable-function", ""),
    ("select fibs()", "stable-function", ""),
    ("select quoted()", "stable-function", ""),
    ("select seen(), now()", "clock-function", ""),
    ("select random()", "no: volatile", ""),
    ("select rolled()", "no: volatile", ""),
    ("select clock_timestamp()", "no: volatile", ""),
    ("select nextval('s')", "no: volatile", ""),
    ("select last_value from s", "no: relation", "s"),
    ("select pg_backend_pid()", "no: session", ""),
    ("select a from secret", "no: row-security", "secret"),
    ("select relname from pg_class", "no: catalog", "pg_class"),
    ("select * from information_schema.tables", "no: catalog", "*"),
    ("select * from missing", "no: missing", ""),
    ("select a from t for update", "no: locks", ""),
    ("insert into t values (1)", "no: kind", ""),
    ("explain select 1", "no: kind", ""),
    ("show all", "no: kind", ""),
    ("with x as (delete from t returning a) select * from x", "no: writes", ""),
    ("select * from t tablesample system (50)", "no: form", ""),
    ("fetch all from c", "no: kind", ""),
];

/// Texts, and the relations whose rows they may change.
const WRITES: &[(&str, &str)] = &[
    ("select * from t", ""),
    ("select now(), random(), nextval('s'), pg_advisory_lock(1), set_config('a.b', 'c', true)", ""),
    ("select * from t for update", ""),
    ("select seen(), double(1), sums(a) from t", ""),
    ("select * from plain, clock, cols", ""),
    ("select relname from pg_class, secret", ""),
    ("select rolled()", ""),
    ("select rolls()", "*"),
    ("select bads(1)", "*"),
    ("select given()", "*"),
    ("select summed()", "*"),
    ("select gave()", "*"),
    ("select field()", "*"),
    ("select u.wrote from u", "*"),
    ("select writes()", "*"),
    ("select calls()", "*"),
    ("select runs('x')", "*"),
    ("select 1 from u where a = writes()", "*"),
    ("select query_to_xml('select writes()', true, true, '')", "*"),
    ("select a from policed", "*"),
    ("select * from missing", "*"),
    ("insert into t values (1)", "t"),
    ("insert into t (a) select a from u returning *", "t"),
    ("insert into t values (writes())", "*"),
    ("insert into other.t values (1)", "other.t"),
    ("insert into t select * from missing", "*"),
    ("insert into missing values (1)", "*"),
    ("insert into defaulted (b) values (1)", "*"),
    ("insert into checked values (1)", "*"),
    ("insert into policed values (1)", "*"),
    ("insert into ruled values (1)", "*"),
    ("insert into logged values (1)", "*"),
    ("update logged set a = 1", "logged"),
    ("insert into touched values (1)", "touched"),
    ("update touched set a = 1", "touched"),
    ("insert into trig values (1)", "*"),
    ("update mine set b = 'x'", "*"),
    ("update plain set b = 'y'", "t"),
    ("delete from simple", "u"),
    ("insert into kept values (1)", "kept"),
    ("delete from kept", "kept"),
    ("delete from master", "master part piece"),
    ("update master set a = 1", "master moved"),
    ("insert into master values (1)", "master"),
    ("insert into master values (1) on conflict (a) do update set a = 2", "master moved"),
    ("update part set a = 1", "part piece"),
    ("merge into master using u on true when matched then delete", "master part piece"),
    ("merge into master using u on true when not matched then insert values (1)", "master"),
    ("insert into parted values (1)", "parted parted1 parted2 parted21"),
    ("update parted1 set b = 'x'", "parted parted1"),
    ("delete from parted21", "parted parted2 parted21"),
    ("delete from child", "child parent"),
    ("update parent set a = 1", "child parent"),
    ("truncate holds", "holds"),
    ("truncate kept cascade", "holds kept"),
    ("copy t from stdin", "t"),
    ("copy t to stdout", ""),
    ("copy (select writes()) to stdout", "*"),
    ("refresh materialized view mat", "mat"),
    ("with x as (delete from u returning a) insert into t select a from x", "t u"),
    ("explain analyze delete from u", "u"),
    ("explain delete from u", ""),
    ("declare c cursor for select writes()", "*"),
    ("fetch all from c", ""),
    ("lock table t", ""),
    ("begin", ""),
    ("set search_path = other", ""),
    ("call p()", "*"),
    ("do 'begin end'", "*"),
    ("create table x (a int)", "*"),
    ("grant select on t to public", "*"),
    ("execute x", "*"),
    ("delete from pg_class where false", "*"),
    ("insert into s values (1)", "*"),
];

fn parsed<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(refrain_grammar::STACK);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

/// Asks a server about statements in one question.
fn ask(server: &mut Session, subjects: &[Subject<'_>]) -> Vec<Findings> {
    let text = String::from_utf8(question(subjects.iter().copied(), true)).unwrap();
    let reply = server.query(&text);
    assert!(reply.error().is_none(), "{}", reply.words());
    let new = |subject: &Subject<'_>| Findings::new(None, subject.mentioned.unkept);
    let mut all: Vec<_> = subjects.iter().map(new).collect();
    for row in reply.rows() {
        let row = row[0].as_deref().unwrap();
        match remark(row.as_bytes()) {
            (Some(number), remark) => all[number].hears(remark, false),
            (None, remark) => all.iter_mut().for_each(|it| it.hears(remark, true)),
        }
    }
    all
}

/// The names of relations, by OID, as the session writes them.
struct Names(BTreeMap<u32, String>);

impl Names {
    fn new(server: &mut Session) -> Self {
        let rows = server.query("select oid, oid::regclass::text from pg_class").rows();
        let column = |row: &[Option<String>], at: usize| row[at].clone().unwrap();
        Self(rows.iter().map(|row| (column(row, 0).parse().unwrap(), column(row, 1))).collect())
    }

    fn of(&self, relations: &[(u32, String)]) -> String {
        let mut names: Vec<_> = relations
            .iter()
            .map(|(oid, name)| {
                let known = self.0[oid].as_str();
                assert!(known.contains('"') || name.ends_with(known), "{name}: {known}");
                known
            })
            .collect();
        names.sort_unstable();
        names.join(" ")
    }
}

fn reads(server: &mut Session, names: &Names, texts: &[(&str, &str, &str)]) {
    for (text, due, depends) in texts {
        let (read, relations) = match parsed(|| refrain_grammar::read(text)) {
            Err(objection) => (Err(objection), String::new()),
            Ok(mentioned) => {
                let subject = Subject { mentioned: &mentioned, targets: None, parameters: &[0, 0] };
                let found = ask(server, &[subject]).remove(0);
                (found.read(), names.of(&found.relations()))
            }
        };
        let read = match read {
            Ok(Read::Timeless) => "kept".to_owned(),
            Ok(Read::Unkept(unkept)) => unkept.reason().name.to_owned(),
            Err(objection) => format!("no: {}", objection.reason().name),
        };
        assert_eq!(read, *due, "{text}");
        assert!(*depends == "*" || relations == *depends, "{text}: {relations}");
    }
}

fn written(server: &mut Session, names: &Names, text: &str) -> String {
    match parsed(|| refrain_grammar::effect(text)) {
        Effect::Nothing => String::new(),
        Effect::Anything => "*".to_owned(),
        Effect::Rows { targets, mentioned } => {
            let subject =
                Subject { mentioned: &mentioned, targets: Some(&targets), parameters: &[0, 0] };
            match ask(server, &[subject]).remove(0).writes() {
                Writes::Nothing => String::new(),
                Writes::Anything => "*".to_owned(),
                Writes::Relations(relations) => names.of(&relations),
            }
        }
    }
}

fn opened(version: Version, database: &str) -> Session {
    let cluster = cluster(version);
    let mut owner = Session::open(addr(cluster), "postgres");
    owner.run(&format!("drop database if exists {database} with (force)"));
    owner.run(&format!("create database {database}"));
    let mut server = Session::open(addr(cluster), database);
    server.run(SETUP);
    server
}

fn verdicts(version: Version, database: &str) {
    let mut server = opened(version, database);
    let names = Names::new(&mut server);
    reads(&mut server, &names, READS);
    for (text, due) in WRITES {
        let mut due: Vec<_> = due.split_whitespace().collect();
        due.sort_unstable();
        assert_eq!(written(&mut server, &names, text), due.join(" "), "{text}");
    }
}

#[test]
fn what_the_catalog_of_postgresql_15_says() {
    verdicts(Version::V15, "catalog_15");
}

#[test]
fn what_the_catalog_of_postgresql_18_says() {
    verdicts(Version::V18, "catalog_18");
}

/// Parts of values that PostgreSQL may read as dates.
const PARTS: &[&str] = &[
    "now",
    "today",
    "Tomorrow",
    "YESTERDAY",
    "epoch",
    "infinity",
    "allballs",
    "2020-01-02",
    "10:00",
    "1",
    "T",
    "am",
    "+02",
    "-",
    "/",
    ".",
    ",",
    " ",
    "  ",
    "\t",
    "\u{e9}",
    "x",
    "z",
    "UTC",
    "EST",
    "Europe/Paris",
    "Jan",
    "Monday",
    "BC",
    "d",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\",
    "'",
    ";",
    "_",
    "\u{17f}",
    "\u{a0}",
];

/// Returns random values, and pairs of all parts.
fn values() -> Vec<String> {
    let mut values: Vec<_> =
        PARTS.iter().flat_map(|one| PARTS.iter().map(move |two| format!("{one}{two}"))).collect();
    let mut state = 7_u64;
    let mut any = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % most
    };
    for _ in 0..20_000 {
        let parts: String = (0..2 + any(3)).map(|_| PARTS[any(PARTS.len())]).collect();
        let around = [("", ""), ("{", "}"), ("[", ",)"), ("(,", "]"), ("{[", ",)}"), ("(1,", ")")];
        let (before, behind) = around[any(around.len())];
        values.push(format!("{before}{parts}{behind}"));
    }
    values
}

/// Checks random values: a value that is another date in a time zone more than a day away depends
/// on the present, because a date and a time that a value names do not depend on the time zone.
fn no_moment_is_missed(version: Version, database: &str) {
    let mut server = opened(version, database);
    server.run(
        "create type row_of_date as (a int, d date);
         create function value_of(v text, t text) returns text language plpgsql as $$
         declare x text;
         begin execute format('select (%L::%s)::text', v, t) into x; return x;
         exception when others then return null; end $$;
         create table vals (v text)",
    );
    let values = values();
    for some in values.chunks(1000) {
        let rows: Vec<_> =
            some.iter().map(|it| format!("('{}')", it.replace('\'', "''"))).collect();
        server.run(&format!("insert into vals values {}", rows.join(",")));
    }
    let types = "'date', 'timestamp', 'time', 'date[]', 'daterange', 'tsrange', 'row_of_date'";
    let types = if version == Version::V18 {
        format!("{types}, 'datemultirange'")
    } else {
        types.to_owned()
    };
    server.run("create table seen (zone text, v text, t text, x text)");
    for zone in ["Etc/GMT+12", "Etc/GMT-14"] {
        server.run(&format!(
            "set timezone = '{zone}';
             insert into seen select '{zone}', v, t, value_of(v, t)
             from vals, unnest(array[{types}]) t"
        ));
    }
    let found = server.query(
        "select distinct a.v from seen a join seen b using (v, t)
         where a.zone < b.zone and a.x is distinct from b.x",
    );
    let rows = found.rows();
    assert!(rows.len() > 100, "{}", rows.len());
    for row in rows {
        let value = row[0].as_deref().unwrap();
        assert!(names_moment(value.as_bytes()), "{value}");
    }
}

#[test]
fn no_moment_is_missed_that_postgresql_15_reads() {
    no_moment_is_missed(Version::V15, "moments_15");
}

#[test]
fn no_moment_is_missed_that_postgresql_18_reads() {
    no_moment_is_missed(Version::V18, "moments_18");
}

/// The types of parameters whose values are not looked at cannot be dates.
#[test]
fn types_that_are_no_dates() {
    let mut server = opened(Version::V15, "types_15");
    let rows = server.query(
        "select oid, typname from pg_type where oid < 16384 and typtype in ('b', 'r', 'm')
         and typname ~ '^_?(date|time|ts(tz)?(multi)?range)' or typname = 'unknown'",
    );
    let types = rows.rows();
    assert!(types.len() > 15, "{types:?}");
    for row in types {
        let oid: u32 = row[0].as_deref().unwrap().parse().unwrap();
        assert!(Suspects::of([oid], false).has(0), "{row:?}");
    }
}
