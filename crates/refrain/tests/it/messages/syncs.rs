//! Syncs around a COPY FROM STDIN that fails: PostgreSQL does not say which of them the COPY has
//! consumed (E42).

use refrain_differ::msg::Msg;

use crate::reply::words;
use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Version, addr, cluster, database};

const SETUP: &str = "create table t (a int); create view v as select a from t union all select 1; \
    create function no() returns trigger language plpgsql as $$begin raise 'no'; end$$; \
    create table never (a int); \
    create trigger no before insert on never for each statement execute function no()";

fn data(text: &str) -> Msg {
    Msg::CopyData(text.as_bytes().to_vec())
}

/// Sends `first`, and `then` after an error. Returns the replies.
fn replies(session: &mut Session, first: &[Msg], then: &[Msg]) -> String {
    let (mut frames, mut sent) = (Vec::new(), false);
    session.send(first);
    while let Some(frame) = session.answer() {
        let fails = frame.tag == b'E';
        let ends = frame.tag == b'Z' && words(&frames).contains("D(end)");
        frames.push(frame);
        if fails && !std::mem::replace(&mut sent, true) {
            session.send(then);
        }
        if ends {
            break;
        }
    }
    words(&frames)
}

#[test]
fn each_sync_is_answered_that_a_copy_has_not_swallowed() {
    let database = database("syncs");
    let direct = &mut Session::open(addr(cluster(Version::V15)), database);
    direct.run(SETUP);
    let proxy = Config::over(cluster(Version::V15)).start();
    let end = query("select 'end'");
    let copy = |text: &str, more: Vec<Msg>| {
        [vec![parse("", text), bind("", &[]), execute()], more].concat()
    };
    let fails_at_once = || copy("copy v from stdin", vec![Msg::Sync]);
    let cases = [
        // These are the messages of tokio-postgres.
        (fails_at_once(), vec![end.clone()]),
        (fails_at_once(), vec![data("1\n"), Msg::CopyDone, Msg::Sync, end.clone()]),
        (copy("copy never from stdin", vec![Msg::Sync, Msg::Sync]), vec![end.clone()]),
        ([fails_at_once(), vec![Msg::CopyDone, Msg::Sync, end.clone()]].concat(), vec![]),
        // The COPY consumes a Sync before the data that is wrong.
        (
            copy("copy t from stdin", vec![Msg::Sync, data("1\n"), Msg::Sync, data("x\n")]),
            vec![data("2\n"), Msg::CopyDone, Msg::Sync, end.clone()],
        ),
        (
            copy("copy t from stdin", vec![Msg::Sync, data("x\n"), Msg::Sync, Msg::CopyDone]),
            vec![end.clone()],
        ),
        (
            vec![query("copy t from stdin"), data("x\n"), Msg::Sync, Msg::CopyDone, Msg::Sync],
            vec![end.clone()],
        ),
        (
            vec![query("copy t from stdin"), Msg::Sync, data("x\n"), Msg::CopyDone, end.clone()],
            vec![],
        ),
        // After the COPY come a request that Refrain answers without the server, and another.
        (
            [
                vec![parse("s1", "select 1"), Msg::Sync],
                copy("copy t from stdin", vec![Msg::Sync, data("x\n"), Msg::CopyDone, Msg::Sync]),
                vec![Msg::CloseStatement(b"s1".to_vec()), Msg::Sync, end.clone()],
            ]
            .concat(),
            vec![],
        ),
        (
            [
                vec![parse("s1", "select 1"), Msg::Sync],
                copy("copy v from stdin", vec![Msg::Sync, data("1\n"), Msg::CopyDone]),
                vec![parse("s2", "select 1"), Msg::Sync, Msg::CloseStatement(b"s1".to_vec())],
                vec![Msg::CloseStatement(b"s2".to_vec()), Msg::Sync, end.clone()],
            ]
            .concat(),
            vec![],
        ),
        (vec![query("begin"), query("copy v from stdin"), Msg::Sync], vec![query("rollback"), end]),
    ];
    for (first, then) in cases {
        let expected = replies(direct, &first, &then);
        let mut client = proxy.open(database);
        assert_eq!(replies(&mut client, &first, &then), expected, "{first:?} {then:?}");
        assert_eq!(proxy.open(database).value("select 2"), "2", "its server is free");
    }
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}

#[test]
fn two_copies_of_a_query_have_an_end_each() {
    let database = database("syncs_two");
    let direct = &mut Session::open(addr(cluster(Version::V15)), database);
    direct.run(SETUP);
    let proxy = Config::over(cluster(Version::V15)).start();
    let first = [
        query("copy t from stdin; copy t from stdin"),
        data("1\n"),
        Msg::CopyDone,
        Msg::Sync,
        data("2\n"),
        Msg::Sync,
        Msg::CopyDone,
        query("select 'end'"),
    ];
    let expected = replies(direct, &first, &[]);
    assert_eq!(replies(&mut proxy.open(database), &first, &[]), expected);
}

#[test]
fn nobody_waits_for_what_postgresql_keeps_behind_a_copy() {
    let database = database("syncs_kept");
    let direct = &mut Session::open(addr(cluster(Version::V15)), database);
    direct.run(SETUP);
    let proxy = Config::over(cluster(Version::V15)).start();
    // The COPY consumes the Sync, and the next flush reports its end. Until then the unnamed
    // statement is unsettled.
    let copy = [
        parse("", "copy t from stdin"),
        bind("", &[]),
        execute(),
        data("1\n"),
        Msg::Sync,
        Msg::CopyDone,
    ];
    let more = [bind("", &[]), Msg::Sync, query("select 'end'")];
    let replies = |session: &mut Session| {
        session.send(&copy);
        let mut frames = Vec::new();
        while !words(&frames).ends_with('G') {
            frames.extend(session.answer());
        }
        session.send(&more);
        while !words(&frames).contains("D(end)") {
            frames.extend(session.answer());
        }
        words(&frames)
    };
    assert_eq!(replies(&mut proxy.open(database)), replies(direct));
}

#[test]
fn a_flush_with_a_body_ends_its_own_session_only() {
    let database = database("syncs_flush");
    let proxy = Config::over(cluster(Version::V15)).start();
    let mut client = proxy.open(database);
    client.send(&[query("begin"), Msg::Raw(b'H', b"x".to_vec())]);
    while client.answer().is_some() {}
    assert_eq!(proxy.open(database).value("select 2"), "2");
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}

#[test]
fn a_sync_with_a_body_is_refused_as_by_postgresql() {
    let database = database("syncs_body");
    let direct = &mut Session::open(addr(cluster(Version::V15)), database);
    let proxy = Config::over(cluster(Version::V15)).start();
    let client = &mut proxy.open(database);
    let sync = || Msg::Raw(b'S', b"x".to_vec());
    let run = |sql: &str| [parse("", sql), bind("", &[]), execute()].to_vec();
    let end = || query("select 'end'");
    let cases = [
        vec![sync(), end()],
        vec![sync(), Msg::Sync, end()],
        [run("select 1"), vec![sync(), end()]].concat(),
        [run("select 1/0"), vec![sync(), end()]].concat(),
        vec![query("begin"), sync(), query("rollback"), end()],
    ];
    for msgs in cases {
        let replies = |session: &mut Session| {
            session.send(&msgs);
            let mut frames = Vec::new();
            while !words(&frames).ends_with("D(end) C(SELECT 1) Z(I)") {
                frames.push(session.answer().expect("the session goes on"));
            }
            words(&frames)
        };
        assert_eq!(replies(client), replies(direct), "{msgs:?}");
    }
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}
