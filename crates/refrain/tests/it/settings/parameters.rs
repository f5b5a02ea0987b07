//! Every parameter that a client may set, at each of its legal extremes: Refrain's own queries work
//! whatever a client has set, and nobody else feels it.

use crate::reply::Reply;
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

/// The parameters of a server that a superuser may set in a session, with values: those of an
/// enumeration, both ends of a range, and of a text none and the one that it has. The end of a
/// timeout's range is no timeout, so the shortest one is a value, too.
const EXTREMES: &str = "select name, v from pg_settings, lateral (select unnest(case vartype \
    when 'bool' then array['on', 'off'] when 'enum' then enumvals \
    when 'string' then array['', reset_val] \
    else array[min_val, max_val] || \
    case when name like '%timeout' then '{1}'::text[] else '{}' end end) as v) x \
    where context in ('user', 'superuser') and name not like '%.%' \
    order by name, v";

/// Several settings that matter together only, and operators in front of PostgreSQL's own.
const TOGETHER: &[&[(&str, &str)]] = &[
    &[
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("default_transaction_deferrable", "on"),
    ],
    &[
        ("default_transaction_deferrable", "on"),
        ("statement_timeout", "1"),
        ("lock_timeout", "1"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
    ],
    &[("search_path", "evil, public, pg_catalog"), ("work_mem", "64")],
    &[("standard_conforming_strings", "off"), ("backslash_quote", "off")],
    &[("client_encoding", "SJIS"), ("quote_all_identifiers", "on")],
];

/// The error with which a timeout ends a query.
const QUERY_CANCELED: &str = "57014";

/// The errors with which a timeout ends a session.
const ENDS: [&str; 3] = ["57P05", "25P03", "25P04"];

/// A schema with operators that raise an error, and a function that leaves a setting.
const SCHEMA: &str = "create schema evil; \
    create function evil.no(text, text) returns bool language plpgsql as $f$ \
    begin raise exception 'an operator of a client''s'; end $f$; \
    create function evil.no(name, name) returns bool language plpgsql as $f$ \
    begin raise exception 'an operator of a client''s'; end $f$; \
    create function evil.no(oid, oid) returns bool language plpgsql as $f$ \
    begin raise exception 'an operator of a client''s'; end $f$; \
    create function evil.no(\"char\", \"char\") returns bool language plpgsql as $f$ \
    begin raise exception 'an operator of a client''s'; end $f$; \
    create function evil.no(text, anynonarray) returns text language plpgsql as $f$ \
    begin raise exception 'an operator of a client''s'; end $f$; \
    create operator evil.= (function = evil.no, leftarg = text, rightarg = text); \
    create operator evil.= (function = evil.no, leftarg = name, rightarg = name); \
    create operator evil.= (function = evil.no, leftarg = oid, rightarg = oid); \
    create operator evil.<> (function = evil.no, leftarg = text, rightarg = text); \
    create operator evil.<> (function = evil.no, leftarg = name, rightarg = name); \
    create operator evil.<> (function = evil.no, leftarg = \"char\", rightarg = \"char\"); \
    create operator evil.>= (function = evil.no, leftarg = oid, rightarg = oid); \
    create operator evil.~ (function = evil.no, leftarg = text, rightarg = text); \
    create operator evil.~* (function = evil.no, leftarg = text, rightarg = text); \
    create operator evil.|| (function = evil.no, leftarg = text, rightarg = anynonarray); \
    create table public.t (a int primary key, b text); \
    create function public.leaves() returns void language plpgsql as $f$ \
    begin perform pg_catalog.set_config('app.left', 'x', false); end $f$";

fn rows(session: &mut Session, sql: &str) -> Vec<(String, String)> {
    let rows = session.query(sql).rows().into_iter();
    let text = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        (values.next().unwrap_or_default(), values.next().unwrap_or_default())
    };
    rows.map(text).collect()
}

/// Runs a query; again if a timeout of the client's own has ended it: on a busy machine a query may
/// take longer than the shortest timeout there is.
fn patiently(session: &mut Session, sql: &str) -> Reply {
    const TRIES: usize = 100;
    let mut replies = (0..TRIES).map(|_| session.query(sql));
    replies.find(|reply| reply.code() != QUERY_CANCELED).expect("a reply within the timeout")
}

/// Makes the settings in a session; false if the server refuses one.
fn set(session: &mut Session, settings: &[(&str, &str)]) -> bool {
    settings.iter().all(|(name, value)| {
        let value = match *name {
            "search_path" | "datestyle" => (*value).to_owned(),
            _ => format!("'{}'", value.replace('\'', "''")),
        };
        patiently(session, &format!("set {name} to {value}")).error().is_none()
    })
}

/// Shows what the session has; an error's SQLSTATE, or nothing at the end of the session.
fn show(session: &mut Session, name: &str) -> String {
    let reply = patiently(session, &format!("show {name}"));
    if reply.rows().is_empty() { reply.code() } else { reply.value() }
}

/// The clients of one pool: one who sets, and another who does not.
struct Pool {
    proxy: Proxy,
    database: &'static str,
    other: Session,
    direct: std::net::SocketAddr,
    /// Number of values that the server takes.
    count: usize,
}

impl Pool {
    fn new(version: Version, database: &'static str, size: &str) -> Self {
        let config = Config::over(cluster(version)).pool("pool_size", size);
        let proxy = config.pool("autoprepare", "\"on\"").start();
        let (other, direct) = (proxy.open(database), addr(cluster(version)));
        Self { proxy, database, other, direct, count: 0 }
    }

    /// Checks one set of settings. `calls` has the client call a function, behind which Refrain
    /// looks.
    fn check(&mut self, settings: &[(&str, &str)], calls: bool) {
        let mut direct = Session::open(self.direct, self.database);
        let mut client = self.proxy.open(self.database);
        let names = settings.iter().map(|(name, _)| *name);
        let defaults: Vec<_> = names.clone().map(|name| show(&mut direct, name)).collect();
        let taken = [&mut direct, &mut client].map(|session| set(session, settings));
        assert_eq!(taken[0], taken[1], "{settings:?} is taken");
        if !taken[0] {
            return;
        }
        self.count += 1;
        let kept = if settings.iter().any(|(name, _)| *name == "work_mem") {
            "maintenance_work_mem"
        } else {
            "work_mem"
        };
        for session in [&mut direct, &mut client] {
            patiently(session, &format!("set {kept} to '5MB'"));
            if calls {
                patiently(session, "select public.leaves()");
            }
        }
        for (name, default) in names.clone().zip(&defaults) {
            assert_eq!(show(&mut self.other, name), *default, "{name} of another: {settings:?}");
        }
        let is_end =
            |name: &str| name.ends_with("session_timeout") || name == "transaction_timeout";
        let ends_itself = settings.iter().any(|(name, _)| is_end(name));
        let number = self.count;
        assert_eq!(self.other.value(&format!("select {number} + 1")), (number + 1).to_string());
        for name in names.chain([kept]).chain(calls.then_some("app.left")) {
            let (due, shown) = (show(&mut direct, name), show(&mut client, name));
            // A session that its own timeout ends may live longer there or here.
            let is_over = |shown: &str| shown.is_empty() || ENDS.contains(&shown);
            if is_over(&due) || ends_itself && is_over(&shown) {
                break;
            }
            assert_eq!(shown, due, "{name}: {settings:?}");
        }
        client.leave();
    }
}

fn every_parameter(version: Version, database: &'static str, size: &str) {
    let mut direct = Session::open(addr(cluster(version)), database);
    direct.run(SCHEMA);
    let mut pool = Pool::new(version, database, size);
    for (name, value) in rows(&mut direct, EXTREMES) {
        // Behind a search path that leads nowhere, the function is where its name says.
        pool.check(&[(&name, &value)], !name.starts_with("transaction_"));
    }
    // A transaction that writes, for which a deferrable one waits.
    direct.run("begin isolation level serializable; insert into public.t values (1, 'x')");
    for settings in TOGETHER {
        let waits = settings.iter().any(|(name, _)| name.ends_with("deferrable"));
        pool.check(settings, !waits);
        let mut client = pool.proxy.open(database);
        assert!(set(&mut client, settings));
        // LISTEN takes a snapshot if others have sent notifications, and would wait for a safe one.
        client.query("begin isolation level read committed; listen x; commit");
        client.leave();
        assert_eq!(pool.other.value("select 1"), "1", "behind a reset: {settings:?}");
        verifies(&mut pool, settings, waits);
    }
    assert!(pool.count > 400, "{} values", pool.count);
}

/// Checks that a job behind the client finds an answer, and holds nobody up.
fn verifies(pool: &mut Pool, settings: &[(&str, &str)], waits: bool) {
    let mut client = pool.proxy.open(pool.database);
    assert!(set(&mut client, settings));
    let before = pool.proxy.counter("auto_verified");
    let texts = pool.count * 1000;
    let mut number = 0;
    eventually("a query is verified", || {
        number += 1;
        if waits {
            client.run("set work_mem to '6MB'");
        } else {
            client.query(&format!("select {number} + {texts}, a from public.t where a = {number}"));
        }
        let text = format!("select {texts} as c{texts}, b from public.t where a = {number}");
        pool.other.run(&text);
        pool.proxy.counter("auto_verified") > before
    });
}

#[test]
fn every_parameter_of_15_and_one_server() {
    every_parameter(Version::V15, database_of(Version::V15, "parameters_1"), "1");
}

#[test]
fn every_parameter_of_15_and_two_servers() {
    every_parameter(Version::V15, database_of(Version::V15, "parameters_2"), "2");
}

#[test]
fn every_parameter_of_18_and_one_server() {
    every_parameter(Version::V18, database_of(Version::V18, "parameters_1"), "1");
}

#[test]
fn every_parameter_of_18_and_two_servers() {
    every_parameter(Version::V18, database_of(Version::V18, "parameters_2"), "2");
}
