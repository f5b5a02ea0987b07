//! Servers that several users share, or that make room for each other, with PostgreSQL.

use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn over() -> Config {
    Config::over(cluster(Version::V15))
}

/// Makes a role that may log in.
fn role(name: &str) {
    let mut session = Session::open(addr(cluster(Version::V15)), "postgres");
    session.query(&format!("drop role if exists {name}"));
    session.run(&format!("create role {name} login"));
}

fn open_as(proxy: &Proxy, user: &str, database: &str) -> Session {
    Session::login(proxy.addr(), &[("user", user), ("database", database)])
        .unwrap_or_else(|reply| panic!("{user}: {}", reply.words()))
}

#[test]
fn a_user_is_served_while_the_idle_servers_of_another_hold_the_limit() {
    let name = database("room");
    role("room_bob");
    for workers in ["1", "3"] {
        let config = over().pool("pool_size", "3").general("workers", workers);
        let proxy = config.server("max_connections", "3").start();
        let mut anna: Vec<_> = (0..3).map(|_| open_as(&proxy, "postgres", name)).collect();
        anna.iter_mut().for_each(|session| session.run("begin"));
        anna.iter_mut().for_each(|session| session.run("commit"));
        assert_eq!(proxy.show_of("servers", name).len(), 3);
        // They stay for minutes if nobody else needs their room.
        let mut bob = open_as(&proxy, "room_bob", name);
        assert_eq!(bob.value("select session_user"), "room_bob");
        assert_eq!(proxy.counter("servers_evicted"), 1);
        assert!(proxy.show_of("servers", name).len() <= 3);
        eventually("it is logged", || proxy.log().contains("cause=server_evicted"));
        anna.iter_mut().for_each(|session| assert_eq!(session.value("select 1"), "1"));
    }
}

#[test]
fn users_share_the_servers_of_a_fixed_user() {
    let name = database("room_fixed");
    let users = "max_client_connections = 1\n";
    let config = over().pool("pool_size", "2").general("workers", "2");
    let config = config.server("user", "\"postgres\"");
    let proxy = config.more(&format!("[users.user3]\n{users}")).start();
    let users: Vec<_> = (0..10).map(|number| format!("user{number}")).collect();
    let mut sessions: Vec<_> = users.iter().map(|user| open_as(&proxy, user, name)).collect();
    for _ in 0..3 {
        for session in &mut sessions {
            assert_eq!(session.value("select session_user"), "postgres");
        }
    }
    let servers = proxy.show_of("servers", name);
    assert!((1..=2).contains(&servers.len()), "{servers:?}");
    assert!(servers.iter().all(|server| server["user"] == "postgres"));
    // Clients have their own names, and limits by name.
    let mut shown: Vec<_> =
        proxy.show_of("clients", name).iter().map(|client| client["user"].clone()).collect();
    shown.sort();
    assert_eq!(shown, users);
    let login = [("user", "user3"), ("database", name)];
    let refused = Session::login(proxy.addr(), &login).expect_err("one client too many");
    assert!(refused.words().contains("53300"), "{}", refused.words());
    let pools = proxy.show_of("pools", name);
    assert_eq!(pools.len(), 1, "{pools:?}");
    assert_eq!(pools[0]["cl_active"], "10");
}

#[test]
fn settings_stay_apart_in_a_pool_that_users_share() {
    let name = database("room_settings");
    let proxy = over().server("user", "\"postgres\"").start();
    let mut anna = open_as(&proxy, "anna", name);
    let mut bob = open_as(&proxy, "bob", name);
    anna.run("set work_mem = '7MB'");
    bob.run("set work_mem = '9MB'");
    let show = "select current_setting('work_mem')";
    assert_eq!((anna.value(show), bob.value(show)), ("7MB".to_owned(), "9MB".to_owned()));
    assert_eq!(proxy.show_of("servers", name).len(), 1);
}
