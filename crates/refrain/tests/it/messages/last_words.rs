//! Clients that leave before their requests were answered: by Terminate in the same write, or by
//! closing their half of the connection. PostgreSQL answers the requests before that, and so does
//! Refrain.

use std::sync::mpsc;
use std::thread;

use refrain_differ::msg::Msg;

use crate::reply::words;
use crate::session::{Session, bind, encode, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// The way in which a client ends its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    Terminate,
    HalfClosed,
    Both,
    /// The client leaves in the middle of a message.
    Cut,
    /// The client leaves in the middle of a message whose beginning the server has.
    HalfSent,
}

const FAREWELLS: [Farewell; 5] =
    [Farewell::Terminate, Farewell::HalfClosed, Farewell::Both, Farewell::Cut, Farewell::HalfSent];

/// Sends messages and leaves, in one write. Returns the replies.
fn replies(mut session: Session, msgs: &[Msg], farewell: Farewell) -> String {
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

/// Returns requests, each for a session in which nothing was done before.
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

/// Requests whose last replies PostgreSQL does not send, while Refrain does.
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
            let expected = replies(Session::open(own, database), &msgs, farewell);
            let is = replies(proxy.open(database), &msgs, farewell);
            assert!(is.starts_with(&expected), "{farewell:?} {msgs:?}: {is}");
        }
        for msgs in requests() {
            // Refrain cannot send Flush after half a message: the client gets no reply to the
            // segment that is cut, and within a COPY a Flush would intrude.
            let open =
                matches!(msgs.last(), Some(Msg::Execute(..) | Msg::Flush | Msg::CopyData(_)));
            if farewell == Farewell::HalfSent && open {
                continue;
            }
            Session::open(own, database).run(table);
            let expected = replies(Session::open(own, database), &msgs, farewell);
            Session::open(own, database).run(table);
            let is = replies(proxy.open(database), &msgs, farewell);
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

/// A client that waits for a server still gets its replies, and its requests run.
fn answered_after_waiting(proxy: &Proxy, database: &str, farewell: Farewell) {
    let mut busy = proxy.open(database);
    busy.run("begin");
    let waits = proxy.open(database);
    let (tell, answered) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let msgs = [query("insert into t values (1)"), query("select count(*) from t")];
        tell.send(replies(waits, &msgs, farewell)).unwrap();
    });
    let waiting = || proxy.show_of("pools", database)[0]["cl_waiting"] == "1";
    eventually("it waits", waiting);
    busy.run("truncate t; commit");
    let answer = answered.recv().unwrap();
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
