//! Logins: which succeed, by which method, and with which settings.

use xtask::postgres::{AUTH_DATABASE, PASSWORD};

use crate::session::{LIMIT, Session, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually, psql};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Waits until the log has these words. The log has a thread of its own, so a client may get an
/// error before it is logged.
fn is_logged(proxy: &Proxy, words: &str) {
    eventually(&format!("{words:?} is logged"), || proxy.log().contains(words));
}

fn url(proxy: &Proxy, user: &str, database: &str) -> String {
    format!("postgres://{user}@{}/{database}", proxy.addr())
}

/// Logs in by every method, with the right password and a wrong one.
fn logs_in(config: Config, user: &str, database: &str) {
    for auth in ["password", "md5", "scram"] {
        let proxy = config.clone().general("auth", &format!("{auth:?}")).start();
        let user_of = |password: &str, sql: &str| psql(&url(&proxy, user, database), password, sql);
        let who = user_of(PASSWORD, "select current_user");
        assert_eq!(who.as_deref(), Ok(user), "{auth}");
        for wrong in ["wrong", "", "secret "] {
            let refused = user_of(wrong, "select 1").unwrap_err();
            let known = ["password authentication failed", "no password supplied"];
            assert!(known.iter().any(|words| refused.contains(words)), "{auth}: {refused}");
        }
        let nobody = psql(&url(&proxy, "nobody", database), PASSWORD, "select 1").unwrap_err();
        assert!(nobody.contains("password authentication failed"), "{auth}: {nobody}");
    }
}

#[test]
fn by_every_method_with_a_plain_password() {
    for user in ["md5_user", "scram_user", "plain_user"] {
        let users = format!("[users.{user}]\npassword = \"{PASSWORD}\"\n");
        logs_in(over_15().more(&users), user, AUTH_DATABASE);
    }
}

/// Returns PostgreSQL's stored verifier of a user's password.
fn verifier(user: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{user}'");
    Session::open(addr(cluster(Version::V15)), "postgres").value(&sql)
}

#[test]
fn a_scram_verifier_passes_the_login_through() {
    let user = "scram_user";
    let users = format!("[users.{user}]\npassword = \"{}\"\n", verifier(user));
    let proxy = over_15().general("auth", "\"scram\"").more(&users).start();
    let url = url(&proxy, user, AUTH_DATABASE);
    for _ in 0..2 {
        assert_eq!(psql(&url, PASSWORD, "select current_user").as_deref(), Ok(user));
        assert!(psql(&url, "wrong", "select 1").is_err());
    }
}

#[test]
fn an_md5_hash_lets_clients_in() {
    let user = "md5_user";
    let users = format!("[users.{user}]\npassword = \"{}\"\n", verifier(user));
    let proxy = over_15().general("auth", "\"md5\"").more(&users).start();
    // That database trusts everybody: Refrain cannot log in to servers with an MD5 hash.
    let url = url(&proxy, user, "postgres");
    assert_eq!(psql(&url, PASSWORD, "select current_user").as_deref(), Ok(user));
    assert!(psql(&url, "wrong", "select 1").is_err());
}

#[test]
fn an_md5_hash_logs_in_as_the_user_of_a_database_before_any_client_comes() {
    let (user, list) = ("md5_user", std::env::temp_dir());
    let list = list.join(format!("refrain-it-md5-userlist-{}", std::process::id()));
    std::fs::write(&list, format!("\"{user}\" \"{}\"\n", verifier(user))).unwrap();
    let config = over_15().only(AUTH_DATABASE).server("user", &format!("{user:?}"));
    let config = config.general("auth_file", &format!("{list:?}")).pool("min_pool_size", "1");
    let proxy = config.start();
    let is_kept = || proxy.show("servers").iter().any(|server| server["user"] == user);
    eventually("a server is kept", is_kept);
    let other = url(&proxy, "ann", AUTH_DATABASE);
    assert_eq!(psql(&other, "", "select current_user").as_deref(), Ok(user));
    std::fs::remove_file(&list).unwrap();
}

#[test]
fn a_password_that_a_client_proves_serves_where_its_md5_hash_does_not() {
    let sql = format!("select 'md5' || md5('{PASSWORD}scram_user')");
    let hash = Session::open(addr(cluster(Version::V15)), "postgres").value(&sql);
    let users = format!("[users.scram_user]\npassword = \"{hash}\"\n");
    let config = over_15().general("auth", "\"password\"").more(&users);
    let config = config.only(AUTH_DATABASE).server("user", "\"scram_user\"");
    let proxy = config.clone().start();
    let url = url(&proxy, "scram_user", AUTH_DATABASE);
    let server = || psql(&url, PASSWORD, "select pg_backend_pid()").unwrap();
    let first = server();
    // A reload of the same secrets forgets nothing.
    proxy.reload_by_signal(&config);
    let leave = format!("select pg_terminate_backend({first})");
    assert_eq!(Session::open(addr(cluster(Version::V15)), "postgres").value(&leave), "t");
    eventually("the server has left", || proxy.log().contains("server_gone"));
    assert_ne!(server(), first);
}

#[test]
fn trust_takes_everybody_at_their_word() {
    let proxy = over_15().start();
    let params = [("user", "plain_user"), ("database", "postgres")];
    let mut session = Session::login(proxy.addr(), &params).unwrap();
    assert_eq!(session.value("select current_user"), "plain_user");
}

#[test]
fn a_database_that_does_not_exist() {
    let proxy = over_15().start();
    let params = [("user", "postgres"), ("database", "nowhere")];
    let direct = Session::login(addr(cluster(Version::V15)), &params).unwrap_err();
    let proxied = Session::login(proxy.addr(), &params).unwrap_err();
    assert_eq!(proxied.words(), direct.words());
    let message = |reply: &crate::reply::Reply| reply.error().unwrap().field(b'M').to_vec();
    assert_eq!(message(&proxied), message(&direct));
}

#[test]
fn a_role_that_does_not_exist() {
    let proxy = over_15().start();
    let params = [("user", "stranger"), ("database", "postgres")];
    let direct = Session::login(addr(cluster(Version::V15)), &params).unwrap_err();
    assert_eq!(Session::login(proxy.addr(), &params).unwrap_err().words(), direct.words());
}

#[test]
fn a_password_that_servers_refuse_is_told_at_once_and_tried_once() {
    let config = over_15().server("user", "\"scram_user\"").server("password", "\"wrong\"");
    let config = config.pool("server_login_retry", "\"1min\"");
    let proxy = config.pool("server_unavailable", "\"wait\"").start();
    let params = [("user", "anybody"), ("database", AUTH_DATABASE)];
    for _ in 0..20 {
        let refused = Session::login(proxy.addr(), &params).unwrap_err();
        let error = refused.error().unwrap();
        assert_eq!(
            (error.field(b'C'), error.field(b'M')),
            (&b"28P01"[..], &b"password authentication failed for user \"scram_user\""[..])
        );
    }
    assert_eq!(proxy.counter("server_login_failures"), 1);
    is_logged(&proxy, "password authentication failed for user");
}

#[test]
fn a_server_that_is_not_there_is_for_the_log_too() {
    let config = over_15().server("host", "\"127.0.0.1\"").server("port", "1");
    let proxy = config.start();
    let params = [("user", "anybody"), ("database", "any")];
    let refused = Session::login(proxy.addr(), &params).unwrap_err();
    let error = refused.error().unwrap();
    let fields = (error.field(b'C'), error.field(b'M'));
    assert_eq!(fields, (&b"57P03"[..], &b"could not connect to server"[..]));
    is_logged(&proxy, "127.0.0.1:1: Connection refused");
}

#[test]
fn one_client_too_many() {
    let proxy = over_15().general("max_client_conn", "2").start();
    let (one, _two) = (proxy.open("postgres"), proxy.open("postgres"));
    let params = [("user", "postgres"), ("database", "postgres")];
    assert_eq!(Session::login(proxy.addr(), &params).unwrap_err().code(), "53300");
    one.leave();
    eventually("there is room", || Session::login(proxy.addr(), &params).is_ok());
}

#[test]
fn startup_parameters_hold_on_every_server() {
    let database = database("startup");
    let proxy = over_15().pool("pool_size", "2").start();
    let params = [
        ("search_path", "pg_catalog, \"My Schema\""),
        ("options", "-c statement_timeout=12s --lock_timeout=3s -c work_mem=5MB"),
        ("application_name", "tester"),
        ("DateStyle", "SQL, DMY"),
    ];
    let mut one = Session::with(proxy.addr(), database, &params);
    let mut plain = proxy.open(database);
    let settings = "select concat_ws('|', current_setting('search_path'), \
        current_setting('statement_timeout'), current_setting('lock_timeout'), \
        current_setting('work_mem'), current_setting('application_name'), \
        current_setting('datestyle'))";
    let wanted = "pg_catalog, \"My Schema\"|12s|3s|5MB|tester|SQL, DMY";
    let others = plain.value(settings);
    assert_eq!(one.value(settings), wanted);
    let mut holder = proxy.open(database);
    for _ in 0..2 {
        // The holder has either server, and the others take turns on the other one.
        holder.run("begin");
        assert_eq!(one.value(settings), wanted);
        assert_eq!(plain.value(settings), others);
        assert_eq!(one.value(settings), wanted);
        plain.run("begin");
        holder.run("commit");
        assert_eq!(one.value(settings), wanted);
        plain.run("commit");
    }
    assert_eq!(one.params["DateStyle"], "SQL, DMY");
    assert_eq!(one.params["application_name"], "tester");
}

#[test]
fn startup_parameters_that_are_refused() {
    let proxy = over_15().start();
    let refused = [
        ("statement_timeout", "soon"),
        ("no_such_setting", "1"),
        ("options", "-c work_mem=lots"),
        ("DateStyle", "Stardate"),
    ];
    for (name, value) in refused {
        let params = [("user", "postgres"), ("database", "postgres"), (name, value)];
        let direct = Session::login(addr(cluster(Version::V15)), &params).unwrap_err();
        let proxied = Session::login(proxy.addr(), &params);
        let proxied = proxied.err().unwrap_or_else(|| panic!("{name} = {value} is let in"));
        assert_eq!(proxied.code(), direct.code(), "{name} = {value}");
    }
    is_logged(&proxy, "settings refused: invalid value for parameter");
    // The pool still works.
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
}

/// Logs in. Returns the body of NegotiateProtocolVersion, if it came, and the tag of the last
/// message.
fn negotiated(addr: std::net::SocketAddr, packet: &[u8]) -> (Option<Vec<u8>>, Option<u8>) {
    let mut session = Session::raw(addr, packet);
    let mut negotiated = None;
    while let Some(frame) = session.frame() {
        match frame.tag {
            tag @ (b'Z' | b'E') => return (negotiated, Some(tag)),
            b'v' => negotiated = Some(frame.body),
            _ => {}
        }
    }
    (negotiated, None)
}

#[test]
fn protocol_versions_are_negotiated_as_by_postgresql_18() {
    let cluster = cluster(Version::V18);
    let proxy = Config::over(cluster).start();
    let plain = [("user", "postgres"), ("database", "postgres")];
    let option = [("user", "postgres"), ("database", "postgres"), ("_pq_.x", "1")];
    for version in [0x0003_0000, 0x0003_0002, 0x0003_270f] {
        for params in [&plain[..], &option] {
            let packet = startup(version, params);
            let direct = negotiated(addr(cluster), &packet);
            assert_eq!(negotiated(proxy.addr(), &packet), direct, "{version:x} {params:?}");
        }
    }
    for version in [0x0002_0000, 0x0004_0000] {
        assert_eq!(negotiated(proxy.addr(), &startup(version, &plain)).1, Some(b'E'));
    }
}

#[test]
fn encryption_is_declined_and_the_session_goes_on() {
    use std::io::{Read, Write};
    let proxy = over_15().start();
    for request in [80_877_103u32, 80_877_104] {
        let mut stream = std::net::TcpStream::connect(proxy.addr()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let packet = [8u32.to_be_bytes(), request.to_be_bytes()].concat();
        stream.write_all(&packet).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
        let params = [("user", "postgres"), ("database", "postgres")];
        stream.write_all(&startup(0x0003_0000, &params)).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"R");
    }
}

#[test]
fn a_password_may_be_as_long_as_postgresql_takes_it() {
    for (length, is_taken) in [(65_530, true), (65_531, false)] {
        let password = "x".repeat(length);
        let users = format!("[users.postgres]\npassword = \"{password}\"\n");
        let config = Config::over(cluster(Version::V15)).general("auth", "\"password\"");
        let proxy = config.more(&users).start();
        let params = [("user", "postgres"), ("database", "postgres")];
        let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
        let mut message = vec![b'p'];
        message.extend(u32::try_from(length + 5).unwrap().to_be_bytes());
        message.extend(password.bytes().chain([0]));
        session.write(&message);
        let reply = session.ready();
        assert_eq!(reply.status().is_some(), is_taken, "{length}: {}", reply.words());
    }
}
