//! Autoprepare: Refrain verifies and prepares in jobs, on servers that no client holds. A query
//! that does not fit the settings of its transaction runs as it was sent. So jobs do not disturb a
//! client by settings of a transaction, locks or schema changes that do not concern it.

use refrain_differ::msg::Msg;

use crate::session::{Session, query};
use crate::twin::{EXACT, House, IN_TRANSACTION, OWN_OIDS, Pair, eager};
use crate::world::eventually;

/// Executions after which the server keeps a plan.
const TIMES: usize = 8;

/// Runs a text until it is run as a prepared statement. On a busy machine the verification takes a
/// while.
fn prime(house: &House, pair: &mut Pair, text: &str) {
    let before = house.hits();
    (0..TIMES).for_each(|_| drop(pair.compare(text, &OWN_OIDS).unwrap()));
    eventually(&format!("{text} is run prepared"), || {
        house.hits() > before || {
            pair.compare(text, &OWN_OIDS).unwrap();
            false
        }
    });
}

#[test]
fn escapes_are_bytes_of_the_database_s_encoding() {
    let setup = "create table said (a text)";
    let house = House::encoded("auto_latin1", "LATIN1", setup, eager(1));
    let mut pair = house.pair_with(&[("client_encoding", "UTF8")]);
    for _ in 0..TIMES {
        pair.same(r"select E'\xc3\xa9', length(E'\xc3\xa9')");
        pair.same(r"insert into said values (E'\xc3\xa9')");
    }
    pair.same("select a, length(a) from said");
    // Where both encodings are the same, no text is converted.
    let mut pair = house.pair_with(&[("client_encoding", "iso-8859-1")]);
    pair.same(r"select E'\xe9', length(E'\xe9')");
    prime(&house, &mut pair, "select 'a' || 'b'");
}

const SETTINGS: &str = "create table s as select null::int as a union all select 1;
    create function tenant() returns text language sql immutable
        as $$ select coalesce(nullif(current_setting('app.tenant', true), ''), 'none') $$;
    create table rows as select 'none' as t, 1 as a union all select 'x', 2";

/// Commands that change the meaning of texts until the transaction ends, and such texts.
const LOCALS: &[(&str, &str)] = &[
    ("set local transform_null_equals = on", "select count(*) from s where a = null"),
    (
        "select set_config('transform_null_equals', 'on', true)",
        "select count(*) from s where a = null and 1 = 1",
    ),
    ("set local array_nulls = off", "select distinct '{null}'::text[] from s"),
    ("set local app.tenant = 'x'", "select a from rows where t = tenant() and a > 0"),
    ("set local extra_float_digits = 0", "select distinct '1.12345678901234567'::float8::text"),
    ("set local bytea_output = escape", "select distinct '\\x41'::bytea::text"),
];

#[test]
fn settings_of_a_block_are_its_own() {
    let house = House::new("auto_local", SETTINGS, eager(1));
    let (mut one, mut two) = (house.pair(), house.pair());
    for (set, text) in LOCALS {
        // The first round runs before any server has prepared the text.
        for end in ["commit", "rollback"] {
            for text in [(*text).to_owned(), format!("{text} limit 5")] {
                one.same("begin");
                one.same(set);
                (0..3).for_each(|_| drop(one.same(&text)));
                one.same(end);
                (0..TIMES).for_each(|_| drop(two.same(&text)));
                (0..3).for_each(|_| drop(one.same(&text)));
            }
        }
    }
    assert!(house.hits() > 0);
}

#[test]
fn settings_of_a_session_that_are_worked_into_a_plan() {
    let house = House::new("auto_folded", SETTINGS, eager(1));
    let (mut one, mut two) = (house.pair(), house.pair());
    let text = "select distinct '1.12345678901234567'::float8::text";
    let bytes = r"select distinct '\x41'::bytea::text";
    prime(&house, &mut two, text);
    one.same("set extra_float_digits = 0");
    one.same("set bytea_output = escape");
    for _ in 0..TIMES {
        for pair in [&mut one, &mut two] {
            pair.same(text);
            pair.same(bytes);
        }
    }
}

const CLOCKS: &str = "
    create table stamps
        (id int, a timestamptz default now(), b timestamptz default statement_timestamp());
    create table audited (a int);
    create table log (a text);
    create function note() returns trigger language plpgsql
        as $$ begin insert into log values (current_query()); return new; end $$;
    create trigger note after insert on audited for each row execute function note();
    create function told() returns text language sql as $$ select current_query() $$;
    create view telling as select current_query() as q, 1 as a;
    create table names as select 'first' as n;
    create function named() returns text language plpgsql immutable
        as $$ begin return (select n from names); end $$;
    create table c6 as select 'c'::char(6) as c, 1 as a;
    create table plain (a int)";

#[test]
fn time_and_text_as_the_server_sees_them() {
    let house = House::new("auto_clock", CLOCKS, eager(1));
    let mut pair = house.pair();
    for number in 0..TIMES {
        pair.same(&format!("select now() = statement_timestamp(), {number}"));
        pair.same(&format!("insert into stamps (id) values ({number}) returning a = b"));
        pair.same(&format!("insert into audited values ({number})"));
        pair.same(&format!("select told(), {number}"));
        pair.same(&format!("select q from telling where a > {number} - 100"));
        pair.same("select named() where 1 = 1");
        pair.same(&format!("update names set n = 'n{number}'"));
        pair.same("select named() where 1 = 1");
        for day in ["2020-01-05", "2020-02-05"] {
            let case = format!("case when '{day}'::timestamptz < '2020-01-12' then c else 'a' end");
            pair.same(&format!("select {case} from c6 where a = 1"));
        }
        pair.same(&format!("select now() > '2020-01-01', {number}"));
        pair.same(&format!("insert into plain values ({number})"));
    }
    pair.same("select a from log order by a");
    assert!(house.hits() >= 3 * TIMES as u64 / 2, "{}", house.hits());
}

const DOMAINS: &str = "
    create domain short as varchar(3);
    create domain small as numeric(4, 1);
    create domain good as text check (value <> 'bad');
    create table de (id int primary key, e good, s short, n small);
    insert into de values (1, 'a', 'b', 1)";

#[test]
fn constraints_of_domains_are_looked_at_where_there_is_a_row() {
    let house = House::new("auto_domains", DOMAINS, eager(1));
    let mut pair = house.pair();
    let texts = |value: &str| {
        [
            format!("update de set e = '{value}' where id = 99"),
            format!("insert into de (id, e) select 5, '{value}' where false"),
            format!(
                "insert into de (id, e) values (1, 'x') on conflict (id) do update set e = '{value}' where de.id = 7"
            ),
            format!(
                "merge into de using (values (77)) v(a) on de.id = v.a when matched then update set e = '{value}'"
            ),
        ]
    };
    for text in texts("good") {
        (0..TIMES).for_each(|_| drop(pair.same(&text)));
    }
    for text in texts("bad") {
        pair.same(&text);
        pair.same("begin");
        pair.same(&text);
        pair.same("rollback");
    }
    prime(&house, &mut pair, "select id from de where id = 1");
    // The planner finds a value that is too long or too large.
    for (column, right, wrong) in [("s", "abc", "abcd"), ("n", "1.5", "12345")] {
        let text = |value: &str| format!("update de set {column} = '{value}' where id = 1");
        (0..3).for_each(|_| drop(pair.same(&text(right))));
        pair.same("begin");
        pair.same(&text(wrong));
        pair.same("rollback");
    }
}

#[test]
fn bytes_that_are_no_characters() {
    let house = House::new("auto_bytes", "", eager(1));
    let mut pair = house.pair();
    prime(&house, &mut pair, "select 'a' || 'b'");
    for block in [false, true] {
        if block {
            pair.same("begin");
        }
        pair.send(&[Msg::Query(b"select 'a' || '\xff'".to_vec())]);
        pair.settle("22021", &EXACT).unwrap();
        if block {
            pair.same("rollback");
        }
    }
}

#[test]
fn a_notice_comes_once() {
    let setup = "create function noisy(int) returns int language plpgsql immutable as $$ begin
        raise notice 'it is %', $1;
        if $1 = 0 then raise exception 'not %', $1; end if;
        return $1; end $$";
    let house = House::new("auto_noisy", setup, eager(1));
    let mut pair = house.pair();
    for (right, wrong) in [(1, 0), (2, 0)] {
        pair.same(&format!("select noisy({right})"));
        pair.same(&format!("select noisy({wrong})"));
    }
    assert!(house.hits() > 0 && house.proxy.counter("auto_fallbacks") > 0);
}

#[test]
fn a_notification_comes_behind_the_command() {
    let house = House::new("auto_notified", "", eager(1));
    let mut pair = house.pair();
    prime(&house, &mut pair, "select pg_notify('c', 'x')");
    pair.same("listen c");
    let before = house.hits();
    for _ in 0..3 {
        pair.send(&[query("select pg_notify('c', 'y')")]);
        let tags = |session: &mut Session| -> String {
            session.ready().frames.iter().map(|frame| char::from(frame.tag)).collect()
        };
        assert_eq!(tags(&mut pair.proxied), tags(&mut pair.direct));
    }
    assert!(house.hits() > before, "it was run prepared");
}

/// A migration holds a lock on one table while the verification of a query on that table is due.
/// Clients that read another table must not wait for it.
#[test]
fn a_lock_is_felt_by_those_who_want_it_only() {
    let setup = "create table t as select 1 as a; create table o as select 1 as x";
    let house = House::new("auto_locked", setup, eager(2));
    let (mut one, mut two) = (house.proxy.open("auto_locked"), house.proxy.open("auto_locked"));
    // The rollback to the savepoint releases the lock, and the verification stays due.
    for text in ["begin", "savepoint s", "select a from t where a = 1", "rollback to s"] {
        one.run(text);
    }
    let mut migration = house.behind();
    migration.run("begin");
    migration.run("alter table t add column z int");
    for x in 0..20 {
        assert_eq!(
            two.query(&format!("select x + {x} from o where x = 1")).value(),
            (x + 1).to_string()
        );
    }
    // The verification could not finish, and no client waited for it.
    assert_eq!(house.proxy.counter("unexpected_messages"), 0);
    migration.run("commit");
    one.run("commit");
    eventually("the text is prepared", || {
        two.run("select a from t where a = 1");
        house
            .proxy
            .show("autoprepare")
            .iter()
            .any(|row| row["template"].contains("from t") && row["hits"] != "0")
    });
}

/// The schema changes directly at the server. In a transaction, Refrain does not rely on the
/// columns of `*`.
#[test]
fn columns_that_are_added_behind_lose_no_transaction() {
    let setup =
        "create table t as select 1 as id, 2 as b; create table u as select 1 as id, 2 as b";
    let house = House::new("auto_added", setup, eager(1));
    let mut pair = house.pair();
    let block = |pair: &mut Pair| {
        pair.same("begin");
        for text in ["select * from t where id = 1", "select b from t where id = 1"] {
            pair.compare(text, &OWN_OIDS).unwrap();
        }
        pair.compare("update t set b = b + 1 where id = 1 returning *", &OWN_OIDS).unwrap();
        pair.same("commit");
    };
    for text in ["select * from t where id = 1", "select b from t where id = 1"] {
        prime(&house, &mut pair, text);
    }
    prime(&house, &mut pair, "update t set b = b + 1 where id = 1 returning *");
    for round in 0..5 {
        for mut session in [house.behind(), house.copy()] {
            session.run(&format!("alter table t add column z{round} int"));
        }
        block(&mut pair);
        prime(&house, &mut pair, "select * from t where id = 1");
    }
    assert_eq!(house.proxy.counter("auto_failures_in_transaction"), 0);
}

/// A column's type changes directly at the server, which Refrain cannot know. One transaction is
/// lost, and no other.
#[test]
fn a_type_that_is_changed_behind_is_heard_of_at_the_first_refusal() {
    let setup = "create table t as select 1 as id, 2 as b";
    let house = House::new("auto_retyped", setup, eager(1));
    let mut pair = house.pair();
    let texts = ["select b from t where id = 1", "select b, id from t where id = 1"];
    texts.iter().for_each(|text| prime(&house, &mut pair, text));
    for mut session in [house.behind(), house.copy()] {
        session.run("alter table t alter b type bigint");
    }
    let mut lost = 0;
    for text in texts.iter().cycle().take(10) {
        pair.run("begin");
        pair.direct.query(text);
        lost += u32::from(pair.proxied.query(text).error().is_some());
        pair.run("commit");
    }
    assert_eq!(lost, 1);
    assert_eq!(house.proxy.counter("auto_failures_in_transaction"), 1);
    texts.iter().for_each(|text| prime(&house, &mut pair, text));
}

/// DDL through Refrain waits for a lock. Queries that come after it run as they were sent, and fail
/// no more often than directly.
#[test]
fn ddl_under_way_loses_no_transaction() {
    let setup = "create table r as select 1 as a, 2 as b";
    let house = House::new("auto_under_way", setup, eager(2));
    let mut pair = house.pair();
    prime(&house, &mut pair, "select b from r where a = 1");
    let mut reader = house.behind();
    reader.run("begin");
    reader.run("select from r");
    let mut watch = house.behind();
    let mut waiting = |count: &str| {
        let text = "select count(*) from pg_locks where not granted and relation = 'r'::regclass";
        eventually("it waits", || watch.value(text) == count);
    };
    let mut ddl = house.proxy.open("auto_under_way");
    pair.proxied.run("begin");
    ddl.send(&[query("alter table r alter b type text using 'text ' || b")]);
    waiting("1");
    pair.proxied.send(&[query("select b from r where a = 1")]);
    waiting("2");
    reader.run("commit");
    assert_eq!(ddl.ready().error(), None);
    assert_eq!(pair.proxied.ready().value(), "text 2");
    pair.proxied.run("commit");
    assert_eq!(house.proxy.counter("auto_failures_in_transaction"), 0);
}

/// A client that keeps its server lets jobs use it between its transactions.
#[test]
fn sessions_have_statements_too() {
    let config = eager(1).pool("pool_mode", "\"session\"");
    let house = House::new("auto_session", "create table t as select 1 as a", config);
    let mut pair = house.pair();
    prime(&house, &mut pair, "select a from t where a = 1");
    pair.same("set search_path = pg_catalog, public");
    prime(&house, &mut pair, "select a from t where a = 1");
    pair.same("begin");
    pair.compare("select a from t where a = 2", &IN_TRANSACTION).unwrap();
    pair.same("commit");
}
