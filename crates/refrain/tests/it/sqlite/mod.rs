//! SQLite in the place of PostgreSQL: Refrain with a database of its own.

mod files;
mod beneath;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use refrain_differ::msg::Msg;
use xtask::ports::free_port;
use xtask::proxy::{Refrain, program};

use crate::operation::console::scrape;
use crate::session::{Session, bind, cancel_request, encode, execute, parse, query};
use crate::world::{Config, Proxy, eventually, psql};

/// A query that takes minutes and does nothing but read.
const LONG: &str = "with recursive n(i) as (select 1 union all select i + 1 from n \
                    where i < 10000000000) select count(*) from n";

/// A folder for one test, removed at the test's end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("refrain-it-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn monsters(proxy: &Proxy) {
    let mut session = proxy.open("app");
    session.run("create table monster (id integer primary key, name text unique, hp int)");
    session.run("insert into monster (name, hp) values ('slime', 3), ('bat', 5), ('drake', 90)");
}

#[test]
fn without_arguments_it_is_a_database() {
    let folder = Folder::new("alone");
    let first = Refrain::alone(folder.path()).unwrap();
    let run = |refrain: &Refrain, sql: &str| psql(&refrain.url("postgres"), "", sql).unwrap();
    run(&first, "create table t (id integer primary key, name text not null)");
    assert_eq!(run(&first, "insert into t (name) values ('one'), ('two') returning id"), "1\n2");
    assert_eq!(run(&first, "select name from t where id = 2"), "two");
    assert_eq!(run(&first, "\\dt"), "public|t|table|postgres");
    assert!(run(&first, "\\d").contains("public|t|table|"));
    let described = run(&first, "\\d t");
    assert!(described.contains("id|integer") && described.contains("name|text"), "{described}");
    let ann = format!("postgres://ann@127.0.0.1:{}/ann", first.port());
    assert_eq!(psql(&ann, "", "select current_database(), count(*) from t").unwrap(), "postgres|2");
    let refused = psql(&first.url("shop"), "", "select 1").unwrap_err();
    assert!(refused.contains("database \"shop\" does not exist"), "{refused}");
    assert!(refused.contains("HINT:  The database here is \"postgres\"."), "{refused}");
    for words in ["psql -h 127.0.0.1 -p", "/metrics", "refrain postgres://", "SHOW POOLS"] {
        eventually(&format!("{words:?} is said"), || first.log().contains(words));
    }
    drop(first);
    assert!(folder.path().join("refrain.db").is_file());
    let second = Refrain::alone(folder.path()).unwrap();
    assert_eq!(run(&second, "select count(*) from t"), "2");
}

#[test]
fn the_console_and_the_limits_know_it() {
    let proxy = Config::sqlite().pool("pool_size", "1").start();
    monsters(&proxy);
    let (mut one, mut two) = (proxy.open("app"), proxy.open("app"));
    one.run("begin");
    assert_eq!(one.value("select count(*) from monster"), "3");
    two.send(&[query("select 7")]);
    let waiting = || proxy.show_of("pools", "app")[0]["cl_waiting"] == "1";
    eventually("the second waits for the only server", waiting);
    one.run("commit");
    assert_eq!(two.ready().words(), "T D(7) C(SELECT 1) Z(I)");
    let servers = proxy.show_of("servers", "app");
    assert_eq!((servers.len(), servers[0]["addr"].as_str()), (1, "sqlite"));
    assert_eq!(proxy.show_of("databases", "app")[0]["host"], "it.db");
    proxy.order("pause app");
    two.send(&[query("select 8")]);
    eventually("it waits for the end of the pause", waiting);
    proxy.order("resume app");
    assert_eq!(two.ready().words(), "T D(8) C(SELECT 1) Z(I)");
}

#[test]
fn statements_settings_and_errors_are_a_client_s_own() {
    let proxy = Config::sqlite().pool("pool_size", "1").start();
    monsters(&proxy);
    let (mut one, mut two) = (proxy.open("app"), proxy.open("app"));
    let (by_id, by_name) = (parse("s", "select name from monster where id = $1"), "bat");
    assert_eq!(one.ask(&[by_id, Msg::Sync]).words(), "1 Z(I)");
    let by_name = (parse("s", "select hp from monster where name = $1"), by_name);
    assert_eq!(two.ask(&[by_name.0, Msg::Sync]).words(), "1 Z(I)");
    for _ in 0..3 {
        let run = |value: &str| [bind("s", &[value]), execute(), Msg::Sync];
        assert_eq!(one.ask(&run("3")).words(), "2 D(drake) C(SELECT 1) Z(I)");
        assert_eq!(two.ask(&run(by_name.1)).words(), "2 D(5) C(SELECT 1) Z(I)");
    }
    one.run("set application_name = 'one'");
    two.run("set application_name = 'two'");
    assert_eq!(one.value("select current_setting('application_name')"), "one");
    assert_eq!(two.value("select current_setting('application_name')"), "two");
    assert_eq!(one.query("insert into monster (name) values ('bat')").code(), "23505");
    one.run("begin");
    assert_eq!(one.query("select nosuch").code(), "42703");
    assert_eq!(one.query("select 1").code(), "25P02");
    one.run("rollback");
    assert_eq!(one.value("select count(*) from monster"), "3");
    assert_eq!(proxy.counter("lost_statements"), 0);
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}

#[test]
fn a_reset_goes_back_to_the_settings_of_the_startup_packet() {
    let proxy = Config::sqlite().pool("pool_size", "1").start();
    let settings = [("TimeZone", "Asia/Tokyo"), ("application_name", "it's")];
    let mut session = Session::with(proxy.addr(), "app", &settings);
    session.run("set timezone to 'Europe/Berlin'");
    for reset in ["reset all", "discard all"] {
        let words = session.query(reset).words();
        assert!(words.ends_with("Z(I)") && !words.contains("E("), "{words}");
        assert_eq!(session.value("show timezone"), "Asia/Tokyo", "{reset}");
        assert_eq!(session.value("show application_name"), "it's", "{reset}");
    }
}

#[test]
fn a_long_read_holds_up_nobody_and_can_be_cancelled() {
    let proxy = Config::sqlite().general("workers", "1").start();
    monsters(&proxy);
    let (mut long, mut short) = (proxy.open("app"), proxy.open("app"));
    long.send(&[query(LONG)]);
    let active = || proxy.show_of("pools", "app")[0]["sv_active"] == "1";
    eventually("it runs", active);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(short.value("select name from monster where id = 1"), "slime");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    short.run("update monster set hp = hp + 1");
    // A wrong secret cancels nothing.
    let mut wrong = long.key.clone();
    wrong[5] ^= 1;
    Session::raw(proxy.addr(), &cancel_request(&wrong)).rest();
    assert!(active());
    Session::raw(proxy.addr(), &cancel_request(&long.key)).rest();
    assert_eq!(long.ready().code(), "57014");
    assert_eq!(long.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(short.query("select 2").words(), "T D(2) C(SELECT 1) Z(I)");
}

#[test]
fn two_cores_share_one_session() {
    let proxy = Config::sqlite().pool("pool_size", "1").start();
    monsters(&proxy);
    thread::scope(|scope| {
        for client in 0..6 {
            let mut session = proxy.open("app");
            scope.spawn(move || {
                for round in 0..60 {
                    let sql = format!("select $1::int8 + {client}");
                    let msgs =
                        [parse("", &sql), bind("", &[&round.to_string()]), execute(), Msg::Sync];
                    let row = format!("1 2 D({}) C(SELECT 1) Z(I)", round + client);
                    assert_eq!(session.ask(&msgs).words(), row);
                    session.run(&format!(
                        "update monster set hp = hp + 1 where id = {}",
                        1 + client % 3
                    ));
                }
            });
        }
    });
    assert_eq!(proxy.open("app").value("select sum(hp) from monster"), (98 + 360).to_string());
    assert_ne!(proxy.counter("handovers"), 0);
    assert!(proxy.show_of("servers", "app").len() <= 1);
}

/// Rows wait for a client that does not read, and memory does not fill with them.
#[test]
fn a_client_that_does_not_read_holds_rows_back() {
    let proxy = Config::sqlite().start();
    let mut deaf = proxy.open("app");
    deaf.send(&[query(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000) \
         select i, printf('%02000d', i) from n",
    )]);
    let before = proxy.memory();
    thread::sleep(Duration::from_secs(1));
    assert!(proxy.memory() < before + (24 << 20), "{} bytes", proxy.memory());
    let reply = deaf.ready();
    assert_eq!(reply.rows().len(), 30_000);
    assert!(proxy.memory() < before + (24 << 20), "{} bytes", proxy.memory());
}

#[test]
fn the_statement_cache_is_seen() {
    let port = free_port().unwrap();
    let metrics = format!("\"127.0.0.1:{port}\"");
    let proxy = Config::sqlite().general("metrics_listen", &metrics).pool("pool_size", "1");
    let proxy = proxy.general("workers", "1").server("stmt_cache_size", "50").start();
    monsters(&proxy);
    let mut session = proxy.open("app");
    let lookup = "select name from monster where id = 2";
    for _ in 0..10 {
        assert_eq!(session.value(lookup), "bat");
    }
    let caches = proxy.show("stmt_cache");
    assert_eq!(caches.len(), 1, "{caches:?}");
    let number = |name: &str| caches[0][name].parse::<u64>().unwrap();
    assert_eq!((number("size"), number("hits"), number("reprepares")), (50, 8, 0));
    assert!(number("entries") >= 1 && number("bytes") > 0 && number("first_uses") >= 1);
    assert!(caches[0]["hit_rate"].starts_with("0."));
    let texts = proxy.show("stmt_cache_texts");
    let row = texts.iter().find(|row| row["text"].contains("\"monster\".\"id\" = 2")).unwrap();
    assert_eq!((row["hits"].as_str(), row["path"].as_str()), ("8", "it.db"));
    let scraped = scrape(port);
    assert!(scraped.contains("\nrefrain_stmt_cache_hits_total{path=\"it.db\"} 8\n"), "{scraped}");
}

#[test]
fn a_file_that_cannot_be_opened_says_so_at_the_start() {
    let mut command = Command::new(program().unwrap());
    command.arg("sqlite:/no/such/folder/app.db").args(["--listen", "127.0.0.1:0"]);
    let output = command.args(["--metrics-listen", "off"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("/no/such/folder/app.db"), "{said}");
}

#[test]
fn bulk_writes_end_and_who_leaves_amid_one_lets_others_write() {
    let proxy = Config::sqlite().start();
    let mut session = proxy.open("app");
    session.run("create table bulk (id integer primary key, word text)");
    let data = format!("{}\n", "x".repeat(99)).repeat(20_000).into_bytes();
    session.send(&[query("copy bulk (word) from stdin")]);
    session.send(&[Msg::CopyData(data), Msg::CopyDone]);
    assert_eq!(session.ready().words(), "G C(COPY 20000) Z(I)");
    session.run("begin; insert into bulk (word) values ('kept by nobody')");
    let long =
        encode(&[query(&format!("insert into bulk (word) values ('{}')", "x".repeat(400_000)))]);
    session.write(&long[..300_000]);
    let mut other = proxy.open("app");
    other.send(&[query("insert into bulk (word) values ('other')")]);
    session.vanish();
    assert_eq!(other.ready().words(), "C(INSERT 0 1) Z(I)");
    assert_eq!(other.value("select count(*) from bulk"), "20001");
}

#[test]
fn a_file_that_is_gone_is_not_made_again_and_is_told_in_the_log() {
    let folder = Folder::new("gone");
    let path = folder.path().join("it.db");
    let proxy = Config::sqlite().server("path", &format!("{path:?}")).start();
    monsters(&proxy);
    fs::remove_file(&path).unwrap();
    let mut session = proxy.open("app");
    assert_eq!(session.query("insert into monster (name) values ('ghost')").code(), "58P01");
    assert_eq!(proxy.open("other").query("select count(*) from monster").code(), "58P01");
    assert!(!path.exists(), "no file is made in its place");
    eventually("the log says so", || {
        let log = proxy.log();
        log.contains("moved, replaced or deleted") && log.contains("it.db")
    });
    assert_eq!(session.query("select 1").code(), "58P01");
}

#[test]
fn a_damaged_page_is_told_in_the_log() {
    let folder = Folder::new("damaged");
    let path = folder.path().join("it.db");
    let config = Config::sqlite().server("path", &format!("{path:?}"));
    // Without a page cache SQLite reads rows from the file.
    let proxy = config.server("sqlite_cache_size", "\"0B\"").start();
    let mut session = proxy.open("app");
    session.run("create table t (word text)");
    session.run(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) \
         insert into t select printf('%01000d', i) from n",
    );
    eventually("it is in the file", || {
        fs::metadata(&path).is_ok_and(|file| file.len() > 20_000_000)
    });
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    assert_eq!(session.query("select sum(length(word)) from t").code(), "XX001");
    eventually("the log says so", || proxy.log().contains("sqlstate=XX001"));
    assert_eq!(session.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
}
