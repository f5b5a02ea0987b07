//! Settings that a session rightly has and that a server refuses: the session goes on.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

/// A transaction after which PostgreSQL refuses to change `temp_buffers` in its session.
const TEMPORARY: [&str; 3] = ["begin", "create temp table x (a int) on commit drop", "commit"];

/// The two versions, each with a database of this name and a pool of this size.
fn worlds(name: &'static str, size: &str) -> impl Iterator<Item = (Proxy, Session, &'static str)> {
    [Version::V15, Version::V18].into_iter().map(move |version| {
        let database = database_of(version, name);
        let proxy = Config::over(cluster(version)).pool("pool_size", size).start();
        (proxy, Session::open(addr(cluster(version)), database), database)
    })
}

/// Has a session of its own settings use the pool's servers.
fn others(proxy: &Proxy, database: &str, texts: &[&str]) {
    let mut clients: Vec<_> = (0..3).map(|_| proxy.open(database)).collect();
    for client in &mut clients {
        client.run("set work_mem = '1MB'");
        texts.iter().for_each(|text| client.run(text));
    }
}

#[test]
fn temporary_buffers_behind_temporary_tables() {
    for size in ["1", "3"] {
        for (proxy, _, database) in worlds("refused_buffers", size) {
            others(&proxy, database, &TEMPORARY);
            let options = [("options", "-c temp_buffers=16MB")];
            let mut one = Session::with(proxy.addr(), database, &options);
            let mut two = proxy.open(database);
            two.run("set temp_buffers = '24MB'");
            for _ in 0..5 {
                assert_eq!(one.value("show temp_buffers"), "16MB");
                others(&proxy, database, &TEMPORARY);
                assert_eq!(two.value("show temp_buffers"), "24MB");
                others(&proxy, database, &TEMPORARY);
            }
            let asks = [parse("", "select $1::int"), bind("", &["7"]), execute(), Msg::Sync];
            assert_eq!(one.ask(&asks).words(), "1 2 D(7) C(SELECT 1) Z(I)");
        }
    }
}

/// Takes away what a client's setting needs, and checks that the client's next request fails once.
fn is_refused_once(name: &'static str, user: &str, set: &str, prepare: &[&str], take: &[&str]) {
    for (proxy, mut admin, database) in worlds(name, "1") {
        admin.query("create role refused_user login");
        let params = [("user", user), ("database", database)];
        let open = || Session::login(proxy.addr(), &params).unwrap();
        let (mut one, mut other) = (open(), open());
        let parameter = set.split(' ').nth(1).unwrap();
        let default = one.value(&format!("show {parameter}"));
        for request in 0..2 {
            prepare.iter().for_each(|text| drop(admin.query(text)));
            one.run(set);
            other.run("set work_mem = '1MB'");
            other.run("select 1");
            take.iter().for_each(|text| admin.run(text));
            other.run("select 2");
            let reply = match request {
                0 => one.query("select 1"),
                _ => one.ask(&[parse("", "select 1"), bind("", &[]), execute(), Msg::Sync]),
            };
            let direct = admin.query(set);
            let due = if user == "postgres" { direct.code() } else { "42501".to_owned() };
            assert_eq!(reply.words(), format!("E({due}) Z(I)"), "{set}");
            assert_eq!(one.value(&format!("show {parameter}")), default);
            assert_eq!(one.value("select 3"), "3");
            assert_eq!(other.value("show work_mem"), "1MB");
        }
    }
}

#[test]
fn a_configuration_of_text_search_that_is_gone() {
    is_refused_once(
        "refused_search",
        "postgres",
        "set default_text_search_config = 'public.mine'",
        &["create text search configuration public.mine (copy = pg_catalog.simple)"],
        &["drop text search configuration public.mine"],
    );
}

#[test]
fn an_access_method_that_is_gone() {
    is_refused_once(
        "refused_method",
        "postgres",
        "set default_table_access_method = mine",
        &["create access method mine type table handler heap_tableam_handler"],
        &["drop access method mine"],
    );
}

#[test]
fn a_right_that_is_taken_back() {
    is_refused_once(
        "refused_right",
        "refused_user",
        "set log_min_duration_statement to '1h'",
        &["grant set on parameter log_min_duration_statement to refused_user"],
        &["revoke set on parameter log_min_duration_statement from refused_user"],
    );
}

#[test]
fn a_role_that_is_gone_is_refused_each_time() {
    for (proxy, mut admin, database) in worlds("refused_role", "2") {
        admin.query("drop role if exists refused_role");
        admin.run("create role refused_role");
        let mut other = proxy.open(database);
        let options = [("options", "-c role=refused_role")];
        let mut one = Session::with(proxy.addr(), database, &options);
        assert_eq!(one.value("select current_user"), "refused_role");
        other.run("select 1");
        admin.run("drop role refused_role");
        for _ in 0..3 {
            // Its texts never run with the rights of the login.
            assert_eq!(one.query("select current_user").words(), "E(22023) Z(I)");
            let asks = [parse("", "select 1"), bind("", &[]), execute(), Msg::Sync];
            assert_eq!(one.ask(&asks).words(), "E(22023) Z(I)");
            assert_eq!(other.value("select current_user"), "postgres");
        }
        admin.run("create role refused_role");
        assert_eq!(one.value("select current_user"), "refused_role");
        one.leave();
        other.leave();
    }
}

#[test]
fn a_login_with_what_every_server_refuses_is_refused() {
    for (proxy, _, database) in worlds("refused_login", "2") {
        others(&proxy, database, &["select 1"]);
        for option in ["-c role=nobody_at_all", "-c default_tablespace=none_such"] {
            let params = [("user", "postgres"), ("database", database), ("options", option)];
            let reply = Session::login(proxy.addr(), &params).err().unwrap();
            assert!(reply.code() == "22023", "{option}: {}", reply.words());
        }
        eventually("it is logged", || proxy.log().contains("settings"));
        assert!(!proxy.log().contains("password authentication failed"), "{}", proxy.log());
        assert_eq!(proxy.open(database).value("select 1"), "1");
    }
}

#[test]
fn the_former_clients_timeout_is_not_the_next_ones() {
    for (proxy, _, database) in worlds("refused_timeout", "1") {
        let (mut one, mut other) = (proxy.open(database), proxy.open(database));
        other.run("set work_mem = '1MB'");
        for name in ["statement_timeout", "lock_timeout"] {
            one.run(&format!("set {name} = '1ms'"));
            for _ in 0..100 {
                one.query("select 1");
                assert_eq!(other.value("show work_mem"), "1MB");
            }
        }
    }
}
