//! Kept statements mean to each client what the client's own settings say, whatever the other
//! clients of the pool have set: each client is compared with a direct session of its own.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of};

/// Statements, and for each the change of a setting that decides what it means.
const TEXTS: &[(&str, &str)] = &[
    ("select ('01/02/2024'::date + $1::int)::text", "set datestyle = 'ISO, DMY'"),
    (
        "select extract(epoch from '-1 2:03'::interval)::int + $1::int",
        "set intervalstyle = sql_standard",
    ),
    (
        "select ('2024-01-02 00:00'::timestamptz at time zone 'UTC')::text || $1::text",
        "set timezone = 'Asia/Tokyo'",
    ),
    ("select count(*) + $1::int from t where v = null", "set transform_null_equals = on"),
    ("select (('{NULL}'::text[])[1] is null)::text || $1::text", "set array_nulls = off"),
    ("select length('a\\nb') + $1::int", "set standard_conforming_strings = off"),
    ("select x || $1::text from u", "set search_path = s1, public"),
    ("select x || $1::text from u", "set role meanings_role"),
    ("select x || $1::text from u", "set session authorization meanings_role"),
    ("select x || $1::text from u", "create temp table u as select 'temporary' as x"),
    ("select meanings_tenant() || $1::text", "set app.meaning = 'other'"),
];

/// Events that make PostgreSQL analyse a kept statement again. `@` stands in front of a text that
/// another session sends, directly.
const AGAIN: &[&str] = &[
    "select 1",
    "set search_path = s2, public",
    "discard plans",
    "@alter table t alter column v set default 'x'",
    "@analyze t",
    "@create schema passing",
];

const SCHEMA: &str = "create table t (id int, v text); insert into t values (1, null); \
    create table u (x text); insert into u values ('public'); \
    create schema s1; create table s1.u (x text); insert into s1.u values ('s1'); \
    create schema s2; grant usage on schema public, s1, s2 to meanings_role; \
    create schema meanings_role authorization meanings_role; \
    create table meanings_role.u (x text); insert into meanings_role.u values ('role'); \
    grant all on t, u, s1.u, meanings_role.u to meanings_role; \
    create function meanings_tenant() returns text immutable language sql as \
    $f$select coalesce(nullif(current_setting('app.meaning', true), ''), 'none')$f$;";

/// A client, directly and through Refrain.
struct Twins {
    direct: Session,
    proxied: Session,
}

impl Twins {
    fn new(version: Version, proxy: &Proxy, names: (&str, &str), params: &[(&str, &str)]) -> Self {
        let direct = Session::with(addr(cluster(version)), names.0, params);
        Self { direct, proxied: Session::with(proxy.addr(), names.1, params) }
    }

    fn run(&mut self, sql: &str) {
        let (direct, proxied) = (self.direct.query(sql), self.proxied.query(sql));
        assert_eq!(proxied.words(), direct.words(), "{sql}");
    }

    fn prepare(&mut self, text: &str) {
        for session in [&mut self.direct, &mut self.proxied] {
            let reply = session.ask(&[parse("s", text), bind("s", &["1"]), execute(), Msg::Sync]);
            assert!(reply.error().is_none(), "{text}: {}", reply.words());
        }
    }

    fn use_it(&mut self, what: &str) {
        let (direct, proxied) = self.use_both();
        assert_eq!(proxied, direct, "{what}");
    }

    fn use_both(&mut self) -> (String, String) {
        let msgs = [bind("s", &["1"]), execute(), Msg::Sync];
        (self.direct.ask(&msgs).words(), self.proxied.ask(&msgs).words())
    }

    /// Returns the replies to a statement that the direct session prepares now.
    fn fresh(&mut self, text: &str) -> String {
        let msgs = [parse("", text), bind("", &["1"]), execute(), Msg::Sync];
        self.direct.ask(&msgs).words().trim_start_matches("1 ").to_owned()
    }
}

/// Makes the two databases of a test, and the role.
fn databases(version: Version, names: (&'static str, &'static str)) {
    for name in [names.0, names.1] {
        database_of(version, name);
        let mut session = Session::open(addr(cluster(version)), name);
        session.query("create role meanings_role");
        session.run(SCHEMA);
    }
}

fn product(version: Version, size: &str, names: (&'static str, &'static str)) {
    databases(version, names);
    let proxy = Config::over(cluster(version)).pool("pool_size", size).start();
    for (text, change) in TEXTS {
        for again in AGAIN {
            let new = || Twins::new(version, &proxy, names, &[]);
            let (mut plain, mut changed, mut moved) = (new(), new(), new());
            [&mut plain, &mut changed, &mut moved].into_iter().for_each(|it| it.prepare(text));
            let holds = ["role", "authorization", "temp"].iter().any(|it| change.contains(it));
            if holds && size == "1" {
                continue;
            }
            let (before, _) = changed.use_both();
            changed.run(change);
            match again.strip_prefix('@') {
                None => moved.run(again),
                Some(sql) => {
                    let undo = if sql.contains("passing") { "; drop schema passing" } else { "" };
                    for name in [names.0, names.1] {
                        let mut other = Session::open(addr(cluster(version)), name);
                        other.run(&format!("{sql}{undo}"));
                    }
                }
            }
            for round in 0..2 {
                let what = format!("{round}: {text} | {change} | {again}");
                moved.use_it(&format!("moved, {what}"));
                // When PostgreSQL analyses a statement again is a matter of the server. Then it
                // does so under the settings of this client.
                let (direct, proxied) = changed.use_both();
                let fresh = changed.fresh(text);
                let own = [&direct, &before, &fresh].contains(&&proxied);
                assert!(own, "changed, {what}: {proxied}, not {direct}, {before} or {fresh}");
                plain.use_it(&format!("plain, {what}"));
            }
            let mut fresh = new();
            fresh.prepare(text);
            fresh.use_it(&format!("fresh: {text} | {change} | {again}"));
        }
    }
}

#[test]
fn a_statement_means_to_each_client_what_its_own_settings_say() {
    product(Version::V15, "1", ("meanings_direct", "meanings"));
}

#[test]
fn a_statement_means_to_each_client_what_its_own_settings_say_on_two_servers() {
    product(Version::V15, "2", ("meanings_two_direct", "meanings_two"));
}

#[test]
fn a_statement_means_to_each_client_what_its_own_settings_say_on_postgresql_18() {
    product(Version::V18, "2", ("meanings_direct", "meanings"));
}

#[test]
fn a_role_makes_another_statement() {
    let names = ("meanings_role_direct", "meanings_role");
    databases(Version::V15, names);
    for name in [names.0, names.1] {
        let mut session = Session::open(addr(cluster(Version::V15)), name);
        session.run(
            "drop table meanings_role.u; create table meanings_role.u (x int, y int); \
             grant all on meanings_role.u to meanings_role",
        );
    }
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "2").start();
    let new = || Twins::new(Version::V15, &proxy, names, &[]);
    for (there, back) in [
        ("set role meanings_role", "reset role"),
        ("set session authorization meanings_role", "reset session authorization"),
        ("begin; set local role meanings_role", "rollback"),
        ("begin; set role meanings_role", "rollback"),
        ("begin; set local search_path = meanings_role", "rollback"),
        ("set search_path = meanings_role", "reset search_path"),
        ("create temp table u (x int, y int)", "drop table u"),
        ("do $$begin set role meanings_role; end$$", "set role to default"),
    ] {
        let (mut a, mut b) = (new(), new());
        a.prepare("select *, $1::int from u");
        a.run(there);
        a.use_it(there);
        a.use_it(there);
        a.run(back);
        a.use_it(back);
        b.prepare("select *, $1::int from u");
        b.use_it(&format!("another: {there}"));
        a.use_it(back);
    }
}

/// Ways back to a default, of a role with which the session began, and of other settings.
const BACK: &[&str] = &[
    "select 1",
    "reset role",
    "set role none",
    "set role to default",
    "set role = default",
    "set role meanings_other; select 1",
    "set role meanings_other",
    "reset role",
    "reset all",
    "set role none",
    "reset all",
    "set session authorization meanings_other",
    "reset session authorization",
    "set role none",
    "set session authorization default",
    "begin",
    "set role none",
    "reset role",
    "rollback",
    "begin",
    "set local role none",
    "set local role to default",
    "commit",
    "set role none",
    "begin",
    "set local role to default",
    "commit",
    "discard all",
    "set datestyle = 'ISO, MDY'",
    "begin",
    "set local datestyle to default",
    "commit",
    "set work_mem = '9MB'",
    "begin",
    "set local work_mem = default",
    "set local time zone default",
    "set local search_path to default",
    "rollback",
    "set local work_mem to default",
    "reset work_mem",
    "begin",
    "set local work_mem = '7MB'",
    "set local work_mem to default",
    "commit",
    "reset datestyle",
];

fn scanned_once(version: Version, names: (&'static str, &'static str)) {
    databases(version, names);
    let proxy = Config::over(cluster(version)).pool("pool_size", "1").start();
    for path in ["set search_path = s2, public", "set search_path = public"] {
        let mut twins = Twins::new(version, &proxy, names, &[]);
        twins.prepare(r"select length('a\nb') + $1::int");
        twins.use_it("as prepared");
        twins.run("set standard_conforming_strings = off");
        twins.use_it("scanned otherwise by now");
        twins.run(path);
        twins.use_it(path);
    }
}

#[test]
fn another_path_leaves_a_statement_as_it_was_scanned() {
    scanned_once(Version::V15, ("meanings_scan_direct", "meanings_scan"));
}

#[test]
fn another_path_leaves_a_statement_as_it_was_scanned_on_postgresql_18() {
    scanned_once(Version::V18, ("meanings_scan_direct", "meanings_scan"));
}

/// Shows the role and the settings of a session.
const SHOWN: &str = "select current_user, session_user, current_setting('role'), \
    current_setting('work_mem'), current_setting('datestyle'), current_setting('timezone'), \
    current_setting('search_path')";

/// Has a statement used right behind a transaction whose texts may have set anything, after a
/// change of how texts are scanned.
fn scanned_once_behind_hidden_texts(version: Version, name: &'static str) {
    let database = database_of(version, name);
    let proxy = Config::over(cluster(version)).start();
    let mut sessions = [proxy.open(database), Session::open(addr(cluster(version)), database)];
    let replies = sessions.each_mut().map(|session| {
        session.ask(&[parse("s", r"select '\x0102'::bytea"), Msg::Sync]);
        session.run("set standard_conforming_strings = off");
        session.run("begin");
        session.run("do $$ begin perform 1; end $$");
        let uses = [bind("s", &[]), execute(), Msg::Sync];
        let behind = session.ask(&[vec![query("commit")], uses.to_vec()].concat()).words();
        let ready = session.ready().words();
        [behind, ready, session.ask(&uses).words()]
    });
    assert_eq!(replies[0], replies[1]);
}

#[test]
fn a_statement_is_scanned_once_whatever_texts_may_have_set() {
    scanned_once_behind_hidden_texts(Version::V15, "scanned_hidden_15");
    scanned_once_behind_hidden_texts(Version::V18, "scanned_hidden_18");
}

fn ways_back(version: Version, names: (&'static str, &'static str)) {
    databases(version, names);
    Session::open(addr(cluster(version)), names.0).query("create role meanings_other");
    let proxy = Config::over(cluster(version)).pool("pool_size", "3").start();
    let options = "-c role=meanings_role -c work_mem=5MB -c search_path=s1 -c timezone=Asia/Tokyo \
        -c datestyle=German";
    let mut twins = Twins::new(version, &proxy, names, &[("options", options)]);
    let mut other = Twins::new(version, &proxy, names, &[]);
    for extended in [false, true] {
        for back in BACK {
            match extended && !back.contains(';') {
                false => twins.run(back),
                true => {
                    let msgs = [parse("", back), bind("", &[]), execute(), Msg::Sync];
                    let direct = twins.direct.ask(&msgs).words();
                    assert_eq!(twins.proxied.ask(&msgs).words(), direct, "{back}");
                }
            }
            let (direct, proxied) = (twins.direct.query(SHOWN), twins.proxied.query(SHOWN));
            assert_eq!(proxied.words(), direct.words(), "behind {back}, {extended}");
            other.run(SHOWN);
        }
    }
}

#[test]
fn every_way_back_goes_to_the_startup_packet() {
    ways_back(Version::V15, ("meanings_back_direct", "meanings_back"));
}

#[test]
fn every_way_back_goes_to_the_startup_packet_on_postgresql_18() {
    ways_back(Version::V18, ("meanings_back_direct", "meanings_back"));
}
