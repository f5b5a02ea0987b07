//! A SET follows its client to every server, and reaches no other client.

use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn over_15(database: &'static str) -> (Proxy, &'static str) {
    (Config::over(cluster(Version::V15)).pool("pool_size", "2").start(), database)
}

/// Shows a setting of `client` on each of the pool's two servers.
fn everywhere(proxy: &Proxy, database: &str, client: &mut Session, show: &str) -> Vec<String> {
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    let first = (client.value(show), client.pid());
    two.run("begin");
    one.run("commit");
    let second = (client.value(show), client.pid());
    two.run("commit");
    assert_ne!(first.1, second.1, "on two servers");
    vec![first.0, second.0]
}

/// Each setting, and a value that is not the default.
const SETTINGS: &[(&str, &str)] = &[
    ("datestyle", "SQL, DMY"),
    ("timezone", "Asia/Tokyo"),
    ("intervalstyle", "iso_8601"),
    ("application_name", "it's \"me\""),
    ("client_encoding", "LATIN1"),
    ("statement_timeout", "77s"),
    ("search_path", "pg_catalog, \"A b\""),
    ("work_mem", "9MB"),
    ("extra_float_digits", "-3"),
    ("my.own", "value"),
];

#[test]
fn a_set_follows_its_client() {
    let (proxy, database) = over_15(database("set_follows"));
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for (name, value) in SETTINGS.iter().filter(|(name, _)| *name != "my.own") {
        let show = format!("select current_setting('{name}')");
        let before = two.value(&show);
        one.run(&format!("select set_config('{name}', '{}', false)", value.replace('\'', "''")));
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [*value; 2], "{name}");
        assert_eq!(everywhere(&proxy, database, &mut two, &show), [before.as_str(); 2], "{name}");
    }
    let pins = proxy.pins();
    assert!(pins.is_empty(), "{pins:?}");
    // RESET ALL brings back the defaults.
    one.run("reset all");
    for (name, _) in SETTINGS.iter().filter(|(name, _)| *name != "my.own") {
        let show = format!("select current_setting('{name}')");
        let default = two.value(&show);
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [default.as_str(); 2], "{name}");
    }
}

#[test]
fn set_in_all_its_forms() {
    let (proxy, database) = over_15(database("set_forms"));
    let mut one = proxy.open(database);
    let forms = [
        ("set statement_timeout = 5000", "statement_timeout", "5s"),
        ("SET SESSION statement_timeout TO '6s'", "statement_timeout", "6s"),
        ("set search_path = a, \"B c\", pg_catalog", "search_path", "a, \"B c\", pg_catalog"),
        ("set time zone 'Asia/Tokyo'", "timezone", "Asia/Tokyo"),
        ("set names 'LATIN1'", "client_encoding", "LATIN1"),
        ("set client_encoding to default", "client_encoding", "UTF8"),
        ("select 1; set work_mem = '3MB'; select 2", "work_mem", "3MB"),
        ("begin; set work_mem = '4MB'; commit", "work_mem", "4MB"),
        ("begin; set work_mem = '5MB'; rollback", "work_mem", "4MB"),
        ("begin; set local work_mem = '6MB'; commit", "work_mem", "4MB"),
        ("do $$ begin set work_mem = '7MB'; end $$", "work_mem", "7MB"),
        ("reset work_mem", "work_mem", "4MB"),
        ("set my.own = 'x'", "my.own", "x"),
    ];
    for (sql, name, value) in forms {
        one.run(sql);
        let show = format!("select current_setting('{name}')");
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [value; 2], "{sql}");
    }
}

#[test]
fn what_is_reported_is_what_is_so() {
    let (proxy, database) = over_15(database("set_reported"));
    let mut direct = Session::open(addr(cluster(Version::V15)), database);
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for sql in ["set timezone = 'Asia/Tokyo'", "set datestyle = 'SQL, DMY'", "reset timezone"] {
        for session in [&mut direct, &mut one] {
            session.run(sql);
        }
        two.run("select 1");
        one.run("select 1");
        assert_eq!(one.params, direct.params, "{sql}");
    }
}

/// If ALTER DATABASE changes the settings of new sessions, sessions through the pool soon have
/// them.
#[test]
fn what_sessions_begin_with_changes() {
    let (proxy, database) = over_15(database("set_begin"));
    let mut one = proxy.open(database);
    assert_eq!(one.value("show work_mem"), "4MB");
    one.run(&format!("alter database {database} set work_mem = '9MB'"));
    eventually("servers are new", || one.value("show work_mem") == "9MB");
    one.run(&format!("alter role postgres in database {database} set work_mem = '11MB'"));
    eventually("servers are new", || one.value("show work_mem") == "11MB");
}
