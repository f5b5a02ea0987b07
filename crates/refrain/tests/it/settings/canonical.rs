//! Refrain reports settings with PostgreSQL's values, however the client spelled them.

use std::collections::BTreeMap;

use crate::session::Session;
use crate::world::{Config, Version, addr, cluster, database};

/// Spellings that PostgreSQL accepts, of settings that it reports and of some that it does not
/// report.
const SPELLINGS: &[(&str, &str)] = &[
    ("client_encoding", "utf-8"),
    ("client_encoding", "unicode"),
    ("client_encoding", "latin-1"),
    ("client_encoding", "'LATIN1'"),
    ("client_encoding", "SQL_ASCII"),
    ("TimeZone", "utc"),
    ("timezone", "europe/berlin"),
    ("TimeZone", "+3"),
    ("TimeZone", "<+02>-02"),
    ("standard_conforming_strings", "1"),
    ("standard_conforming_strings", "no"),
    ("DateStyle", "german"),
    ("datestyle", "iso, dmy"),
    ("IntervalStyle", "ISO_8601"),
    ("default_transaction_read_only", "f"),
    ("default_transaction_read_only", "TRUE"),
    ("application_name", "näme"),
    ("search_path", "\"$user\",public"),
    ("extra_float_digits", " 2"),
    ("work_mem", "8192"),
    ("statement_timeout", "60s"),
    ("bytea_output", "ESCAPE"),
    ("options", "-c timezone=utc -c client_encoding=utf-8"),
    ("options", "-c work_mem=2048kB --DateStyle=sql"),
];

/// Returns the settings that were reported to a session.
fn reported(session: &Session) -> BTreeMap<String, String> {
    session.params.clone()
}

#[test]
fn settings_of_a_login_are_reported_as_by_postgresql() {
    let database = database("canonical_login");
    let own = addr(cluster(Version::V15));
    let proxy = Config::over(cluster(Version::V15)).start();
    // The second time, the startup parameters are proven.
    for time in 1..=2 {
        for &(name, value) in SPELLINGS {
            let login = |addr| Session::with(addr, database, &[(name, value)]);
            let (mut direct, mut client) = (login(own), login(proxy.addr()));
            assert_eq!(reported(&client), reported(&direct), "{name} = {value}, time {time}");
            let name = if name == "options" { "timezone" } else { name };
            let show = format!("show {name}");
            assert_eq!(client.value(&show), direct.value(&show), "{name} = {value}, time {time}");
            assert_eq!(reported(&client), reported(&direct), "{name} = {value}, used");
        }
    }
}

#[test]
fn settings_of_a_login_are_reported_the_same_while_others_use_the_servers() {
    let database = database("canonical_busy");
    let own = addr(cluster(Version::V15));
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "2").start();
    let mut other = proxy.open(database);
    for &(name, value) in SPELLINGS {
        other.run("set timezone = 'Asia/Tokyo'; set datestyle = 'sql, dmy'; set work_mem = '3MB'");
        let login = |addr| Session::with(addr, database, &[(name, value)]);
        let (mut direct, mut client) = (login(own), login(proxy.addr()));
        assert_eq!(reported(&client), reported(&direct), "{name} = {value}");
        assert_eq!(other.value("show timezone"), "Asia/Tokyo");
        for sql in ["show timezone", "show datestyle", "show client_encoding", "show work_mem"] {
            assert_eq!(client.value(sql), direct.value(sql), "{name} = {value}: {sql}");
        }
    }
}

#[test]
fn what_a_session_sets_is_reported_as_by_postgresql() {
    let database = database("canonical_set");
    let own = addr(cluster(Version::V15));
    let proxy = Config::over(cluster(Version::V15)).start();
    let mut direct = Session::open(own, database);
    let mut client = proxy.open(database);
    for &(name, value) in SPELLINGS.iter().filter(|(name, _)| *name != "options") {
        let value = value.trim_matches('\'').replace('\'', "''");
        let set = match name {
            "search_path" => format!("set {name} = {value}"),
            _ => format!("set {name} = '{value}'"),
        };
        for session in [&mut direct, &mut client] {
            session.run(&set);
        }
        // Another client uses the server in between.
        proxy.open(database).run("select 1");
        let show = format!("show {name}");
        assert_eq!(client.value(&show), direct.value(&show), "{set}");
        assert_eq!(reported(&client), reported(&direct), "{set}");
        for session in [&mut direct, &mut client] {
            session.run(&format!("reset {name}"));
        }
        assert_eq!(client.value(&show), direct.value(&show), "reset after {set}");
        assert_eq!(reported(&client), reported(&direct), "reset after {set}");
    }
}
