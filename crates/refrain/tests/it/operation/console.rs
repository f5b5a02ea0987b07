//! Operators: the console, a reload, the metrics (E82, E91, E95).

use std::io::{Read, Write};
use std::net::TcpStream;

use refrain_differ::msg::Msg;
use xtask::ports::free_port;

use crate::session::{LIMIT, Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

fn waiting(proxy: &Proxy, database: &str, count: &str) {
    eventually("that many wait", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == count)
    });
}

fn waiting_at_all(proxy: &Proxy, database: &str, count: u32) {
    eventually("as many wait", || {
        let pools = proxy.show_of("pools", database);
        pools.iter().map(|pool| pool["cl_waiting"].parse::<u32>().unwrap()).sum::<u32>() == count
    });
}

#[test]
fn servers_are_shown_with_the_address_that_they_are_at() {
    let config = Config::over(cluster(Version::V15)).server("host", "\"localhost\"");
    let proxy = config.start();
    let _client = proxy.open("postgres");
    let address: Result<std::net::IpAddr, _> = proxy.show("servers")[0]["addr"].parse();
    assert!(address.is_ok_and(|address| address.is_loopback()));
}

#[test]
fn e82_a_reload_changes_the_size_of_pools() {
    let database = database("console_size");
    let proxy = over_15().start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    two.send(&[query("select 1")]);
    waiting(&proxy, database, "1");
    proxy.reload(&over_15().pool("pool_size", "2"));
    assert_eq!(two.ready().words(), "T D(1) C(SELECT 1) Z(I)");
}

#[test]
fn e82_a_pool_that_shrinks() {
    let database = database("console_shrink");
    let proxy = over_15().pool("pool_size", "2").start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    two.run("select 1");
    proxy.reload(&over_15());
    one.run("commit");
    let servers = || proxy.show_of("servers", database).len();
    eventually("there is one server", || servers() == 1);
    assert_eq!(one.pid(), two.pid());
}

#[test]
fn e82_prepared_statements_are_turned_off_for_new_clients() {
    let database = database("console_prepared");
    let proxy = over_15().start();
    let statement = [parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync];
    let again = [bind("s", &[]), execute(), Msg::Sync];
    let mut old = proxy.open(database);
    old.ask(&statement);
    proxy.reload(&over_15().pool("prepared_statements", "false"));
    let mut new = proxy.open(database);
    assert_eq!(new.ask(&statement).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    assert_eq!(new.query("deallocate s").words(), "C(DEALLOCATE) Z(I)");
    // Older clients go on as before.
    assert_eq!(old.ask(&again).words(), "2 D(1) C(SELECT 1) Z(I)");
    old.ask(&[parse("t", "select 2"), Msg::Sync]);
    new.run("select 1");
    let t = [bind("t", &[]), execute(), Msg::Sync];
    assert_eq!(old.ask(&t).words(), "2 D(2) C(SELECT 1) Z(I)");
    assert_eq!(proxy.counter("lost_statements"), 0);
}

#[test]
fn e82_a_limit_that_shrinks() {
    let database = database("console_limit");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    let statements = ["a", "b", "c", "d"];
    for name in statements {
        session.ask(&[parse(name, &format!("select '{name}'")), Msg::Sync]);
    }
    let mut all = || {
        for name in statements.iter().chain(&statements) {
            let reply = session.ask(&[bind(name, &[]), execute(), Msg::Sync]);
            assert_eq!(reply.value(), *name);
        }
    };
    all();
    proxy.reload(&over_15().pool("max_server_statements", "1"));
    all();
    proxy.reload(&over_15().pool("max_client_statements", "1"));
    all();
}

#[test]
fn a_configuration_with_a_mistake_changes_nothing() {
    let proxy = over_15().start();
    let mistake = over_15().pool("pool_size", "-1");
    let reload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| proxy.reload(&mistake)));
    assert!(reload.is_err(), "RELOAD says so");
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
}

#[test]
fn pause_and_resume() {
    let database = database("console_pause");
    let proxy = over_15().start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    let mut console = proxy.console();
    console.send(&[query(&format!("pause {database}"))]);
    two.send(&[query("select 2")]);
    waiting(&proxy, database, "1");
    assert_eq!(one.query("select 1").words(), "T D(1) C(SELECT 1) Z(T)");
    one.run("commit");
    assert_eq!(console.ready().words(), "C(PAUSE) Z(I)");
    one.send(&[query("select 3")]);
    waiting(&proxy, database, "2");
    proxy.order(&format!("resume {database}"));
    assert_eq!(two.ready().words(), "T D(2) C(SELECT 1) Z(I)");
    assert_eq!(one.ready().words(), "T D(3) C(SELECT 1) Z(I)");
    // The same with all databases paused.
    proxy.order("pause");
    one.send(&[query("select 4")]);
    waiting(&proxy, database, "1");
    proxy.order("resume");
    assert_eq!(one.ready().words(), "T D(4) C(SELECT 1) Z(I)");
}

#[test]
fn pause_reaches_pools_that_are_opened_later() {
    let database = database("console_pause_later");
    let proxy = over_15().general("workers", "2").pool("pool_size", "3").start();
    proxy.open("postgres").run("select 1");
    proxy.order(&format!("pause {database}"));
    // Each core opens its pool for the first client.
    let names = [("user", "postgres"), ("database", database)];
    let startup = crate::session::startup(0x0003_0000, &names);
    let mut clients: Vec<_> = (0..4).map(|_| Session::raw(proxy.addr(), &startup)).collect();
    waiting_at_all(&proxy, database, 4);
    assert!(proxy.show_of("servers", database).is_empty());
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
    proxy.order("resume");
    assert!(clients.iter_mut().all(|client| client.ready().status().is_some()));
    proxy.order("kill");
    assert!(clients.iter_mut().all(|client| client.rest().code() == "57P01"));
    let mut late = Session::raw(proxy.addr(), &startup);
    proxy.order(&format!("resume {database}"));
    assert!(late.ready().status().is_some());
    assert_eq!(late.value("select 1"), "1");
}

#[test]
fn reconnect_opens_new_servers() {
    let database = database("console_reconnect");
    let proxy = over_15().start();
    let mut one = proxy.open(database);
    let pid = one.pid();
    let statement = [parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync];
    one.ask(&statement);
    proxy.order(&format!("reconnect {database}"));
    assert_ne!(one.pid(), pid);
    let again = [bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(one.ask(&again).words(), "2 D(1) C(SELECT 1) Z(I)");
    // A client finishes its transaction on the old server.
    one.run("begin");
    let pid = one.pid();
    proxy.order("reconnect");
    assert_eq!(one.pid(), pid);
    one.run("commit");
    assert_ne!(one.pid(), pid);
    proxy.order("wait_close");
}

#[test]
fn kill_ends_clients_and_servers() {
    let database = database("console_kill");
    let proxy = over_15().pool("pool_size", "2").start();
    let (mut busy, mut idle) = (proxy.open(database), proxy.open(database));
    busy.run("begin");
    idle.run("select 1");
    let mut elsewhere = proxy.open("postgres");
    elsewhere.run("select 1");
    proxy.order(&format!("kill {database}"));
    assert_eq!(busy.rest().code(), "57P01");
    assert_eq!(idle.rest().code(), "57P01");
    assert_eq!(elsewhere.value("select 1"), "1");
    proxy.order("resume");
    assert_eq!(proxy.open(database).value("select 1"), "1");
}

#[test]
fn clients_of_the_console_are_shown_under_the_name_they_asked_for() {
    let proxy = over_15().start();
    let _one = proxy.open("pgbouncer");
    let clients = proxy.show("clients");
    let mut names: Vec<_> = clients.iter().map(|client| client["database"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["pgbouncer", "refrain"]);
}

#[test]
fn questions_may_come_with_the_login_and_have_a_length() {
    let proxy = over_15().start();
    let names = [("user", "postgres"), ("database", "refrain")];
    let mut first = crate::session::startup(0x0003_0000, &names);
    first.extend(crate::session::encode(&[query("select 7")]));
    let mut eager = Session::raw(proxy.addr(), &first);
    assert!(eager.ready().status().is_some());
    assert_eq!(eager.ready().words(), "T D(7) C(SELECT 1) Z(I)");
    let mut long = proxy.console();
    long.write(b"Q\x10\x00\x00\x00select");
    assert_eq!(long.ready().words(), "E(54000) Z(I)");
    assert_eq!(proxy.console().value("select 8"), "8");
}

#[test]
fn one_client_is_killed() {
    let database = database("console_kill_client");
    let proxy = over_15().start();
    let mut one = proxy.open(database);
    one.run("begin");
    let id = proxy.show_of("clients", database)[0]["id"].clone();
    proxy.order(&format!("kill_client {id}"));
    assert_eq!(one.rest().code(), "57P01");
    assert_eq!(proxy.open(database).value("select 1"), "1");
    assert_eq!(proxy.console().query("kill_client 999999").code(), "02000");
}

#[test]
fn e95_texts_are_shown_to_those_who_may_see_them() {
    let database = database("console_statements");
    let proxy = over_15().start();
    let mut one = proxy.open(database);
    one.ask(&[parse("s", "select 'literal'"), bind("s", &[]), execute(), Msg::Sync]);
    let rows = proxy.show_of("statements", database);
    assert!(rows.iter().any(|row| row["text"] == "select ''"), "{rows:?}");
    let params = [("user", "plain_user"), ("database", "refrain")];
    let refused = match Session::login(proxy.addr(), &params) {
        Ok(mut session) => session.query("show statements").code(),
        Err(reply) => reply.code(),
    };
    assert!(!refused.is_empty(), "a user who is no admin sees the texts");
    assert!(!proxy.log().contains("literal"), "nor are they logged");
}

#[test]
fn statements_are_shown_with_their_clients() {
    let database = database("console_clients");
    let proxy = over_15().general("workers", "2").start();
    let shown = || {
        let rows = proxy.show_of("statements", database);
        let row = rows.into_iter().find(|row| row["text"] == "select ''");
        row.map_or_else(String::new, |row| row["clients"].clone())
    };
    let mut clients: Vec<_> = (0..5).map(|_| proxy.open(database)).collect();
    for client in &mut clients {
        client.ask(&[parse("held", "select 'held'"), Msg::Sync]);
    }
    assert_eq!(shown(), "5");
    clients[0].run("deallocate held");
    assert_eq!(shown(), "4");
    clients.into_iter().for_each(Session::leave);
    eventually("nobody has it", || shown() == "0");
}

#[test]
fn e91_nothing_stays_counted() {
    let database = database("console_counts");
    let proxy = over_15().pool("max_server_statements", "4").start();
    let mut clients: Vec<_> = (0..5).map(|_| proxy.open(database)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        for text in 0..10 {
            let (name, sql) = (format!("s{text}"), format!("select {text}"));
            let msgs = [parse(&name, &sql), bind(&name, &[]), execute(), Msg::Sync];
            assert_eq!(client.ask(&msgs).words(), format!("1 2 D({text}) C(SELECT 1) Z(I)"));
        }
        match number {
            0 => client.run("deallocate all"),
            1 => client.run("discard all"),
            2 => client.run("deallocate s1"),
            3 => {
                client.ask(&[Msg::CloseStatement(b"s1".to_vec()), parse("s2", "x"), Msg::Sync]);
            }
            _ => {}
        }
    }
    let sum = |column: &str| {
        let rows = proxy.show_of("statements", database);
        rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>()
    };
    // One client has ten statements, two have nine each, and two have dropped all.
    let held = proxy.show_of("clients", database);
    let held: u64 = held.iter().map(|row| row["prepared_statements"].parse::<u64>().unwrap()).sum();
    assert_eq!((held, sum("clients")), (28, 28));
    let kept = proxy.show_of("servers", database);
    let kept: u64 = kept.iter().map(|row| row["prepared_statements"].parse::<u64>().unwrap()).sum();
    assert!(kept <= 4, "{kept} on the server");
    assert_eq!(sum("servers"), kept);
    clients.into_iter().for_each(Session::leave);
    eventually("no client has any", || sum("clients") == 0);
    proxy.order("reconnect");
    eventually("no server has any", || sum("servers") == 0);
}

/// Reads the metrics, as a collector does.
pub(crate) fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[test]
fn metrics_have_values() {
    let database = database("console_metrics");
    let port = free_port().unwrap();
    let proxy = over_15()
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .general("metrics_by", "\"pool\"")
        .start();
    let mut one = proxy.open(database);
    one.ask(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync]);
    one.run("select 1");
    let text = scrape(port);
    let value = |name: &str| {
        let labels = format!("{name}{{database=\"{database}\",user=\"postgres\"");
        let line = text.lines().find(|line| line.starts_with(&labels));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    for name in ["queries_total", "xacts_total", "client_parses_total", "binds_total"] {
        assert!(value(&format!("refrain_{name}")) >= 1.0, "{name}");
    }
    assert!(value("refrain_pool_size") >= 1.0);
    assert!(value("refrain_query_seconds_count") >= 2.0);
    assert!(text.contains("\nrefrain_cores_answering 1\n"), "{text}");
    assert!(
        text.contains("# HELP refrain_settings_synced_total Times that the settings of a server ")
    );
}

/// Returns the names of all listings, which `SHOW HELP` takes from the table of listings.
fn listings(console: &mut Session) -> Vec<String> {
    let help = console.query("show help");
    let notice = help.frames.iter().find(|frame| frame.tag == b'N').expect("a notice");
    let detail = String::from_utf8_lossy(notice.field(b'D')).into_owned();
    let line = detail.lines().find_map(|line| line.trim().strip_prefix("SHOW HELP|"));
    line.expect("SHOW HELP names listings").split('|').map(str::to_owned).collect()
}

#[test]
fn everything_can_be_shown() {
    let database = database("console_show");
    let proxy = over_15().start();
    let mut one = proxy.open(database);
    one.ask(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync]);
    let mut console = proxy.console();
    let listings = listings(&mut console);
    assert!(listings.iter().any(|listing| listing == "AUTOPREPARE"), "{listings:?}");
    for listing in listings.iter().map(String::as_str).chain(["all"]) {
        let reply = console.query(&format!("show {listing}"));
        assert!(reply.error().is_none() && reply.status() == Some('I'), "{listing}");
    }
    assert_eq!(console.query("show nothing").code(), "42601");
    assert_eq!(proxy.show_of("clients", database).len(), 1);
    assert_eq!(proxy.show_of("servers", database).len(), 1);
    assert_eq!(proxy.show_of("pools", database)[0]["pool_mode"], "transaction");
}

#[test]
fn a_command_that_is_too_long_is_refused_and_the_session_goes_on() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    for length in [64 << 10, 100_000, 5 << 20] {
        let long = query(&format!("show {}", "x".repeat(length)));
        // As two writes, and as one.
        assert_eq!(console.ask(std::slice::from_ref(&long)).words(), "E(54000) Z(I)");
        console.send(&[long, query("show version")]);
        assert_eq!(console.ready().words(), "E(54000) Z(I)");
        assert!(console.ready().error().is_none());
    }
    // The longest query that the console reads.
    let unknown = format!("show {}", "x".repeat((64 << 10) - 6));
    assert_eq!(console.query(&unknown).code(), "42601");
}

#[test]
fn commands_are_prepared_and_errors_drop_the_rest_of_a_request() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    let run = |text| [parse("", text), bind("", &[]), execute(), Msg::Sync];
    for _ in 0..3 {
        let version = console.ask(&run("show version"));
        assert_eq!(version.words(), "1 2 D(PgBouncer 1.24.1) C(SHOW) Z(I)");
        assert_eq!(console.ask(&run("show verson")).words(), "E(42601) Z(I)");
        assert_eq!(console.ask(&run("kill_client 0")).words(), "1 2 E(02000) Z(I)");
        assert_eq!(console.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    }
    // A Parse or a Describe has no effect.
    console.ask(&[parse("s", "shutdown"), Msg::Sync]);
    assert_eq!(console.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
}

#[test]
fn a_query_may_have_several_commands_and_ends_at_the_first_error() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    let reset = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;";
    let tags = "T D(NULL) C(SELECT 1) C(CLOSE CURSOR ALL) C(UNLISTEN) C(RESET) Z(I)";
    assert_eq!(console.query(reset).words(), tags);
    let reply = console.query("select 1; show nothing; shutdown");
    assert_eq!(reply.words(), "T D(1) C(SELECT 1) E(42601) Z(I)");
    // A comment is no command, and a block begins and ends between others.
    assert_eq!(console.query("select 1 -- x'; shutdown").words(), "T D(1) C(SELECT 1) Z(I)");
    let block = console.query("/* a */ begin; select 1; savepoint a");
    assert_eq!(block.words(), "C(BEGIN) T D(1) C(SELECT 1) C(SAVEPOINT) Z(T)");
    assert_eq!(console.query("rollback; discard all").words(), "C(ROLLBACK) C(DISCARD ALL) Z(I)");
    let explained =
        [parse("", "explain autoprepare select 1"), bind("", &[]), execute(), Msg::Sync];
    assert_eq!(console.ask(&explained).words(), "E(0A000) Z(I)");
    // Nothing of it is carried out: the reply of a PAUSE could not wait for the others.
    assert_eq!(console.query("pause; resume").words(), "E(0A000) Z(I)");
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
}

#[test]
fn listings_are_tables() {
    let database = database("console_select");
    let proxy = over_15().start();
    let _client = proxy.open(database);
    let mut console = proxy.console();
    let query = format!(
        "select p.cl_active + count(*) from pools p join lists l on l.list <> 'x' \
         where p.database = '{database}' group by p.cl_active having count(*) > 3"
    );
    let count: u32 = console.query(&query).value().parse().unwrap();
    assert!(count > 4);
    let code = |console: &mut Session, query: &str| console.query(query).code();
    assert_eq!(code(&mut console, "select * from pols"), "42P01");
    assert_eq!(code(&mut console, "select x from pools"), "42703");
    assert_eq!(code(&mut console, "select * from pools where cl_active = $1"), "0A000");
    assert_eq!(code(&mut console, "with p as (select 1) delete from pools"), "0A000");
    // The query reaches no file.
    assert_eq!(code(&mut console, "select load_extension('x')"), "42501");
}

#[test]
fn what_drivers_send_by_themselves_is_taken() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    let taken = [
        "SET extra_float_digits = 3",
        "SET client_encoding TO 'UTF8'",
        "set session application_name = 'x'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET TIME ZONE 'UTC'",
        "SET NAMES 'utf8'",
        "set statement_timeout to 0",
        "RESET ALL",
        "DISCARD ALL",
        "DEALLOCATE ALL",
        "BEGIN",
        "ROLLBACK",
        "BEGIN; ",
        "COMMIT",
    ];
    for command in taken {
        let reply = console.query(command);
        assert!(reply.error().is_none(), "{command}: {}", reply.words());
    }
    assert_eq!(console.query("set nonsense = 5").code(), "42704");
    assert_eq!(console.query("set nonsense").code(), "42601");
}

#[test]
fn a_command_that_is_mistyped_gets_a_suggestion() {
    let proxy = over_15().start();
    let mut console = proxy.console();
    let cases = [
        ("show polls", "invalid command 'show polls'; did you mean SHOW POOLS?"),
        ("show statement", "invalid command 'show statement'; did you mean SHOW STATEMENTS?"),
        (
            "show cache advise",
            "invalid command 'show cache advise'; did you mean SHOW CACHE ADVICE?",
        ),
        ("shwo polls", "invalid command 'shwo polls'; did you mean SHOW POOLS?"),
        ("pools", "invalid command 'pools'; did you mean SHOW POOLS?"),
        ("cache rules", "invalid command 'cache rules'; did you mean SHOW CACHE RULES?"),
        ("Relaod", "invalid command 'Relaod'; did you mean RELOAD?"),
        ("flush cach", "invalid command 'flush cach'; did you mean FLUSH CACHE?"),
        (
            "explain cahce select 1",
            "invalid command 'explain cahce select 1'; did you mean EXPLAIN CACHE …?",
        ),
        ("frobnicate", "invalid command 'frobnicate', use SHOW HELP;"),
    ];
    for (command, message) in cases {
        let reply = console.query(command);
        let error = reply.error().unwrap_or_else(|| panic!("{command}: {}", reply.words()));
        assert_eq!(String::from_utf8_lossy(error.field(b'M')), message);
    }
}

#[test]
fn long_texts_stand_last() {
    let database = database("console_last");
    let proxy = over_15().pool("autoprepare", "\"on\"").start();
    proxy.open(database).ask(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync]);
    let mut console = proxy.console();
    for listing in ["statements", "autoprepare", "cache advice", "cache entries"] {
        let reply = console.query(&format!("show {listing}"));
        let columns = reply.frames.iter().find(|frame| frame.tag == b'T').expect("columns");
        let body = String::from_utf8_lossy(&columns.body).into_owned();
        let last = body.rfind("text\0").max(body.rfind("template\0"));
        // Behind the name are 18 bytes about the column.
        assert!(last.is_some_and(|at| body[at..].chars().count() < 30), "{listing}: {body:?}");
    }
}

#[test]
fn a_summary_says_how_it_goes() {
    let database = database("console_summary");
    let proxy = over_15().start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    two.send(&[query("select 1")]);
    waiting(&proxy, database, "1");
    let of = |subject: &str| {
        let rows = proxy.show("summary");
        assert!(rows.len() <= 20, "one screen: {rows:?}");
        let row = rows.iter().find(|row| row["subject"] == subject);
        row.unwrap_or_else(|| panic!("{subject}: {rows:?}"))["state"].clone()
    };
    assert!(of("clients").contains("; 1 wait for a server, the first for "), "{}", of("clients"));
    assert_eq!(of("servers"), "1: 1 work, 0 idle");
    let full = format!("1, 1 at their limit: {database}/postgres (1 servers, 1 wait)");
    assert_eq!(of("pools"), full);
    one.run("commit");
    assert_eq!(two.ready().words(), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(two.query("select").words(), "T D() C(SELECT 1) Z(I)");
    assert_eq!(two.query("selec").code(), "42601");
    assert_eq!(of("pools"), "1, 0 at their limit");
    assert!(of("queries").ends_with("/s; 5 since the start"), "{}", of("queries"));
    assert!(of("errors").starts_with("1 of statements, 0 logins"), "{}", of("errors"));
    assert_eq!(of("cache"), "none since the start");
}
