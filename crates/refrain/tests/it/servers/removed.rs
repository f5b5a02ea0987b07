//! Users and databases that the configuration no longer has: their sessions end with their
//! transactions, and their servers are closed.

use crate::session::{Session, query, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn over_15() -> Config {
    Config::over(cluster(Version::V15)).pool("pool_size", "3")
}

/// The error for a client that is disconnected.
const LEAVES: &str = "E(57P01)";

/// Counts the servers of a database.
fn servers(proxy: &Proxy, database: &str) -> usize {
    proxy.show_of("servers", database).len()
}

/// Sessions in every state: sessions that are disconnected at once, and one within a transaction.
struct Sessions {
    at_once: Vec<Session>,
    busy: Session,
}

fn sessions(open: impl Fn() -> Session, waits: impl Fn()) -> Sessions {
    let mut idle = open();
    idle.run("select 1");
    let mut pinned = open();
    pinned.run("create temp table mine (a int)");
    let mut busy = open();
    busy.run("begin");
    let mut other = open();
    other.run("begin");
    let mut waiting = open();
    waiting.send(&[query("select 1")]);
    waits();
    other.run("commit");
    // The third server went to the client that waited; that client is between two transactions now.
    assert_eq!(waiting.ready().words(), "T D(1) C(SELECT 1) Z(I)");
    Sessions { at_once: vec![idle, pinned, other, waiting], busy }
}

fn leave(sessions: Sessions) {
    for mut session in sessions.at_once {
        assert_eq!(session.rest().words(), LEAVES);
    }
    let mut busy = sessions.busy;
    assert_eq!(busy.query("select 2").words(), "T D(2) C(SELECT 1) Z(T)");
    busy.send(&[query("commit")]);
    assert_eq!(busy.rest().words(), format!("C(COMMIT) Z(I) {LEAVES}"));
}

fn wait_for_waiting(proxy: &Proxy, database: &str) {
    eventually("it waits", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == "1")
    });
}

#[test]
fn sessions_of_a_database() {
    let gone = database("removed_gone");
    let stays = database("removed_stays");
    let cluster = cluster(Version::V15);
    let place = format!("host = {:?}\nport = {}\n", cluster.host(), cluster.port());
    let both = over_15().only(gone).more(&format!("[databases.{stays}]\n{place}"));
    let one = over_15().only(stays);
    let proxy = both.clone().start();
    let mut kept = proxy.open(stays);
    kept.run("begin");
    let all = sessions(|| proxy.open(gone), || wait_for_waiting(&proxy, gone));
    assert_eq!(servers(&proxy, gone), 3);
    // A client that waits has no transaction yet.
    let mut holder = proxy.open(gone);
    holder.run("begin");
    let mut waiting = proxy.open(gone);
    waiting.send(&[query("select 1")]);
    wait_for_waiting(&proxy, gone);
    proxy.reload(&one);
    assert_eq!(waiting.rest().words(), LEAVES);
    holder.run("rollback");
    assert_eq!(holder.rest().words(), LEAVES);
    leave(all);
    eventually("its servers go", || servers(&proxy, gone) == 0);
    let refused = Session::login(proxy.addr(), &[("user", "postgres"), ("database", gone)]);
    assert_eq!(refused.unwrap_err().code(), "3D000");
    assert_eq!(kept.query("commit").words(), "C(COMMIT) Z(I)");
    eventually("it is logged", || proxy.log().contains("cause=removed"));
    proxy.reload(&both);
    assert_eq!(proxy.open(gone).value("select 3"), "3");
}

/// Logs in a user who needs a password.
fn with_password(proxy: &Proxy, user: &str, database: &str) -> Option<Session> {
    let params = [("user", user), ("database", database)];
    let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
    assert_eq!(session.frame().map(|frame| frame.tag), Some(b'R'));
    session.write(b"p\0\0\0\x07pw\0");
    session.ready().status().map(|_| session)
}

fn users(names: &[&str]) -> String {
    names.iter().map(|name| format!("[users.{name}]\npassword = \"pw\"\n")).collect()
}

#[test]
fn sessions_of_a_user() {
    let database = database("removed_user");
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    direct.run("drop role if exists removed_one");
    direct.run("create role removed_one login");
    let closed = over_15().general("auth", "\"password\"");
    let proxy = closed.clone().more(&users(&["removed_one", "postgres"])).start();
    let waits = || {
        let mut console = with_password(&proxy, "postgres", "refrain").unwrap();
        eventually("it waits", || {
            let pools = console.query("show pools");
            pools
                .rows()
                .iter()
                .any(|row| row[0].as_deref() == Some(database) && row[3].as_deref() == Some("1"))
        });
    };
    let all = sessions(|| with_password(&proxy, "removed_one", database).unwrap(), waits);
    let mut kept = with_password(&proxy, "postgres", database).unwrap();
    // A login that began before the reload and ends after it.
    let params = [("user", "removed_one"), ("database", database)];
    let mut late = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
    assert_eq!(late.frame().map(|frame| frame.tag), Some(b'R'));
    proxy.reload_by_signal(&closed.more(&users(&["postgres"])));
    leave(all);
    late.write(b"p\0\0\0\x07pw\0");
    assert_eq!(late.rest().code(), "28P01");
    assert!(with_password(&proxy, "removed_one", database).is_none());
    assert_eq!(kept.value("select 1"), "1");
    let theirs = "select count(*) from pg_stat_activity where usename = 'removed_one'";
    eventually("their servers go", || direct.value(theirs) == "0");
    direct.run("drop role removed_one");
}

#[test]
fn sessions_with_the_console() {
    let closed = over_15().general("auth", "\"password\"");
    let looks = |config: Config| config.general("stats_users", "[\"one\", \"two\"]");
    let config = looks(closed.clone().more(&users(&["postgres", "one", "two"])));
    let proxy = config.start();
    let console = |user: &str| with_password(&proxy, user, "refrain").unwrap();
    let (mut boss, mut one, mut two) = (console("postgres"), console("one"), console("two"));
    for session in [&mut boss, &mut one, &mut two] {
        assert!(session.query("show version").error().is_none());
    }
    let config = closed.clone().general("stats_users", "[\"one\"]");
    proxy.reload_by_signal(&config.more(&users(&["postgres", "one", "two"])));
    assert_eq!(two.rest().words(), LEAVES, "who may not look any more");
    proxy.reload_by_signal(&looks(closed.more(&users(&["postgres"]))));
    assert_eq!(one.rest().words(), LEAVES, "who is not configured any more");
    assert!(boss.query("show version").error().is_none());
}

#[test]
fn sessions_in_session_mode() {
    let gone = database("removed_session");
    let config = over_15().pool("pool_mode", "\"session\"").only(gone);
    let proxy = config.start();
    let mut idle = proxy.open(gone);
    idle.run("select 1");
    let mut busy = proxy.open(gone);
    busy.run("begin");
    proxy.reload(&over_15().only("postgres"));
    assert_eq!(idle.rest().words(), LEAVES);
    busy.send(&[query("rollback")]);
    assert_eq!(busy.rest().words(), format!("C(ROLLBACK) Z(I) {LEAVES}"));
    eventually("its servers go", || servers(&proxy, gone) == 0);
}
