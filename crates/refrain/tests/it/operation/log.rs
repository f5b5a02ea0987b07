//! The log: one line for each event, whatever names clients have, and what an operator asks first.

use std::time::Instant;

use xtask::postgres::Cluster;

use crate::session::{Session, query, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

/// Text that no line of the log may have in it, because terminals and log readers act on it.
const FORGED: &str =
    "\n2026-01-01T00:00:00.000000Z  INFO forged\r\u{1b}[2J\u{7f}\u{9b}2J\u{2028}\u{202e}";

/// Logs in, with success and without, with such names, and sends such texts.
fn misbehave(proxy: &Proxy, database: &str) {
    let name = format!("me{FORGED}");
    for params in [
        vec![("user", name.as_str()), ("database", database)],
        vec![("user", "postgres"), ("database", name.as_str())],
        vec![("user", "postgres"), ("database", database), ("application_name", name.as_str())],
        vec![("user", "postgres"), ("database", database), (name.as_str(), "x")],
        vec![("user", "postgres"), ("database", database), ("replication", name.as_str())],
    ] {
        let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
        session.write(b"X\0\0\0\x04");
        session.rest();
    }
    // Texts of a server are trusted as little.
    let mut session = proxy.open(database);
    let raise = FORGED.replace('\u{202e}', "");
    let raise = format!("do $f$ begin raise exception using message = $m${raise}$m$; end $f$");
    session.send(&[query(&raise)]);
    session.ready();
    let mut console = proxy.console();
    console.query(&format!("reload -- {FORGED}"));
    console.query(&format!("kill \"{name}\""));
    console.query(&format!("resume \"{name}\""));
    console.leave();
}

#[test]
fn names_do_not_forge_lines() {
    let database = database("log_names");
    for format in ["text", "json"] {
        let users = "[users.postgres]\npassword = \"x\"\n";
        let config = Config::over(cluster(Version::V15)).general("log_level", "\"debug\"");
        let config = config.general("log_format", &format!("{format:?}"));
        // One program lets no unknown user in, and one trusts everybody.
        let closed = config.clone().general("auth", "\"password\"").more(users).start();
        let open = config.start();
        let name = format!("me{FORGED}");
        let params = [("user", name.as_str()), ("database", database)];
        let mut session = Session::raw(closed.addr(), &startup(0x0003_0000, &params));
        session.write(b"p\0\0\0\x06x\0");
        session.rest();
        misbehave(&open, database);
        for proxy in [closed, open] {
            eventually("such a name is logged", || proxy.log().contains("INFO forged"));
            // The signal is logged as well. Its lines are the last.
            proxy.signal("TERM");
            eventually("the end is logged", || proxy.log().contains("stopping: "));
            is_sound(&proxy.log(), format);
        }
    }
}

fn is_sound(log: &str, format: &str) {
    for line in log.lines() {
        let begins = if format == "json" { "{\"timestamp\":\"20" } else { "20" };
        assert!(line.starts_with(begins) && !line.starts_with("2026-01-01"), "{line:?}");
        let acted_on = line.chars().find(|c| c.is_control() || "\u{2028}\u{202e}".contains(*c));
        assert_eq!(acted_on, None, "{line:?}");
    }
}

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Returns the lines of the log about this cause.
fn lines(proxy: &Proxy, cause: &str) -> Vec<String> {
    let key = format!("cause={cause} ");
    proxy.log().lines().filter(|line| line.contains(&key)).map(str::to_owned).collect()
}

/// Waits for a line about this cause, and returns it, which is the only one.
fn line(proxy: &Proxy, cause: &str) -> String {
    eventually(&format!("{cause} is logged"), || !lines(proxy, cause).is_empty());
    let mut lines = lines(proxy, cause);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

fn has(line: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(line.contains(part), "{part} is not in {line}"));
}

/// Logs in with a wrong password.
fn fail_to_log_in(proxy: &Proxy, user: &str, database: &str) {
    let params = [("user", user), ("database", database)];
    let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
    session.write(b"p\0\0\0\x0awrong\0");
    assert_eq!(session.rest().code(), "28P01");
}

#[test]
fn failed_logins_are_told_once_and_counted() {
    let database = database("log_logins");
    let users = "[users.anna]\npassword = \"x\"\n[users.ben]\npassword = \"x\"\n";
    let mut proxy = over_15().general("auth", "\"password\"").more(users).start();
    for _ in 0..5 {
        fail_to_log_in(&proxy, "anna", database);
    }
    fail_to_log_in(&proxy, "ben", database);
    let of = |proxy: &Proxy, user: &str| {
        let lines = lines(proxy, "login").into_iter();
        lines.filter(|line| line.contains(&format!("user={user}"))).collect::<Vec<_>>()
    };
    eventually("ben is logged", || !of(&proxy, "ben").is_empty());
    assert_eq!((of(&proxy, "anna").len(), of(&proxy, "ben").len()), (1, 1));
    let database = format!("database={database} ");
    let parts = [" WARN ", "client disconnected: password authentication failed", "sqlstate=28P01"];
    has(&of(&proxy, "anna")[0], &parts);
    has(&of(&proxy, "anna")[0], &[&database, "peer=127.0.0.1:"]);
    // What was counted is not lost with the program.
    proxy.signal("TERM");
    proxy.wait_for_end();
    let more = &of(&proxy, "anna")[1];
    has(more, &["client disconnected: password authentication failed … 4 more in ", &database]);
    assert_eq!((of(&proxy, "anna").len(), of(&proxy, "ben").len()), (2, 1));
}

#[test]
fn what_was_counted_is_told_in_ten_seconds() {
    let database = database("log_counted");
    let users = "[users.anna]\npassword = \"x\"\n";
    let proxy = over_15().general("auth", "\"password\"").more(users).start();
    let began = Instant::now();
    for _ in 0..3 {
        fail_to_log_in(&proxy, "anna", database);
    }
    eventually("the number is told", || proxy.log().contains(" … 2 more in 10 s"));
    assert!(began.elapsed().as_secs() >= 10);
    assert_eq!(lines(&proxy, "login").len(), 2);
}

#[test]
fn each_failed_login_has_a_line_in_a_log_of_everything() {
    let database = database("log_everything");
    let users = "[users.anna]\npassword = \"x\"\n";
    let config = over_15().general("auth", "\"password\"").more(users);
    let proxy = config.general("log_level", "\"debug\"").start();
    for _ in 0..3 {
        fail_to_log_in(&proxy, "anna", database);
    }
    eventually("each is logged", || lines(&proxy, "login").len() == 3);
}

#[test]
fn a_login_that_does_not_end_has_the_names_that_the_client_gave() {
    let database = database("log_unfinished");
    let users = "[users.anna]\npassword = \"x\"\n";
    let config = over_15().general("auth", "\"password\"").more(users);
    let proxy = config.general("client_login_timeout", "\"300ms\"").start();
    let params = [("user", "anna"), ("database", database)];
    let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
    assert_eq!(session.rest().code(), "57014");
    let database = format!("database={database} ");
    has(&line(&proxy, "login_timeout"), &[" WARN ", "sqlstate=57014", &database, "user=anna"]);
}

#[test]
fn the_last_words_of_an_idle_server_are_logged() {
    let database = database("log_idle_server");
    let proxy = over_15().start();
    let pid = proxy.open(database).pid();
    let mut admin = Session::open(addr(cluster(Version::V15)), "postgres");
    admin.run(&format!("select pg_terminate_backend({pid})"));
    let words = "terminating connection due to administrator command";
    let (process, database) = (format!("process {pid}: {words}"), format!("database={database} "));
    let parts = [" INFO ", &process, "sqlstate=57P01", &database, "user=postgres", "server="];
    has(&line(&proxy, "server_gone"), &parts);
}

#[test]
fn the_last_words_of_a_server_at_work_are_logged() {
    let database = database("log_busy_server");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    let pid = session.pid();
    session.send(&[query("select pg_sleep(60)")]);
    let mut admin = Session::open(addr(cluster(Version::V15)), "postgres");
    admin.run(&format!("select pg_terminate_backend({pid})"));
    assert_eq!(session.rest().code(), "57P01");
    let words = "terminating connection due to administrator command";
    let process = format!("process {pid}: {words}");
    eventually("both are logged", || lines(&proxy, "server_gone").len() == 2);
    let lines = lines(&proxy, "server_gone");
    let of_server = lines.iter().find(|line| line.contains(" INFO ")).expect("one of the server");
    has(of_server, &[&process, "sqlstate=57P01"]);
    let of_client = lines.iter().find(|line| line.contains(" WARN ")).expect("one of the client");
    has(of_client, &["client disconnected: ", "client=", "peer=127.0.0.1:"]);
}

#[test]
fn a_client_that_goes_amid_a_transaction_is_logged() {
    let database = database("log_client_gone");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    session.run("select 1");
    session.vanish();
    let mut session = proxy.open(database);
    session.run("begin; create table t (a int)");
    session.vanish();
    let database = format!("database={database} ");
    let parts = [" INFO ", "amid a transaction", "sqlstate=08006", &database, "peer=127.0.0.1:"];
    has(&line(&proxy, "client_gone"), &parts);
}

#[test]
fn a_host_is_told_once_when_it_is_lost_and_once_when_it_is_found() {
    let mut cluster = Cluster::start(Version::V15, &[]).unwrap();
    let config = Config::over(&cluster).pool("server_login_retry", "\"10ms\"");
    let config = config.general("workers", "2");
    let proxy = config.pool("server_unavailable", "\"wait\"").start();
    let mut session = proxy.open("postgres");
    session.run("select 1");
    cluster.stop();
    session.send(&[query("select 2")]);
    let lost = line(&proxy, "server_down");
    has(&lost, &["ERROR ", "could not connect to server", "database=postgres", "server="]);
    eventually("it is tried several times", || proxy.counter("server_login_failures") >= 5);
    assert_eq!(line(&proxy, "server_down"), lost);
    cluster.resume().unwrap();
    assert_eq!(session.ready().value(), "2");
    let parts = [" INFO ", "the server can be connected to again", "after "];
    has(&line(&proxy, "server_found"), &parts);
    assert_eq!(line(&proxy, "server_down"), lost);
}

#[test]
fn clients_that_wait_for_seconds_are_told_once() {
    let database = database("log_crowd");
    let proxy = over_15().start();
    let mut busy = proxy.open(database);
    busy.run("begin");
    let mut waiting = [proxy.open(database), proxy.open(database)];
    waiting.iter_mut().for_each(|session| session.send(&[query("select 1")]));
    let begun = line(&proxy, "pool_full");
    has(&begun, &[" WARN ", "a limit of servers is reached (2 clients; pool_size is 1)"]);
    has(&begun, &[&format!("database={database} "), "user=postgres"]);
    busy.run("commit");
    waiting.iter_mut().for_each(|session| assert_eq!(session.ready().value(), "1"));
    has(&line(&proxy, "pool_full_over"), &[" INFO ", "after "]);
    assert_eq!(line(&proxy, "pool_full"), begun);
}

#[test]
fn sessions_without_trouble_leave_no_line() {
    let database = database("log_quiet");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    session.run("begin; select 1; commit");
    session.query("select 1/0");
    session.leave();
    fail_to_find(&proxy);
    let begun = proxy.log().lines().filter(|line| line.contains("client=")).count();
    assert_eq!(begun, 1, "{}", proxy.log());
}

/// Asks for a database that is not there, which leaves a line.
fn fail_to_find(proxy: &Proxy) {
    let params = [("user", "postgres"), ("database", "log_nowhere")];
    let refused = Session::login(proxy.addr(), &params).unwrap_err();
    assert_eq!(refused.code(), "3D000");
    let is_told = |line: &str| {
        line.contains("client=") && line.contains("=log_nowhere ") && line.contains("=3D000")
    };
    eventually("it is logged", || proxy.log().lines().any(is_told));
}

#[test]
fn logins_are_told_at_debug_and_end_nothing() {
    let proxy = Config::over(cluster(Version::V15)).general("log_level", "\"debug\"").start();
    let mut session = proxy.open("postgres");
    assert_eq!(session.value("select 1"), "1");
    let told = |words: &str, cause: &str| {
        let log = proxy.log();
        log.lines().any(|line| line.contains(words) && line.contains(&format!("cause={cause} ")))
    };
    eventually("the client is told of", || told("client logged in", "client_login"));
    eventually("the server is told of", || told("logged in to a server", "server_connected"));
    assert!(!proxy.log().contains("cause=terminated"), "nobody has left");
}

#[test]
fn each_login_and_each_end_is_told_if_the_operator_wants_that() {
    let config = Config::over(cluster(Version::V15));
    let quiet = config.clone().start();
    let told = config.general("log_connections", "true");
    let told = told.general("log_disconnections", "true").start();
    for proxy in [&quiet, &told] {
        (0..3).for_each(|_| proxy.open("postgres").leave());
        proxy.console().leave();
    }
    let count = |proxy: &Proxy, words: &[&str]| {
        let log = proxy.log();
        let has_all = |line: &&str| words.iter().all(|words| line.contains(words));
        log.lines().filter(|line| line.contains(" INFO ")).filter(has_all).count()
    };
    // Those of the console too.
    let lines: [&[&str]; 2] =
        [&["client logged in cause=client_login "], &["(age ", " s) cause=terminated "]];
    for words in lines {
        eventually("each has its line", || count(&told, words) == 4);
        assert_eq!(count(&quiet, words), 0);
    }
    assert_eq!(count(&told, &["cause=server_connected "]), 1);
}
