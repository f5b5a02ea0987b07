//! Settings that a client never set follow the server, also if the server's change while sessions
//! exist.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use refrain_differ::msg::Msg;
use xtask::postgres::Cluster;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, eventually};

/// Returns a cluster whose configuration may change, and a lock: one test uses it at a time.
fn own(version: Version) -> (&'static Cluster, MutexGuard<'static, ()>) {
    static V15: OnceLock<Cluster> = OnceLock::new();
    static V18: OnceLock<Cluster> = OnceLock::new();
    static BUSY: Mutex<()> = Mutex::new(());
    let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let place = if version == Version::V15 { &V15 } else { &V18 };
    let cluster = place.get_or_init(|| Cluster::start(version, &[]).unwrap());
    set(cluster, "alter system reset all", ("default_transaction_read_only", "off"));
    set(cluster, "alter system set timezone = 'UTC'", ("timezone", "UTC"));
    set(cluster, "alter system set work_mem = '4MB'", ("work_mem", "4MB"));
    Session::open(addr(cluster), "postgres").run("create table if not exists written (a int)");
    (cluster, busy)
}

/// Changes the configuration, and waits until a new session has it.
fn set(cluster: &Cluster, alter: &str, (name, value): (&str, &str)) {
    let mut control = Session::open(addr(cluster), "postgres");
    control.run(alter);
    control.run("select pg_reload_conf()");
    let show = format!("show {name}");
    eventually("it is read", || Session::open(addr(cluster), "postgres").value(&show) == value);
}

/// A query that shows several settings.
const SEEN: &str = "select current_setting('default_transaction_read_only'), current_setting('TimeZone'), \
    current_setting('work_mem'), current_setting('statement_timeout'), current_setting('DateStyle')";

/// A client, directly and through Refrain.
struct Twins {
    what: &'static str,
    direct: Session,
    proxied: Session,
}

impl Twins {
    fn new(
        cluster: &Cluster,
        proxy: &Proxy,
        what: &'static str,
        params: &[(&str, &str)],
        texts: &[&str],
    ) -> Self {
        let direct = Session::with(addr(cluster), "postgres", params);
        let proxied = Session::with(proxy.addr(), "postgres", params);
        let mut twins = Self { what, direct, proxied };
        texts.iter().for_each(|text| twins.run(text));
        twins.run("select 1");
        twins
    }

    fn run(&mut self, text: &str) {
        self.direct.run(text);
        self.proxied.run(text);
    }

    /// Compares the replies, and the settings reported to both sessions.
    fn compare(&mut self, text: &str) {
        let (direct, proxied) = (self.direct.query(text), self.proxied.query(text));
        assert_eq!(proxied.words(), direct.words(), "{}: {text}", self.what);
        assert_eq!(self.proxied.params, self.direct.params, "{}: {text}", self.what);
    }
}

/// Returns clients with settings of their own and without.
fn clients(cluster: &Cluster, proxy: &Proxy) -> Vec<Twins> {
    let new = |what, params, texts| Twins::new(cluster, proxy, what, params, texts);
    vec![
        new("plain", &[], &[]),
        new("with work_mem", &[], &["set work_mem = '9MB'"]),
        new("with a time zone", &[], &["set timezone = 'Asia/Tokyo'"]),
        new("with another of its own", &[("application_name", "it")], &[]),
        new("read only", &[], &["set default_transaction_read_only = on"]),
        new("plain as well", &[], &[]),
        new("with what it has reset", &[], &["set timezone = 'Asia/Tokyo'", "reset timezone"]),
        new("with what was rolled back", &[], &["begin; set timezone = 'Asia/Tokyo'", "rollback"]),
        new(
            "with a setting for a transaction",
            &[],
            &["begin; set local timezone = 'Asia/Tokyo'", "commit"],
        ),
        new("with a time zone from the start", &[("TimeZone", "Europe/Paris")], &[]),
    ]
}

/// Compares all clients, in several orders.
fn compare(clients: &mut [Twins]) {
    for _ in 0..3 {
        clients.iter_mut().for_each(|twins| twins.compare(SEEN));
        clients.iter_mut().rev().for_each(|twins| twins.compare(SEEN));
    }
}

fn follow(version: Version, config: impl Fn(Config) -> Config) {
    let (cluster, _busy) = own(version);
    let proxy = config(Config::over(cluster)).start();
    let mut clients = clients(cluster, &proxy);
    compare(&mut clients);
    set(
        cluster,
        "alter system set default_transaction_read_only = on",
        ("default_transaction_read_only", "on"),
    );
    for twins in &mut clients {
        twins.compare("insert into written values (1)");
    }
    compare(&mut clients);
    set(cluster, "alter system set timezone = 'America/Lima'", ("timezone", "America/Lima"));
    compare(&mut clients);
    set(cluster, "alter system set work_mem = '11MB'", ("work_mem", "11MB"));
    set(cluster, "alter system set statement_timeout = '33s'", ("statement_timeout", "33s"));
    compare(&mut clients);
    set(
        cluster,
        "alter system reset default_transaction_read_only",
        ("default_transaction_read_only", "off"),
    );
    for twins in &mut clients {
        twins.compare("insert into written values (1)");
    }
    compare(&mut clients);
    let pins = proxy.pins();
    assert!(pins.is_empty(), "{pins:?}");
}

#[test]
fn clients_follow_over_one_server() {
    follow(Version::V15, |config| config.pool("pool_size", "1"));
}

#[test]
fn clients_follow_over_several_servers() {
    follow(Version::V18, |config| config.pool("pool_size", "3"));
}

#[test]
fn clients_follow_with_texts_that_are_prepared() {
    follow(Version::V15, |config| {
        config.pool("autoprepare", "\"on\"").pool("autoprepare_threshold", "1")
    });
}

#[test]
fn clients_follow_in_session_mode() {
    follow(Version::V15, |config| config.pool("pool_mode", "\"session\"").pool("pool_size", "10"));
}

/// Several servers, all busy while the configuration changes.
#[test]
fn clients_follow_where_all_servers_are_busy() {
    let (cluster, _busy) = own(Version::V15);
    let proxy = Config::over(cluster).pool("pool_size", "3").start();
    let mut all: Vec<_> = (0..6).map(|_| Twins::new(cluster, &proxy, "one", &[], &[])).collect();
    let (holders, idle) = all.split_at_mut(3);
    holders.iter_mut().for_each(|twins| twins.run("begin"));
    set(cluster, "alter system set timezone = 'America/Lima'", ("timezone", "America/Lima"));
    holders.iter_mut().for_each(|twins| twins.compare(SEEN));
    holders.iter_mut().for_each(|twins| twins.compare("commit"));
    compare(idle);
    compare(holders);
    // A server that has to be reset gets the values that PostgreSQL has now.
    set(cluster, "alter system set timezone = 'Asia/Tokyo'", ("timezone", "Asia/Tokyo"));
    for _ in 0..3 {
        let mut pinned = proxy.open("postgres");
        pinned.run("set timezone = 'Asia/Tokyo'; create temp table mine (a int)");
        pinned.leave();
    }
    eventually("nobody keeps a server", || proxy.pins().is_empty());
    compare(&mut all);
}

/// A client that has set the very value of the server keeps it, and so do its statements.
#[test]
fn what_a_client_set_is_its_own() {
    let (cluster, _busy) = own(Version::V15);
    let proxy = Config::over(cluster).pool("pool_size", "1").start();
    let new = |params, texts| Twins::new(cluster, &proxy, "owner", params, texts);
    let mut owners = [
        new(&[][..], &["set timezone = 'UTC'"][..]),
        new(&[], &["set timezone = 'Asia/Tokyo'", "set timezone = 'UTC'"]),
        new(&[("TimeZone", "UTC")], &[]),
    ];
    let mut other = new(&[], &[]);
    set(cluster, "alter system set timezone = 'America/Lima'", ("timezone", "America/Lima"));
    // PostgreSQL itself reports the change to the first client.
    other.compare(SEEN);
    compare(&mut owners);
    other.compare(SEEN);
    let messages =
        [parse("", "select '2020-01-01'::timestamptz::text"), bind("", &[]), execute(), Msg::Sync];
    for twins in owners.iter_mut().chain([&mut other]) {
        let (direct, proxied) = (twins.direct.ask(&messages), twins.proxied.ask(&messages));
        assert_eq!(proxied.words(), direct.words());
    }
}

/// ALTER ROLE or ALTER DATABASE outside the pool changes the settings of new sessions. New servers
/// report them, and Refrain replaces the old servers.
#[test]
fn what_sessions_begin_with_changes_outside() {
    let (cluster, _busy) = own(Version::V15);
    let mut control = Session::open(addr(cluster), "postgres");
    control.run("drop database if exists roles with (force)");
    control.run("create database roles");
    let proxy = Config::over(cluster).pool("pool_size", "2").start();
    let (mut one, mut two) = (proxy.open("roles"), proxy.open("roles"));
    one.run("set work_mem = '9MB'");
    assert_eq!(two.value("show timezone"), "UTC");
    for (zone, sql) in [
        ("Asia/Tokyo", "alter database roles set timezone = 'Asia/Tokyo'"),
        ("America/Lima", "alter role postgres in database roles set timezone = 'America/Lima'"),
    ] {
        control.run(sql);
        // While one server is busy, the pool needs a second one.
        one.run("begin");
        two.run("begin");
        two.run("commit");
        one.run("commit");
        proxy.order("reconnect");
        eventually("servers are new", || one.value("show timezone") == zone);
        assert_eq!(two.value("show timezone"), zone);
        assert_eq!([&one.params["TimeZone"], &two.params["TimeZone"]], [zone; 2]);
        assert_eq!(proxy.open("roles").params["TimeZone"], zone);
        assert_eq!(one.value("show work_mem"), "9MB");
    }
    control.run("alter role postgres in database roles reset all");
}

/// One new server is enough to replace the others.
#[test]
fn a_new_server_has_the_others_replaced() {
    let (cluster, _busy) = own(Version::V15);
    let mut control = Session::open(addr(cluster), "postgres");
    control.run("drop database if exists roles with (force)");
    control.run("create database roles");
    let proxy = Config::over(cluster).pool("pool_size", "2").start();
    let (mut one, mut two) = (proxy.open("roles"), proxy.open("roles"));
    one.run("begin");
    control.run("alter database roles set default_transaction_read_only = on");
    assert_eq!(two.value("show default_transaction_read_only"), "on");
    one.run("commit");
    eventually("the other is new", || one.value("show default_transaction_read_only") == "on");
    assert_eq!(one.params["default_transaction_read_only"], "on");
}
