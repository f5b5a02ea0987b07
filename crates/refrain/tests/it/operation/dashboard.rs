//! The dashboard without a browser: who gets it, what its JSON says, and what is refused.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use refrain_differ::msg::Msg;
use xtask::leash::Leash;
use xtask::ports::free_port;
use xtask::proxy::program;

use super::metrics::ask;
use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

fn started(ip: &str, more: impl FnOnce(Config) -> Config) -> (Proxy, u16) {
    let port = free_port().unwrap();
    let address = format!("\"{ip}:{port}\"");
    (more(Config::sqlite().general("metrics_listen", &address)).start(), port)
}

fn get(port: u16, target: &str, headers: &str) -> String {
    ask(port, &format!("GET {target} HTTP/1.1\r\n{headers}\r\n"))
}

/// The answer to a request as a browser on this machine sends it.
fn shown(port: u16, target: &str) -> String {
    get(port, target, &format!("Host: localhost:{port}\r\n"))
}

#[test]
fn the_page_and_its_parts_are_served_with_a_policy() {
    let (_proxy, port) = started("127.0.0.1", |config| config);
    for (target, kind) in
        [("/", "text/html"), ("/dashboard.js", "text/javascript"), ("/dashboard.css", "text/css")]
    {
        let said = shown(port, target);
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
        assert!(said.contains(&format!("\r\nContent-Type: {kind}; charset=utf-8\r\n")), "{said}");
        assert!(said.contains("\r\nContent-Security-Policy: default-src 'none'; "), "{said}");
        assert!(said.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{said}");
        assert!(!said.contains("Set-Cookie") && !said.contains("Access-Control"), "{said}");
    }
    let post = ask(port, "POST /api/1/show?show=pools HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
}

/// A user who starts the program with nothing is told of the page, and sees the first query there.
#[test]
fn the_words_at_the_start_name_the_page() {
    let (port, page) = (free_port().unwrap(), free_port().unwrap());
    // The database is made where the program starts.
    let (other, _) = started("127.0.0.1", |config| config);
    let mut command = Command::new(program().unwrap());
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--metrics-listen", &format!("127.0.0.1:{page}")]);
    command.current_dir(other.folder());
    let words = other.folder().join("words");
    let file = File::create(&words).unwrap();
    let _running = Leash::start(&command, "TERM", &file).unwrap();
    let line = format!("\n  dashboard    http://127.0.0.1:{page}/\n");
    eventually("it is told", || fs::read_to_string(&words).unwrap().contains(&line));
    Session::open(SocketAddr::from(([127, 0, 0, 1], port)), "postgres").run("select 1");
    let said = shown(page, "/api/1/show?show=overview&show=statements");
    assert!(said.contains("[\"xacts\",\"1\"]") && said.contains("(not prepared)"), "{said}");
}

/// A page of another site that reaches this machine under a name of its own gets nothing.
#[test]
fn only_names_of_this_machine_are_served_without_a_login() {
    let (_proxy, port) = started("127.0.0.1", |config| config);
    for headers in ["Host: evil.example\r\n", "", "Host: localhost\r\nHost: evil.example\r\n"] {
        for target in ["/", "/api/1/show?show=pools", "/api/1/explain?sql=select"] {
            let said = get(port, target, headers);
            assert!(said.starts_with("HTTP/1.1 403 "), "{headers:?} {said}");
        }
    }
    let said = get(port, "/metrics", "Host: prometheus.example\r\n");
    assert!(said.starts_with("HTTP/1.1 200 "), "the metrics stay as they were: {said}");
}

#[test]
fn at_other_addresses_a_user_of_the_console_logs_in() {
    let more = |config: Config| {
        let config = config.general("auth", "\"scram\"").general("stats_users", "[\"ann\"]");
        config.more("\n[users.ann]\npassword = \"s:cret\"\n[users.bob]\npassword = \"bob\"\n")
    };
    let (proxy, port) = started("0.0.0.0", more);
    let login = |user: &str, password: &str| {
        let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
        get(port, "/", &format!("Host: any.example\r\nAuthorization: Basic {encoded}\r\n"))
    };
    assert!(login("ann", "s:cret").starts_with("HTTP/1.1 200 "));
    // A wrong password, a user who may not look, and one that there is not.
    for (user, password) in [("ann", "wrong"), ("bob", "bob"), ("eve", "eve")] {
        let mut said = String::new();
        eventually("the pause is over", || {
            said = login(user, password);
            !said.starts_with("HTTP/1.1 429 ")
        });
        assert!(said.starts_with("HTTP/1.1 401 "), "{user}: {said}");
        assert!(said.contains("\r\nWWW-Authenticate: Basic realm=\"Refrain\""), "{said}");
        // For a while no password from there is looked at.
        let said = login("ann", "s:cret");
        assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("\r\nRetry-After: "), "{said}");
    }
    let log = proxy.log();
    let told = log.lines().filter(|line| line.contains("cause=dashboard_login"));
    let told: Vec<_> = told.collect();
    assert!(told[0].contains("which has to wait 1 s") && told[0].contains("ann"), "{told:?}");
    eventually("the pause is over", || login("ann", "s:cret").starts_with("HTTP/1.1 200 "));
    assert!(shown(port, "/api/1/show?show=pools").starts_with("HTTP/1.1 401 "));
    assert!(get(port, "/metrics", "").starts_with("HTTP/1.1 200 "));
}

#[test]
fn without_the_option_there_is_no_dashboard() {
    let (_proxy, port) = started("127.0.0.1", |config| config.general("dashboard", "false"));
    for target in ["/", "/dashboard.js", "/api/1/show?show=pools"] {
        assert!(shown(port, target).starts_with("HTTP/1.1 404 "), "{target}");
    }
}

#[test]
fn listings_come_sorted_and_cut_and_without_literals() {
    let (proxy, port) = started("127.0.0.1", |config| config);
    let mut session = Session::open(proxy.addr(), "postgres");
    session.run("create table t (a int)");
    // Compiled statements are kept from their second use on.
    (0..3).for_each(|_| session.run("select a from t where a = 4242 or 'ann' = 'bob'"));
    let said = shown(port, "/api/1/show?show=stmt_cache_texts&sort=-calls&find=where&limit=5");
    assert!(said.contains("\r\nContent-Type: application/json; charset=utf-8\r\n"), "{said}");
    assert!(said.contains(" = 0) OR ('' = ''))"), "{said}");
    assert!(!said.contains("4242") && !said.contains("ann"), "{said}");
    let said = shown(port, "/api/1/show?show=overview&show=times&show=waits&show=pools&limit=1");
    assert!(said.contains("[\"clients\",\"1\"]") && said.contains("[\"transaction\","), "{said}");
    assert!(
        said.contains("\"found\":2,\"offset\":0"),
        "pools of the client and the console: {said}"
    );
    for target in ["show", "show?show=users", "show?show=pools&limit=x", "explain", "explain?sql="]
    {
        let said = shown(port, &format!("/api/1/{target}"));
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("\"error\":\""), "{said}");
    }
    let why = shown(port, "/api/1/explain?sql=select%201");
    assert!(why.contains("\"prepared\",\"no\",\"autoprepare is for PostgreSQL alone\""), "{why}");
}

/// Its text without literals is one that no client has run, so it is not found by that.
#[test]
fn a_statement_with_literals_and_parameters_is_judged_as_it_was_sent() {
    let (name, port) = (database("dashboard_reasons"), free_port().unwrap());
    let address = format!("\"127.0.0.1:{port}\"");
    let config = Config::over(cluster(Version::V15)).general("metrics_listen", &address);
    let proxy = config.more("\n[[cache.rules]]\nname = \"of t\"\ntable = \"t\"\n").start();
    let mut session = proxy.open(name);
    session.run("create table t as select 1 as a");
    session.ask(&[parse("s", "select a from t where a = $1 and 'ann' <> 'bob'"), Msg::Sync]);
    let mut why = String::new();
    let begun = Instant::now();
    while !why.contains("\"cached\",\"yes\",\"by the rule of t\"") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{why}");
        session.ask(&[bind("s", &["1"]), execute(), Msg::Sync]);
        let rows = proxy.show_of("statements", name);
        let row = rows.iter().find(|row| row["text"].contains("from t where")).unwrap();
        assert!(row["text"].contains("'' <> ''"), "{row:?}");
        why = shown(port, &format!("/api/1/explain?statement={}", row["id"]));
    }
    assert!(why.contains("\"shared\",") && !why.contains("ann"), "{why}");
    let none = shown(port, "/api/1/explain?statement=999999");
    assert!(none.contains("\"found\":0"), "{none}");
}
