//! Options that an operator sets on the console until the next reload, and databases that take no
//! new clients.

use std::fs;

use refrain_differ::msg::Msg;

use crate::session::{Session, parse, query};
use crate::tls::files;
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

fn waiting(proxy: &Proxy, database: &str, count: &str) {
    eventually("that many wait", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == count)
    });
}

/// Returns the value of an option in `SHOW CONFIG`.
fn config(proxy: &Proxy, key: &str) -> String {
    let rows = proxy.show("config");
    rows.iter().find(|row| row["key"] == key).map(|row| row["value"].clone()).unwrap()
}

#[test]
fn set_counts_until_the_next_reload() {
    let database = database("console_set");
    let proxy = over_15().start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    two.send(&[query("select 1")]);
    waiting(&proxy, database, "1");
    let mut console = proxy.console();
    assert_eq!(console.query("set pool_size = 2").words(), "C(SET) Z(I)");
    assert_eq!(two.ready().words(), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(config(&proxy, "pool_size"), "2");
    // By PgBouncer's name and value, and beside what was set before.
    assert_eq!(console.query("SET query_timeout TO '7.5'").words(), "C(SET) Z(I)");
    assert_eq!(
        (config(&proxy, "query_timeout"), config(&proxy, "pool_size")),
        ("7500ms".into(), "2".into())
    );
    proxy.order("reload");
    assert_eq!(
        (config(&proxy, "query_timeout"), config(&proxy, "pool_size")),
        ("never".into(), "1".into())
    );
}

#[test]
fn what_cannot_be_set_changes_nothing() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    let mut told = |command: &str| {
        let reply = console.query(command);
        let message = reply.error().map(|error| error.field(b'M').to_vec()).unwrap_or_default();
        (reply.code(), String::from_utf8_lossy(&message).into_owned())
    };
    let (code, message) = told("set pool_sise = 3");
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("42704", "no such option: pool_sise; did you mean pool_size?")
    );
    assert_eq!(told("set pool_size = many").0, "22023");
    assert_eq!(told("set min_pool_size = 5").0, "22023", "more than pool_size");
    assert_eq!(told("set client_tls_sslmode = require").0, "22023", "there is no certificate");
    assert_eq!(told("set workers = 3").0, "55P02");
    assert_eq!(told("set pool_size =").0, "42601");
    assert_eq!(told("set pool_size").0, "42601");
    assert_eq!(config(&proxy, "pool_size"), "1");
    // A client that asks for the columns alone sets nothing.
    let describes =
        [parse("s", "set pool_size = 3"), Msg::DescribeStatement(b"s".to_vec()), Msg::Sync];
    console.ask(&describes);
    assert_eq!(config(&proxy, "pool_size"), "1");
    // Drivers set these.
    assert_eq!(console.query("set client_encoding to 'UTF8'").words(), "N(00000) C(SET) Z(I)");
    assert_eq!(
        console.query("set session characteristics as transaction read only").words(),
        "N(00000) C(SET) Z(I)"
    );
}

#[test]
fn set_does_not_read_files_again() {
    let proxy = over_15().start();
    let broken = over_15().pool("pool_size", "-1");
    let reload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| proxy.reload(&broken)));
    assert!(reload.is_err(), "the file is broken");
    proxy.order("set pool_size = 4");
    assert_eq!(config(&proxy, "pool_size"), "4");
}

/// Configures Refrain over SQLite, for clients that encrypt.
fn encrypting(certificate: &str) -> Config {
    Config::sqlite()
        .general("client_tls_sslmode", "\"prefer\"")
        .general("client_tls_cert_file", &files().toml(&format!("{certificate}.crt")))
        .general("client_tls_key_file", &files().toml(&format!("{certificate}.key")))
}

/// The file has no error of its own, and is refused as its certificate is missing, which comes
/// later.
#[test]
fn set_puts_nothing_of_a_refused_reload_into_force() {
    let proxy = Config::sqlite().start();
    let refused = encrypting("late").pool("query_wait_timeout", "\"77s\"");
    let reload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| proxy.reload(&refused)));
    assert!(reload.is_err(), "the certificate is missing");
    files().write("late", &files().authority.sign("late", &["localhost"]).unwrap());
    proxy.order("set query_timeout = 7.5");
    assert_eq!(config(&proxy, "query_timeout"), "7500ms");
    assert_ne!(config(&proxy, "query_wait_timeout"), "77s");
    assert_eq!(config(&proxy, "client_tls_sslmode"), "disable");
}

#[test]
fn set_does_not_read_certificates_again() {
    files().write("renewed", &files().authority.sign("renewed", &["localhost"]).unwrap());
    let proxy = encrypting("renewed").start();
    // The key is written, and the certificate is not yet.
    let key = files().authority.sign("renewed", &["localhost"]).unwrap().key;
    fs::write(files().path("renewed.key"), key).unwrap();
    proxy.order("set query_timeout = 7.5");
    assert_eq!(config(&proxy, "query_timeout"), "7500ms");
    let mut console = proxy.console();
    assert_eq!(console.query("set client_tls_protocols = tlsv1.3").code(), "22023");
    assert!(console.query("reload").error().is_some(), "a reload reads them");
}

#[test]
fn a_disabled_database_takes_no_new_clients() {
    let (database, other) = (database("console_disable"), database("console_enable"));
    let proxy = over_15().general("workers", "2").start();
    let mut old = proxy.open(database);
    proxy.order(&format!("disable {database}"));
    let shown = |database: &str| {
        let rows = proxy.show("databases");
        rows.iter().find(|row| row["name"] == database).map(|row| row["disabled"].clone())
    };
    assert_eq!(shown(database).as_deref(), Some("1"));
    let login = || Session::login(proxy.addr(), &[("user", "postgres"), ("database", database)]);
    assert_eq!(login().err().map(|reply| reply.code()).as_deref(), Some("55000"));
    assert_eq!(old.value("select 1"), "1", "a client that is in stays");
    assert_eq!(proxy.open(other).value("select 1"), "1");
    proxy.order("reload");
    assert!(login().is_err(), "a reload enables nothing");
    proxy.order(&format!("enable {database}"));
    assert_eq!(login().unwrap().value("select 1"), "1");
    let mut console = proxy.console();
    assert_eq!(console.query("disable").code(), "42601");
    assert_eq!(console.query("disable pgbouncer").code(), "42501");
}

#[test]
fn listings_have_the_columns_of_the_version() {
    let proxy = over_15().start();
    let columns = || proxy.show("stats")[0].len();
    assert_eq!((columns(), proxy.console().value("show version")), (23, "PgBouncer 1.24.1".into()));
    proxy.order("set pgbouncer_version = 1.26");
    assert_eq!((columns(), proxy.console().value("show version")), (25, "PgBouncer 1.26.0".into()));
    let _client = proxy.open("postgres");
    let stats = proxy.show_of("stats", "postgres");
    assert_eq!(stats[0]["total_client_connect_count"], "1");
}
