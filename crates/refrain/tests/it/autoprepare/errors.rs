//! Autoprepare: clients get PostgreSQL's own errors, and the state around a query stays the same.

use refrain_differ::msg::{Bind, Msg};

use crate::session::{Session, bind, cancel_request, execute, query};
use crate::twin::{EXACT, House, IN_TRANSACTION, OWN_OIDS, Pair, eager};
use crate::world::eventually;

/// Types, each with a value and with a literal that is no value of it.
const TYPES: &[(&str, &str, &str)] = &[
    ("smallint", "7", "70000"),
    ("int", "7", "seven"),
    ("bigint", "7", "99999999999999999999"),
    ("numeric(4,1)", "1.5", "12345.6"),
    ("real", "1.5", "1e60"),
    ("float8", "1.5", "1.5.5"),
    ("boolean", "yes", "maybe"),
    ("date", "2020-01-01", "2020-02-30"),
    ("time", "10:00", "25:00"),
    ("timestamp", "2020-01-01 10:00", "yesteryear"),
    ("timestamptz", "2020-01-01 10:00+01", "2020-13-01"),
    ("interval", "1 day", "1 fortnite"),
    ("uuid", "00000000-0000-0000-0000-000000000001", "0000"),
    ("json", "{\"a\": 1}", "{a: 1}"),
    ("jsonb", "[1]", "[1,"),
    ("inet", "10.0.0.1", "10.0.0.256"),
    ("cidr", "10.0.0.0/8", "10.0.0.1/8"),
    ("macaddr", "08:00:2b:01:02:03", "08:00"),
    ("point", "(1,2)", "(1,"),
    ("int[]", "{1,2}", "{1,x}"),
    ("int4range", "[1,5)", "[5,1)"),
    ("mood", "ok", "glad"),
    ("positive", "5", "-5"),
    ("bytea", "\\x41", "\\x4"),
    ("bit(3)", "101", "1012"),
    ("oid", "5", "-x"),
    ("regclass", "typed", "nowhere"),
    ("tsquery", "a & b", "a &"),
    ("pg_lsn", "0/0", "0"),
    ("money", "1.50", "one"),
    ("varchar(3)", "abc", "abcd"),
];

/// Statements that succeed, and the same statements with literals for which they fail.
const FAILURES: &[(&str, &str)] = &[
    ("select 1 / 1", "select 1 / 0"),
    ("select 1 % 1, 'ééé' || 2", "select 1 % 0, 'ééé' || 2"),
    ("select 2147483647 + 0", "select 2147483647 + 1"),
    ("select 9223372036854775807 - 1 ", "select 9223372036854775807 - -1 "),
    ("select 5::smallint + 1", "select 70000::smallint + 1"),
    ("select sqrt(4), ln(1)", "select sqrt(-4), ln(1)"),
    ("select log(1), power(2, 3)", "select log(0), power(2, 3)"),
    ("select substring('abc', 1, 2)", "select substring('abc', 1, -2)"),
    ("select 'a' ~ 'a'", "select 'a' ~ '('"),
    ("select 'a' like 'a!%' escape '!'", "select 'a' like 'a!' escape '!!'"),
    ("select regexp_replace('a', 'b', 'c', 'g')", "select regexp_replace('a', 'b', 'c', 'y')"),
    ("select generate_series(1, 3, 1)", "select generate_series(1, 3, 0)"),
    ("select (select i from numbers where i < 2)", "select (select i from numbers where i < 4)"),
    ("select to_date('2020-01-01', 'YYYY-MM-DD')", "select to_date('2020-99-01', 'YYYY-MM-DD')"),
    ("select chr(65)", "select chr(0)"),
    ("select repeat('a', 2)", "select repeat('a', 2000000000)"),
    ("select make_date(2020, 1, 1)", "select make_date(2020, 2, 30)"),
    ("select decode('41', 'hex')", "select decode('4', 'hex')"),
    ("select convert_from('\\x41', 'utf8')", "select convert_from('\\xff', 'utf8')"),
    ("select array_fill(1, array[2])", "select array_fill(1, array[-2])"),
    ("select '{1}'::int[] || 2", "select '{1,a}'::int[] || 2"),
    ("select complain('fine')", "select complain('bad')"),
    ("insert into checked values (1, 'a', 5)", "insert into checked values (1, 'a', 5) "),
    ("insert into checked values (2, 'b', 5)", "insert into checked values (3, null, 5)"),
    (
        "insert into checked (id, a, b) values (4, 'b', 6)",
        "insert into checked (id, a, b) values (5, 'b', -6)",
    ),
    (
        "insert into checked (id, a) values (6, 'b')",
        "insert into checked (id, a) values (7, 'much too long')",
    ),
    (
        "update checked set a = 'd' where id = 2",
        "update checked set a = 'much too long' where id = 2",
    ),
    ("update checked set id = 20 where id = 2", "update checked set id = 1 where id = 4"),
    ("insert into child values (1, 1)", "insert into child values (2, 999)"),
    ("delete from checked where id = 20", "delete from checked where id = 1"),
    ("select 1 from numbers where i = 1 limit 1", "select 1 from numbers where i = 1 limit -1"),
    ("select 1 from numbers offset 0", "select 1 from numbers offset -5"),
    ("select nextval('seq')", "select nextval('nowhere')"),
    ("select setval('seq', 5)", "select setval('seq', 0)"),
    ("select jsonb_path_query('[1]', '$[0]')", "select jsonb_path_query('[1]', 'strict $[5]')"),
    ("select xmlparse(content '<a/>')", "select xmlparse(content '<a>')"),
    ("select cast('5' as int),\n  'x'", "select cast('five' as int),\n  'x'"),
    ("select 'é', * from typed where c_int = '7'", "select 'éé', * from typed where c_int = 'x'"),
    (
        "select * from typed where c_int in ('1', '2')",
        "select * from typed where c_int in ('1', 'b')",
    ),
    ("select int4 '5', date '2020-01-01'", "select int4 '5', date '2020-01-32'"),
    ("select -5 / 1", "select -5 / 0"),
    ("select pg_sleep(0), 1 / 1", "select pg_sleep(0), 1 / 0"),
];

const SETUP: &str = "
    create type mood as enum ('sad', 'ok', 'happy');
    create domain positive as int check (value > 0);
    create table numbers as select generate_series(1, 5) as i;
    create table checked (id int primary key, a varchar(5) not null, b int check (b > 0));
    create table child (id int, parent int references checked (id));
    create sequence seq;
    create function complain(text) returns text language plpgsql as $$
        begin if $1 = 'bad' then
            raise exception 'it is %', $1 using hint = 'a hint', detail = 'a detail', column = 'c';
        end if;
        return $1; end $$";

/// Returns the name of a type's column.
fn column(kind: &str) -> String {
    let name: String = kind.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    format!("c_{name}")
}

fn setup() -> String {
    let columns: Vec<_> =
        TYPES.iter().map(|(kind, ..)| format!("{} {kind}", column(kind))).collect();
    format!("{SETUP}; create table typed ({})", columns.join(", "))
}

/// Returns each statement, and the same statement with an error in it.
fn all() -> Vec<(String, String)> {
    let mut all: Vec<_> =
        FAILURES.iter().map(|(right, wrong)| ((*right).to_owned(), (*wrong).to_owned())).collect();
    for (kind, right, wrong) in TYPES {
        let column = column(kind);
        let mut both = |text: &dyn Fn(&str) -> String| all.push((text(right), text(wrong)));
        both(&|value| format!("insert into typed ({column}) values ('{value}')"));
        both(&|value| format!("select '{value}'::{kind} is not null, 'after'"));
        both(&|value| format!("update typed set {column} = '{value}' where c_int = '7'"));
    }
    for kind in ["int", "bigint", "date", "timestamptz", "uuid", "boolean", "inet", "mood"] {
        let (_, right, wrong) = TYPES.iter().find(|(other, ..)| *other == kind).unwrap();
        let text = |value| format!("select 1 from typed where {} = '{value}'", column(kind));
        all.push((text(right), text(wrong)));
    }
    all
}

#[test]
fn errors_outside_a_transaction() {
    let all = all();
    assert!(all.len() >= 100, "{}", all.len());
    let house = House::new("auto_errors", &setup(), eager(1));
    let mut pair = house.pair();
    let (mut found, mut failed) = (Vec::new(), 0);
    for (right, wrong) in &all {
        for text in [right, wrong, wrong, right, wrong] {
            match pair.compare(text, &EXACT) {
                Ok(reply) => failed += u32::from(text == wrong && reply.error().is_some()),
                Err(why) => found.push(why),
            }
        }
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    assert!(failed >= 250, "{failed} failed");
    assert!(house.hits() > 100);
    assert!(house.proxy.counter("auto_fallbacks") > 50);
}

#[test]
fn errors_within_a_transaction() {
    let house = House::new("auto_errors_within", &setup(), eager(1));
    let mut pair = house.pair();
    let mut found = Vec::new();
    for (right, wrong) in &all() {
        (0..2).for_each(|_| found.extend(pair.compare(right, &EXACT).err()));
        pair.run("begin");
        found.extend(pair.compare("select 'before'", &EXACT).err());
        found.extend(pair.compare(wrong, &IN_TRANSACTION).err());
        found.extend(pair.compare("select 'lost'", &EXACT).err());
        found.extend(pair.compare("rollback", &EXACT).err());
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    assert_eq!(house.proxy.counter("auto_failures_in_transaction"), 0);
}

#[test]
fn errors_behind_a_savepoint() {
    let house = House::new("auto_errors_savepoint", &setup(), eager(1));
    let mut pair = house.pair();
    let mut found = Vec::new();
    for (right, wrong) in FAILURES {
        (0..2).for_each(|_| found.extend(pair.compare(right, &EXACT).err()));
        pair.run("begin");
        pair.run("savepoint s");
        found.extend(pair.compare(wrong, &IN_TRANSACTION).err());
        found.extend(pair.compare("rollback to s", &EXACT).err());
        found.extend(pair.compare(right, &IN_TRANSACTION).err());
        pair.run("rollback");
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

/// Compares all replies up to the given number of ReadyForQuery.
fn settle(pair: &mut Pair, count: usize, what: &str) {
    (0..count).for_each(|_| drop(pair.settle(what, &EXACT).unwrap()));
}

#[test]
fn queries_in_a_pipeline() {
    let house = House::new("auto_pipeline", SETUP, eager(2));
    let mut pair = house.pair();
    let texts = ["select i from numbers where i = 3", "select 1 / 1", "select 1 / 0", "bad", ""];
    let many: Vec<Msg> = texts.iter().cycle().take(50).map(|text| query(text)).collect();
    for _ in 0..3 {
        pair.send(&many);
        settle(&mut pair, many.len(), "in a pipeline");
    }
    let block =
        ["begin", "select 1 / 1", "insert into numbers values (6)", "commit", "select 2 / 0"];
    let block: Vec<Msg> = block.iter().map(|text| query(text)).collect();
    for _ in 0..5 {
        pair.send(&block);
        settle(&mut pair, block.len(), "a transaction in a pipeline");
    }
    // Extended messages before and after simple queries.
    let parse = crate::session::parse("", "select 'extended'");
    let mixed = [
        parse,
        bind("", &[]),
        execute(),
        Msg::Sync,
        query("select i from numbers where i = 4"),
        bind("", &[]),
        Msg::Sync,
        query("select i from numbers where i = 5"),
    ];
    for _ in 0..5 {
        pair.send(&mixed);
        settle(&mut pair, 4, "extended and simple");
    }
    assert!(house.hits() > 0);
}

#[test]
fn the_unnamed_statement_and_portal_are_gone() {
    let house = House::new("auto_unnamed", SETUP, eager(1));
    let mut pair = house.pair();
    let text = "select i from numbers where i = 3";
    (0..3).for_each(|_| drop(pair.same(text)));
    let after: [&[Msg]; 5] = [
        &[bind("", &[]), execute(), Msg::Sync],
        &[Msg::DescribeStatement(Vec::new()), Msg::Sync],
        &[Msg::DescribePortal(Vec::new()), Msg::Sync],
        &[execute(), Msg::Sync],
        &[Msg::CloseStatement(Vec::new()), Msg::ClosePortal(Vec::new()), Msg::Sync],
    ];
    for (msgs, transaction) in after.iter().flat_map(|msgs| [(msgs, false), (msgs, true)]) {
        let parse = crate::session::parse("", "select 'own'");
        if transaction {
            pair.same("begin");
        }
        pair.send(&[parse, bind("", &[]), execute(), Msg::Sync]);
        settle(&mut pair, 1, "its own");
        pair.same(text);
        pair.send(msgs);
        settle(&mut pair, 1, "what was unnamed");
        if transaction {
            pair.same("rollback");
        }
    }
    assert!(house.hits() > 5);
}

#[test]
fn portals_of_the_client() {
    let house = House::new("auto_portals", SETUP, eager(1));
    let mut pair = house.pair();
    let text = "select i from numbers where i = 3";
    (0..3).for_each(|_| drop(pair.same(text)));
    let parse = crate::session::parse("rows", "select i from numbers order by i");
    let to_portal = Bind { stmt: b"rows".to_vec(), portal: b"p".to_vec(), ..Bind::default() };
    pair.same("begin");
    pair.send(&[parse, Msg::Bind(to_portal), Msg::Execute(b"p".to_vec(), 2), Msg::Sync]);
    settle(&mut pair, 1, "a portal");
    pair.same(text);
    pair.send(&[Msg::Execute(b"p".to_vec(), 2), Msg::Sync]);
    settle(&mut pair, 1, "the portal goes on");
    pair.same("declare c cursor for select i from numbers");
    pair.same(text);
    pair.same("fetch 2 from c");
    pair.same("commit");
}

#[test]
fn nothing_is_locked_or_open_behind_a_query() {
    let house = House::new("auto_open", SETUP, eager(1));
    let mut pair = house.pair();
    for text in ["select i from numbers where i = 3", "update numbers set i = i where i = 3"] {
        (0..3).for_each(|_| drop(pair.same(text)));
        for after in ["drop table numbers", "truncate numbers", "alter table numbers add x int"] {
            pair.same("begin");
            pair.same(text);
            pair.same(after);
            pair.same("rollback");
        }
    }
    let own = [
        "begin; create table short (a int)",
        "insert into short values (1)",
        "select a from short where a = 1",
        "select a from short where a = 2",
        "drop table short",
        "commit",
    ];
    for text in own {
        pair.compare(text, &OWN_OIDS).unwrap();
    }
    assert!(house.hits() > 4);
}

#[test]
fn a_client_that_leaves_right_behind_its_query() {
    let house = House::new("auto_leaves", SETUP, eager(1));
    let mut pair = house.pair();
    (0..3).for_each(|_| drop(pair.same("select i from numbers where i = 3")));
    for round in 0..30 {
        let mut session = house.proxy.open("auto_leaves");
        match round % 3 {
            0 => session.send(&[query("select i from numbers where i = 4")]),
            1 => session.send(&[query("select i from numbers where i = 'x'")]),
            _ => session.send(&[query(&format!("select i as c{round} from numbers where i = 1"))]),
        }
        session.vanish();
        pair.same("select i from numbers where i = 5");
    }
    pair.same("select pg_sleep(0)");
    let mut session = house.proxy.open("auto_leaves");
    session.send(&[query("select pg_sleep(600)")]);
    session.vanish();
    pair.same("select i from numbers where i = 2");
    assert_eq!(house.proxy.counter("unexpected_messages"), 0);
}

#[test]
fn a_cancel_request() {
    let house = House::new("auto_cancel", SETUP, eager(1));
    let mut pair = house.pair();
    (0..3).for_each(|_| drop(pair.same("select pg_sleep(0)")));
    let before = house.hits();
    for _ in 0..3 {
        pair.send(&[query("select pg_sleep(600)")]);
        for (session, address) in [
            (&pair.direct, crate::world::addr(crate::world::cluster(crate::world::Version::V15))),
            (&pair.proxied, house.proxy.addr()),
        ] {
            let request = cancel_request(&session.key);
            let mut watch = house.behind();
            let name =
                if address == house.proxy.addr() { "auto_cancel" } else { "auto_cancel_direct" };
            let sleeping = format!(
                "select count(*) from pg_stat_activity where datname = '{name}' and wait_event = 'PgSleep'"
            );
            eventually("it sleeps", || watch.value(&sleeping) == "1");
            Session::raw(address, &request).rest();
        }
        settle(&mut pair, 1, "cancelled");
    }
    assert!(house.hits() > before);
    pair.same("select pg_sleep(0)");
}

#[test]
fn statement_timeout() {
    let house = House::new("auto_timeout", SETUP, eager(1));
    let mut pair = house.pair();
    (0..3).for_each(|_| drop(pair.same("select pg_sleep(0)")));
    pair.same("set statement_timeout = 50");
    (0..3).for_each(|_| drop(pair.same("select pg_sleep(0)")));
    pair.same("select pg_sleep(60)");
    pair.same("begin");
    pair.compare("select pg_sleep(60)", &IN_TRANSACTION).unwrap();
    pair.same("rollback");
    pair.same("select pg_sleep(0)");
    assert!(house.hits() > 3);
}

#[test]
fn copies_are_left_alone() {
    let house = House::new("auto_copy", SETUP, eager(1));
    let mut pair = house.pair();
    for round in 0..5 {
        pair.same(&format!("copy (select i from numbers where i > {round}) to stdout"));
        pair.same("select i from numbers where i = 3");
        let data = Msg::CopyData(format!("{}\n", 100 + round).into_bytes());
        pair.send(&[query("copy numbers from stdin"), data, Msg::CopyDone]);
        settle(&mut pair, 1, "copy in");
        pair.same("select count(*) from numbers where i > 99");
    }
    pair.send(&[query("copy numbers from stdin"), Msg::CopyFail(b"no".to_vec())]);
    settle(&mut pair, 1, "copy fails");
    pair.same("select i from numbers where i = 3");
}

/// Notices of triggers, functions and rules, and notifications.
#[test]
fn notices_and_notifications() {
    let setup = format!(
        "{SETUP}; create function say(text) returns text language plpgsql as
            $$ begin raise notice 'it says %', $1; return $1; end $$"
    );
    let house = House::new("auto_notices", &setup, eager(1));
    let mut pair = house.pair();
    for round in 0..8 {
        pair.same(&format!("select say('{round}')"));
    }
    pair.same("set client_min_messages = error");
    (0..3).for_each(|_| drop(pair.same("select say('silence')")));
    assert!(house.hits() > 5);
}

/// Messages of several packets, and rows of megabytes.
#[test]
fn large_texts_and_rows() {
    let house = House::new("auto_large", SETUP, eager(1));
    let mut pair = house.pair();
    for length in [10, 10_000, 300_000, 2_000_000] {
        let long = "x".repeat(length);
        (0..3).for_each(|_| drop(pair.same(&format!("select '{long}', length('{long}')"))));
    }
    (0..3).for_each(|_| drop(pair.same("select repeat('y', 5000000), i from numbers where i < 4")));
    let numbers: Vec<String> = (0..900).map(|number| number.to_string()).collect();
    let list = numbers.join(", ");
    (0..3).for_each(|_| {
        drop(pair.same(&format!("select i from numbers where i in ({list}) order by i")))
    });
    let before = house.hits();
    let list = format!("{list}, {list}");
    (0..3).for_each(|_| {
        drop(pair.same(&format!("select i from numbers where i in ({list}) order by i")))
    });
    assert!(before > 3);
    assert_eq!(house.hits(), before);
}

const SEQUENCES: &str = "
    create table seq (id serial primary key, s smallint, v varchar(3), n numeric(4,1),
                      i bigint generated by default as identity, t text default 'none', f real);
    create sequence other";

/// Statements whose values fit, and the same with a constant that does not fit: the error comes
/// before a sequence gives a value.
const STORED: &[(&str, &str)] = &[
    ("insert into seq (s) values (7)", "insert into seq (s) values (70000)"),
    (
        "insert into seq (s, t) values (7, 'a'), (8, 'b')",
        "insert into seq (s, t) values (7, 'a'), (-70000, 'b')",
    ),
    ("insert into seq (v) values ('abc')", "insert into seq (v) values ('abcd')"),
    ("insert into seq (v) values ('abc'::text)", "insert into seq (v) values ('abcd'::text)"),
    (
        "insert into seq (v, s) values (e'a\\x62', 1)",
        "insert into seq (v, s) values (e'abc\\x62', 1)",
    ),
    ("insert into seq (n) values (123.4)", "insert into seq (n) values (1234.4)"),
    ("insert into seq (n) values ('999.9')", "insert into seq (n) values ('999.99')"),
    ("insert into seq (f) values (1.5)", "insert into seq (f) values (1e60)"),
    ("insert into seq (s) values (1 + 1)", "insert into seq (s) values (70000 + 1)"),
    ("insert into seq (s) select 5 where 1 > 0", "insert into seq (s) select 70000 where 1 > 0"),
    (
        "insert into seq (t) values ('a') on conflict (id) do update set s = 5",
        "insert into seq (t) values ('a') on conflict (id) do update set s = 70000",
    ),
    (
        "insert into seq (id, s) values (nextval('other') + 1000, 5)",
        "insert into seq (id, s) values (nextval('other') + 1000, 70000)",
    ),
];

#[test]
fn no_sequence_gives_a_value_for_a_constant_that_does_not_fit() {
    let house = House::new("auto_sequences", SEQUENCES, eager(1));
    let mut pair = house.pair();
    let given = "select (select last_value from seq_id_seq), (select last_value from seq_i_seq), \
                 (select last_value from other)";
    for (right, wrong) in STORED {
        (0..8).for_each(|_| drop(pair.same(right)));
        pair.same(wrong);
        pair.same("begin");
        pair.same(wrong);
        pair.same("rollback");
        pair.same(right);
        pair.same(given);
    }
    let before = house.hits();
    for (right, _) in &STORED[..4] {
        pair.same(right);
    }
    assert_eq!(house.hits(), before + 4, "what fits is run prepared");
}
