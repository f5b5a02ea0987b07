//! Autoprepare: no prepared statement outlives the schema or settings that it was prepared for.
//!
//! A case is a statement, run until its plan may be kept, and a change of its meaning. The client
//! itself makes the change, outside a transaction and within one, and another client makes it on
//! another server.

use crate::twin::{House, OWN_OIDS, Pair, Tolerance, eager};

/// Executions of each text before the change.
const TIMES: usize = 8;

/// As [`OWN_OIDS`], within a transaction, where the CONTEXT of an error may lack a line.
const OWN_OIDS_IN_TRANSACTION: Tolerance = Tolerance { oids: true, fields: b"WFLR" };

/// A change of the meaning of statements.
struct Case {
    name: &'static str,
    /// SQL that runs before the statements.
    setup: &'static str,
    /// Statements whose meaning changes.
    texts: &'static [&'static str],
    change: &'static str,
    /// SQL that takes the change back, for a session that goes on.
    undo: &'static str,
}

/// Changes of the schema, which affect every session.
const SCHEMA: &[Case] = &[
    Case {
        name: "path",
        setup: "create schema postgres; create table x as select 1 as a",
        texts: &[
            "select a from x where a > 0",
            "select 'x'::regclass::text, 1",
            "select * from x where a > 0",
        ],
        change: "create table postgres.x as select 2 as a",
        undo: "drop table postgres.x",
    },
    Case {
        name: "overload",
        setup: "create function f(numeric) returns text language sql as $$ select 'numeric' $$;
            create function g(text) returns text language sql as $$ select 'text' $$",
        texts: &["select f(5)", "select g('2020-01-01')", "select f(5) where 1 = 1"],
        change: "create function f(int) returns text language sql as $$ select 'int' $$;
            create function g(unknown) returns text language sql as $$ select 'unknown' $$",
        undo: "drop function f(int), g(unknown)",
    },
    Case {
        name: "enum",
        setup: "create type mood as enum ('sad', 'ok'); create table person as select 'sad'::mood as m",
        texts: &[
            "select 'sad'::mood, 1",
            "select m::text from person where m = 'sad'",
            "select distinct 'ok'::mood from person where m < 'ok'",
        ],
        change: "drop table person; drop type mood; create type mood as enum ('ok', 'sad');
            create table person as select 'sad'::mood as m union all select 'ok'",
        undo: "",
    },
    Case {
        name: "drop_create",
        setup: "create table r (a int, b text); insert into r values (1, 'one'), (2, 'two')",
        texts: &[
            "select b from r where a = 1",
            "select * from r where a > 0 order by a",
            "update r set b = b || 'x' where a = 1",
        ],
        change: "drop table r; create table r (b text, a int); insert into r values ('eins', 1), ('zwei', 2)",
        undo: "",
    },
    Case {
        name: "drop",
        setup: "create table gone (a int)",
        texts: &[
            "select a from gone where a = 1",
            "insert into gone values (7)",
            "delete from gone where a = 7",
        ],
        change: "drop table gone",
        undo: "create table gone (a int)",
    },
    Case {
        name: "rename",
        setup: "create table old as select 1 as a; create table other as select 2 as a",
        texts: &["select a from old where a > 0", "select a from other where a > 0"],
        change: "alter table old rename to tmp; alter table other rename to old; alter table tmp rename to other",
        undo: "",
    },
    Case {
        name: "rename_column",
        setup: "create table cols as select 1 as a, 2 as b",
        texts: &["select * from cols where 1 = 1", "select a from cols where b > 0"],
        change: "alter table cols rename a to c; alter table cols rename b to a; alter table cols rename c to b",
        undo: "",
    },
    Case {
        name: "replace_function",
        setup: "create function h(int) returns int language sql immutable as 'select $1 + 1'",
        texts: &["select h(1)", "select h(2) where h(1) > 0"],
        change: "create or replace function h(int) returns int language sql immutable as 'select $1 + 100'",
        undo: "",
    },
    Case {
        name: "add_column",
        setup: "create table wide (a int); insert into wide values (1)",
        texts: &[
            "select * from wide where a = 1",
            "insert into wide values (1) returning *",
            "select wide from wide where a = 1",
        ],
        change: "alter table wide add column b text default 'new'",
        undo: "alter table wide drop column b",
    },
    Case {
        name: "output_type",
        setup: "create table out (a int, b int); insert into out values (1, 1)",
        texts: &["select b from out where a = 1", "select a, b from out where a < 5"],
        change: "alter table out alter b type text using 'text ' || b",
        undo: "",
    },
    Case {
        name: "output_modifier",
        setup: "create table modified (a int, b varchar(5)); insert into modified values (1, 'abc')",
        texts: &["select b from modified where a = 1"],
        change: "alter table modified alter b type varchar(10)",
        undo: "alter table modified alter b type varchar(5)",
    },
    Case {
        name: "compared_type",
        setup: "create table compared (a int, d text); insert into compared values (1, '2020-01-01')",
        texts: &[
            "select 1 from compared where a = 1",
            "select 1 from compared where a in (1, 2)",
            "select 2 from compared where d = '2020-01-01'",
        ],
        change: "alter table compared alter a type bigint, alter d type date using d::date;
            insert into compared values (3000000000, '2021-01-01')",
        undo: "",
    },
    Case {
        name: "check_default",
        setup: "create table rules (a int, b text default 'first')",
        texts: &[
            "insert into rules (a) values (1) returning b",
            "update rules set a = 2 where a = 1 returning a",
        ],
        change: "alter table rules alter b set default 'second', add check (a < 2) not valid",
        undo: "",
    },
    Case {
        name: "view",
        setup: "create table base as select 1 as a; create view seen as select a from base",
        texts: &["select a from seen where a > 0", "select * from seen where a > 0"],
        change: "create or replace view seen as select a + 10 as a from base",
        undo: "",
    },
    Case {
        name: "rule",
        setup: "create table ruled (a int); create table heard (a int)",
        texts: &["insert into ruled values (1)"],
        change: "create rule also as on insert to ruled do also select 5 as heard",
        undo: "drop rule also on ruled",
    },
    Case {
        name: "partial_index",
        setup: "create table up (a int, b int, c int default 0); create unique index up_a on up (a) where b > 0",
        texts: &[
            "insert into up values (1, 1) on conflict (a) where b > 0 do update set c = up.c + 1 returning c",
        ],
        change: "drop index up_a",
        undo: "",
    },
];

/// Changes that affect the session that makes them, and no other.
const SESSION: &[Case] = &[
    Case {
        name: "search_path",
        setup: "create schema s; create table z as select 1 as a; create table s.z as select 2 as a, 'x' as b;
            create function s.length(text) returns int language sql as 'select 42'",
        texts: &["select a from z where a > 0", "select * from z where a > 0", "select 'z'::regclass::oid = 's.z'::regclass", "select length('abc')"],
        change: "set search_path = s, pg_catalog",
        undo: "reset search_path",
    },
    Case {
        name: "temporary",
        setup: "create table y as select 1 as a",
        texts: &["select a from y where a > 0", "select * from y where a > 0", "update y set a = a + 1 where a > 0 returning a"],
        change: "create temp table y as select 2 as a, 'b' as b",
        undo: "drop table pg_temp.y",
    },
    Case {
        name: "date_style",
        setup: "",
        texts: &[
            "select '01/02/2020'::date",
            "select distinct '01/02/2020'::date + 1",
            "select 1 group by '01/02/2020'::date",
            "select date '01/02/2020', extract(day from '01/02/2020'::date)",
            "select distinct '01/02/2020'::date::text, 1",
        ],
        change: "set datestyle = sql, dmy",
        undo: "reset datestyle",
    },
    Case {
        name: "time_zone",
        setup: "create table times as select timestamptz '2020-02-01 00:00+00' as t",
        texts: &[
            "select '2020-02-01 00:00'::timestamptz",
            "select distinct '2020-02-01 00:00'::timestamptz at time zone 'UTC'",
            "select count(*) from times where t = '2020-02-01 00:00'",
            "select distinct extract(hour from timestamptz '2020-02-01 00:00+00')",
        ],
        change: "set timezone = 'Asia/Tokyo'",
        undo: "reset timezone",
    },
    Case {
        name: "interval_style",
        setup: "",
        texts: &["select '-1 1:00:00'::interval", "select distinct '-1 1:00:00'::interval", "select interval '1 day 2 hours'"],
        change: "set intervalstyle = sql_standard",
        undo: "reset intervalstyle",
    },
    Case {
        name: "planner",
        setup: "create table planned as select generate_series(1, 1000) as a; create index on planned (a); analyze planned",
        texts: &["select a from planned where a = 7", "select a from planned where a between 5 and 8 order by a"],
        change: "set enable_indexscan = off; set enable_bitmapscan = off; set enable_seqscan = on",
        undo: "reset enable_indexscan; reset enable_bitmapscan; reset enable_seqscan",
    },
    Case {
        name: "null_equals",
        setup: "create table nulls as select null::int as a",
        texts: &["select 1 from nulls where a = null", "select count(*) from nulls where a = null and 1 = 1"],
        change: "set transform_null_equals = on",
        undo: "reset transform_null_equals",
    },
    Case {
        name: "bytea_floats",
        setup: "",
        texts: &["select '\\x41'::bytea, 1", "select 0.1::float8 + 0.2::float8", "select distinct 1.1::float4"],
        change: "set bytea_output = escape; set extra_float_digits = 0",
        undo: "reset bytea_output; reset extra_float_digits",
    },
    Case {
        name: "role",
        setup: "create table secret as select 1 as a, 'nobody' as o union all select 2, 'auto_reader';
            alter table secret enable row level security;
            create policy own on secret using (o = current_user);
            grant select on secret to auto_reader; create table closed as select 1 as a",
        texts: &["select a from secret where a > 0 order by a", "select current_user, 1", "select a from closed where a = 1"],
        change: "set role auto_reader",
        undo: "reset role",
    },
    Case {
        name: "discard",
        setup: "create table kept as select 1 as a",
        texts: &["select a from kept where a = 1"],
        change: "discard all",
        undo: "",
    },
    Case {
        name: "discard_plans",
        setup: "create table kept as select 1 as a",
        texts: &["select a from kept where a = 1"],
        change: "discard plans",
        undo: "",
    },
    Case {
        name: "deallocate",
        setup: "create table kept as select 1 as a",
        texts: &["select a from kept where a = 1", "select a from kept where a = 1 and a < 5"],
        change: "deallocate all",
        undo: "",
    },
    Case {
        name: "called_set",
        setup: "create schema s; create table z as select 1 as a; create table s.z as select 2 as a, 'x' as b",
        texts: &["select a from z where a > 0", "select * from z where a > 0"],
        change: "select set_config('search_path', 's', false)",
        undo: "reset search_path",
    },
];

/// Makes the databases for one test of one case; no other test uses them.
fn house(case: &Case, way: &str, servers: u32) -> House {
    let name: &'static str = format!("auto_{way}_{}", case.name).leak();
    House::new(name, case.setup, eager(servers))
}

/// A case under test, and the differences found.
struct Play<'a> {
    case: &'a Case,
    way: &'static str,
    found: Vec<String>,
}

impl Play<'_> {
    fn compare(&mut self, pair: &mut Pair, text: &str, tolerance: &Tolerance) {
        if let Err(why) = pair.compare(text, tolerance) {
            self.found.push(format!("{}, {}: {why}", self.case.name, self.way));
        }
    }

    fn prime(&mut self, pair: &mut Pair) {
        for text in self.case.texts.iter().cycle().take(TIMES * self.case.texts.len()) {
            self.compare(pair, text, &OWN_OIDS);
        }
    }

    fn all(&mut self, pair: &mut Pair, tolerance: &Tolerance) {
        for text in self.case.texts.iter().cycle().take(3 * self.case.texts.len()) {
            self.compare(pair, text, tolerance);
        }
    }

    fn change(&mut self, pair: &mut Pair) {
        self.compare(pair, self.case.change, &OWN_OIDS);
    }

    fn undo(&mut self, pair: &mut Pair) {
        if !self.case.undo.is_empty() {
            self.compare(pair, self.case.undo, &OWN_OIDS);
        }
    }
}

/// One client makes the change outside a transaction; then both clients run the statements.
fn alone(play: &mut Play<'_>) {
    let house = house(play.case, "alone", 2);
    let (mut one, mut two) = (house.pair(), house.pair());
    play.prime(&mut one);
    play.change(&mut one);
    play.all(&mut one, &OWN_OIDS);
    play.all(&mut two, &OWN_OIDS);
    play.undo(&mut one);
    play.all(&mut one, &OWN_OIDS);
    play.all(&mut two, &OWN_OIDS);
    none_lost(play, &house);
}

/// The client makes the change within a transaction that is rolled back, and in one that commits.
/// In the first, an error ends the transaction, so each text has one of its own.
fn within(play: &mut Play<'_>) {
    let house = house(play.case, "within", 2);
    let (mut one, mut two) = (house.pair(), house.pair());
    play.prime(&mut one);
    for text in play.case.texts {
        one.run("begin");
        play.compare(&mut one, text, &OWN_OIDS_IN_TRANSACTION);
        play.compare(&mut one, play.case.change, &OWN_OIDS_IN_TRANSACTION);
        play.compare(&mut one, text, &OWN_OIDS_IN_TRANSACTION);
        one.run("rollback");
        play.compare(&mut one, text, &OWN_OIDS);
    }
    one.run("begin");
    play.change(&mut one);
    one.run("commit");
    play.all(&mut one, &OWN_OIDS);
    play.all(&mut two, &OWN_OIDS);
    none_lost(play, &house);
}

/// Another client makes the change, on another server, while this client is between two
/// transactions. Each server had prepared all statements.
fn by_another(play: &mut Play<'_>) {
    let house = house(play.case, "another", 2);
    let (mut one, mut two) = (house.pair(), house.pair());
    play.prime(&mut one);
    one.run("begin");
    play.prime(&mut two);
    one.run("commit");
    one.run("begin");
    play.change(&mut two);
    // The other client runs first: it would wait for locks of this client.
    play.all(&mut two, &OWN_OIDS);
    // A server takes note of others' changes when it locks a relation, or when others have made a
    // great many changes meanwhile. A statement without relations would have either meaning.
    one.run("select from pg_class where false");
    for text in play.case.texts {
        play.compare(&mut one, text, &OWN_OIDS_IN_TRANSACTION);
    }
    one.run("commit");
    play.all(&mut one, &OWN_OIDS);
    play.undo(&mut two);
    play.all(&mut one, &OWN_OIDS);
    play.all(&mut two, &OWN_OIDS);
    none_lost(play, &house);
}

fn none_lost(play: &mut Play<'_>, house: &House) {
    for counter in ["lost_statements", "auto_failures_in_transaction", "unexpected_messages"] {
        let count = house.proxy.counter(counter);
        if count > 0 {
            play.found.push(format!("{}, {}: {counter} is {count}", play.case.name, play.way));
        }
    }
    if house.hits() == 0 {
        play.found.push(format!("{}, {}: nothing ran prepared", play.case.name, play.way));
    }
}

fn play(cases: &'static [Case], way: &'static str, run: fn(&mut Play<'_>)) {
    let mut found = Vec::new();
    for case in cases {
        let mut play = Play { case, way, found: Vec::new() };
        run(&mut play);
        found.append(&mut play.found);
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

/// Makes the role, which belongs to the cluster: the first test makes it.
fn make_role() {
    let sql = "do $$ begin create role auto_reader; exception when others then null; end $$";
    let postgres = crate::world::addr(crate::world::cluster(crate::world::Version::V15));
    crate::session::Session::open(postgres, "postgres").run(sql);
}

#[test]
fn the_schema_changes() {
    play(SCHEMA, "alone", alone);
}

#[test]
fn the_schema_changes_within_a_transaction() {
    play(SCHEMA, "within", within);
}

#[test]
fn the_schema_is_changed_by_another() {
    play(SCHEMA, "another", by_another);
}

#[test]
fn the_session_changes() {
    make_role();
    play(SESSION, "alone", alone);
}

#[test]
fn the_session_changes_within_a_transaction() {
    make_role();
    // PostgreSQL refuses DISCARD ALL in a transaction, and so does Refrain.
    play(SESSION, "within", within);
}

#[test]
fn another_session_changes() {
    make_role();
    play(SESSION, "another", by_another);
}

/// Two cores, each with servers of its own.
#[test]
fn the_schema_changes_on_another_core() {
    let setup = "create schema postgres; create table x as select 1 as a";
    let house = House::new("auto_cores", setup, eager(4).general("workers", "2"));
    let mut pairs: Vec<_> = (0..6).map(|_| house.pair()).collect();
    for round in 0..5 {
        for _ in 0..TIMES {
            for pair in &mut pairs {
                pair.compare("select * from x where a > 0", &OWN_OIDS).unwrap();
            }
        }
        let change = match round % 2 {
            0 => format!("create table postgres.x as select {round} + 2 as a, 'more' as b"),
            _ => "drop table postgres.x".to_owned(),
        };
        pairs[round].compare(&change, &OWN_OIDS).unwrap();
    }
    assert!(house.hits() > 0);
    assert_eq!(house.proxy.counter("lost_statements"), 0);
}

/// A session outside Refrain changes the schema, which no core can see.
#[test]
fn the_schema_changes_behind() {
    let setup = "create table x as select 1 as a; create schema postgres";
    let house = House::new("auto_behind", setup, eager(1));
    let mut pair = house.pair();
    let text = "select * from x where a > 0";
    (0..TIMES).for_each(|_| drop(pair.compare(text, &OWN_OIDS).unwrap()));
    // The server notices this change and refuses: the text runs as it was sent.
    for mut session in [house.behind(), house.copy()] {
        session.run("alter table x add column b text default 'new'");
    }
    (0..TIMES).for_each(|_| drop(pair.compare(text, &OWN_OIDS).unwrap()));
    assert!(house.proxy.counter("auto_fallbacks") > 0);
    // The server does not notice this change: the operator has to run FLUSH AUTOPREPARE.
    for mut session in [house.behind(), house.copy()] {
        session.run("create table postgres.x as select 2 as a, 'nearer' as b");
    }
    house.proxy.order("flush autoprepare");
    (0..TIMES).for_each(|_| drop(pair.compare(text, &OWN_OIDS).unwrap()));
    assert!(house.proxy.counter("auto_flushes") > 0);
}

/// The recipe of `docs/autoprepare.md`: an event trigger notifies a listener of each definition,
/// and the listener runs FLUSH AUTOPREPARE.
#[test]
fn an_event_trigger_tells_of_changes_behind() {
    let page = include_str!("../../../../../docs/autoprepare.md");
    let recipe = page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let setup = "create table x as select 1 as a; create schema postgres";
    let house = House::new("auto_recipe", setup, eager(1));
    let mut listener = house.behind();
    listener.run(recipe);
    listener.run("listen refrain_ddl");
    let mut pair = house.pair();
    (0..TIMES).for_each(|_| drop(pair.same("select a from x where a > 0")));
    for mut session in [house.behind(), house.copy()] {
        session.run("create table postgres.x as select 2 as a");
    }
    let heard = listener.answer().unwrap();
    assert_eq!((heard.tag, heard.body.ends_with(b"CREATE TABLE AS\0")), (b'A', true));
    house.proxy.order("flush autoprepare");
    (0..TIMES).for_each(|_| drop(pair.compare("select a from x where a > 0", &OWN_OIDS).unwrap()));
}
