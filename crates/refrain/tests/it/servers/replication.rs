//! Replication connections through the program: each has a server of its own, and the programs and
//! servers that replicate work as without a pooler.

use std::fs;
use std::process::Command;

use xtask::command;
use xtask::postgres::{Cluster, account};

use crate::session::{Session, cancel_request, query};
use crate::world::{Config, Proxy, Version, addr, cluster, eventually};

/// Starts a cluster that keeps what logical replication needs.
fn primary(version: Version) -> Cluster {
    Cluster::start(version, &[("wal_level", "logical")]).unwrap()
}

fn over(cluster: &Cluster) -> Config {
    Config::over(cluster).general("workers", "2").pool("pool_size", "4")
}

/// Logs in for replication, or returns the SQLSTATE of the refusal.
fn replicate(proxy: &Proxy, params: &[(&str, &str)]) -> Result<Session, String> {
    let user = [("user", "postgres"), ("database", "postgres")];
    Session::login(proxy.addr(), &[&user, params].concat()).map_err(|reply| reply.code())
}

/// Counts the connections of a listing that are of this kind.
fn shown(proxy: &Proxy, listing: &str, kind: &str) -> usize {
    proxy.show(listing).iter().filter(|row| row["replication"] == kind).count()
}

/// Runs a program of PostgreSQL's.
fn run(command: &mut Command) -> String {
    command::output(command).unwrap_or_else(|error| panic!("{error:#}"))
}

fn a_standby_streams(version: Version) {
    let primary = primary(version);
    primary.psql("postgres", "create table t as select 1 as a").unwrap();
    let proxy = over(&primary).start();
    let standby = primary.start_standby_by(proxy.addr().port(), &[]).unwrap();
    primary.psql("postgres", "insert into t select generate_series(1, 100000)").unwrap();
    eventually("the rows are on the standby", || {
        standby.psql("postgres", "select count(*) from t").unwrap().trim() == "100001"
    });
    assert_eq!(shown(&proxy, "clients", "physical"), 1);
    assert_eq!(shown(&proxy, "servers", "physical"), 1);
    let clients = proxy.show("clients");
    let walreceiver = clients.iter().find(|client| client["replication"] == "physical").unwrap();
    assert_eq!((walreceiver["state"].as_str(), walreceiver["link"].is_empty()), ("active", false));
    let name = primary.psql("postgres", "select application_name from pg_stat_replication");
    assert_eq!(name.unwrap().trim(), "walreceiver", "the server has the client's parameters");
    drop(standby);
    eventually("the server goes with its client", || shown(&proxy, "servers", "physical") == 0);
    eventually("and is no walsender any more", || {
        let left = primary.psql("postgres", "select count(*) from pg_stat_replication");
        left.unwrap().trim() == "0"
    });
}

#[test]
fn a_standby_of_15_streams() {
    a_standby_streams(Version::V15);
}

#[test]
fn a_standby_of_18_streams() {
    a_standby_streams(Version::V18);
}

#[test]
fn a_pool_is_shown_as_before_when_its_user_replicates() {
    let proxy = Config::over(cluster(Version::V15)).pool("pool_mode", "\"transaction\"").start();
    let mut replica = replicate(&proxy, &[("replication", "true")]).unwrap();
    replica.query("IDENTIFY_SYSTEM");
    assert_eq!(proxy.open("postgres").query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    let pools = proxy.show("pools");
    let mut pools = pools.iter().filter(|pool| pool["database"] == "postgres");
    assert_eq!(pools.next().unwrap()["pool_mode"], "transaction");
    assert!(pools.next().is_none());
}

fn a_subscription_follows(version: Version) {
    let (publisher, subscriber) = (primary(version), primary(version));
    let proxy = over(&publisher).start();
    let table = "create table t (a int primary key, b text)";
    publisher.psql("postgres", table).unwrap();
    subscriber.psql("postgres", table).unwrap();
    publisher.psql("postgres", "insert into t values (1, repeat('x', 100000))").unwrap();
    publisher.psql("postgres", "create publication p for table t").unwrap();
    let port = proxy.addr().port();
    let create = format!(
        "create subscription s connection 'host=127.0.0.1 port={port} user=postgres \
         dbname=postgres' publication p"
    );
    subscriber.psql("postgres", &create).unwrap();
    let sum = || subscriber.psql("postgres", "select count(*), sum(length(b)) from t").unwrap();
    eventually("the first rows are copied", || sum().trim() == "1|100000");
    let more = "insert into t select g, 'y' from generate_series(2, 1000) g";
    publisher.psql("postgres", more).unwrap();
    eventually("later rows follow", || sum().trim() == "1000|100999");
    assert!(shown(&proxy, "clients", "logical") > 0);
    subscriber.psql("postgres", "drop subscription s").unwrap();
    eventually("the server has gone", || shown(&proxy, "servers", "logical") == 0);
}

#[test]
fn a_subscription_of_15_follows() {
    a_subscription_follows(Version::V15);
}

#[test]
fn a_subscription_of_18_follows() {
    a_subscription_follows(Version::V18);
}

#[test]
fn pg_receivewal_and_pg_recvlogical_get_what_was_written() {
    let primary = primary(Version::V15);
    let proxy = over(&primary).start();
    let port = proxy.addr().port().to_string();
    let place = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
    primary.psql("postgres", "create table t (a text)").unwrap();
    primary.psql("postgres", "create publication p for table t").unwrap();
    let recvlogical = |arguments: &[&str]| {
        let mut program = primary.program("pg_recvlogical").unwrap();
        run(program.args(place).args(["-d", "postgres", "--slot=s"]).args(arguments))
    };
    recvlogical(&["--create-slot", "-P", "pgoutput"]);
    primary.psql("postgres", "insert into t values ('what was written')").unwrap();
    let end = primary.psql("postgres", "select pg_current_wal_lsn()").unwrap();
    primary.psql("postgres", "select pg_switch_wal()").unwrap();
    let end = format!("--endpos={}", end.trim());
    let options = ["-o", "proto_version=1", "-o", "publication_names=p"];
    let start = ["--start", "-f", "-", &end, "--no-loop"];
    let folder = primary.dir().unwrap().join("received");
    account::own_dir(&folder, "700").unwrap();
    let file = folder.join("logical");
    let arguments = start.map(|it| if it == "-" { file.to_str().unwrap() } else { it });
    recvlogical(&[&arguments[..], &options].concat());
    let said = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
    assert!(said.contains("what was written"), "{said:?}");
    recvlogical(&["--drop-slot"]);
    // The stream begins at the segment's beginning, and ends behind this place.
    let end = primary.psql("postgres", "select pg_current_wal_lsn()").unwrap();
    primary.psql("postgres", "insert into t values ('more')").unwrap();
    let end = format!("--endpos={}", end.trim());
    let segments = folder.join("segments");
    account::own_dir(&segments, "700").unwrap();
    let mut receivewal = primary.program("pg_receivewal").unwrap();
    run(receivewal.args(place).args(["--no-loop", &end, "-D"]).arg(&segments));
    assert!(fs::read_dir(&segments).unwrap().count() > 0);
}

#[test]
fn a_replication_connection_keeps_its_server_and_leaves_it_to_nobody() {
    let proxy = over(cluster(Version::V15)).start();
    let mut session = replicate(&proxy, &[("replication", "database")]).unwrap();
    assert_eq!(session.query("IDENTIFY_SYSTEM").status(), Some('I'));
    assert_eq!(session.value("select 7"), "7", "SQL of a session of a database");
    assert_eq!(session.query("select 1/0").code(), "22012");
    let pid = session.pid();
    assert_eq!(session.pid(), pid);
    let mut physical = replicate(&proxy, &[("replication", "true")]).unwrap();
    assert_eq!(physical.query("IDENTIFY_SYSTEM").status(), Some('I'));
    assert_eq!(physical.query("select 1").words(), "E(0A000) Z(I)", "as in PostgreSQL");
    assert_eq!(shown(&proxy, "servers", "logical"), 1);
    session.leave();
    physical.vanish();
    eventually("no server is kept", || {
        shown(&proxy, "servers", "logical") + shown(&proxy, "servers", "physical") == 0
    });
    let again = replicate(&proxy, &[("replication", "database")]).unwrap().pid();
    assert_ne!(again, pid);
}

#[test]
fn parameters_of_a_client_are_those_of_its_server() {
    let proxy = over(cluster(Version::V18)).start();
    let named = |name: &str| {
        let params = [("replication", "database"), ("application_name", name)];
        replicate(&proxy, &[&params[..], &[("options", "-c work_mem=7MB")]].concat()).unwrap()
    };
    let (mut one, mut two) = (named("one"), named("two"));
    assert_eq!(one.value("show application_name"), "one");
    assert_eq!(one.value("show work_mem"), "7MB");
    assert_eq!(two.value("show application_name"), "two");
    assert_eq!(replicate(&proxy, &[("replication", "maybe")]).err().as_deref(), Some("22023"));
    assert!(replicate(&proxy, &[("replication", "off")]).is_ok());
}

#[test]
fn a_command_of_a_replication_connection_can_be_cancelled() {
    let proxy = over(cluster(Version::V15)).start();
    let mut session = replicate(&proxy, &[("replication", "database")]).unwrap();
    let pid = session.pid();
    session.send(&[query("select pg_sleep(3600)")]);
    let sql = format!("select wait_event from pg_stat_activity where pid = {pid}");
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    eventually("the command runs", || direct.value(&sql) == "PgSleep");
    Session::raw(proxy.addr(), &cancel_request(&session.key)).rest();
    assert_eq!(session.ready().words(), "T E(57014) Z(I)");
}

#[test]
fn replication_connections_are_limited() {
    let config = over(cluster(Version::V15)).pool("pool_size", "1");
    let proxy = config.pool("query_wait_timeout", "\"200ms\"").start();
    let first = replicate(&proxy, &[("replication", "database")]).unwrap();
    assert_eq!(replicate(&proxy, &[("replication", "database")]).err().as_deref(), Some("08P01"));
    first.leave();
    eventually("there is room again", || replicate(&proxy, &[("replication", "database")]).is_ok());
}

#[test]
fn rules_name_physical_replication_by_its_keyword() {
    let hba = "'''\nhost replication postgres all trust\nhost postgres eve all trust\n'''";
    let config = over(cluster(Version::V15)).general("auth", "\"hba\"").general("hba", hba);
    let proxy = config.more("[users.postgres]\n[users.eve]\n").start();
    let login = |user: &str, replication: &str| {
        let params = [("user", user), ("database", "postgres"), ("replication", replication)];
        Session::login(proxy.addr(), &params).err().map(|reply| reply.code())
    };
    assert_eq!(login("postgres", "true"), None);
    assert_eq!(login("postgres", "database").as_deref(), Some("28000"));
    assert_eq!(login("postgres", "false").as_deref(), Some("28000"));
    assert_eq!(login("eve", "true").as_deref(), Some("28000"));
}

#[test]
fn other_databases_have_no_replication() {
    let proxy = Config::sqlite().start();
    assert_eq!(replicate(&proxy, &[("replication", "true")]).err().as_deref(), Some("0A000"));
}

#[test]
fn a_shutdown_ends_a_stream_and_lets_a_command_finish() {
    let primary = primary(Version::V15);
    let mut proxy = over(&primary).start();
    let mut streams = replicate(&proxy, &[("replication", "true")]).unwrap();
    let position = primary.psql("postgres", "select pg_current_wal_flush_lsn()").unwrap();
    streams.send(&[query(&format!("START_REPLICATION PHYSICAL {}", position.trim()))]);
    assert_eq!(streams.frame().map(|frame| frame.tag), Some(b'W'));
    let mut works = replicate(&proxy, &[("replication", "database")]).unwrap();
    works.send(&[query("select pg_sleep(2), 'done'")]);
    eventually("the command is under way", || {
        let sql = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        primary.psql("postgres", sql).unwrap().trim() == "1"
    });
    proxy.signal("TERM");
    assert_eq!(works.ready().words(), "T D(,done) C(SELECT 1) Z(I)");
    proxy.wait_for_end();
}
