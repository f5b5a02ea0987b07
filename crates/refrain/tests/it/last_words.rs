//! Clients that have said their last word before they were answered: by Terminate in the same write, or by ending their
//! half of the connection. PostgreSQL answers what came before that, and so does the program.

use std::sync::mpsc;
use std::thread;

use refrain_differ::msg::Msg;

use crate::reply::words;
use crate::session::{Session, bind, encode, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// How a client ends its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    Terminate,
    HalfClosed,
    Both,
    /// In the middle of a message.
    Cut,
    /// In the middle of one of which the server has the beginning.
    HalfSent,
}

const FAREWELLS: [Farewell; 5] =
    [Farewell::Terminate, Farewell::HalfClosed, Farewell::Both, Farewell::Cut, Farewell::HalfSent];

/// What a session is told that says this and leaves, in one write.
fn told(mut session: Session, msgs: &[Msg], farewell: Farewell) -> String {
    let mut bytes = encode(msgs);
    match farewell {
        Farewell::Terminate | Farewell::Both => bytes.extend_from_slice(TERMINATE),
        Farewell::Cut => bytes.extend_from_slice(b"Q\0\0\0\x20select 1"),
        Farewell::HalfSent => {
            let more = encode(&[parse("", "select $1::text"), bind("", &["a value"])]);
            bytes.extend_from_slice(&more[..more.len() - 5]);
        }
        Farewell::HalfClosed => {}
    }
    session.write(&bytes);
    if farewell != Farewell::Terminate {
        session.end_writing();
    }
    words(&session.rest().frames)
}

/// Requests before which nothing is done in a session.
fn requests() -> Vec<Vec<Msg>> {
    let run = |sql: &str| vec![parse("", sql), bind("", &[]), execute()];
    let synced = |sql: &str| [run(sql), vec![Msg::Sync]].concat();
    let data = |text: &str| Msg::CopyData(text.as_bytes().to_vec());
    vec![
        vec![],
        vec![query("select 1")],
        vec![query("select 1"), query("select 2"), query("select 1/0"), query("select 3")],
        vec![query("select n, repeat('x', 1000) from generate_series(1, 5000) n")],
        synced("select 4"),
        [synced("select 5"), synced("select 1/0"), synced("select 6")].concat(),
        [run("select 1/0"), run("select 9")].concat(),
        [run("select 10"), vec![Msg::Flush]].concat(),
        vec![query("begin"), query("insert into t values (1)")],
        vec![query("insert into t values (2)"), query("select count(*) from t")],
        vec![query("copy t from stdin"), data("3\n"), Msg::CopyDone],
        vec![query("copy t from stdin"), data("4\n")],
        vec![query("copy t to stdout")],
        vec![query("set application_name = 'x'"), query("show application_name")],
        vec![query("prepare q as select 1"), query("execute q")],
        vec![Msg::Sync, Msg::Sync],
        vec![query("select 11"), Msg::Raw(b'z', vec![1])],
        vec![query("select 12"), Msg::Raw(b'S', vec![1])],
    ]
}

/// What PostgreSQL leaves unsent of the replies: here they are told.
fn unflushed() -> [Vec<Msg>; 2] {
    let run = |sql: &str| [parse("", sql), bind("", &[]), execute()];
    [run("select 7").to_vec(), [vec![query("select 8")], run("select 9").to_vec()].concat()]
}

fn answered(driver: &str, name: &'static str) {
    let database = database(name);
    let own = addr(cluster(Version::V15));
    let config = Config::over(cluster(Version::V15)).general("driver", &format!("{driver:?}"));
    let proxy = config.start();
    let table = "drop table if exists t; create table t (a int)";
    for farewell in FAREWELLS {
        for msgs in unflushed() {
            let expected = told(Session::open(own, database), &msgs, farewell);
            let is = told(proxy.open(database), &msgs, farewell);
            assert!(is.starts_with(&expected), "{farewell:?} {msgs:?}: {is}");
        }
        for msgs in requests() {
            // Behind half a message no Flush can be sent: of a segment that is cut nothing is told; amid a COPY it intrudes.
            let open =
                matches!(msgs.last(), Some(Msg::Execute(..) | Msg::Flush | Msg::CopyData(_)));
            if farewell == Farewell::HalfSent && open {
                continue;
            }
            Session::open(own, database).run(table);
            let expected = told(Session::open(own, database), &msgs, farewell);
            Session::open(own, database).run(table);
            let is = told(proxy.open(database), &msgs, farewell);
            assert_eq!(is, expected, "{farewell:?} {msgs:?}");
            let next = proxy.open(database).value("select current_setting('application_name')");
            assert_eq!(next, "", "{farewell:?} {msgs:?}");
        }
    }
    assert_eq!(proxy.counter("unexpected_messages"), 0);
    let none = || proxy.show_of("clients", database).is_empty();
    eventually("nobody is left", none);
}

#[test]
fn io_uring_answers_what_came_before_the_end() {
    answered("uring", "last_words_uring");
}

#[test]
fn epoll_answers_what_came_before_the_end() {
    answered("epoll", "last_words_epoll");
}

/// Who waits for a server is answered all the same, and what it has asked for is done.
fn answered_after_waiting(proxy: &Proxy, database: &str, farewell: Farewell) {
    let mut busy = proxy.open(database);
    busy.run("begin");
    let waits = proxy.open(database);
    let (tell, told_it) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let msgs = [query("insert into t values (1)"), query("select count(*) from t")];
        tell.send(told(waits, &msgs, farewell)).unwrap();
    });
    let waiting = || proxy.show_of("pools", database)[0]["cl_waiting"] == "1";
    eventually("it waits", waiting);
    busy.run("truncate t; commit");
    let answer = told_it.recv().unwrap();
    waiter.join().unwrap();
    assert_eq!(answer, "C(INSERT 0 1) Z(I) T D(1) C(SELECT 1) Z(I)", "{farewell:?}");
}

#[test]
fn who_waits_for_a_server_is_answered_after_its_last_word() {
    let database = database("last_words_waiting");
    let proxy = Config::over(cluster(Version::V15)).start();
    proxy.open(database).run("create table t (a int)");
    for farewell in FAREWELLS {
        answered_after_waiting(&proxy, database, farewell);
    }
    assert_eq!(proxy.open(database).value("select count(*) from t"), "1");
}
