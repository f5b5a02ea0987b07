//! The file that Refrain serves is an ordinary SQLite file, which other programs may use at the
//! same time.

use std::path::Path;
use std::process::{Command, Output};

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy};

/// A Python program that runs statements one by one and waits for no lock. Python has an SQLite of
/// its own, of another version.
const OTHER: &str = "import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
for sql in sys.argv[2:]:
    for row in c.execute(sql):
        print(*row, sep='|')";

/// Runs statements on the file with another SQLite.
fn other(file: &Path, statements: &[&str]) -> Output {
    let mut python = Command::new("python3");
    python.args(["-c", OTHER]).arg(file).args(statements).output().unwrap()
}

fn other_says(file: &Path, statements: &[&str]) -> String {
    let output = other(file, statements);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{statements:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn there_is_another() -> bool {
    let tried = Command::new("python3").args(["-c", "import sqlite3"]).status();
    let there = tried.is_ok_and(|status| status.success());
    if !there {
        println!("passed over: no Python with SQLite");
    }
    there
}

fn monsters(proxy: &Proxy) -> Session {
    let mut session = proxy.open("app");
    session.run("create table monster (id integer primary key, name text)");
    session.run("insert into monster (name) values ('slime'), ('bat')");
    session
}

#[test]
fn another_sqlite_reads_and_writes_the_file_while_it_is_served() {
    if !there_is_another() {
        return;
    }
    let proxy = Config::sqlite().start();
    let (mut session, file) = (monsters(&proxy), proxy.folder().join("it.db"));
    let all = "select id, name from monster order by id";
    assert_eq!(other_says(&file, &[all]), "1|slime\n2|bat");
    assert_eq!(other_says(&file, &["pragma journal_mode", "pragma integrity_check"]), "wal\nok");

    session.run("begin");
    session.run("insert into monster (name) values ('drake')");
    assert_eq!(other_says(&file, &["select count(*) from monster"]), "2", "it is not committed");
    let refused = other(&file, &["delete from monster"]);
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && complaint.contains("locked"), "{complaint}");
    session.run("commit");
    assert_eq!(other_says(&file, &["select name from monster where id = 3"]), "drake");

    other_says(&file, &["insert into monster (name) values ('ghost')"]);
    assert_eq!(session.value("select name from monster where id = 4"), "ghost");
}

#[test]
fn another_sqlite_s_schema_change_is_seen() {
    if !there_is_another() {
        return;
    }
    let proxy = Config::sqlite().start();
    let (mut session, file) = (monsters(&proxy), proxy.folder().join("it.db"));
    let described = [
        parse("s", "select * from monster where id = $1"),
        Msg::DescribeStatement("s".into()),
        Msg::Sync,
    ];
    assert_eq!(session.ask(&described).words(), "1 t T Z(I)");
    let run = [bind("s", &["1"]), execute(), Msg::Sync];
    // After the third time the SQLite session has the statement under a name.
    for _ in 0..3 {
        assert_eq!(session.ask(&run).words(), "2 D(1,slime) C(SELECT 1) Z(I)");
    }
    other_says(&file, &["alter table monster add column hp int default 7"]);
    assert_eq!(
        session.query("select * from monster where id = 1").words(),
        "T D(1,slime,7) C(SELECT 1) Z(I)"
    );
    let unnamed =
        [parse("", "select * from monster where id = 2"), bind("", &[]), execute(), Msg::Sync];
    assert_eq!(session.ask(&unnamed).words(), "1 2 D(2,bat,7) C(SELECT 1) Z(I)");
    let reply = session.ask(&run);
    assert_eq!(reply.code(), "0A000", "{}", reply.words());
    let anew =
        [parse("s2", "select * from monster where id = $1"), Msg::DescribeStatement("s2".into())];
    let anew = anew.into_iter().chain([bind("s2", &["1"]), execute(), Msg::Sync]);
    assert_eq!(
        session.ask(&anew.collect::<Vec<_>>()).words(),
        "1 t T 2 D(1,slime,7) C(SELECT 1) Z(I)"
    );
    let run = [bind("s2", &["2"]), execute(), Msg::Sync];
    assert_eq!(session.ask(&run).words(), "2 D(2,bat,7) C(SELECT 1) Z(I)");
}

/// With two queues, SQLite would decide who writes, and it keeps no queue.
#[test]
fn after_a_reload_there_is_still_one_line_of_those_who_write() {
    let config = Config::sqlite().general("workers", "1").pool("pool_size", "2");
    let proxy = config.clone().start();
    let mut holder = monsters(&proxy);
    holder.run("begin");
    holder.run("insert into monster (name) values ('drake')");
    let config = config.server("sqlite_lock_timeout", "\"150ms\"");
    let config = config.server("sqlite_busy_timeout", "\"0ms\"").server("path", "\"./it.db\"");
    proxy.reload(&config.server("stmt_cache_size", "7"));
    let mut second = proxy.open("app");
    let reply = second.query("insert into monster (name) values ('ghost')");
    let said = reply.error().map(|frame| String::from_utf8_lossy(frame.field(b'M')));
    assert_eq!(said.as_deref(), Some("canceling statement due to lock timeout"));
    holder.run("commit");
    second.run("insert into monster (name) values ('ghost')");
    assert_eq!(second.value("select count(*) from monster"), "4");
    let sizes: Vec<_> = proxy.show("stmt_cache").iter().map(|row| row["size"].clone()).collect();
    assert!(sizes.contains(&"7".to_owned()), "{sizes:?}");
}
