//! Refrain forgets pools without clients, and all that it knew of a database that was dropped.

use std::thread;

use crate::session::Session;
use crate::world::{Config, Version, addr, cluster, database, eventually};

fn refused(addr: std::net::SocketAddr, database: &str) -> String {
    let names = [("user", "postgres"), ("database", database)];
    Session::login(addr, &names).map_or_else(|reply| reply.words(), |_| "let in".to_owned())
}

/// Returns the databases of all pools.
fn pools(proxy: &crate::world::Proxy) -> Vec<String> {
    let rows = proxy.show("pools").into_iter().map(|row| row["database"].clone());
    rows.filter(|name| name != "refrain" && name != "pgbouncer").collect()
}

#[test]
fn a_database_that_does_not_exist_leaves_no_pool() {
    for workers in ["1", "2"] {
        let proxy = Config::over(cluster(Version::V15)).general("workers", workers).start();
        let direct = addr(cluster(Version::V15));
        let logins = 3;
        for number in 0..10 {
            let name = format!("nowhere_{number}");
            let addr = proxy.addr();
            let several: Vec<_> = (0..logins)
                .map(|_| name.clone())
                .map(|name| thread::spawn(move || refused(addr, &name)))
                .collect();
            let wanted = refused(direct, &name);
            for login in several {
                assert_eq!(login.join().unwrap(), wanted);
            }
        }
        let role = Session::login(proxy.addr(), &[("user", "nobody"), ("database", "postgres")]);
        assert_eq!(role.unwrap_err().words(), "R E(28000)");
        eventually("no pool is left", || pools(&proxy).is_empty());
        let forgotten = proxy.counter("pools_forgotten");
        assert!(forgotten >= 11, "{forgotten}");
        assert!(proxy.counter("server_login_failures") >= forgotten, "they still count");
        assert_eq!(proxy.open("postgres").value("select 1"), "1");
    }
}

#[test]
fn a_pool_that_nobody_uses_is_forgotten() {
    let database = database("forgotten_idle");
    let config = Config::over(cluster(Version::V15)).pool("server_idle_timeout", "\"100ms\"");
    let proxy = config.pool("pool_idle_timeout", "\"300ms\"").general("workers", "2").start();
    for round in 1..4 {
        let mut clients: Vec<_> = (0..4).map(|_| proxy.open(database)).collect();
        for client in &mut clients {
            assert_eq!(client.value("select 1"), "1");
        }
        assert_eq!(pools(&proxy), [database]);
        clients.into_iter().for_each(Session::leave);
        eventually("it is forgotten", || pools(&proxy).is_empty());
        assert_eq!(proxy.counter("queries"), 4 * round, "none is lost");
        let total = proxy.show("stats_totals");
        let sum: u64 = total.iter().map(|row| row["query_count"].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 4 * round);
    }
}

#[test]
fn a_pool_that_somebody_uses_is_not_forgotten() {
    let database = database("forgotten_held");
    let config = Config::over(cluster(Version::V15)).pool("server_idle_timeout", "\"100ms\"");
    let proxy = config.pool("pool_idle_timeout", "\"1ms\"").start();
    let mut client = proxy.open(database);
    client.run("set work_mem = '9MB'");
    eventually("it has no server", || proxy.show_of("servers", database).is_empty());
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(pools(&proxy), [database]);
    assert_eq!(client.value("show work_mem"), "9MB");
}

#[test]
fn nobody_is_let_into_a_database_that_was_dropped() {
    let database = database("forgotten_dropped");
    let proxy = Config::over(cluster(Version::V15)).start();
    let direct = addr(cluster(Version::V15));
    let mut other = Session::open(direct, "postgres");
    for through in [false, true] {
        let client = proxy.open(database);
        client.leave();
        if through {
            proxy.open("postgres").run(&format!("drop database {database}"));
        } else {
            other.run(&format!("drop database {database} with (force)"));
        }
        assert_eq!(refused(proxy.addr(), database), refused(direct, database));
        assert_eq!(refused(proxy.addr(), database), "R E(3D000)");
        other.run(&format!("create database {database}"));
        assert_eq!(proxy.open(database).value("select 1"), "1");
    }
}
